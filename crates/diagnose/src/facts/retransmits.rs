// SPDX-License-Identifier: Apache-2.0
//! Segments that were sent again on the target's own connections, by the state of the connection. Counters of a network
//! namespace do not say whose they were.

use std::collections::BTreeMap;

use recording::tables::Retransmit;

use super::own_ends::OwnEnds;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::statistics::share;

/// How many, by state as the kernel calls it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Retransmits {
    /// At ports at which the target listens, at both ends if both are here, and towards those that it asks.
    pub own: BTreeMap<String, f64>,
    /// Of everybody in the namespace.
    pub all: f64,
    /// Of these, SYNs. (The kernel's counter of them has the answers to SYNs too.)
    pub syns: f64,
}

impl Fact for Retransmits {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let rows = case.recording.rows::<Retransmit>();
        if rows.is_empty() {
            return Err(Gap::not_recorded("retransmit", "no segment was seen that was sent again"));
        }
        let own = case.fact::<OwnEnds>()?;
        if own.has_others {
            return Err(Gap::not_recorded("retransmit", "the target asks more peers than are told apart"));
        }
        let mut found = Self::default();
        for row in rows.iter().filter(|row| row.kind == "retransmit") {
            found.all += row.count as f64;
            found.syns += if row.state == "SYN_SENT" { row.count as f64 } else { 0.0 };
            if row.is_accepted() && own.has_port(row.port) || row.is_made() && own.has_peer(&row.peer) {
                *found.own.entry(row.state.clone()).or_default() += row.count as f64;
            }
        }
        Ok(found)
    }
}

impl Retransmits {
    /// Of its own, those of connections that stood.
    pub fn own_data(&self) -> f64 {
        self.own.iter().filter(|(state, _)| *state != "SYN_SENT").map(|(_, n)| n).sum()
    }

    /// All of its own.
    pub fn own_all(&self) -> f64 {
        self.own.values().sum()
    }

    /// The same of everybody's. One that is told may have been several segments on the wire, which the kernel's counters tell: it is
    /// a share of those.
    pub fn own_share(&self) -> f64 {
        share(self.own_all(), self.all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn whose_they_are() {
        let text = "meta target.listen=[\"tcp 0.0.0.0:80\"]
            connection t_ns=1 role=made peer=10.0.0.9:5432 looks=10 open=3
            retransmit kind=retransmit state=ESTABLISHED role=accepted port=80 count=7
            retransmit kind=retransmit state=SYN_SENT role=made peer=127.0.0.1:80 count=5
            retransmit kind=retransmit state=ESTABLISHED role=made peer=10.0.0.9:5432 count=2
            retransmit kind=retransmit state=ESTABLISHED role=made peer=10.0.0.8:80 count=90
            retransmit kind=retransmit state=ESTABLISHED role=accepted port=81 count=90
            retransmit kind=reset_sent state=ESTABLISHED role=accepted port=80 count=90";
        let r = Case::new(&parse(text).unwrap()).fact::<Retransmits>().unwrap();
        assert_eq!((r.own_data(), r.own_all(), r.all, r.own_share()), (9.0, 14.0, 194.0, 14.0 / 194.0));
        assert_eq!((r.own["ESTABLISHED"], r.syns), (9.0, 5.0));
    }
}
