// SPDX-License-Identifier: Apache-2.0
//! Whether what threads wait for is mostly the matter of those that take no part in requests.

use crate::case::Case;
use crate::facts::aside::Aside;
use crate::facts::serving::Serving;
use crate::ledger::threads::Threads;
use crate::statistics::share;

/// Of the waiting.
const MOST: f64 = 0.5;

/// Of the waiting for a peer that is asked over a socket, what is theirs, if that is most.
pub(crate) fn of_peer(case: &Case, peer: &str) -> Option<f64> {
    case.fact::<Aside>().ok()?.of_peer(case, peer).filter(|part| *part >= MOST)
}

/// Likewise of the waiting for a CPU.
pub(crate) fn of_cpu(case: &Case, ledger: &Threads) -> Option<f64> {
    let (aside, serving) = (case.fact::<Aside>().ok()?, case.fact::<Serving>().ok()?);
    let is_aside = |pid: u32, tid: u32| tid != 0 && aside.is_unasked(tid) && serving.is_aside((pid, tid));
    let waits = ledger.threads.iter().filter(|thread| is_aside(thread.pid, thread.tid));
    let part = share(waits.map(|thread| thread.lines.waiting_for_cpu_ns()).sum(), ledger.total.waiting_for_cpu_ns());
    Some(part).filter(|part| *part >= MOST)
}
