// SPDX-License-Identifier: Apache-2.0
//! One call for each kind of bytes that somebody else writes and this crate reads, for fuzzing and for
//! the tests that keep what fuzzing found. Not part of the program.

mod root;

use std::cell::RefCell;

use crate::collector::Suspicion;
use crate::collectors::{profile::samples::sample, threads::Slices};
use crate::probes::{calls, exchanges, ledger, profile, wakeups};
use crate::sockets;
use stacks::Stacks;

thread_local! {
    /// Kept, because a capture unwinds all its samples with what it learnt from the ones before.
    static STACKS: RefCell<Stacks> = RefCell::new(Stacks::new());
}

/// Those who read the kernel's rings, and the larger ones of its iterators and maps.
const READERS: [fn(&[u8]); 6] = [
    samples,
    slices,
    |rest| drop(ledger::decode_waits(rest)),
    |rest| drop(wakeups::parse(rest)),
    |rest| drop(calls::decode(rest, 1 << 40)),
    |rest| {
        exchanges::parse(rest);
    },
];

/// What the kernel's rings, iterators and maps hold; the first byte chooses which of them.
pub fn events(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    READERS[usize::from(*kind) % READERS.len()](rest);
}

/// Inputs to begin with: empty events of every kind.
pub fn seeds_of_events() -> Vec<Vec<u8>> {
    let of_kind = |kind: u8| [128, 1024, 8192].map(|length| [vec![kind], vec![1; length]].concat());
    (0..).take(READERS.len()).flat_map(of_kind).collect()
}

/// The first bytes of a request, as whoever asks sends them.
pub fn labels(bytes: &[u8]) {
    crate::labels::check(bytes);
}

/// A sample of this process, wherever the bytes say that its thread was.
fn samples(bytes: &[u8]) {
    let Some(mut raw) = profile::parse(bytes) else { return };
    assert!(raw.stack.len() <= bytes.len() && raw.kernel.len() <= 48);
    raw.tgid = std::process::id();
    STACKS.with_borrow_mut(|stacks| sample(&raw, 1 << 40, stacks, &mut Suspicion::default()));
}

/// Threads that live and end, slice after slice.
fn slices(bytes: &[u8]) {
    let mut slices = Slices::new(1 << 40);
    for (t_ns, rows) in (1..).zip(ledger::decode_threads(bytes).chunks(4)) {
        let (living, ended) = rows.split_at(rows.len() / 2);
        slices.rows(t_ns, living, ended);
    }
    slices.brief_processes();
}

/// An answer of netlink, or one file below a root that is read as a target's host is read.
pub fn proc(bytes: &[u8]) {
    let Some((choice, content)) = bytes.split_first() else { return };
    match usize::from(*choice) {
        0 => {
            sockets::decode(content);
            crate::samplers::decode(content);
        }
        n => root::read_with(n - 1, content),
    }
}

/// Inputs to begin with: the files as they are on this machine.
#[cfg(fuzzing)]
pub fn seeds_of_proc() -> Vec<Vec<u8>> {
    root::seeds()
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    /// Inputs that once crashed, hung or ate the memory.
    fn found(target: &str, use_it: fn(&[u8])) {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/regressions").join(target);
        for entry in fs::read_dir(dir).into_iter().flatten() {
            use_it(&fs::read(entry.unwrap().path()).unwrap());
        }
    }

    #[test]
    fn what_fuzzing_found_in_events() {
        found("events", super::events);
    }

    #[test]
    fn what_fuzzing_found_in_labels() {
        found("labels", super::labels);
    }

    #[test]
    fn what_fuzzing_found_in_proc() {
        found("proc", super::proc);
    }

    #[test]
    fn every_kind_has_seeds() {
        let seeds = super::seeds_of_events();
        let kinds: std::collections::BTreeSet<u8> = seeds.iter().map(|seed| seed[0]).collect();
        assert_eq!(kinds.len(), super::READERS.len());
        seeds.iter().for_each(|seed| super::events(seed));
    }

    #[test]
    fn every_kind_is_read() {
        for kind in 0..=255 {
            for length in [0, 1, 100, 5000] {
                super::events(&[vec![kind], vec![0xff; length]].concat());
            }
            super::proc(&[&[kind], b"1 2\n\xff(: 18446744073709551616".as_slice()].concat());
        }
    }
}
