// SPDX-License-Identifier: Apache-2.0
//! How much was sent again: in the whole network namespace, or towards those of the target's own ends where it is more.

use crate::case::Case;
use crate::facts::handshakes::Handshakes;
use crate::facts::losses::{Loss, Losses};
use crate::facts::requests::{Endpoint, Requests};
use crate::facts::retransmits::Retransmits;
use crate::judgement::clients_wait::usual_ns;
use crate::statistics::share;
use crate::verdict::{Evidence, evidence};
use crate::wording::{count, percent};

/// Of the time that clients wait for their answers.
const HARDLY_EVER: f64 = 0.1;

/// What the rule judges.
pub(super) struct Seen {
    /// Sent again on connections that stood.
    pub again: f64,
    /// What was sent again, of all that was sent.
    pub all: f64,
    /// Of that, the target's own.
    pub part: f64,
    /// Of what was sent again, that of connections that stood.
    pub of_data: f64,
    /// The end of its own where that is, if one is known.
    end: Option<Loss>,
    /// In words.
    pub told: String,
}

impl Seen {
    pub(super) fn of(case: &Case, h: &Handshakes, own: Option<&Retransmits>) -> Self {
        let end = case.fact::<Losses>().ok().and_then(|losses| losses.worst(h).cloned());
        end.map_or_else(|| Self::of_all(h, own), Self::of_end)
    }

    fn of_all(h: &Handshakes, own: Option<&Retransmits>) -> Self {
        let all = share(h.again, h.sent);
        Self {
            again: h.data_again(),
            of_data: share(h.data_again(), h.again),
            all,
            // The counters are those of everybody in the namespace.
            part: all * own.map_or(1.0, Retransmits::own_share),
            told: told((h.again, h.sent), ""),
            end: None,
        }
    }

    /// Connections that are kept begin once: what is sent again there is data.
    fn of_end(end: Loss) -> Self {
        let (all, told) = (end.share(), told((end.again, end.sent), &to(Some(&end))));
        Self { again: end.again, of_data: 1.0, all, part: all, told, end: Some(end) }
    }

    /// Whom the target sends that to for nobody: its clients get answers, and hardly ever wait for one of that peer.
    pub(super) fn for_nobody(&self, case: &Case) -> Option<&str> {
        let end = self.end.as_ref().filter(|end| !end.accepted)?;
        let requests = case.fact::<Requests>().ok()?;
        let waited_ns = usual_ns(&requests)?;
        let awaited_ns = requests.of(false, &end.name).map_or(0.0, Endpoint::awaited_ns);
        (awaited_ns < waited_ns * HARDLY_EVER).then_some(end.name.as_str())
    }

    /// Of the segments, and to whom, for a headline.
    pub(super) fn lost(&self) -> String {
        format!("{} of the segments{}", percent(self.part), to(self.end.as_ref()))
    }

    /// The same for a summary.
    pub(super) fn words(&self, h: &Handshakes) -> String {
        let all = format!("{} of {} segments of its network namespace were sent again", count(h.again), count(h.sent));
        match &self.end {
            Some(_) => format!("{}. {all}", self.told),
            None => format!("{all}, {}", percent(self.part)),
        }
    }

    /// What was counted there.
    pub(super) fn evidence(&self) -> Option<Evidence> {
        let end = self.end.as_ref()?;
        Some(evidence(
            &format!("sent again{}", to(Some(end))),
            end.share() * 100.0,
            "%",
            "under 1",
            "ss -tin  # retrans, of data_segs_out",
        ))
    }
}

fn told((again, sent): (f64, f64), to: &str) -> String {
    format!("{} of {} segments{to} ({}) were sent again", count(again), count(sent), percent(share(again, sent)))
}

fn to(end: Option<&Loss>) -> String {
    match end {
        Some(end) if end.accepted => " to clients of ".to_string() + &end.name,
        Some(end) => format!(" to {}", end.name),
        None => String::new(),
    }
}
