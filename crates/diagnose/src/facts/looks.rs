// SPDX-License-Identifier: Apache-2.0
//! How often connections were looked at.

use std::collections::{BTreeMap, BTreeSet};

use recording::tables::{Connection, Thread};

use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::statistics::ratio;

/// Looks in all, also those that met no connection: averages are over the whole window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Looks(pub f64);

impl Fact for Looks {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let met: BTreeMap<u64, u64> =
            case.recording.rows::<Connection>().iter().map(|row| (row.t_ns, row.looks)).collect();
        let looks = met.values().map(|looks| *looks as f64).sum::<f64>();
        // A slice without any connection has no row that says how often it was looked; it was as long as the others.
        let slices: BTreeSet<u64> = case.recording.rows::<Thread>().iter().map(|row| row.t_ns).collect();
        let are_slices = met.keys().all(|t_ns| slices.contains(t_ns));
        Ok(Self(if are_slices { looks * ratio(slices.len() as f64, met.len() as f64) } else { looks }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn slices_without_connections_were_looked_at_too() {
        let looks = |text: &str| Case::new(&parse(text).unwrap()).fact::<Looks>().unwrap().0;
        let threads: String = (1..=5).map(|t| format!("thread t_ns={t}e9 pid=1 tid=1 wall_ns=1e9\n")).collect();
        let two = "connection t_ns=2e9 role=accepted port=80 looks=10 open=1
            connection t_ns=2e9 role=accepted port=81 looks=10 open=1
            connection t_ns=3e9 role=accepted port=80 looks=8 open=1";
        assert_eq!((looks(&(threads + two)), looks(two), looks("")), (45.0, 18.0, 0.0));
    }
}
