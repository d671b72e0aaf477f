// SPDX-License-Identifier: Apache-2.0
//! What had to be sent again on the target's own connections, by port and peer, of what was sent there. The counters of a network
//! namespace are everybody's: a service that talks much to one peer over loopback loses next to nothing, all in all, however
//! lossy the way to another is.

use super::handshakes::Handshakes;
use super::requests::Requests;
use super::sending::{Endpoint, Sending};
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::statistics::share;

/// Segments with data on the connections at one port, or to one peer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loss {
    /// Clients asked for the connections.
    pub accepted: bool,
    /// Named as in [`Requests`].
    pub name: String,
    /// Sent again.
    pub again: f64,
    /// Sent, these among them.
    pub sent: f64,
}

impl Loss {
    /// Of what was sent.
    pub fn share(&self) -> f64 {
        share(self.again, self.sent)
    }
}

/// Those of which it is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Losses(pub Vec<Loss>);

/// On average. Of connections that come and go between two looks, looks meet those above all that have to send again: these last
/// longer. Ten looks after one another miss none.
const LASTING_NS: f64 = 1e9;

impl Fact for Losses {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let sending = case.fact::<Sending>()?;
        let known = sending.endpoints.iter().filter(|e| e.segments_out > 0.0 && is_lasting(case, e));
        let loss = |e: &Endpoint| Loss {
            accepted: e.accepted,
            name: e.name.clone(),
            again: e.retransmits.min(e.segments_out),
            sent: e.segments_out,
        };
        Ok(Self(known.map(loss).collect()))
    }
}

impl Losses {
    /// Where most of what was sent had to be sent again, if that is more than in the whole network namespace, chance apart.
    pub fn worst(&self, all: &Handshakes) -> Option<&Loss> {
        let surely = |loss: &Loss| at_least(loss.again, loss.sent);
        let worst = self.0.iter().max_by(|a, b| surely(a).total_cmp(&surely(b)))?;
        Some(worst).filter(|worst| surely(worst) > at_least(all.again, all.sent))
    }
}

/// What share that is at least: two standard errors of such a count less.
fn at_least(again: f64, sent: f64) -> f64 {
    share((again - 2.0 * again.sqrt()).max(0.0), sent)
}

/// Whether connections are kept long enough, by Little's law, so that looks meet all that is sent there.
fn is_lasting(case: &Case, endpoint: &Endpoint) -> bool {
    let first = case.fact::<Requests>().ok().and_then(|requests| {
        let seen = requests.of(endpoint.accepted, &endpoint.name).filter(|e| e.accepted)?;
        Some(seen.first_read.count * requests.scale())
    });
    // Those of the whole namespace are more.
    let all = |h: &Handshakes| if endpoint.accepted { h.taken } else { h.made };
    let begun = first.or_else(|| case.fact::<Handshakes>().ok().map(|h| all(&h)));
    begun.is_some_and(|begun| endpoint.open_ns() >= begun * LASTING_NS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    /// Twenty connections over two seconds, in which so many were begun.
    fn losses(begun: u32) -> Vec<Loss> {
        let text = format!(
            "meta length_ns=2e9 target.listen=[\"tcp 0.0.0.0:80\"]
             counter source=proc/net/snmp entity=Tcp name=PassiveOpens value=7
             counter t_ns=9 source=proc/net/snmp entity=Tcp name=PassiveOpens value={}
             connection t_ns=1e9 role=accepted port=80 looks=10 open=200 retransmits=8 segments_out=100
             connection t_ns=2e9 role=accepted port=80 looks=10 open=200 retransmits=4 segments_out=100
             connection t_ns=2e9 role=made peer=10.0.0.9:1 looks=10 open=10 retransmits=1 segments_out=900",
            7 + begun
        );
        Case::new(&parse(&text).unwrap()).fact::<Losses>().unwrap().0.clone()
    }

    #[test]
    fn of_each_end_what_was_sent_again() {
        let losses = Losses(losses(40));
        assert_eq!(losses.0.len(), 2);
        let worst = |again: f64| losses.worst(&Handshakes { again, sent: 10_000.0, ..Handshakes::default() }).cloned();
        let found = worst(20.0).unwrap();
        assert_eq!((found.accepted, found.again, found.sent, found.share()), (true, 12.0, 200.0, 0.06));
        assert_eq!(worst(400.0), None, "as many everywhere");
    }

    #[test]
    fn short_ones_that_looks_meet_are_no_sample() {
        assert_eq!(losses(41).len(), 1);
    }
}
