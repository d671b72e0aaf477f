// SPDX-License-Identifier: Apache-2.0
//! Functions of both profiles under common numbers, so that a function of one build is compared with the
//! same function of the other. Addresses do not survive a build; names do.

use std::collections::{BTreeMap, BTreeSet};

use recording::tables::Sample;

use crate::answer::Gap;
use crate::case::Case;
use crate::facts::stacks::Stacks;
use crate::runtimes::code::Code;

/// Functions compared at most: those with most samples on either side. Chosen by weight, not by difference,
/// for choosing the largest differences would make chance look like a finding.
const MOST: usize = 40;

/// A function: name, and the file or `kernel` that it is in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub name: String,
    pub module: String,
}

impl Key {
    fn of(code: &Code) -> Self {
        let module = if code.is_kernel() { "kernel" } else { code.file() };
        Key { name: code.label(), module: module.to_string() }
    }
}

/// The function whose own work a sample is: in user mode a helper's time is its caller's, in the kernel it is the
/// leaf's.
pub(super) fn own<'s>(stacks: &'s Stacks, row: &Sample) -> Option<&'s Code> {
    match row.kernel {
        true => stacks.frames(row.stack).next(),
        false => stacks.credited(row.stack).map(|(code, _)| code),
    }
}

/// The functions that are compared.
#[derive(Default)]
pub(super) struct Names {
    keys: BTreeMap<Key, usize>,
}

impl Names {
    /// Of two recordings.
    pub fn of(sides: [&Case<'_>; 2]) -> Result<Self, Gap> {
        let mut weights: BTreeMap<Key, f64> = BTreeMap::new();
        for side in sides {
            for (key, share) in shares(side)? {
                let weight = weights.entry(key).or_default();
                *weight = weight.max(share);
            }
        }
        let mut heaviest: Vec<(Key, f64)> = weights.into_iter().collect();
        heaviest.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        heaviest.truncate(MOST);
        Ok(Self { keys: heaviest.into_iter().enumerate().map(|(i, (key, _))| (key, i)).collect() })
    }

    /// A frame's function and its number.
    pub fn find(&self, code: &Code) -> Option<(&Key, usize)> {
        self.keys.get_key_value(&Key::of(code)).map(|(key, index)| (key, *index))
    }

    /// All, with their numbers.
    pub fn all(&self) -> impl Iterator<Item = (&Key, usize)> {
        self.keys.iter().map(|(key, index)| (key, *index))
    }
}

/// Weight of each function of one side: the share of samples that are its own work, or half of those that have it on
/// the stack. Own work is where time went; callers come further down the list.
fn shares(case: &Case<'_>) -> Result<BTreeMap<Key, f64>, Gap> {
    let stacks = case.fact::<Stacks>()?;
    let rows = case.recording.rows::<Sample>();
    let all: f64 = rows.iter().map(|r| f64::from(r.weight.max(1))).sum();
    // Samples are many more than stacks.
    let mut alike: BTreeMap<(u32, bool), (&Sample, f64)> = BTreeMap::new();
    for row in rows {
        alike.entry((row.stack, row.kernel)).or_insert((row, 0.0)).1 += f64::from(row.weight.max(1)) / all;
    }
    let mut shares: BTreeMap<Key, (f64, f64)> = BTreeMap::new();
    for (row, part) in alike.into_values() {
        if let Some(code) = own(&stacks, row) {
            shares.entry(Key::of(code)).or_default().0 += part;
        }
        let mut seen = BTreeSet::new();
        for key in stacks.frames(row.stack).map(Key::of) {
            if seen.insert(key.clone()) {
                shares.entry(key).or_default().1 += part;
            }
        }
    }
    Ok(shares.into_iter().map(|(key, (own, on_stack))| (key, own.max(on_stack / 2.0))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn the_same_function_of_two_builds_is_one() {
        let a = parse(
            "frame id=1 symbol=work module=/old/svc offset=16\nframe id=2 symbol=main module=/old/svc
             frame id=3 symbol=tcp_sendmsg module=kernel kind=kernel
             stack id=1 frames=[1,2,2]\nstack id=2 frames=[3,2]\nsample stack=1\nsample stack=2",
        )
        .unwrap();
        let b =
            parse("frame id=9 symbol=work module=/new/svc offset=99\nstack id=4 frames=[9]\nsample stack=4").unwrap();
        let (a, b) = (Case::new(&a), Case::new(&b));
        let names = Names::of([&a, &b]).unwrap();
        let keys: Vec<&str> = names.all().map(|(key, _)| key.name.as_str()).collect();
        assert_eq!(keys, ["main", "tcp_sendmsg", "work"]);
        let stacks = b.fact::<Stacks>().unwrap();
        assert_eq!(names.find(stacks.frames(4).next().unwrap()).unwrap().1, 0, "the heaviest comes first");
    }

    #[test]
    fn their_number_is_bounded() {
        let text: String = (1..100)
            .map(|i| format!("frame id={i} symbol=f{i} module=m\nstack id={i} frames=[{i}]\nsample stack={i}\n"))
            .collect();
        let r = parse(&text).unwrap();
        let case = Case::new(&r);
        assert_eq!(Names::of([&case, &case]).unwrap().all().count(), MOST);
    }
}
