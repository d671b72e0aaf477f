// SPDX-License-Identifier: Apache-2.0
//! What writing, sealing and folding a long table takes of memory, and reading a part of it. Alone in its file: it looks at the whole process.

#![allow(clippy::unwrap_used)]

use std::fs;

use wakewalk_recording::tables::{Counter, Thread};
use wakewalk_recording::{Meta, Part, Sink, Writer, open_part, slices};

/// Counters of a host that change every second, and seconds: a bit over an hour. As rows in memory they take some 200 MB.
/// `FOLD_SECONDS=1209600 FOLD_NAMES=200` asks for two weeks, within the same bounds; that takes four minutes and 25 GB of disk.
const NAMES: u64 = 400;
const SECONDS: u64 = 4_000;

/// The most memory since the last call, bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
    fs::write("/proc/self/clear_refs", "5").unwrap();
    kib.map(|kib: u64| kib * 1024).unwrap()
}

#[test]
fn it_does_not_grow_with_the_table() {
    let dir = tempfile::tempdir().unwrap();
    let asked = |name: &str, usual: u64| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
    let (seconds, names) = (asked("FOLD_SECONDS", SECONDS), asked("FOLD_NAMES", NAMES));
    peak();
    let before = peak();
    let mut writer = Writer::create(dir.path(), &Meta::default()).unwrap();
    for second in 0..seconds {
        let row = |name| Counter {
            t_ns: second * 1_000_000_000,
            source: "proc/net/netstat".into(),
            entity: "TcpExt".into(),
            name: format!("SomethingThatWasCounted{name}"),
            value: (second * names + name) as f64,
        };
        writer.append(&(0..names).map(row).collect::<Vec<_>>()).unwrap();
        writer.append(&[Thread { t_ns: second * 1_000_000_000, ..Thread::default() }]).unwrap();
    }
    let written = peak();
    writer.seal(&Meta::default()).unwrap();
    let sealed = peak();
    let rows = slices::<Counter>(dir.path(), 0..u64::MAX).unwrap().map(|rows| rows.unwrap().len()).sum::<usize>();
    let folded = peak();
    assert_eq!(rows as u64, names * seconds);
    let minute = Part { from_ns: (seconds - 90) * 1_000_000_000, to_ns: (seconds - 30) * 1_000_000_000 };
    let (part, _) = open_part(dir.path(), minute).unwrap();
    assert_eq!(part.rows::<Counter>().len() as u64, names * 61, "those before it once");
    let parted = peak();
    let limits = [
        ("writing", written, 32 << 20),
        ("sealing", sealed, 128 << 20),
        ("folding", folded, 128 << 20),
        ("reading a part", parted, 160 << 20),
    ];
    for (what, bytes, limit) in limits {
        let more = bytes.saturating_sub(before);
        assert!(more < limit, "{what} took {} MiB", more >> 20);
    }
}
