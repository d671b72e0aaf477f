// SPDX-License-Identifier: Apache-2.0
//! Who reads the answer has seen enough, as `head` has: what was to be kept beside it is kept all the same.

use std::fs;
use std::io::pipe;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::tool::{WAKEWALK, server};

/// A pipe that nobody reads.
fn unread() -> Stdio {
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    writer.into()
}

/// Runs without a reader, or without one of sentences either: no failure.
fn run(args: &[&str], is_silent: bool) {
    let mut command = Command::new(WAKEWALK);
    command.args(args).stdin(Stdio::null()).stdout(unread());
    let out = command.stderr(if is_silent { unread() } else { Stdio::piped() }).output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
}

fn is_page(file: &Path) -> bool {
    fs::read_to_string(file).is_ok_and(|page| page.ends_with("</html>\n"))
}

#[test]
fn a_page_and_a_recording_are_there_though_nobody_reads_the_answer() {
    let golden = |name: &str| format!("{}/../../lab/fixtures/{name}/recording", env!("CARGO_MANIFEST_DIR"));
    let (busy, calm, server) = (golden("busy-poll"), golden("busy-poll-twin"), server());
    let (text, json) = (["diagnose", "--from", &busy], ["diagnose", "--from", &busy, "--json"]);
    let diff = ["diff", &busy, &calm];
    let load = ["load", &server, "--rate", "50", "--for", "1s", "--new-connections"];
    for is_silent in [false, true] {
        for args in [&text[..], &json, &diff] {
            let dir = tempfile::tempdir().unwrap();
            let page = dir.path().join("page.html");
            run(&[args, &["--html", page.to_str().unwrap()]].concat(), is_silent);
            assert!(is_page(&page), "{args:?}");
        }
        for args in [&load[..], &[&load[..], &["--json"]].concat()] {
            let dir = tempfile::tempdir().unwrap();
            let (page, kept) = (dir.path().join("page.html"), dir.path().join("kept"));
            let both = ["--html", page.to_str().unwrap(), "--save", kept.to_str().unwrap()];
            run(&[args, &both].concat(), is_silent);
            assert!(is_page(&page) && recording::open(&kept).is_ok_and(|kept| kept.meta.sealed), "{args:?}");
        }
    }
}
