// SPDX-License-Identifier: Apache-2.0
//! Connections to a port of the target's that the kernel refused, because nobody listens at the address that was asked: a service that
//! listens on the loopback alone, or that was away for a moment.

use std::collections::BTreeMap;

use recording::tables::Retransmit;

use super::handshakes::Handshakes;
use super::listening::Listening;
use super::requests::Requests;
use crate::answer::Gap;
use crate::case::{Case, Fact};

/// How many, beyond those that were taken in the same time: who asks for a name with addresses of both families may be refused once and
/// then taken at the other.
pub struct NobodyThere(pub f64);

impl Fact for NobodyThere {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let ports = case.fact::<Listening>()?.tcp_ports();
        let mut refused: BTreeMap<u32, f64> = BTreeMap::new();
        let is_one =
            |row: &&Retransmit| row.kind == "reset_sent" && row.reason == "NO_SOCKET" && ports.contains(&row.port);
        for row in case.recording.rows::<Retransmit>().iter().filter(is_one) {
            *refused.entry(row.port).or_default() += row.count as f64;
        }
        let requests = case.fact::<Requests>();
        let taken = |port: u32| match &requests {
            Ok(requests) => {
                let at_port = requests.endpoints.iter().filter(|e| e.accepted && e.port == port);
                at_port.map(|e| e.first_read.count).sum::<f64>() * requests.scale()
            }
            // Of the whole namespace, which may be another's.
            Err(_) => case.fact::<Handshakes>().map_or(0.0, |handshakes| handshakes.taken),
        };
        Ok(Self(refused.into_iter().map(|(port, count)| (count - taken(port)).max(0.0)).sum()))
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
    }
}
