// SPDX-License-Identifier: Apache-2.0
//! Whether threads wait for each other's lock, which one holds at a time, or for a pool, which several do.

use crate::answer::Gap;
use crate::case::Case;
use crate::facts::contended::Contended;
use crate::walk::chains::Chain;
use crate::walk::{HAND_OFF, LOCK, Walk};

/// Holders on average, between one and two.
const SEVERAL: f64 = 1.5;

/// Of the largest number of holders, so many on average: between two requests a holder is on a CPU.
const HELD: f64 = 0.6;

/// Whether several hold one at once, nearly all the time: a pool, and it is empty.
pub(crate) fn is_pool(held: &Contended) -> bool {
    held.mean >= SEVERAL && held.mean >= held.most as f64 * HELD
}

/// Locks of the target's, which one of its threads holds at a time.
pub(crate) struct Locks {
    /// What threads that serve clients hand around is one.
    handed: bool,
}

impl Locks {
    /// By how many hold at once what is handed around. Some runtimes look at a lock again now and then, which is a wait beside the
    /// holder's; and in an interpreter that runs one thread at a time, each waits for another.
    pub(crate) fn of(case: &Case) -> Result<Self, Gap> {
        let held = case.fact::<Contended>()?;
        let one_holder = !held.chains.is_empty() && held.mean < SEVERAL;
        Ok(Self { handed: one_holder && !case.fact::<Walk>()?.mostly_interpreter() })
    }

    /// Whether a chain begins before one.
    pub(crate) fn keep(&self, chain: &Chain) -> bool {
        match chain.links[0].who.fd_kind.as_str() {
            LOCK => true,
            HAND_OFF => self.handed,
            _ => false,
        }
    }
}
