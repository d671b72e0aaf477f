// SPDX-License-Identifier: Apache-2.0
//! Names that others chose, of threads, files, functions, peers and requests, stay text: on a terminal they do nothing, and on a page
//! they are no markup. Real recordings, in which every name is hostile.

#![allow(clippy::unwrap_used, reason = "helpers of a test may panic like the test")]

use std::collections::BTreeSet;
use std::path::Path;

use diagnose::case::Case;
use diagnose::judge;
use recording::Recording;
use recording::tables::*;

use wakewalk_report::section::Terminal;
use wakewalk_report::verdict;
use wakewalk_report::views::{self, Material};

/// Clears a terminal, runs in a browser, and turns what follows around.
const HOSTILE: &str = "\u{1b}[2J<script>alert(1)</script>\u{202e}";

macro_rules! spoil {
    ($recording:expr, $($row:ident: $($column:ident),+;)+) => {
        $(for row in $recording.tables.rows_mut::<$row>() {
            $(if !row.$column.is_empty() { row.$column.push_str(HOSTILE); })+
        })+
    };
}

fn spoilt(name: &str) -> Recording {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/fixtures");
    let mut recording = recording::open(&fixtures.join(name).join("recording")).unwrap();
    spoil!(recording,
        Thread: comm;
        Process: comm, exe, cmdline, cgroup;
        Sample: comm;
        Wakeup: comm, waker_comm, path, peer;
        Frame: symbol, module, source;
        Neighbour: comm, cgroup;
        Connection: peer;
        Exchange: peer;
        Request: peer, label;
        Label: peer, label;
        Drop: reason, peer;
        SocketState: state, peer;
        Setting: entity, value;
        Standing: comm, peer, path;
        FileLock: comm, path;
        Death: comm;
        Birth: comm;
        Counter: entity;
        Gap: why;
    );
    recording
}

/// The sections that there were.
fn check(name: &str) -> Vec<&'static str> {
    let recording = spoilt(name);
    let case = Case::new(&recording);
    let found = judge(&case);
    let mut all = views::sections(&Material::new(&found, &case)).concat();
    all.iter_mut().for_each(|section| section.terminal = Terminal::All);
    let mut drawn = Vec::new();
    verdict::draw(&found, &all, 80, &mut drawn).unwrap();
    verdict::draw_brief(&found, &all, 80, &mut drawn).unwrap();
    let drawn = String::from_utf8(drawn).unwrap();
    assert!(drawn.contains(r"\x1b[2J"), "{name}: names are shown");
    assert!(!drawn.contains("\u{1b}[2J") && !drawn.contains('\u{202e}'), "{name}");
    let page = verdict::page(&found, &all).unwrap();
    assert_eq!(page.matches("<script").count(), 2, "{name}: the data and the script");
    assert!(!page.contains('\u{1b}') && !page.contains('\u{202e}'), "{name}");
    all.iter().map(|section| section.id).collect()
}

#[test]
fn in_every_section() {
    let names = [
        "slow-endpoint",
        "three-tiers",
        "slow-store",
        "few-slow",
        "flock",
        "busy-poll",
        "noisy-neighbour",
        "slow-reader",
        "endless-loop",
        "loss-netns",
        "keeper-stands",
    ];
    let seen: BTreeSet<&str> = names.into_iter().flat_map(check).collect();
    let sources = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/views")).unwrap();
    let sources = sources.filter_map(|entry| std::fs::read_to_string(entry.unwrap().path()).ok());
    let id = |text: &str| text.trim_start().strip_prefix('"')?.split_once('"').map(|(id, _)| id.to_string());
    let ids: BTreeSet<String> =
        sources.flat_map(|source| source.split("Section::new(").skip(1).filter_map(id).collect::<Vec<_>>()).collect();
    assert!(ids.len() > 20, "{ids:?}");
    // Of a timeline, which `--every` asks for, verdicts are judged one by one.
    let missing: Vec<&String> = ids.iter().filter(|id| !seen.contains(id.as_str()) && *id != "timeline").collect();
    assert!(missing.is_empty(), "no recording here has {missing:?}, only {seen:?}");
}
