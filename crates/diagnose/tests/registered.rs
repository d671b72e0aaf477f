// SPDX-License-Identifier: Apache-2.0
//! Every file of a catalogue is registered: a fact, a ledger or a rule that nobody asks is a mistake. And the way from facts to the
//! verdict is one: nobody asks who comes later.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::fs;
use std::path::Path;

/// Names of the `.rs` files in a folder of `src`.
fn files(folder: &str) -> Vec<String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(folder);
    let mut names: Vec<String> = fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".rs").map(str::to_string))
        .collect();
    names.sort();
    assert!(!names.is_empty(), "{} is empty", dir.display());
    names
}

fn list(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file)).unwrap()
}

#[test]
fn facts_and_ledgers() {
    for folder in ["facts", "ledger"] {
        let list = list(&format!("{folder}.rs"));
        for name in files(folder) {
            assert!(list.contains(&format!("pub mod {name};")), "{folder}/{name}.rs is not in {folder}.rs");
        }
    }
}

#[test]
fn rules() {
    let list = list("rules.rs");
    for name in files("rules") {
        assert!(list.contains(&format!("&{name}::RULE,")), "rules/{name}.rs is not in RULES");
        let cause = name.replace('_', "-");
        assert!(wakewalk_diagnose::causes().contains(&cause.as_str()), "rules/{name}.rs is not the rule for `{cause}`");
        assert!(wakewalk_diagnose::explain(&cause).is_some());
    }
    assert_eq!(wakewalk_diagnose::causes().len(), files("rules").len());
    let pages = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/causes")).unwrap();
    assert_eq!(pages.count(), wakewalk_diagnose::causes().len(), "docs/causes has a page of no rule");
}

/// Stages of the way, and whom each may not ask.
const LATER: &[(&str, &[&str])] = &[
    ("facts", &["verdict", "phrases", "judgement", "statement", "remarks", "rules", "judge", "hops"]),
    ("ledger", &["verdict", "phrases", "judgement", "statement", "remarks", "rules", "judge", "hops"]),
    ("walk", &["verdict", "phrases", "judgement", "statement", "remarks", "rules", "judge", "hops"]),
    ("phrases", &["judgement", "statement", "remarks", "rules", "judge", "hops"]),
    ("judgement", &["remarks", "rules", "judge", "hops"]),
    ("remarks", &["rules", "judge", "hops"]),
    ("rules", &["judge", "hops"]),
];

/// Name and text of all files of a stage.
fn texts(folder: &Path, texts: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            self::texts(&path, texts);
        } else {
            texts.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
        }
    }
}

#[test]
fn nobody_asks_who_comes_later() {
    for (stage, later) in LATER {
        let mut all = vec![(format!("{stage}.rs"), list(&format!("{stage}.rs")))];
        texts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(stage), &mut all);
        for ((name, text), later) in all.iter().flat_map(|file| later.iter().map(move |later| (file, later))) {
            let asks = [format!("crate::{later}::"), format!("crate::{later};")];
            assert!(!asks.iter().any(|ask| text.contains(ask)), "{name} asks {later}");
        }
    }
}

#[test]
fn no_rule_asks_another() {
    let rules = files("rules");
    let mut all = Vec::new();
    texts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/rules"), &mut all);
    for (name, text) in &all {
        let uses = ["use super::", "use crate::rules::"];
        let used = text.lines().filter(|line| uses.iter().any(|of| line.trim_start().starts_with(of)));
        let is_in = |rule: &str, line: &str| line.split(|c: char| c != '_' && !c.is_alphanumeric()).any(|w| w == rule);
        for line in used {
            let other = rules.iter().find(|rule| is_in(rule, line));
            assert!(other.is_none(), "{name} asks another rule: {line}");
        }
    }
}
