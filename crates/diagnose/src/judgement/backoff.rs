// SPDX-License-Identifier: Apache-2.0
//! A peer whose answers fail again and again: whoever sleeps before it asks once more may do so on purpose.

use crate::case::Case;
use crate::facts::labels::{Labels, Place};
use crate::statistics::share;
use crate::wording::{count, percent};

/// Of its answers.
const OFTEN: f64 = 0.1;
/// Of fewer, each may be chance.
const SEVERAL: f64 = 10.0;

/// The peer of which most fail.
pub(crate) struct Failing {
    peer: String,
    failed: f64,
    all: f64,
}

impl Failing {
    /// Of those that the target asks; none where they answer, or where nobody looked at what answers say (`--requests`).
    pub(crate) fn of(case: &Case) -> Option<Self> {
        let labels = case.fact::<Labels>().ok()?;
        let of =
            |place: &Place| Self { peer: place.name.clone(), failed: place.outcomes.failed, all: place.outcomes.all };
        let asked = labels.places.iter().filter(|place| !place.accepted).map(of);
        let failing = asked.filter(|peer| peer.failed >= SEVERAL && share(peer.failed, peer.all) >= OFTEN);
        failing.max_by(|a, b| a.failed.total_cmp(&b.failed))
    }

    /// For a headline.
    pub(crate) fn words(&self) -> String {
        format!("and {} fails {} of the time", self.peer, percent(share(self.failed, self.all)))
    }

    /// What to do before the sleep is touched.
    pub(crate) fn advice(&self) -> String {
        format!(
            "see first why {} fails ({} of {} answers): a sleep between two tries may be meant",
            self.peer,
            count(self.failed),
            count(self.all)
        )
    }
}
