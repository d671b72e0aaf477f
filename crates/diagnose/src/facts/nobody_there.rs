// SPDX-License-Identifier: Apache-2.0
//! Connections to a port of the target's that the kernel refused, because nobody listens at the address that was asked: a service that
//! listens on the loopback alone, or that was away for a moment.

use std::collections::BTreeMap;

use recording::tables::{Exchange, ExchangeWindow, Retransmit};

use super::handshakes::Handshakes;
use super::listening::Listening;
use super::requests::Requests;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::statistics::ratio;

/// How many, beyond those that were taken in the same slice: who asks for a name with addresses of both families may be refused once and
/// then taken at the other, at once. While a service is away, nobody is taken.
pub struct NobodyThere(pub f64);

impl Fact for NobodyThere {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let ports = case.fact::<Listening>()?.tcp_ports();
        let mut refused: BTreeMap<(u32, u64), f64> = BTreeMap::new();
        let is_one =
            |row: &&Retransmit| row.kind == "reset_sent" && row.reason == "NO_SOCKET" && ports.contains(&row.port);
        for row in case.recording.rows::<Retransmit>().iter().filter(is_one) {
            *refused.entry((row.port, row.t_ns)).or_default() += row.count as f64;
        }
        let beyond = match case.fact::<Requests>() {
            Ok(requests) => {
                let each = refused.into_iter();
                each.map(|((port, t_ns), count)| (count - taken(case, &requests, port, t_ns)).max(0.0)).sum()
            }
            // Of the whole namespace, which may be another's.
            Err(_) => {
                let taken = case.fact::<Handshakes>().map_or(0.0, |handshakes| handshakes.taken);
                (refused.values().sum::<f64>() - taken).max(0.0)
            }
        };
        Ok(Self(beyond))
    }
}

/// Length of a slice, ns.
const SLICE_NS: u64 = 1_000_000_000;

/// Connections that were taken at a port in the slice that ended then; as many as in others, if exchanges were not followed in it.
fn taken(case: &Case, requests: &Requests, port: u32, t_ns: u64) -> f64 {
    let is_then = |at: u64| at.abs_diff(t_ns) < SLICE_NS / 2;
    if case.recording.rows::<ExchangeWindow>().iter().any(|window| is_then(window.t_ns)) {
        let of_port = |row: &&Exchange| row.is_accepted() && row.port == port && row.stage == "first_read";
        let rows = case.recording.rows::<Exchange>().iter().filter(of_port);
        return rows.filter(|row| is_then(row.t_ns)).map(|row| row.count as f64).sum();
    }
    let at_port = requests.endpoints.iter().filter(|e| e.accepted && e.port == port);
    ratio(at_port.map(|e| e.first_read.count).sum::<f64>(), requests.followed_ns) * SLICE_NS as f64
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
            Case::new(&parse(&text).unwrap()).fact::<NobodyThere>().unwrap().0
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
