// SPDX-License-Identifier: Apache-2.0
//! Every file of a catalogue is registered: a fact, a ledger or a rule that nobody asks is a mistake.

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
