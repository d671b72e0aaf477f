// SPDX-License-Identifier: Apache-2.0
//! A runtime's threads that yield their CPU until there is work: whoever wants it goes first. While CPUs have room and clients
//! get their answers, that takes nothing from anybody.

use crate::case::Case;
use crate::facts::cpus::Cpus;
use crate::facts::polling::Spin;
use crate::facts::requests::{LATE_NS, Requests};
use crate::syscall::{Family, family};
use crate::wording::{percent, seconds};

/// Of the CPUs that the target may use: beyond, yields change whose turn it is, and that is felt.
const FULL: f64 = 0.9;

/// Answers from which on percentiles say something.
const ENOUGH_ANSWERS: f64 = 100.0;

/// That CPUs have room and answers are quick.
pub(super) struct Room {
    used: f64,
    p99_ns: f64,
}

/// The room that there is; none if CPUs are full, answers take long, or either is unknown.
pub(super) fn room(case: &Case) -> Option<Room> {
    let used = case.fact::<Cpus>().ok()?.allowed_time?.utilization();
    let requests = case.fact::<Requests>().ok()?;
    let main = requests.main().filter(|b| b.response.count >= ENOUGH_ANSWERS)?;
    let p99_ns = main.response.quantile_ns(0.99);
    (used < FULL && p99_ns < LATE_NS).then_some(Room { used, p99_ns })
}

/// Whether this spin gives way: a runtime's, by sched_yield.
pub(super) fn gives_way(s: &Spin) -> bool {
    s.runtime.is_some() && family(&s.syscall) == Family::Yield
}

impl Room {
    pub(super) fn words(&self) -> String {
        format!(
            "; whoever wants its CPU goes first: the CPUs were {} in use, and 99 % of the answers took {} or less",
            percent(self.used),
            seconds(self.p99_ns / 1e9)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::RULE;
    use super::super::tests::erlang;
    use crate::rules::asking::{found, silent};

    /// Schedulers that yield most of a CPU away while clients get their answers.
    #[test]
    fn who_gives_way_takes_nothing_while_there_is_room() {
        let beside = |idle: u32, answer_ms: u32| {
            erlang(0.9, 10.0)
                + &format!(
                    "exchange_window t_ns=10e9 length_ns=10e9
                     exchange role=accepted port=80 stage=response count=900 sum_ns=1e9 length_ns=[{answer_ms}000000] counts=[900]
                     counter source=proc/stat entity=cpu0 name=user_ns value=0\ncounter source=proc/stat entity=cpu0 name=idle_ns value=0
                     counter t_ns=10e9 source=proc/stat entity=cpu0 name=user_ns value={}
                     counter t_ns=10e9 source=proc/stat entity=cpu0 name=idle_ns value={idle}\n",
                    1000 - idle
                )
        };
        let why = silent(&RULE, &beside(400, 2));
        assert!(why.contains("goes first: the CPUs were 60 % in use, and 99 % of the answers took 2 ms"), "{why}");
        found(&RULE, &beside(40, 2)); // full CPUs
        found(&RULE, &beside(400, 20)); // slow answers
    }
}
