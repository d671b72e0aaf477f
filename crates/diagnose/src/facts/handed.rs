// SPDX-License-Identifier: Apache-2.0
//! Requests that one thread reads and others answer, each one at a time: a pool behind a queue of the program's own.

use std::collections::BTreeMap;

use recording::tables::Request;

use super::requests::Requests;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::statistics::share;

/// Requests followed, from which on it is known how threads take them.
const ENOUGH: usize = 50;

/// Of the requests, at the edges of what was followed, and those that a thread happened to read and answer.
const FEW: f64 = 0.05;

/// Who answers requests at the port where clients ask most.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Handed {
    /// Requests that were followed.
    pub requests: usize,
    /// Threads that answered some of them.
    pub threads: usize,
    /// Share of the requests that another thread read.
    pub part: f64,
}

impl Handed {
    /// Whether nearly all were handed on, so that those threads are a pool.
    pub fn are_all(&self) -> bool {
        self.requests >= ENOUGH && self.part >= 1.0 - FEW
    }
}

impl Fact for Handed {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let requests = case.fact::<Requests>()?;
        let port = requests.busiest().map_or(0, |busiest| busiest.port);
        let rows = case.recording.rows::<Request>().iter().filter(|row| row.is_accepted() && row.port == port);
        let mut threads: BTreeMap<u32, usize> = BTreeMap::new();
        let (mut all, mut handed) = (0, 0);
        for row in rows {
            (all, handed) = (all + 1, handed + usize::from(row.began_tid != row.ended_tid));
            *threads.entry(row.ended_tid).or_default() += 1;
        }
        Ok(Self { requests: all, threads: threads.len(), part: share(handed as f64, all as f64) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn those_that_are_handed_on_are_told_from_those_that_are_kept() {
        let handed = |by: u32| {
            let row = |nth: u32| {
                format!(
                    "request t_ns={}e6 role=accepted port=80 pid=1 began_ns=1 began_tid=1 read_ns=2 ended_tid={by}\n",
                    nth + 1
                )
            };
            let rows: String = (0..60).map(row).collect();
            let text = format!("exchange role=accepted port=80 stage=response count=60\n{rows}");
            (*Case::new(&parse(&text).unwrap()).fact::<Handed>().unwrap()).clone()
        };
        assert!(handed(2).are_all() && handed(2).threads == 1);
        assert!(!handed(1).are_all());
    }
}
