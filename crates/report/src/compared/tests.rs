// SPDX-License-Identifier: Apache-2.0
//! The report of a comparison, drawn from recordings written as text.

use diagnose::comparison::{Named, Per, compare};
use recording::Recording;

use super::*;
use crate::formats::terminal;
use crate::section::Block;

#[path = "../../tests/data/compared.rs"]
mod data;

/// A service of two functions, one of which may take nothing.
fn recorded(name: &str, usual: f64, extra: f64, start: u64) -> Recording {
    let parts = [("usual", usual), (name, extra)];
    data::recorded(name, if extra > 0.0 { &parts } else { &parts[..1] }, start).unwrap()
}

/// The comparison and its sections.
fn report(a: &Recording, b: &Recording) -> (Comparison, Vec<Section>) {
    let named = |recording, label: &str| Named { recording, label: label.into() };
    let comparison = compare(&named(a, "before"), &named(b, "after"), Per::Auto).unwrap();
    let cases = [Case::new(a), Case::new(b)];
    let sections = sections(&Compared { comparison: &comparison, cases: [&cases[0], &cases[1]] });
    (comparison, sections)
}

fn drawn(comparison: &Comparison, sections: &[Section]) -> String {
    let mut out = Vec::new();
    terminal::report(&head(comparison), sections, 80, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn the_answer_is_in_the_first_paragraph_and_lines_fit() {
    let (c, sections) = report(&recorded("svc", 0.3, 0.0, 1), &recorded("svc", 0.3, 0.1, 2));
    let text = drawn(&c, &sections);
    let answer = text.split("\n\n").next().unwrap();
    for word in
        ["What", "changed: ", "CPU time per write call rose by 33.3 %", "Load", "the same", "Else", "build of svc"]
    {
        assert!(answer.contains(word), "{word} is not in\n{answer}");
    }
    let plain =
        |line: &str| line.split('\u{1b}').map(|p| p.split_once('m').map_or(p, |x| x.1).to_owned()).collect::<String>();
    for line in text.lines() {
        assert!(textwrap::core::display_width(&plain(line)) <= 80 || !line.contains('\u{1b}'), "{line:?}");
    }
}

#[test]
fn the_graph_has_both_sides_and_the_functions_their_intervals() {
    let (c, sections) = report(&recorded("svc", 0.3, 0.0, 1), &recorded("svc", 0.3, 0.1, 2));
    let flame = sections.iter().find(|s| s.id == "compared-flame").unwrap();
    let Block::Flame { root, unit, .. } = &flame.blocks[0] else { panic!("no graph") };
    let cpu = c.measures.iter().find(|m| m.id == "cpu").unwrap().difference;
    let [before, after] = root.sides.unwrap();
    assert!((before - cpu.a * 1e6).abs() < 1e-6 && (after - cpu.b * 1e6).abs() < 1e-6, "{before} {after}");
    assert_eq!(unit, "µs of CPU time per write call");
    let text = drawn(&c, &sections);
    assert!(text.contains("Own work that certainly changed") && text.contains("new"), "{text}");
    let ids: Vec<_> = sections.iter().map(|s| s.id).collect();
    assert_eq!(
        ids,
        [
            "compared",
            "compared-functions",
            "compared-flame",
            "compared-details",
            "compared-use",
            "compared-inventory",
            "compared-remarks"
        ]
    );
}

#[test]
fn no_difference_reads_as_an_answer() {
    let (c, sections) = report(&recorded("svc", 0.3, 0.0, 1), &recorded("svc", 0.3, 0.0, 2));
    let text = drawn(&c, &sections);
    assert!(text.contains("none that the data can show") && text.contains("would"), "{text}");
}

#[test]
fn hostile_names_are_text() {
    let name = r#""\u001b[2J<script>alert(1)</script>\u202e""#;
    let (c, mut sections) = report(&recorded(name, 0.3, 0.0, 1), &recorded(name, 0.3, 0.2, 2));
    let text = drawn(&c, &sections);
    assert!(!text.contains("\u{1b}[2J") && !text.contains('\u{202e}'));
    sections.iter_mut().for_each(|s| s.terminal = crate::section::Terminal::All);
    assert!(!drawn(&c, &sections).contains("\u{1b}[2J"));
    let page = super::page(&c, &sections).unwrap();
    assert_eq!(page.matches("<script").count(), 2, "the data and the script");
    assert!(!page.contains('\u{1b}') && !page.contains('\u{202e}'));
}

#[test]
fn the_same_recordings_give_the_same_page() {
    let (a, b) = (recorded("svc", 0.3, 0.0, 1), recorded("svc", 0.3, 0.1, 2));
    let page = || {
        let (c, sections) = report(&a, &b);
        super::page(&c, &sections).unwrap()
    };
    assert!(page() == page());
}

#[test]
fn every_part_is_registered() {
    let list = include_str!("../compared.rs");
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/compared")).unwrap() {
        let path = entry.unwrap().path();
        let source = std::fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(
            list.contains(&format!("{name}::part,")) || !source.contains("\npub fn part("),
            "{name} is not in PARTS"
        );
    }
}
