// SPDX-License-Identifier: Apache-2.0
//! Opinions that more than one rule or remark holds: from which number on something is full, or matters. Facts have none, and
//! what only one rule thinks stands there.

pub(crate) mod aside;
pub(crate) mod asked;
pub(crate) mod backoff;
pub(crate) mod behind;
pub(crate) mod churn;
pub(crate) mod clients_wait;
pub(crate) mod deadlocks;
pub(crate) mod drips;
pub(crate) mod dropped_here;
pub(crate) mod enough;
pub(crate) mod errors;
pub(crate) mod felt;
pub(crate) mod full;
pub(crate) mod full_links;
pub(crate) mod handshakes;
pub(crate) mod hanging;
pub(crate) mod holders;
pub(crate) mod hung;
pub(crate) mod idle_worker;
pub(crate) mod in_parts;
pub(crate) mod later;
pub(crate) mod limited;
pub(crate) mod loops;
pub(crate) mod meanwhile;
pub(crate) mod nagle;
pub(crate) mod often;
pub(crate) mod one_each;
pub(crate) mod paths;
pub(crate) mod poller;
pub(crate) mod secure;
pub(crate) mod short_memory;
pub(crate) mod silent;
pub(crate) mod slow_start;
pub(crate) mod standers;
pub(crate) mod standing;
pub(crate) mod standstill;
pub(crate) mod streams;
pub(crate) mod tail;
pub(crate) mod time_wait;
pub(crate) mod untaken;
pub(crate) mod waits_for_turn;

/// Of several things that may be a cause, the first that is one, or else the first: what is said of it tells most.
pub(crate) fn one_of<T>(all: impl Iterator<Item = T>, is_cause: impl Fn(&T) -> bool) -> Option<T> {
    let mut first = None;
    for one in all {
        if is_cause(&one) {
            return Some(one);
        }
        first.get_or_insert(one);
    }
    first
}

/// Those with some of it, the one with most first.
pub(crate) fn by_most<T>(all: &[T], of: impl Fn(&T) -> f64) -> impl Iterator<Item = &T> {
    let mut some: Vec<&T> = all.iter().filter(|one| of(one) > 0.0).collect();
    some.sort_by(|a, b| of(b).total_cmp(&of(a)));
    some.into_iter()
}
