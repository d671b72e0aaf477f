// SPDX-License-Identifier: Apache-2.0
//! From a verdict to sections: what is worth showing and in which words, never how it looks.
//!
//! A view is one file with one function and one line in a list below. Their order is the order of
//! the report: an engineer reads from the top and stops when it is enough. Views of facts belong between the
//! evidence and what was ruled out.

pub mod head;

mod also;
mod calls;
mod capture;
mod coverage;
mod endpoints;
pub(crate) mod evidence;
mod exemplars;
mod gaps;
mod hops;
mod ledger;
mod neighbours;
mod paths;
pub(crate) mod profile;
mod requests;
pub(crate) mod resources;
mod ruled_out;
mod series;
mod sockets;
mod stages;
pub(crate) mod thread_names;
mod threads;
mod timeline;
mod waits;
mod walk;

use diagnose::Case;
use diagnose::verdict::Verdict;

use crate::section::Section;

/// What views are made from: the answer, and the case that it answers, for the facts.
#[derive(Clone, Copy)]
pub struct Material<'a> {
    /// The verdict.
    pub verdict: &'a Verdict,
    /// The recording and its facts; a fact is computed when the first view asks for it.
    pub case: &'a Case<'a>,
}

impl<'a> Material<'a> {
    /// Material for the views of one report.
    #[must_use]
    pub fn new(verdict: &'a Verdict, case: &'a Case<'a>) -> Self {
        Self { verdict, case }
    }
}

/// A view: a section, or none where there is nothing to say.
pub type View = fn(&Material<'_>) -> Option<Section>;

/// What was found: the views with which the report begins.
const FOUND: &[View] = &[
    timeline::view,
    requests::view,
    stages::view,
    endpoints::view,
    hops::view,
    paths::view,
    exemplars::view,
    ledger::view,
    evidence::view,
    also::view,
];

/// What it was found in, in the order of the report.
const FOUND_IN: &[View] = &[
    walk::view,
    threads::view,
    profile::view,
    calls::view,
    neighbours::view,
    resources::view,
    sockets::view,
    waits::view,
    series::view,
    ruled_out::view,
    gaps::view,
    coverage::view,
    capture::view,
];

/// The sections of what was found, and those of what it was found in.
#[must_use]
pub fn sections(material: &Material<'_>) -> [Vec<Section>; 2] {
    [FOUND, FOUND_IN].map(|views| views.iter().filter_map(|view| view(material)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::section::Block;

    /// What a view makes of a recording written as text, drawn on every format for good measure.
    pub fn section(view: View, text: &str) -> Option<Section> {
        let verdict: Verdict = serde_json::from_str(include_str!("../tests/data/busy-poll.json")).unwrap();
        let recording = recording::text::parse(text).unwrap();
        let section = view(&Material::new(&verdict, &Case::new(&recording)))?;
        let all = [Section { terminal: crate::section::Terminal::All, ..section.clone() }];
        let mut drawn = Vec::new();
        crate::formats::terminal::sections(&all, 80, &mut drawn).unwrap();
        crate::verdict::page(&verdict, &all).unwrap();
        Some(section)
    }

    /// Its tables, the heads as the first row.
    pub fn tables(section: &Section) -> Vec<Vec<Vec<String>>> {
        let table = |block: &Block| match block {
            Block::Table { columns, rows, .. } => {
                let heads = columns.iter().map(|column| column.title.clone()).collect();
                Some([vec![heads], rows.clone()].concat())
            }
            _ => None,
        };
        section.blocks.iter().filter_map(table).collect()
    }

    #[test]
    fn no_view_minds_an_empty_recording() {
        for text in
            ["", "meta host.arch=vax length_ns=0", "sample\nthread\nwait\ncall\ncall_window\ncall_example args=[1]"]
        {
            FOUND.iter().chain(FOUND_IN).for_each(|view| drop(section(*view, text)));
        }
    }

    #[test]
    fn names_of_the_target_stay_text() {
        let name = r#""\u001b[2J<script>alert(1)</script>\u202e""#;
        let hostile = format!(
            "meta host.arch=x86_64 target.sample_hz=99 target.pids=[1]
             frame id=1 symbol={name} module={name} kind={name}
             stack id=1 frames=[1]
             thread t_ns=1e9 pid=1 tid=1 comm={name} wall_ns=9e8 cpu_ns=5e8 run_queue_ns=4e8
             thread t_ns=2e9 comm={name} instances=2 wall_ns=9 cpu_ns=9
             sample pid=1 tid=1 comm={name} kernel=true syscall=232 stack=1
             wait pid=1 tid=1 syscall=232 stack=1 total_ns=5
             call pid=1 tid=1 syscall=232 count=5
             call_example pid=1 tid=1 syscall=232 args=[1,2,3,4] result=0
             wakeup pid=1 tid=1 comm={name} t_ns=9 wait_ns=5 blocked_ns=5 fd_kind={name} context=thread waker_pid=9 waker_tid=9 waker_comm={name} waker_stack=1
             neighbour pid=9 comm={name} cgroup={name} delayed_ns=4e8
             counter t_ns=0 source=proc/diskstats entity={name} name=io_ns value=0
             counter t_ns=9 source=proc/diskstats entity={name} name=io_ns value=9e9"
        );
        let verdict: Verdict = serde_json::from_str(include_str!("../tests/data/healthy.json")).unwrap();
        let recording = recording::text::parse(&hostile).unwrap();
        let mut all = sections(&Material::new(&verdict, &Case::new(&recording))).concat();
        let ids: Vec<_> = all.iter().map(|section| section.id).collect();
        for id in ["threads", "profile", "calls", "neighbours", "use", "walk", "waits", "series"] {
            assert!(ids.contains(&id), "{id} is not among {ids:?}");
        }
        all.iter_mut().for_each(|section| section.terminal = crate::section::Terminal::All);
        let mut drawn = Vec::new();
        crate::verdict::draw(&verdict, &all, 80, &mut drawn).unwrap();
        let drawn = String::from_utf8(drawn).unwrap();
        assert!(drawn.contains(r"\x1b[2J") && !drawn.contains("\u{1b}[2J") && !drawn.contains('\u{202e}'));
        let page = crate::verdict::page(&verdict, &all).unwrap();
        assert_eq!(page.matches("<script").count(), 2, "the data and the script");
        assert!(!page.contains('\u{1b}') && !page.contains('\u{202e}'));
    }

    #[test]
    fn every_view_is_registered() {
        let list = include_str!("views.rs");
        for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/views")).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                continue;
            }
            let source = std::fs::read_to_string(&path).unwrap();
            let name = path.file_stem().unwrap().to_str().unwrap();
            let registered = list.contains(&format!("{name}::view"));
            assert!(registered || !source.contains("pub fn view("), "{name} is in no list");
        }
    }
}
