// SPDX-License-Identifier: Apache-2.0
//! The terminal report: its width, its first lines, and that nothing in it acts on the terminal.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of a test may panic like the test")]

use textwrap::core::display_width;
use wakewalk_report::verdict;

#[path = "data/sample.rs"]
mod sample;

use sample::{Sample, samples};

fn draw(sample: &Sample, width: usize) -> String {
    let mut drawn = Vec::new();
    verdict::draw(&sample.verdict, &sample.sections, width, &mut drawn).unwrap();
    String::from_utf8(drawn).unwrap()
}

fn draw_brief(sample: &Sample, width: usize) -> String {
    let mut drawn = Vec::new();
    verdict::draw_brief(&sample.verdict, &sample.sections, width, &mut drawn).unwrap();
    String::from_utf8(drawn).unwrap()
}

/// The text without its styles, which are the only escapes that may be there.
fn plain(drawn: &str) -> String {
    let mut parts = drawn.split('\u{1b}');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (style, rest) = part.split_once('m').expect("an escape that is no style");
        let digits = style.strip_prefix('[').expect("an escape that is no style");
        assert!(digits.chars().all(|c| c.is_ascii_digit() || c == ';'), "not a style: {style:?}");
        text.push_str(rest);
    }
    text
}

/// A command with quotes stands on one line however long it is, so that it works when it is copied; and so does one word of it.
fn is_quoted_command(line: &str) -> bool {
    let text = line.trim_start();
    text.starts_with("$ ") && line.contains(['\'', '"']) || text.trim_end_matches(" \\").split(' ').count() == 1
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for sample in samples().unwrap() {
        for width in [40, 60, 79, 80, 81, 132, 300] {
            for line in plain(&(draw(&sample, width) + &draw_brief(&sample, width))).lines() {
                assert!(
                    display_width(line) <= width || is_quoted_command(line),
                    "{} at {width}: {line:?}",
                    sample.name
                );
            }
        }
    }
}

#[test]
fn nothing_acts_on_the_terminal() {
    for sample in samples().unwrap() {
        let text = plain(&draw(&sample, 80));
        let acting = text.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
        assert_eq!(acting, None, "{}", sample.name);
    }
    let hostile = samples().unwrap().into_iter().find(|s| s.name == "hostile").unwrap();
    assert!(plain(&draw(&hostile, 80)).contains(r"\x1b[2J"));
}

#[test]
fn the_answer_comes_first() {
    for sample in samples().unwrap() {
        let text = plain(&draw(&sample, 80));
        let answer = text.split("\n\n").next().unwrap();
        let labels: Vec<&str> = answer.lines().map(|l| l[..l.len().min(6)].trim()).filter(|l| !l.is_empty()).collect();
        assert_eq!(labels, ["What", "Time", "Do"], "{}", sample.name);
        assert!(answer.starts_with(&format!("What  {}: ", sample.verdict.verdict)));
    }
}

#[test]
fn the_short_form_is_short_and_names_the_rest() {
    for sample in samples().unwrap().iter().filter(|sample| !sample.name.contains("hostile")) {
        let (full, brief) = (plain(&draw(sample, 80)), plain(&draw_brief(sample, 80)));
        // Requests that were seen have tables of their own.
        let most = if sample.verdict.requests.is_empty() { 60 } else { 95 };
        assert!(brief.lines().count() <= most, "{}: {} lines", sample.name, brief.lines().count());
        let answer = full.split("\n\n").next().unwrap();
        assert!(brief.starts_with(answer) && brief.contains("Ruled out") && brief.contains("Coverage and cost"));
        let has = |text: &str, title: &str| text.contains(&format!("{title} \u{2500}"));
        let left_out = ["System calls", "Threads"].iter().any(|title| has(&full, title) && !has(&brief, title));
        assert_eq!(brief.contains("--full"), left_out, "{}", sample.name);
    }
}

#[test]
fn looks_as_agreed() {
    for sample in samples().unwrap().iter().filter(|sample| !sample.name.contains("hostile")) {
        agreed(sample.name, &plain(&draw(sample, 80)));
        agreed(&format!("{}.brief", sample.name), &plain(&draw_brief(sample, 80)));
    }
}

fn agreed(name: &str, drawn: &str) {
    let path = format!("{}/tests/data/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, drawn).unwrap();
    }
    let agreed = std::fs::read_to_string(&path).unwrap();
    assert_eq!(drawn, agreed, "if the change is meant, run the test again with UPDATE_GOLDEN=1 and look at the diff");
}
