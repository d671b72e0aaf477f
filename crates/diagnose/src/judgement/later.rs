// SPDX-License-Identifier: Apache-2.0
//! Answers of which the rest comes much later than the first bytes, with which response times and the paths of requests end.

use crate::facts::requests::{Endpoint, LATE_NS};
use crate::statistics::ratio;

/// Writes for one answer beside the first: of more, most are what nobody asked for, such as messages of others.
const PARTS: f64 = 3.0;

/// Answers that are enough to tell.
const ANSWERS: f64 = 10.0;

/// Times what it takes until the first bytes: then those say little of what a client waits.
const MUCH_LONGER: f64 = 2.0;

/// For how long the target went on writing after the first bytes of an answer, ns; none where that is nothing beside these.
pub(crate) fn rest_ns(asked: &Endpoint) -> Option<f64> {
    let (writes, later_ns) = asked.later_writes();
    let rest_ns = ratio(later_ns, asked.response.count);
    let matters = asked.response.count >= ANSWERS
        && writes <= asked.response.count * PARTS
        && rest_ns >= LATE_NS.max(asked.response.mean_ns() * MUCH_LONGER);
    matters.then_some(rest_ns)
}
