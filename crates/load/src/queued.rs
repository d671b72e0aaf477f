// SPDX-License-Identifier: Apache-2.0
//! Requests that waited before they were sent: for a service that does less than was asked for, or because there are no more
//! connections, which is no limit of the service.

use std::time::Duration;

use crate::reason::Reason;
use crate::reasons::{MISSING, QUEUED, WAITED, lasting, reason, rounded, time};
use crate::run::Run;
use crate::verdict::Verdict;

/// Of the time, all connections taken, if their number may be the limit.
const FULL: f64 = 0.5;
/// How much longer answers take than those that met no queue, from when they were sent, if they met none either.
const ALIKE: f64 = 1.3;

/// Of the length of a load, a usual answer that is too long for it.
const SHORT: f64 = 0.5;

impl Verdict {
    /// Whether the number of connections is what limits: all were taken, and still the service answered each as soon as it does when it
    /// has little to do, which takes `alone` seconds. One that is at its own limit keeps them waiting.
    pub(crate) fn is_limited_by_connections(&self, alone: Option<f64>) -> bool {
        let is_alike = self.seconds.p50.zip(alone).is_some_and(|(usual, alone)| usual <= ALIKE * alone);
        self.full >= FULL && is_alike
    }

    /// Whether answers take so long that how many came says nothing of whether the service keeps up.
    pub(crate) fn is_too_short(&self) -> bool {
        self.seconds.p50.is_some_and(|usual| usual > SHORT * self.length)
    }
}

/// Why requests waited before they were sent, if they did.
pub(crate) fn queued(verdict: &Verdict, run: &Run, failed: f64) -> Vec<Reason> {
    let Some(planned) = verdict.planned else { return carried(verdict, run) };
    // What it is told of anyway that nobody was answered for a while leaves as much, if that is at the end, and is no queue.
    let stood = run.stood.length > Duration::ZERO && run.stood.from + run.stood.length >= run.length;
    let is_pause = stood && verdict.second_half.is_some_and(|half| half.kept >= 1.0);
    let is_over = run.due > 0 && verdict.kept() < 1.0 - MISSING && !is_pause;
    if is_over && verdict.is_limited_by_connections(verdict.quickest) {
        return carried(verdict, run);
    }
    if is_over && failed < MISSING && verdict.is_too_short() && verdict.full < FULL {
        return reason("too-short", too_short(verdict));
    }
    if is_over && failed < MISSING {
        return reason("over-capacity", over_capacity(verdict, run, planned));
    }
    let waited = match (verdict.corrected.p50, verdict.seconds.p50) {
        (Some(due), Some(sent)) => due > QUEUED * sent && due - sent > WAITED,
        _ => false,
    };
    if waited {
        let sentence = format!(
            "half of the requests waited for one of the {} connections to be free; --connections gives more",
            run.pool
        );
        return reason("connections", sentence);
    }
    Vec::new()
}

/// That so many connections carry no more, where that is the limit.
fn carried(verdict: &Verdict, run: &Run) -> Vec<Reason> {
    let usual = verdict.seconds.p50.filter(|_| run.pool > 0 && verdict.is_limited_by_connections(verdict.quickest));
    let Some(usual) = usual else { return Vec::new() };
    let sentence = format!(
        "{} connections were all taken, and an answer took {}, hardly longer than the quickest one: so many carry {} a second, whatever \
         the service could do; --connections gives more",
        run.pool,
        time(usual),
        rounded(verdict.rate)
    );
    reason("connections", sentence)
}

/// That it says nothing of whether the service keeps up.
pub(crate) fn too_short(verdict: &Verdict) -> String {
    let usual = verdict.seconds.p50.unwrap_or_default();
    format!(
        "an answer took {}, more than half of the {} for which it was asked: whether the service keeps up takes longer to tell, \
         {}",
        time(usual),
        time(verdict.length),
        lasting(10.0 * usual)
    )
}

fn over_capacity(verdict: &Verdict, run: &Run, planned: f64) -> String {
    // Of answers that vary, it cannot be told whether they met a queue: it may be the connections' number as well as the service.
    let carried = match verdict.full >= FULL {
        true => format!(
            "; {} connections were all taken, and whether the service can do more, more of them tell (--connections)",
            run.pool
        ),
        false => String::new(),
    };
    format!(
        "{} of {} requests a second were answered: the rest queues up for as long as the load lasts, so that response \
         times are as long as it is{carried}",
        rounded(verdict.rate),
        rounded(planned)
    )
}
