// SPDX-License-Identifier: Apache-2.0
//! A peer whose answers fail again and again: whoever sleeps before it asks once more does so on purpose.

use crate::case::Case;
use crate::facts::labels::Labels;
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
        let asked = labels.places.iter().filter(|place| !place.accepted);
        let most = asked.max_by(|a, b| a.outcomes.failed.total_cmp(&b.outcomes.failed))?;
        let (failed, all) = (most.outcomes.failed, most.outcomes.all);
        (failed >= SEVERAL && share(failed, all) >= OFTEN).then(|| Self { peer: most.name.clone(), failed, all })
    }

    /// For a headline.
    pub(crate) fn words(&self) -> String {
        format!("and {} fails {} of the time", self.peer, percent(share(self.failed, self.all)))
    }

    /// What to do before the sleep is touched.
    pub(crate) fn advice(&self) -> String {
        format!(
            "see first why {} fails ({} of {} answers): a sleep between two tries is meant",
            self.peer,
            count(self.failed),
            count(self.all)
        )
    }
}
