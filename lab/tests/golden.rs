// SPDX-License-Identifier: Apache-2.0
//! Every golden recording still gives its verdict, to the byte; and that verdict is the truth about
//! the scenario that it was recorded from.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use diagnose::verdict::Reason;
use lab::fixtures::MAX_BYTES;
use lab::paths;
use lab::scenarios::ALL;

fn fixtures() -> PathBuf {
    paths::fixtures(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
}

fn replay(fixture: &Path) -> String {
    let recording = recording::open(&fixture.join("recording")).unwrap();
    report::formats::json::text(&diagnose::diagnose(&recording)).unwrap()
}

/// The first line in which two texts differ, with its number.
fn difference(expected: &str, got: &str) -> String {
    let lines = expected.lines().zip(got.lines()).enumerate();
    let differing = lines.into_iter().find(|(_, (a, b))| a != b);
    let Some((number, (a, b))) = differing else { return "one is longer than the other".into() };
    format!("line {}:\n  expected {}\n  got      {}", number + 1, a.trim(), b.trim())
}

#[test]
fn every_recording_still_gives_its_verdict() {
    let mut wrong = Vec::new();
    for scenario in ALL {
        for side in scenario.sides() {
            let name = scenario.recording_name(side);
            let fixture = fixtures().join(&name);
            let expected = fs::read_to_string(fixture.join("verdict.json")).unwrap();
            let got = replay(&fixture);
            if got != expected {
                wrong.push(format!("{name}, {}", difference(&expected, &got)));
            }
            let truth = scenario.truth(side).unwrap();
            if let Some(objection) = truth.objection(&serde_json::from_str(&got).unwrap()) {
                wrong.push(format!("{name}: {objection}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\nIf that is meant, run `make lab-verdicts`.", wrong.join("\n"));
}

/// A number that rules a cause out is under the bound that it names, whatever else a finding needs.
#[test]
fn what_rules_a_cause_out_is_under_its_bound() {
    for scenario in ALL {
        for side in scenario.sides() {
            let name = scenario.recording_name(side);
            let recording = recording::open(&fixtures().join(&name).join("recording")).unwrap();
            for out in diagnose::diagnose(&recording).ruled_out {
                let is_number = matches!(out.reason, Reason::TooLittle | Reason::TooShort);
                assert_eq!(out.measured.is_some(), is_number, "{name}: {out:?}");
                assert!(out.measured.as_ref().is_none_or(|seen| seen.value < seen.bound), "{name}: {out:?}");
            }
        }
    }
}

#[test]
fn the_same_recording_gives_the_same_bytes_twice() {
    let fixture = fixtures().join(ALL[0].name);
    assert!(replay(&fixture) == replay(&fixture));
}

#[test]
fn fixtures_are_small_and_each_belongs_to_a_scenario() {
    let known: BTreeSet<String> = ALL.iter().flat_map(|s| s.sides().map(|side| s.recording_name(side))).collect();
    let mut there = BTreeSet::new();
    for entry in fs::read_dir(fixtures()).unwrap() {
        let entry = entry.unwrap();
        let files = fs::read_dir(entry.path().join("recording")).unwrap();
        let bytes: u64 = files.map(|f| f.unwrap().metadata().unwrap().len()).sum();
        assert!(bytes <= MAX_BYTES, "{}: {bytes} bytes", entry.path().display());
        there.insert(entry.file_name().into_string().unwrap());
    }
    assert_eq!(there, known, "run `make lab-fixtures`");
}
