// SPDX-License-Identifier: Apache-2.0
//! Which crate may know which: cargo refuses circles only, and would build a rule that reaches into the kernel.

use std::fs;
use std::path::Path;

/// Crates of this workspace, by what they may depend on of it.
const MAY_KNOW: &[(&str, &[&str])] = &[
    ("crates/recording", &[]),
    ("crates/stacks", &["recording"]),
    ("crates/collect", &["recording", "stacks"]),
    ("crates/diagnose", &["recording"]),
    ("crates/load", &["recording"]),
    ("crates/report", &["recording", "diagnose", "load"]),
    ("crates/wakewalk", &["recording", "collect", "diagnose", "load", "report"]),
    ("crates/testing", &[]),
    ("lab", &["recording", "diagnose", "load"]),
];

/// What a manifest names in its section `dependencies` that is of this workspace.
fn dependencies(manifest: &str, own: &[&str]) -> Vec<String> {
    let lines = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let names = lines.take_while(|line| !line.starts_with('[')).filter_map(|line| line.split(['.', ' ', '=']).next());
    names.filter(|name| own.contains(name)).map(str::to_string).collect()
}

#[test]
fn crates_know_only_whom_they_may() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let own: Vec<&str> = MAY_KNOW.iter().filter_map(|(folder, _)| folder.rsplit('/').next()).collect();
    for (folder, may) in MAY_KNOW {
        let manifest = fs::read_to_string(root.join(folder).join("Cargo.toml")).unwrap();
        assert_eq!(dependencies(&manifest, &own), *may, "{folder}");
    }
    let there = fs::read_dir(root.join("crates")).unwrap().count();
    assert_eq!(there, MAY_KNOW.len() - 1, "a crate that is not in the list");
}
