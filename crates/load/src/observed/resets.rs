// SPDX-License-Identifier: Apache-2.0
//! Connections of a generator that were refused or reset.

use std::collections::BTreeMap;
use std::time::Duration;

use recording::Recording;
use recording::tables::{Exchange, Retransmit};

use crate::opening::peers;
use crate::run::{Failure, Run};
use crate::slices::second_of;

/// Adds them. One that was reset with a request under way is counted already, as closed before an answer.
pub(super) fn add(run: &mut Run, recording: &Recording, responses: &[&Exchange], last: u64) {
    let (own, mut closed) = (peers(recording), closed(responses, last));
    let is_its =
        |row: &&Retransmit| row.kind == "reset_received" && row.role != "accepted" && own.contains(row.peer.as_str());
    for row in recording.rows::<Retransmit>().iter().filter(is_its) {
        let (at, refused) = (second_of(row.t_ns), row.state == "SYN_SENT");
        // Once the other end has closed, a reset answers this one's goodbye; of a request that was under way the close tells.
        let is_none = !refused && (row.t_ns >= last || row.state != "ESTABLISHED");
        // Requests were counted in some seconds only, and these are in all.
        if is_none || !run.is_followed(at as usize) {
            continue;
        }
        let open = closed.entry(at).or_default();
        let known = if refused { 0 } else { row.count.min(*open) };
        *open -= known;
        if known > 0 {
            *run.failures.entry(Failure::Closed).or_default() -= known;
        }
        *run.failures.entry(if refused { Failure::Refused } else { Failure::Reset }).or_default() += row.count;
        // Nobody could ask anything over one that was refused: no exchange began, and one was due.
        let due = if refused { row.count } else { 0 };
        run.due += due;
        let second = run.second(Duration::from_secs(at));
        (second.due, second.failed) = (second.due + due, second.failed + row.count - known);
    }
    run.failures.retain(|_, count| *count > 0);
}

/// Requests whose connection was closed before an answer, second by second.
fn closed(responses: &[&Exchange], last: u64) -> BTreeMap<u64, u64> {
    let mut closed = BTreeMap::new();
    for row in responses.iter().filter(|row| row.t_ns < last) {
        *closed.entry(second_of(row.t_ns)).or_default() += row.unanswered;
    }
    closed
}

#[cfg(test)]
mod tests {
    use super::super::tests::{generator, seconds};
    use super::*;
    use crate::judge::judge;
    use crate::verdict::Word;

    #[test]
    fn a_reset_is_one_failure_whatever_was_under_way() {
        let reset = "retransmit t_ns=5e9 kind=reset_received state=ESTABLISHED role=made peer=127.0.0.1:80 count=4\n";
        let of = |unanswered: u32| {
            let second =
                seconds(5..=5, 1000, 1_000_000).replace("began=1000", &format!("began=1000 unanswered={unanswered}"));
            generator(&(seconds(1..=4, 1000, 1_000_000) + &second + &seconds(6..=9, 1000, 1_000_000) + reset)).failures
        };
        assert_eq!(of(4), [(Failure::Reset, 4)].into());
        assert_eq!(of(6), [(Failure::Closed, 2), (Failure::Reset, 4)].into());
        assert_eq!(of(0), [(Failure::Reset, 4)].into(), "amid an answer, or between two");
        let goodbye = reset.replace("ESTABLISHED", "LAST_ACK");
        assert_eq!(generator(&(seconds(1..=9, 1000, 1_000_000) + &goodbye)).failures, [].into(), "after it had all");
    }

    /// The table is of all in the generator's network namespace.
    #[test]
    fn what_a_neighbour_is_refused_is_none_of_the_generator_s() {
        let refused = |peer: &str| {
            let rows = (1..=9).map(|second| {
                format!(
                    "retransmit t_ns={second}e9 kind=reset_received state=SYN_SENT role=made peer={peer} count=200\n"
                )
            });
            judge(&generator(&(seconds(1..=10, 1000, 1_000_000) + &rows.collect::<String>())), None)
        };
        let (neighbour, own) = (refused("127.0.0.1:81"), refused("127.0.0.1:80"));
        assert_eq!((neighbour.verdict, neighbour.errors.len()), (Word::Valid, 0), "{:?}", neighbour.reasons);
        assert_eq!((own.verdict, own.errors.get(&Failure::Refused)), (Word::Misleading, Some(&1800)));
    }

    /// Eight in each second are reset, or refused, of a thousand requests in each; every fourth second was followed.
    #[test]
    fn of_a_load_that_was_followed_for_a_part_of_the_time_resets_are_of_as_much() {
        let followed = (0..2).map(|nth| 2 + 4 * nth);
        let rows: String = followed
            .map(|second| {
                seconds(second..=second, 1000, 1_000_000) + &format!("exchange_window t_ns={second}e9 length_ns=1e9\n")
            })
            .collect();
        let of = |state: &str| {
            let resets = (1..=5).map(|second| {
                format!(
                    "retransmit t_ns={second}e9 kind=reset_received state={state} role=made peer=127.0.0.1:80 count=8\n"
                )
            });
            let run = generator(&(rows.clone() + &resets.collect::<String>()));
            (run.due, run.failures.clone(), run.seconds[1].failed, run.seconds[2].failed)
        };
        assert_eq!(of("ESTABLISHED"), (2000, [(Failure::Reset, 8)].into(), 8, 0));
        assert_eq!(of("SYN_SENT"), (2008, [(Failure::Refused, 8)].into(), 8, 0));
        // Their requests were closed in a second that was followed: each is one failure there.
        let closed = rows.replacen("began=1000", "began=1000 unanswered=8", 1)
            + "retransmit t_ns=2e9 kind=reset_received state=ESTABLISHED role=made peer=127.0.0.1:80 count=8\n";
        assert_eq!(generator(&closed).failures, [(Failure::Reset, 8)].into());
    }
}
