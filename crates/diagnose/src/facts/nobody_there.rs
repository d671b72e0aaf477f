// SPDX-License-Identifier: Apache-2.0
//! Connections to a port of the target's that the kernel refused, because nobody listens at the address that was asked: a service that
//! listens on the loopback alone, or that was away for a moment.

use recording::tables::Retransmit;

use super::handshakes::Handshakes;
use super::listening::Listening;
use crate::answer::Gap;
use crate::case::{Case, Fact};

/// How many, beyond those that were taken in the same time: who asks for a name with addresses of both families may be refused once and
/// then taken at the other.
pub struct NobodyThere(pub f64);

impl Fact for NobodyThere {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let ports = case.fact::<Listening>()?.tcp_ports();
        let taken = case.fact::<Handshakes>()?.taken;
        let is_one =
            |row: &&Retransmit| row.kind == "reset_sent" && row.reason == "NO_SOCKET" && ports.contains(&row.port);
        let refused: f64 = case.recording.rows::<Retransmit>().iter().filter(is_one).map(|row| row.count as f64).sum();
        Ok(Self((refused - taken).max(0.0)))
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
    }
}
