// SPDX-License-Identifier: Apache-2.0
//! The disk is full: while the capture writes, while it seals, or when the answer is written.

use std::process::{Command, Output, Stdio};

use diagnose::verdict::Verdict;
use testing::need;

use crate::tool::{Running, WAKEWALK, can_mount, kernel_allows, read, server, with_mounts};

/// Sizes of the disk in KiB: from one that cannot hold the description to one that holds everything.
const SIZES_KIB: [u32; 8] = [4, 16, 48, 96, 144, 192, 256, 4096];

/// Runs with a disk of `kib` mounted at /mnt, of which nothing is left afterwards.
fn on_disk(kib: u32, args: &[&str]) -> Output {
    let script = format!("mount -t tmpfs -o size={kib}k none /mnt && \"$@\"; code=$?; ls -A /mnt >&2; exit $code");
    with_mounts(&script, args)
}

/// Exit code 2 and one sentence about the disk, said once; on the disk is what the sentence says.
fn says_full(out: &Output, kib: u32) {
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2), "{kib} KiB: {said}");
    assert!(said.starts_with("wakewalk: ") && said.contains("is full; free some space"), "{kib} KiB: {said}");
    assert!(!said.contains("os error") && !said.contains("Io error"), "{kib} KiB: the error again: {said}");
    assert!(out.stdout.is_empty());
    let left: Vec<&str> = said.lines().skip(1).collect();
    let is_kept = said.contains("kept in `/mnt/recording`");
    assert_eq!(left, if is_kept { vec!["recording"] } else { vec![] }, "{kib} KiB: {said}");
}

#[test]
fn a_full_disk_is_a_sentence_however_full_it_is() {
    need!(kernel_allows());
    need!(can_mount());
    let target = Running::spin();
    let capture = ["diagnose", "--json", "--for", "1s", "--calls", "always", "--pid", &target.pid()];
    let mut refused = 0;
    for kib in SIZES_KIB {
        let out = on_disk(kib, &[&[WAKEWALK], &capture[..], &["--save", "/mnt/recording"]].concat());
        if out.status.success() {
            read(&out);
            continue;
        }
        says_full(&out, kib);
        refused += 1;
    }
    println!("{refused} of {} disks were too small", SIZES_KIB.len());
    assert!((2..SIZES_KIB.len()).contains(&refused), "some disks are too small and the last is not");
}

#[test]
fn what_was_seen_until_the_disk_was_full_can_be_replayed() {
    need!(kernel_allows());
    need!(can_mount());
    // Filled when a slice is there, and with room again for whoever reads it.
    let script = "mount -t tmpfs -o size=16m none /mnt || exit 77
                  \"$@\" & capture=$!
                  until test -s /mnt/recording/thread.arrows; do kill -0 $capture || exit 78; sleep 0.1; done
                  sleep 1; cat /dev/zero >/mnt/others 2>/dev/null
                  wait $capture; code=$?
                  rm /mnt/others; \"$1\" diagnose --json --from /mnt/recording || exit 79
                  exit $code";
    let target = Running::spin();
    let capture = [WAKEWALK, "diagnose", "--for", "300s", "--pid", &target.pid(), "--save", "/mnt/recording"];
    let out = with_mounts(script, &capture);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains("is full; free some space") && said.contains("kept in `/mnt/recording`"), "{said}");
    let replayed: Verdict = serde_json::from_slice(&out.stdout).unwrap();
    assert!(replayed.gaps.iter().any(|gap| gap.what == "the end"), "{:?}", replayed.gaps);
    assert!(replayed.ledger.threads["wall"] > 0.5, "{:?}", replayed.ledger);
}

#[test]
fn a_recording_that_is_not_kept_needs_a_disk_too() {
    need!(kernel_allows());
    need!(can_mount());
    let target = Running::sleep();
    let capture = [WAKEWALK, "diagnose", "--for", "1s", "--pid", &target.pid()];
    let out = on_disk(16, &[&["env", "TMPDIR=/mnt"], &capture[..]].concat());
    says_full(&out, 16);
    assert!(String::from_utf8_lossy(&out.stderr).contains("TMPDIR"));
}

#[test]
fn a_load_that_cannot_be_kept_does_not_cost_its_verdict() {
    need!(can_mount());
    let server = server();
    let load = [WAKEWALK, "load", &server, "--rate", "50", "--for", "1s", "--new-connections", "--json"];
    let load = [&load[..], &["--save", "/mnt/load"]].concat();
    let out = on_disk(4, &load);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.code() == Some(2) && said.contains("is full; free some space"), "{said}");
    assert!(
        out.stdout.starts_with(b"{") && said.lines().count() == 1,
        "the verdict is there, and nothing is left: {said}"
    );
}

#[test]
fn a_page_that_does_not_fit_does_not_cost_the_verdict() {
    need!(can_mount());
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/fixtures/busy-poll/recording");
    let args = [WAKEWALK, "diagnose", "--from", recording, "--html", "/mnt/page.html"];
    let out = on_disk(16, &args);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.code() == Some(2) && said.contains("/mnt/page.html"), "{said}");
    assert!(String::from_utf8_lossy(&out.stdout).starts_with("What  busy-poll"), "the verdict is there");
    assert_eq!(said.lines().count(), 1, "no half page is left: {said}");
}

#[test]
fn an_answer_that_cannot_be_written_is_an_error() {
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/fixtures/busy-poll/recording");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(WAKEWALK);
    command.args(["diagnose", "--from", recording, "--json"]).stdout(Stdio::from(full));
    let out = command.stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.code() == Some(2) && said.contains("failed to print the verdict"), "{said}");
}
