// SPDX-License-Identifier: Apache-2.0
//! Connections to a port of the target's that the kernel refused, because nobody listens at the address that was asked: a service that
//! listens on the loopback alone, or that was away for a moment.

use std::collections::BTreeMap;

use recording::tables::{Exchange, ExchangeWindow, Retransmit};

use super::handshakes::Handshakes;
use super::listening::Listening;
use super::requests::Requests;
use crate::answer::Gap;
use crate::case::{Case, Fact, SLICE_NS};
use crate::statistics::ratio;

/// How many, beyond those that were taken in the same time: who asks for a name with addresses of both families may be refused once and
/// then taken at the other. While a service is away, nobody is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NobodyThere {
    /// How many.
    pub count: f64,
    /// The port with most of them.
    pub port: u32,
}

impl Fact for NobodyThere {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let ports = case.fact::<Listening>()?.tcp_ports();
        let mut refused: BTreeMap<u32, BTreeMap<u64, f64>> = BTreeMap::new();
        let is_one =
            |row: &&Retransmit| row.kind == "reset_sent" && row.reason == "NO_SOCKET" && ports.contains(&row.port);
        for row in case.recording.rows::<Retransmit>().iter().filter(is_one) {
            *refused.entry(row.port).or_default().entry(row.t_ns).or_default() += row.count as f64;
        }
        let requests = case.fact::<Requests>().ok();
        let beyond = |port: u32, slices: BTreeMap<u64, f64>| match &requests {
            Some(requests) => Taken::at(case, requests, port).beyond(slices),
            // Of the whole namespace, which may be another's.
            None => slices.values().sum::<f64>() - case.fact::<Handshakes>().map_or(0.0, |handshakes| handshakes.taken),
        };
        let each = refused.into_iter().map(|(port, slices)| (port, beyond(port, slices).max(0.0)));
        let (count, most) = each.fold((0.0, (0, 0.0)), |(sum, most), (port, count)| {
            (sum + count, if count > most.1 { (port, count) } else { most })
        });
        Ok(Self { count, port: most.0 })
    }
}

/// Refused in a slice: of fewer, those that were taken a moment later may be in the next one.
const SEVERAL: f64 = 4.0;

/// Of those, taken in the same slice: then nobody was there for a part of it at least.
const HARDLY: f64 = 0.5;

/// Connections that were taken at a port.
struct Taken {
    /// In slices in which exchanges were followed.
    by_slice: BTreeMap<u64, f64>,
    /// In others, as many as in these on average.
    usual: f64,
    all: f64,
}

impl Taken {
    fn at(case: &Case, requests: &Requests, port: u32) -> Self {
        let windows = case.recording.rows::<ExchangeWindow>().iter();
        let mut by_slice: BTreeMap<u64, f64> = windows.map(|window| (window.t_ns, 0.0)).collect();
        let of_port = |row: &&Exchange| row.is_accepted() && row.port == port && row.stage == "first_read";
        for row in case.recording.rows::<Exchange>().iter().filter(of_port) {
            *by_slice.entry(row.t_ns).or_default() += row.count as f64;
        }
        let counted: f64 = by_slice.values().sum();
        let usual = ratio(counted, requests.followed_ns) * SLICE_NS as f64;
        Self { by_slice, usual, all: counted * requests.scale().max(1.0) }
    }

    /// In the slice that ended then; none = exchanges were not followed in it.
    fn then(&self, t_ns: u64) -> Option<f64> {
        let near = t_ns.saturating_sub(SLICE_NS / 2)..t_ns.saturating_add(SLICE_NS / 2);
        self.by_slice.range(near).map(|(_, count)| *count).reduce(|sum, count| sum + count)
    }

    /// Of those that were refused, by slice, the ones in whose stead nobody was taken.
    fn beyond(&self, slices: BTreeMap<u64, f64>) -> f64 {
        let refused: f64 = slices.values().sum();
        let away =
            slices.into_iter().filter(|(_, count)| *count >= SEVERAL).map(|(t_ns, count)| match self.then(t_ns) {
                Some(taken) if taken < count * HARDLY => count - taken,
                // By chance there are never so many more than usual.
                None if count > 3.0 * self.usual + SEVERAL => count - self.usual,
                _ => 0.0,
            });
        away.sum::<f64>().max(refused - self.all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn at_a_port_of_its_own_and_taken_at_no_other_address() {
        let refused = |more: &str| {
            let text = format!(
                "meta target.listen=[\"tcp 127.0.0.1:8080\"]
                 retransmit kind=reset_sent role=none port=8080 reason=NO_SOCKET count=300
                 retransmit kind=reset_sent role=none port=9090 reason=NO_SOCKET count=50
                 counter source=proc/net/snmp entity=Tcp name=PassiveOpens value=0
                 counter t_ns=9 source=proc/net/snmp entity=Tcp name=PassiveOpens value={more}"
            );
            Case::new(&parse(&text).unwrap()).fact::<NobodyThere>().unwrap().count
        };
        assert_eq!((refused("0"), refused("20"), refused("310")), (300.0, 280.0, 0.0));
        // Whoever was taken elsewhere was not refused here.
        let first = |port: u32| {
            format!(
                "310\nexchange_window t_ns=9 length_ns=1e9\nmeta length_ns=1e9
                 exchange role=accepted port={port} stage=response count=310 sum_ns=1 length_ns=[1000] counts=[310]
                 exchange role=accepted port={port} stage=first_read count=310 sum_ns=1 length_ns=[1000] counts=[310]"
            )
        };
        assert_eq!((refused(&first(80)), refused(&first(8080))), (300.0, 0.0));
        // Nobody was taken while it was away, however many were before and after.
        let later = "exchange_window t_ns=3e9 length_ns=1e9\nretransmit t_ns=3e9 kind=reset_sent role=none port=8080 reason=NO_SOCKET count=40";
        assert_eq!(refused(&format!("{}\n{later}", first(8080))), 40.0);
    }
}
