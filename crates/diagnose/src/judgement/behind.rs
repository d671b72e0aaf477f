// SPDX-License-Identifier: Apache-2.0
//! Requests that stand before threads that are taken: they wait for what those do for others, as often as there are others before
//! them.

use crate::judgement::felt::Felt;
use crate::walk::paths::Part;
use crate::wording::seconds;

/// Of what they wait for, before their turn.
const MOSTLY: f64 = 0.5;

/// What most of a cause passes as.
pub(crate) struct Behind {
    /// Before their turn, on average, ns.
    ns: f64,
    /// For themselves.
    own_ns: f64,
}

impl Behind {
    /// Of a part of the time, if most of it passes before their turn.
    pub(crate) fn of(felt: &Felt, is_it: impl Fn(&Part) -> bool) -> Option<Self> {
        let share = |before: bool| felt.group().share(|part| part.before == before && is_it(part));
        let [own, before] = [share(false), share(true)];
        let of = |part: f64| felt.mean_ns() * part;
        (before > 0.0 && before >= (own + before) * MOSTLY).then(|| Self { ns: of(before), own_ns: of(own) })
    }

    /// In a headline, behind how much of the time it is.
    pub(crate) fn part(&self) -> String {
        format!(", {} of that before their turn", seconds(self.ns / 1e9))
    }

    /// Behind what they wait for.
    pub(crate) fn words(&self) -> String {
        format!(
            ": {} on average before their turn, while the threads that take them are at others, and {} for themselves",
            seconds(self.ns / 1e9),
            seconds(self.own_ns / 1e9)
        )
    }

    /// What else helps.
    pub(crate) fn advice(&self) -> String {
        "Most of it passes before their turn: what each request takes of a thread, those behind it wait for too. More threads help \
         where that needs no CPU."
            .into()
    }
}
