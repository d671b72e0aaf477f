// SPDX-License-Identifier: Apache-2.0
//! A ring holds what a part of the whole recording holds.

use std::fmt::Debug;

use super::*;
use crate::tables::*;
use crate::text::parse;
use crate::{Part, Writer, open_part};

const SECOND: u64 = 1_000_000_000;

/// What a slice of a second tells: a thread's time, a stack, a counter that changes and one that does not, a window on calls.
fn slice(n: u64) -> Slice {
    let (from, to) = (n * SECOND, (n + 1) * SECOND);
    let text = format!(
        "thread t_ns={to} pid=1 tid=1 wall_ns=1e9 cpu_ns={n}
         stack id={n} frames=[{n}]
         frame id={n} symbol=f{n}
         counter t_ns={to} source=s name=changes value={n}
         {}
         call_window id={n} t_ns={}
         call window={n} count={n}
         sample t_ns={} pid={n}
         gap what=g{n}",
        if n == 0 { "counter t_ns=0 source=s name=stays value=7" } else { "" },
        from + 5,
        from + 7,
    );
    Slice { range: from..to, tables: parse(&text).unwrap().tables }
}

fn same<T: Table + Send + Sync + PartialEq + Debug>(ring: &Recording, part: &Recording) {
    assert_eq!(ring.rows::<T>(), part.rows::<T>(), "{}", T::NAME);
    assert!(!ring.rows::<T>().is_empty(), "{}", T::NAME);
}

#[test]
fn the_last_slices_are_a_part_of_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    let (mut ring, mut folder) = (Ring::new(3), Writer::create(dir.path(), &Meta::default()).unwrap());
    for n in 0..10 {
        ring.put(slice(n)).unwrap();
        folder.put(slice(n)).unwrap();
    }
    assert_eq!(ring.range(), 7 * SECOND..10 * SECOND);
    let of_ring = ring.recording().unwrap();
    let (part, _) = open_part(dir.path(), Part { from_ns: 7 * SECOND, to_ns: 10 * SECOND }).unwrap();
    assert_eq!(of_ring.meta.length_ns, part.meta.length_ns);
    same::<Thread>(&of_ring, &part);
    same::<Stack>(&of_ring, &part);
    same::<Frame>(&of_ring, &part);
    same::<Counter>(&of_ring, &part);
    same::<CallWindow>(&of_ring, &part);
    same::<Call>(&of_ring, &part);
    same::<Sample>(&of_ring, &part);
    same::<Gap>(&of_ring, &part);
    assert_eq!((of_ring.rows::<Stack>().len(), of_ring.rows::<Call>().len()), (10, 3), "told once, and of the slices");
}

#[test]
fn what_is_before_it_does_not_grow() {
    let mut ring = Ring::new(2);
    for n in 0..50 {
        ring.put(slice(n)).unwrap();
    }
    let kept = |rows: usize, most: usize| assert!(rows <= most, "{rows}");
    kept(ring.before.rows::<Counter>().len(), 2);
    kept(ring.before.rows::<Thread>().len(), 0);
    kept(ring.before.rows::<Sample>().len(), 0);
    kept(ring.before.rows::<Call>().len(), 0);
}

#[test]
fn rows_that_it_holds() {
    let mut ring = Ring::new(3);
    for n in 0..2 {
        ring.put(slice(n)).unwrap();
    }
    assert_eq!(ring.rows(), 17, "one less in the second");
    (2..10).for_each(|n| ring.put(slice(n)).unwrap());
    assert_eq!(ring.rows(), 3 * 8 + 7 * 3 + 2, "and of each before, what was told once, and how counters stood");
}

#[test]
fn an_empty_one() {
    let ring = Ring::new(0);
    assert_eq!((ring.range(), ring.recording().unwrap().rows::<Thread>().len()), (0..0, 0));
}
