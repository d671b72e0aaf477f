// SPDX-License-Identifier: Apache-2.0
//! Processes of the target that ended by a signal for what they did themselves: a bad address, an assertion that failed. Those that
//! somebody ended (SIGTERM, SIGKILL …) may have been meant to, and want of memory has a count of its own.

use std::collections::BTreeMap;

use recording::tables::Death;

use crate::answer::Gap;
use crate::case::{Case, Fact};

/// Signals for what a program did itself, Linux on x86-64 and arm64.
const OWN: [(u32, &str); 7] =
    [(4, "SIGILL"), (5, "SIGTRAP"), (6, "SIGABRT"), (7, "SIGBUS"), (8, "SIGFPE"), (11, "SIGSEGV"), (31, "SIGSYS")];

/// Those by which somebody ends one.
const OF_OTHERS: [(u32, &str); 5] = [(1, "SIGHUP"), (2, "SIGINT"), (3, "SIGQUIT"), (9, "SIGKILL"), (15, "SIGTERM")];

/// The name of a signal.
pub fn signal_name(number: u32) -> String {
    let known = OWN.iter().chain(&OF_OTHERS).find(|(signal, _)| *signal == number);
    known.map_or_else(|| format!("signal {number}"), |(_, name)| (*name).to_string())
}

/// Those that crashed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Deaths {
    /// How many.
    pub count: f64,
    /// Of how many names and signals.
    pub kinds: usize,
    /// The name and signal of most of them.
    pub most: Option<(String, &'static str)>,
}

impl Fact for Deaths {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let mut by: BTreeMap<(&str, &'static str), u64> = BTreeMap::new();
        for row in case.recording.rows::<Death>() {
            if let Some((_, name)) = OWN.iter().find(|(signal, _)| *signal == row.signal) {
                *by.entry((&row.comm, name)).or_default() += row.count;
            }
        }
        let (count, kinds) = (by.values().sum::<u64>() as f64, by.len());
        let most = by.into_iter().max_by_key(|(_, count)| *count).map(|((comm, name), _)| (comm.to_string(), name));
        Ok(Self { count, kinds, most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn those_that_ended_for_what_they_did() {
        let text = "death t_ns=1e9 pid=5 comm=worker signal=11 count=2
            death t_ns=2e9 pid=9 comm=worker signal=11 count=1
            death t_ns=2e9 pid=12 comm=job signal=6 count=1
            death t_ns=2e9 pid=10 comm=worker signal=15 count=40";
        let deaths = Case::new(&parse(text).unwrap()).fact::<Deaths>().unwrap();
        assert_eq!(
            (deaths.count, deaths.kinds, deaths.most.clone()),
            (4.0, 2, Some(("worker".to_string(), "SIGSEGV")))
        );
    }
}
