// SPDX-License-Identifier: Apache-2.0
//! Whether a thread polls by choice.

use crate::case::Case;
use crate::facts::profile::Profile;
use crate::facts::stacks::Stacks;
use crate::runtimes::pollers::{self, Poller};
use crate::statistics::share;

/// Of a thread's samples: what a driver's thread does besides is its work.
const MOST: f64 = 0.3;

/// The kind of driver that a thread, or the whole target, polls for.
pub(crate) fn poller(case: &Case, thread: Option<(u32, u32)>) -> Option<&'static Poller> {
    let (profile, stacks) = (case.fact::<Profile>().ok()?, case.fact::<Stacks>().ok()?);
    let mine = |at: (u32, u32)| thread.is_none_or(|only| only == at);
    let (mut all, mut polls, mut found) = (0, 0, None);
    for (place, &weight) in profile.places.iter().filter(|(place, _)| mine((place.pid, place.tid))) {
        all += weight;
        let comm = profile.threads.get(&(place.pid, place.tid)).map_or("", |t| t.comm.as_str());
        if let Some(poller) = pollers::of(comm, stacks.user(place.stack)) {
            polls += weight;
            found = Some(poller);
        }
    }
    found.filter(|_| share(polls as f64, all as f64) >= MOST)
}
