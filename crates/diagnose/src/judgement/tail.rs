// SPDX-License-Identifier: Apache-2.0
//! Whether a few answers take much longer than most, and make a good part of what clients wait.

use crate::facts::requests::{Endpoint, slow_from_ns};
use crate::statistics::ratio;

/// Of the time that all clients wait.
const MUCH: f64 = 0.25;

/// Slow ones: of fewer, each may be chance.
const SEVERAL: f64 = 5.0;

/// The slow answers.
pub(crate) struct Tail {
    /// From which length on they are slow, ns.
    pub from_ns: f64,
    /// How many.
    pub count: f64,
    /// How long each takes on average, ns.
    pub mean_ns: f64,
    /// Of all time that clients waited there.
    pub part: f64,
}

/// The slow answers at an endpoint, if they matter.
pub(crate) fn of(endpoint: &Endpoint) -> Option<Tail> {
    let times = &endpoint.response;
    let from_ns = slow_from_ns(times.quantile_ns(0.5));
    let slow = || times.counts().filter(|(length_ns, _)| *length_ns >= from_ns);
    let (count, sum_ns) = (slow().map(|(_, n)| n).sum(), slow().map(|(length_ns, n)| length_ns * n).sum());
    let tail = Tail { from_ns, count, mean_ns: ratio(sum_ns, count), part: times.share_of_time_from(from_ns) };
    (tail.count >= SEVERAL && tail.part >= MUCH).then_some(tail)
}
