// SPDX-License-Identifier: Apache-2.0
//! Requests that stand before a lock whose holder has nothing to do but to wait for its own client, as in the middle of a transaction.
//! It is nobody's fault in the service that this client takes its time; but the others wait for it.

use super::super::Statement;
use crate::case::Case;
use crate::facts::unexplained::Unexplained;
use crate::judgement::paths::stands_before_peers;
use crate::judgement::standing::MIN_REST;
use crate::remarks::hidden_queues;
use crate::statistics::ratio;
use crate::walk::Kind;
use crate::walk::paths::{Part, RequestPaths, What};
use crate::wording::{count, percent, seconds};

/// Of the time of slow requests: most of it.
const MOSTLY: f64 = 0.5;

/// The statement about them.
pub(super) fn check(case: &Case) -> Option<Statement> {
    let late = case.fact::<Unexplained>().ok()?.late;
    let paths = case.fact::<RequestPaths>().ok()?;
    let slow = &paths.busiest()?.slow;
    let part = slow.share(is_held_for_a_client);
    if late < MIN_REST || part < MOSTLY {
        return None;
    }
    let (part, mean) = (percent(part), seconds(ratio(slow.ns, slow.requests as f64) / 1e9));
    Some(Statement {
        headline: format!(
            "slow requests spend {part} of their {mean} before a lock, and whoever holds it waits for its own client (as in a \
             transaction that is kept open)"
        ),
        advice: format!("see who holds it, and what that client does meanwhile: {}", hidden_queues::look(case).look),
        detail: format!(
            "On average {late:.1} connections had been waiting for their answer for 10 ms or longer. The slowest {} requests that were \
             followed spent {part} of their time before a lock, until a thread let go of it that had waited for what its own client \
             sends next. What is held so long is a matter between these two: a row of a table until its transaction is over, or a \
             lock of the service's that is kept over several requests of one client.",
            count(slow.requests as f64)
        ),
    })
}

fn is_held_for_a_client(part: &Part) -> bool {
    let What::Waits(chain) = &part.what else { return false };
    !part.before && stands_before_peers(part) && chain.end.kind == Kind::Client
}
