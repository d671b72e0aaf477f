// SPDX-License-Identifier: Apache-2.0
//! Requests that nobody answered until the generator had had enough.

use std::time::Duration;

use recording::tables::Exchange;

use crate::slices::HALF_SLICE_NS;

/// Answers that take so long are under way at the end by themselves, ns.
const LONG_NS: u64 = HALF_SLICE_NS / 2;
/// Under way at the end, beyond what is on average: chance.
const CHANCE: f64 = 1.5;
const FEW: f64 = 5.0;

/// Requests that were still without an answer when the generator had had enough, beyond those that always are under way where answers
/// come soon (Little's law): they had been given up long before.
pub(super) fn at_the_end(responses: &[&Exchange], last: u64, seen: Duration) -> u64 {
    let sum = |of: fn(&Exchange) -> u64| responses.iter().map(|row| of(row)).sum::<u64>();
    let (answered_ns, answered) = (sum(|row| row.sum_ns), sum(|row| row.count));
    let open: u64 = responses.iter().filter(|row| row.t_ns == last).map(|row| row.unanswered).sum();
    let usual = answered_ns as f64 / seen.as_nanos().max(1) as f64;
    let is_soon = answered_ns / answered.max(1) < LONG_NS;
    if is_soon { (open as f64 - CHANCE * usual - FEW).max(0.0) as u64 } else { 0 }
}

#[cfg(test)]
mod tests {
    use recording::text::parse;

    use super::super::observed;
    use crate::run::Failure;

    /// Ten seconds of answers of so many ms, and how many requests were under way at the end.
    fn failed(ms: u64, open: u64) -> Option<u64> {
        let second = |nth: u64| {
            format!(
                "exchange t_ns={nth}e9 role=made peer=h:80 stage=response count=1000 began=1000 sum_ns={ms}e9 \
                 length_ns=[{ms}000000] counts=[1000] unanswered={}\n",
                if nth == 10 { open } else { 0 }
            )
        };
        let text = format!("meta length_ns=10e9\n{}", (1..=10).map(second).collect::<String>());
        observed(&parse(&text).unwrap(), None).unwrap().failures.get(&Failure::Closed).copied()
    }

    #[test]
    fn more_than_are_always_under_way() {
        assert_eq!(failed(10, 40), Some(20), "40, where there are 10 on average");
        assert_eq!(failed(10, 12), None);
        assert_eq!(failed(900, 1_500), None, "long answers");
    }

    #[test]
    fn each_is_counted_once_whomever_else_is_asked() {
        let row = |nth: u64, peer: &str, open: u64| {
            format!(
                "exchange t_ns={nth}e9 role=made peer={peer} stage=response count=1000 began=1000 sum_ns=10e9 \
                 length_ns=[10000000] counts=[1000] unanswered={open}\n"
            )
        };
        let second = |nth: u64| {
            ["a:1", "b:1", "c:1"].map(|peer| row(nth, peer, if nth == 10 && peer == "b:1" { 90 } else { 0 })).concat()
        };
        let text = format!("meta length_ns=10e9\n{}", (1..=10).map(second).collect::<String>());
        let run = observed(&parse(&text).unwrap(), None).unwrap();
        assert_eq!(run.failures.get(&Failure::Closed), Some(&40), "90, where there are 30 on average");
    }
}
