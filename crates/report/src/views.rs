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
mod socket_states;
mod sockets;
mod stages;
mod standing;
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
    standing::view,
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
    socket_states::view,
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
