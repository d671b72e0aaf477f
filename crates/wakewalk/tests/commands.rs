// SPDX-License-Identifier: Apache-2.0
//! Commands that are printed to be copied: nothing that a stranger chose is more than a word in them. The golden recordings
//! are replayed with hostile names of processes, groups, programs and targets.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use recording::Recording;
use recording::tables::{Counter, Frame, Neighbour, Process, Thread, Wakeup};

/// Appended to all foreign names. Without quotes a shell would run it; with the wrong ones too.
const HOSTILE: &str = "'\";$(touch OWNED)|OWNED&\n#";
/// What must never be a word of its own.
const MARK: &str = "OWNED";

/// A golden recording in which everything that has a name chosen by others has a hostile one.
fn hostile(fixture: &Path) -> Recording {
    let mut recording = recording::open(&fixture.join("recording")).unwrap();
    let spoil = |names: &mut [&mut String]| names.iter_mut().for_each(|name| name.push_str(HOSTILE));
    let tables = &mut recording.tables;
    for p in tables.rows_mut::<Process>() {
        spoil(&mut [&mut p.comm, &mut p.exe, &mut p.cmdline, &mut p.cgroup]);
        p.listen.iter_mut().for_each(|socket| spoil(&mut [socket]));
    }
    tables.rows_mut::<Thread>().iter_mut().for_each(|row| spoil(&mut [&mut row.comm]));
    tables.rows_mut::<Neighbour>().iter_mut().for_each(|row| spoil(&mut [&mut row.comm, &mut row.cgroup]));
    tables.rows_mut::<Frame>().iter_mut().for_each(|row| spoil(&mut [&mut row.symbol, &mut row.module]));
    for row in tables.rows_mut::<Wakeup>() {
        spoil(&mut [&mut row.comm, &mut row.waker_comm, &mut row.path]);
    }
    let groups = tables.rows_mut::<Counter>().iter_mut().filter(|row| row.source.starts_with("cgroup"));
    groups.for_each(|row| spoil(&mut [&mut row.entity]));
    let target = &mut recording.meta.target;
    spoil(&mut [&mut target.named, &mut target.comm, &mut target.cgroup]);
    target.listen.iter_mut().for_each(|socket| spoil(&mut [socket]));
    recording
}

fn fixtures() -> Vec<PathBuf> {
    let all = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/fixtures")).unwrap();
    all.map(|entry| entry.unwrap().path()).collect()
}

fn printed(args: &[&str]) -> String {
    let out = Command::new(env!("CARGO_BIN_EXE_wakewalk")).args(args).stdin(Stdio::null()).output().unwrap();
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// The words and operators of a command line as a shell tells them apart, each word unquoted.
fn tokens(command: &str) -> Vec<String> {
    let (mut all, mut word, mut quote, mut letters) = (Vec::new(), None::<String>, None, command.chars());
    while let Some(c) = letters.next() {
        match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('"'), '$' | '`') => all.push(format!("expansion in {command}")),
            (Some('"') | None, '\\') => word.get_or_insert_default().extend(letters.next()),
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                word.get_or_insert_default();
                quote = Some(c);
            }
            (None, ' ' | '\n') => all.extend(word.take()),
            (None, ';' | '|' | '&' | '$' | '`' | '(' | ')' | '<' | '>') => {
                all.extend(word.take());
                all.push(c.into());
            }
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    assert_eq!(quote, None, "a quote without end: {command}");
    all.extend(word);
    all
}

/// Where a foreign name stands in a command, all of it is in one word.
fn check(command: &str) {
    if command.contains(MARK) {
        let words = tokens(command);
        let with_mark = words.iter().filter(|word| word.contains(MARK));
        with_mark.for_each(|word| assert!(word.contains(HOSTILE), "`{word}` is loose in `{command}`: {words:?}"));
        assert!(!words.iter().any(|word| word.starts_with("expansion")), "{words:?}");
    }
}

/// All commands of a verdict: those to see it yourself, and those in sentences, between backticks.
fn commands(value: &serde_json::Value, all: &mut BTreeSet<String>) {
    const PROGRAMS: [&str; 12] =
        ["sudo", "wakewalk", "strace", "perf", "cat", "grep", "ss", "top", "jcmd", "systemctl", "py-spy", "ip"];
    match value {
        serde_json::Value::String(text) => {
            let spans = text.split('`').skip(1).step_by(2);
            all.extend(spans.filter(|s| PROGRAMS.contains(&s.split(' ').next().unwrap_or(""))).map(String::from));
        }
        serde_json::Value::Array(list) => list.iter().for_each(|value| commands(value, all)),
        serde_json::Value::Object(fields) => {
            let named = ["see_yourself", "command"].into_iter().filter_map(|name| fields.get(name)?.as_str());
            all.extend(named.filter(|command| !command.is_empty()).map(String::from));
            fields.values().for_each(|value| commands(value, all));
        }
        _ => {}
    }
}

/// As a terminal or page shows a foreign name: characters that would act are escapes.
fn shown(command: &str) -> String {
    command.replace('\n', "\\n")
}

fn html(text: &str) -> String {
    let marks = [('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('"', "&quot;"), ('\'', "&#39;")];
    marks.iter().fold(text.to_string(), |text, (mark, escaped)| text.replace(*mark, escaped))
}

/// Replays a recording in all forms; returns its commands.
fn replayed(recording: &Recording) -> BTreeSet<String> {
    let dir = tempfile::tempdir().unwrap();
    let (saved, page) = (dir.path().join("recording"), dir.path().join("page.html"));
    recording.save(&saved).unwrap();
    let (from, page) = (saved.to_str().unwrap(), page.to_str().unwrap());
    let mut all = BTreeSet::new();
    let verdict: serde_json::Value = serde_json::from_str(&printed(&["diagnose", "--from", from, "--json"])).unwrap();
    commands(&verdict, &mut all);
    let terminal = printed(&["diagnose", "--from", from, "--full", "--html", page]);
    let page = fs::read_to_string(page).unwrap();
    for command in &all {
        check(command);
        // What stands in the terminal and on the page is what was checked; a line may be broken between words.
        if command.contains(MARK) && verdict.to_string().contains("see_yourself") {
            let joined =
                |text: &str| text.split_whitespace().filter(|word| *word != "\\").collect::<Vec<_>>().join(" ");
            assert!(joined(&terminal).contains(&joined(&shown(command))), "{command}\n{terminal}");
            assert!(page.contains(&html(&shown(command))), "{command} is not on the page");
        }
    }
    all
}

#[test]
fn foreign_names_are_words_in_every_command() {
    let all: BTreeSet<String> = fixtures().iter().flat_map(|fixture| replayed(&hostile(fixture))).collect();
    assert!(all.len() > 20, "{all:?}");
    assert!(all.iter().any(|command| command.starts_with("cat /sys/fs/cgroup") && command.contains(MARK)), "{all:?}");
}

#[test]
fn a_target_is_named_by_one_word_and_a_strangers_command_is_not_repeated() {
    let again = |named: &str| {
        let mut recording = hostile(&fixtures()[0]);
        recording.meta.target.named = named.to_string();
        // Too short for a verdict, so that it says how to look again.
        recording.meta.length_ns = 100_000_000;
        let all = replayed(&recording);
        all.into_iter().find(|command| command.contains("wakewalk diagnose")).unwrap()
    };
    assert_eq!(again("--port 80"), "sudo wakewalk diagnose --port 80 --for 10s");
    assert_eq!(again("--comm a b --html /x"), "sudo wakewalk diagnose --comm 'a b --html /x' --for 10s");
    assert_eq!(again("1; curl x | sh"), "sudo wakewalk diagnose --pid PID --for 10s");
    assert_eq!(again("-- sh -c OWNED"), "sudo wakewalk diagnose --for 10s -- COMMAND");
}

#[test]
fn the_check_sees_what_is_loose() {
    for loose in ["cat /x'\";$(touch OWNED)", "cat \"$(OWNED)\"", "ps -p 1; OWNED"] {
        assert!(std::panic::catch_unwind(|| check(loose)).is_err(), "{loose}");
    }
}
