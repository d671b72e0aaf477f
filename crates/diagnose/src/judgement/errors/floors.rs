// SPDX-License-Identifier: Apache-2.0
//! From which number and share on an error is none of every day.

use crate::case::Case;
use crate::facts::calls::Calls;
use crate::facts::errors::{Kind, MIN_COUNT};
use crate::facts::listening::Listening;

/// Share from which on a kind of error is no everyday number; none = its number alone says nothing.
pub(crate) fn floor(kind: Kind) -> Option<f64> {
    match kind {
        // A datagram or a connection in a hundred is a retry that somebody notices; of lost segments 1 % halves the throughput of
        // a long connection.
        Kind::Unread | Kind::SentAgain | Kind::TurnedAway | Kind::BrokenOff | Kind::GivenUp | Kind::HungUp => {
            Some(0.01)
        }
        // Each costs its client a second, so that one in a thousand is the whole of a p999.
        Kind::QueueFull
        | Kind::HalfOpenFull
        | Kind::ListenDropped
        | Kind::NotTracked
        | Kind::Damaged
        | Kind::Filtered => Some(0.001),
        // A health check may be refused, and clients that come and go reset a connection now and then.
        Kind::NotMade | Kind::NobodyThere => Some(0.05),
        Kind::Killed | Kind::Crashed | Kind::Failed(-24 | -23 | -99 | -105 | -12 | -111) => Some(0.0),
        Kind::Failed(_) => None,
    }
}

/// The same for this target. Who answers datagrams is asked by them, and whoever got no answer waits for a second at least, as with a
/// handshake that was dropped.
pub(crate) fn floor_of(case: &Case, kind: Kind) -> Option<f64> {
    if kind == Kind::Unread && answers_datagrams(case) { floor(Kind::QueueFull) } else { floor(kind) }
}

/// Whether it was seen to send datagrams, and takes no connections, over which it may send with the same calls.
fn answers_datagrams(case: &Case) -> bool {
    let sends = |number: i32| ["sendto", "sendmsg", "sendmmsg"].contains(&case.syscall(number).as_str());
    let has_tcp = case.fact::<Listening>().is_ok_and(|listening| listening.on_tcp());
    !has_tcp
        && case
            .fact::<Calls>()
            .is_ok_and(|calls| calls.sampled.keys().chain(calls.counted.keys()).any(|(_, _, number)| sends(*number)))
}

/// So many of a kind are no chance, where they are this share of all. A handshake of the target's own that was dropped is no sample
/// of anything: its client waits a second for the next, and where those are one in a hundred, a few of them are more than
/// all else that clients wait.
pub(crate) fn enough(kind: Kind, share: f64, is_own: bool) -> f64 {
    match kind {
        Kind::Killed | Kind::Crashed => 1.0,
        Kind::QueueFull | Kind::ListenDropped if is_own && share >= ONE_IN_A_HUNDRED => FEW,
        // Each is a request of somebody who got no answer.
        Kind::TurnedAway | Kind::BrokenOff | Kind::GivenUp | Kind::HungUp => enough_requests(share),
        _ => MIN_COUNT,
    }
}

/// The same of requests that failed: a service that is asked little has few, and one in ten is no chance.
pub(super) fn enough_requests(share: f64) -> f64 {
    if share >= ONE_IN_TEN { FEW } else { MIN_COUNT }
}

const ONE_IN_A_HUNDRED: f64 = 0.01;
const ONE_IN_TEN: f64 = 0.1;
const FEW: f64 = 3.0;
