// SPDX-License-Identifier: Apache-2.0
//! Recordings that were damaged, made by a newer version, or are none. (Each table and each kind of damage
//! is tried in `crates/recording/tests/damage.rs`; here is what a user sees.)

use std::fs;

use recording::tables::Stack;

use crate::tool::{fixture, refused, verdict};

#[test]
fn a_stack_without_end_gets_a_sentence() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("recording");
    let mut hostile = fixture("busy-poll");
    hostile.tables.rows_mut::<Stack>()[0].frames = vec![1; 300_000];
    hostile.save(&path).unwrap();
    let said = refused(&["diagnose", "--from", path.to_str().unwrap()]);
    assert!(said.contains("table `stack`") && said.contains("a list of 300000 items"), "{said}");
}

#[test]
fn a_part_of_one_that_ends_with_the_calendar() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("recording");
    let mut hostile = fixture("few-slow");
    hostile.meta.started = "9999-12-31T23:59:59Z".into();
    hostile.save(&path).unwrap();
    let part = verdict(&["--from", path.to_str().unwrap(), "--at", "1s..3s"]);
    assert!(part.window.seconds < 3.5, "{:?}", part.window);
}

#[test]
fn damaged_and_foreign_recordings_get_a_sentence() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("recording");
    let from = path.to_str().unwrap();
    fixture("busy-poll").save(&path).unwrap();
    assert_eq!(verdict(&["--from", from]).verdict, "busy-poll", "whole, it is read");

    let table = path.join("sample.parquet");
    let whole = fs::read(&table).unwrap();
    fs::write(&table, &whole[..whole.len() / 2]).unwrap();
    let said = refused(&["diagnose", "--from", from]);
    assert!(said.contains("damaged") && said.contains("sample.parquet") && said.contains("copy it again"), "{said}");

    let mut flipped = whole.clone();
    flipped[whole.len() / 3] ^= 0x10;
    fs::write(&table, &flipped).unwrap();
    let said = refused(&["diagnose", "--from", from]);
    assert!(said.contains("not what was written"), "{said}");

    fs::remove_file(&table).unwrap();
    assert!(refused(&["diagnose", "--from", from]).contains("sample.parquet"));
    fs::write(&table, &whole).unwrap();

    let meta = fs::read_to_string(path.join("meta.json")).unwrap();
    let with = |change: &str| {
        fs::write(path.join("meta.json"), change).unwrap();
        refused(&["diagnose", "--from", from])
    };
    assert!(with(&meta.replacen("\"schema\": 1", "\"schema\": 9", 1)).contains("use a newer wakewalk"));
    assert!(with("{\"name\": \"some-package\", \"version\": \"1.0.0\"}").contains("not written by wakewalk"));
    assert!(with(&meta[..meta.len() / 2]).contains("cut off"));
    assert!(with("").contains("cut off"));
    assert!(with("\u{1b}[2J").contains("is none, or was changed"));
    assert!(refused(&["diagnose", "--from", table.to_str().unwrap()]).contains("holds no recording"));
}
