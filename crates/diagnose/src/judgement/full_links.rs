// SPDX-License-Identifier: Apache-2.0
//! Which interfaces have more to send than they carry, by what stands in their queues.

use crate::facts::links::Link;

/// Of the looks, with something in the queue.
pub(crate) const MIN_QUEUED: f64 = 0.5;

/// What a user feels begins there.
pub(crate) const MIN_DELAY_NS: f64 = 5e6;

/// Whether so much stands in the queue of an interface, for so long. One that drops or delays what a rule tells it to (netem) has room.
pub(crate) fn is_full(link: &Link) -> bool {
    !link.emulates && link.queued >= MIN_QUEUED && link.delay_ns() >= MIN_DELAY_NS
}
