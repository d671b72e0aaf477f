// SPDX-License-Identifier: Apache-2.0
//! Connections that the target took and closed again without a byte of an answer, while what the client had sent was unread or yet
//! to come: the kernel answers that with a reset. Or, where the server greets, with a word of its own before the client has said
//! anything. So do servers that have as many connections as they want.

use recording::tables::Retransmit;

use super::connections::open_at;
use super::listening::Listening;
use super::requests::{Endpoint, Requests};
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
        let reset: f64 = own.map(|row| row.count as f64).sum();
        Ok(Self(reset + case.fact::<Requests>().map_or(0.0, |requests| dismissed(case, &requests))))
    }
}

/// Connections at a port, at least, where those that were taken keep the others out.
const KEPT: f64 = 1.0;

/// With a word, at its ports and in its name: a proxy passes on what it was told itself. Where clients neither say anything nor stay,
/// a word is what the service is for.
fn dismissed(case: &Case, requests: &Requests) -> f64 {
    let of = |accepted: bool| requests.endpoints.iter().filter(move |e| e.accepted == accepted);
    let others_stay = |e: &&Endpoint| e.response.count > 0.0 || open_at(case, e.port) >= KEPT;
    let by_others: f64 = of(false).map(|e| e.dismissed).sum();
    let all: f64 = of(true).filter(|e| e.dismissed > 0.0).filter(others_stay).map(|e| e.dismissed).sum();
    (all - by_others).max(0.0) * requests.scale()
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn with_a_word_where_others_are_served() {
        let of = |more: &str| {
            let text = format!(
                "meta target.listen=[\"tcp 0.0.0.0:80\"]
                 exchange role=accepted port=80 stage=response count=500 began=500 dismissed=40
                 exchange role=accepted port=81 stage=response dismissed=90\n{more}"
            );
            Case::new(&parse(&text).unwrap()).fact::<TurnedAway>().unwrap().0
        };
        assert_eq!(of(""), 40.0);
        let kept = "connection t_ns=1 role=accepted port=81 looks=10 open=70";
        assert_eq!(of(kept), 130.0, "all places are taken, and nobody asks anything");
        let asked = "exchange role=made peer=10.0.0.9:1 stage=response count=70 began=70 dismissed=30";
        assert_eq!(of(asked), 10.0, "a proxy says what it was told");
    }

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
