// SPDX-License-Identifier: Apache-2.0
//! Whether threads wait for each other's lock, which one holds at a time, or for a pool, which several do.

use crate::facts::contended::Contended;

/// Holders on average, between one and two.
const SEVERAL: f64 = 1.5;

/// Of the largest number of holders, so many on average: between two requests a holder is on a CPU.
const HELD: f64 = 0.6;

/// Whether several hold one at once, nearly all the time: a pool, and it is empty.
pub(crate) fn is_pool(held: &Contended) -> bool {
    held.mean >= SEVERAL && held.mean >= held.most as f64 * HELD
}

/// Whether one holds it at a time. Some runtimes look at a lock again now and then, which is a wait beside the holder's.
pub(crate) fn is_lock(held: &Contended) -> bool {
    !held.chains.is_empty() && held.mean < SEVERAL
}
