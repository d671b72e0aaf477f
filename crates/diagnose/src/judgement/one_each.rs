// SPDX-License-Identifier: Apache-2.0
//! Threads that take one request at a time: a pool, whose queue is seen, or stands behind those that read.

use crate::case::Case;
use crate::facts::readers::Readers;

/// Requests followed, from which on it is known how threads take them.
const ENOUGH: usize = 50;

/// Of the requests, at the edges of what was followed.
const FEW: f64 = 0.05;

/// The threads, if nearly all requests are read by others, who hand them on.
pub(crate) fn behind_readers(case: &Case) -> Option<Readers> {
    let readers = case.fact::<Readers>().ok()?;
    (readers.requests >= ENOUGH && readers.kept <= FEW).then(|| (*readers).clone())
}

/// The threads, if each keeps a request until it is answered, and there are several.
pub(crate) fn threads(case: &Case) -> Option<Readers> {
    let readers = case.fact::<Readers>().ok()?;
    let keep = readers.requests >= ENOUGH && readers.kept >= 1.0 - FEW && readers.beside <= FEW;
    (readers.who.len() > 1 && keep).then(|| (*readers).clone())
}
