// SPDX-License-Identifier: Apache-2.0
//! The disk is full: while the capture writes, while it seals, or when the answer is written.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::thread;

use testing::need;

use crate::tool::{Running, WAKEWALK, can_mount, kernel_allows, read, with_mounts};

/// Sizes of the disk in KiB: from one that cannot hold the description to one that holds everything.
const SIZES_KIB: [u32; 8] = [4, 16, 48, 96, 144, 192, 256, 4096];

/// Runs with a disk of `kib` mounted at /mnt, of which nothing is left afterwards.
fn on_disk(kib: u32, args: &[&str]) -> Output {
    let script = format!("mount -t tmpfs -o size={kib}k none /mnt && \"$@\"; code=$?; ls -A /mnt >&2; exit $code");
    with_mounts(&script, args)
}

/// Exit code 2 and one sentence about the disk, said once.
fn says_full(out: &Output, kib: u32) {
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2), "{kib} KiB: {said}");
    assert!(said.starts_with("wakewalk: ") && said.contains("is full; free some space"), "{kib} KiB: {said}");
    assert!(!said.contains("os error") && !said.contains("Io error"), "{kib} KiB: the error again: {said}");
    assert!(out.stdout.is_empty());
    assert_eq!(said.lines().count(), 1, "{kib} KiB: nothing is left on the disk: {said}");
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
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://127.0.0.1:{}/", listener.local_addr().unwrap().port());
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]); // whatever it is
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
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
