// SPDX-License-Identifier: Apache-2.0
//! Whether some waiting is enough for a finding, and whether requests can have waited for so much.

use crate::answer::{Measured, Unit};
use crate::case::Case;
use crate::facts::connections::Connections;
use crate::facts::waiting::Waiting;
use crate::statistics::ratio;
use crate::wording::{percent, seconds};

/// Why time is too little for a finding, if it is: its part of active time, or its share of the window, whichever is farther
/// from what a finding needs.
pub(crate) fn little(
    case: &Case,
    (ns, part): (f64, f64),
    min_part: f64,
    min_of_window: f64,
) -> Option<(Measured, String)> {
    let of_window = ratio(ns, case.length_ns());
    let told = format!("{}, {} of the target's active time", seconds(ns / 1e9), percent(part));
    let needed = [Measured::new(part, min_part, Unit::Share), Measured::new(of_window, min_of_window, Unit::Share)];
    let seen = Measured::farthest(needed)?;
    if part < min_part {
        Some((seen, format!("{told} (under {})", percent(min_part))))
    } else {
        let least = percent(min_of_window);
        Some((seen, format!("{told}, but only {} of the window (under {least})", percent(of_window))))
    }
}

/// Threads that may wait for one request at once: those that ask several others in parallel.
const THREADS_A_REQUEST: f64 = 4.0;

/// Why most of some waiting was not for requests, if so: by Little's law, no more time can have been waited for them
/// than there were answers owed. A request may be worked on by several threads at once.
pub(crate) fn not_for_requests(case: &Case, waiting: &Waiting, ns: f64) -> Option<String> {
    let connections = case.fact::<Connections>().ok().filter(|c| c.tells() && !waiting.other_clients)?;
    let owed_ns = connections.accepted.in_hand() * case.length_ns();
    (owed_ns * THREADS_A_REQUEST < ns).then(|| {
        format!(
            "{}, but it had requests of clients in hand for {} together, over all connections: it was not for those",
            seconds(ns / 1e9),
            seconds(owed_ns / 1e9)
        )
    })
}
