// SPDX-License-Identifier: Apache-2.0
//! Connections that the target took and closed again without a byte of an answer, while what the client had sent was unread or yet
//! to come: the kernel answers that with a reset. So do servers that have as many connections as they want.

use recording::tables::Retransmit;

use super::listening::Listening;
use crate::answer::Gap;
use crate::case::{Case, Fact};

/// How many, at the ports at which the target listens. At least: a client that speaks only after the end has come to it counts where
/// the kernel still has the connection.
pub struct TurnedAway(pub f64);

impl Fact for TurnedAway {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let ports = case.fact::<Listening>()?.tcp_ports();
        let rows = case.recording.rows::<Retransmit>().iter();
        let own = rows.filter(|row| row.unanswered && row.is_accepted() && ports.contains(&row.port));
        Ok(Self(own.map(|row| row.count as f64).sum()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn of_its_own_ports_and_without_an_answer() {
        let text = "meta target.listen=[\"tcp 0.0.0.0:80\"]
            retransmit kind=reset_sent state=CLOSE role=accepted port=80 reason=TCP_ABORT_ON_CLOSE unanswered=true count=7
            retransmit kind=reset_sent state=CLOSE role=accepted port=80 reason=TCP_ABORT_ON_DATA unanswered=true count=2
            retransmit kind=reset_sent state=CLOSE role=accepted port=80 reason=TCP_ABORT_ON_CLOSE count=90
            retransmit kind=reset_sent state=CLOSE role=accepted port=81 unanswered=true count=90
            retransmit kind=reset_received state=CLOSE_WAIT role=made peer=127.0.0.1:80 count=90";
        assert_eq!(Case::new(&parse(text).unwrap()).fact::<TurnedAway>().unwrap().0, 9.0);
    }
}
