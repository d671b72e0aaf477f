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
    let busiest = requests.busiest().filter(|b| b.response.count >= ENOUGH_ANSWERS)?;
    let p99_ns = busiest.response.quantile_ns(0.99);
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
