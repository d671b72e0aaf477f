// SPDX-License-Identifier: Apache-2.0
//! Commands that are printed to be copied: nothing that a stranger chose is more than a word in them. The golden recordings
//! are replayed with hostile names of processes, groups, programs and targets.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use recording::{Recording, Table, Tables, tables};
use serde_json::Value;

/// Appended to all foreign names. Without quotes a shell would run it; with the wrong ones too.
const HOSTILE: &str = "'\";$(touch OWNED)|OWNED&\n#";
/// What must never be a word of its own.
const MARK: &str = "OWNED";

/// Columns whose words are wakewalk's own or the kernel's: with others in them, hardly a rule finds anything.
const OURS: [&str; 32] = [
    "call.argument_kind",
    "call_window.kind",
    "connection.role",
    "cost.what",
    "counter.name",
    "counter.source",
    "drop.protocol",
    "drop.reason",
    "drop.role",
    "exchange.role",
    "exchange.stage",
    "file_lock.kind",
    "frame.kind",
    "gap.reason",
    "gap.what",
    "label.outcome",
    "label.protocol",
    "label.role",
    "loss.what",
    "request.role",
    "retransmit.kind",
    "retransmit.reason",
    "retransmit.role",
    "retransmit.state",
    "setting.area",
    "setting.name",
    "socket_state.role",
    "socket_state.state",
    "standing.fd_kind",
    "wait.fd_kind",
    "wakeup.context",
    "wakeup.fd_kind",
];

/// Where counters belong to a CPU, a process or a protocol, which nobody gave its name.
const NUMBERED: [&str; 4] = ["proc/stat", "proc/pid", "proc/net/snmp", "proc/net/netstat"];

/// How much of a recording a stranger has chosen.
#[derive(Clone, Copy, PartialEq)]
enum Foreign {
    /// What has a name there: processes, groups, files, peers.
    Names,
    /// All of it: he has written the recording himself.
    All,
}

/// Makes texts of a table hostile. Where none is, nobody had anything to choose.
fn spoil<T: Table + Send + Sync>(tables: &mut Tables, foreign: Foreign) {
    fn all(value: &mut Value) {
        match value {
            Value::String(text) if !text.is_empty() => text.push_str(HOSTILE),
            Value::Array(list) => list.iter_mut().for_each(all),
            _ => {}
        }
    }
    for row in tables.rows_mut::<T>() {
        let mut columns = serde_json::to_value(&row).unwrap();
        let is_numbered = columns["source"].as_str().is_some_and(|source| NUMBERED.contains(&source));
        for (name, value) in columns.as_object_mut().unwrap() {
            let is_ours = OURS.contains(&&*format!("{}.{name}", T::NAME)) || is_numbered && name == "entity";
            if foreign == Foreign::All || !is_ours {
                all(value);
            }
        }
        *row = serde_json::from_value(columns).unwrap();
    }
}

/// A golden recording with hostile texts.
fn hostile(fixture: &Path, foreign: Foreign) -> Recording {
    let mut recording = recording::open(&fixture.join("recording")).unwrap();
    macro_rules! spoil {
        ($($row:ident)*) => {{
            let spoiled = [$((tables::$row::NAME, spoil::<tables::$row> as fn(&mut Tables, Foreign)),)*];
            let unknown: Vec<_> = recording.tables.names().filter(|name| spoiled.iter().all(|s| s.0 != *name)).collect();
            assert!(unknown.is_empty(), "tables that nobody spoils: {unknown:?}");
            spoiled.iter().for_each(|(_, spoil)| spoil(&mut recording.tables, foreign));
        }};
    }
    spoil!(Process Thread Wait Wakeup WaitStack Standing Sample Stack Frame CallWindow Call CallLatency CallExample Neighbour
        Connection Exchange ExchangeWindow Label Retransmit Drop SocketState Request Burst Birth Counter Setting FileLock Death Gap Loss Cost);
    let target = &mut recording.meta.target;
    let names = [&mut target.named, &mut target.comm, &mut target.cgroup];
    names.into_iter().chain(&mut target.listen).for_each(|name| name.push_str(HOSTILE));
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

/// All commands of a verdict: those to see it yourself, and those in sentences. What stands between backticks is there to be
/// copied, whatever it begins with.
fn commands(value: &Value, all: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => all.extend(text.split('`').skip(1).step_by(2).map(String::from)),
        Value::Array(list) => list.iter().for_each(|value| commands(value, all)),
        Value::Object(fields) => {
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
    let verdict: Value = serde_json::from_str(&printed(&["diagnose", "--from", from, "--json"])).unwrap();
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

fn all_commands(foreign: Foreign) -> BTreeSet<String> {
    fixtures().iter().flat_map(|fixture| replayed(&hostile(fixture, foreign))).collect()
}

#[test]
fn foreign_names_are_words_in_every_command() {
    let all = all_commands(Foreign::Names);
    assert!(all.len() > 20, "{all:?}");
    for asked in ["cat /sys/fs/cgroup", "tc -s qdisc show dev "] {
        assert!(all.iter().any(|command| command.starts_with(asked) && command.contains(MARK)), "{asked}: {all:?}");
    }
    // To a peer that is no address, no command leads: it is told without.
    for asked in ["ss -tnp", "ss -tnoi", "ss -tino  # notsent, unacked", "ss -tno state syn-sent", "ss -tan | wc -l"] {
        assert!(all.contains(asked), "{asked}: {all:?}");
    }
}

#[test]
fn a_recording_that_a_stranger_wrote_adds_nothing_to_a_command() {
    all_commands(Foreign::All);
}

#[test]
fn a_target_is_named_by_one_word_and_a_strangers_command_is_not_repeated() {
    let again = |named: &str| {
        let mut recording = hostile(&fixtures()[0], Foreign::Names);
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
