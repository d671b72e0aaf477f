// SPDX-License-Identifier: Apache-2.0
//! Requests that a generator did not send while it waited: it asks as answers come, and what stood still is counted once instead of
//! for all who would have come. One that goes on asking has omitted nothing, whatever its answers take.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use recording::tables::Exchange;

use crate::slices::second_of;

/// So many times the usual time between two requests on one connection: it stood still, and did not only vary.
const STOOD_STILL: u64 = 10;
/// Requests that one such wait stands for at most.
const MOST: u64 = 100_000;

/// What is missing, second by second.
pub struct Omitted {
    /// The usual time between two requests on one connection, ns.
    rhythm_ns: u64,
    /// Of what usually begins in a second, what did not begin in this one.
    missing: BTreeMap<u64, u64>,
}

impl Omitted {
    /// Learns what is usual. A second that was followed and has no row is one in which nothing began.
    pub fn of(responses: &[&Exchange], followed: impl Iterator<Item = u64>) -> Self {
        let seconds = || responses.iter().map(|row| second_of(row.t_ns));
        let within = seconds().min().unwrap_or_default()..=seconds().max().unwrap_or_default();
        let mut began: BTreeMap<u64, u64> =
            followed.filter(|second| within.contains(second)).map(|second| (second, 0)).collect();
        responses.iter().for_each(|row| *began.entry(second_of(row.t_ns)).or_default() += row.began);
        let usual = median(began.values().copied());
        let missing = began.into_iter().map(|(second, count)| (second, usual.saturating_sub(count))).collect();
        Self { rhythm_ns: rhythm_ns(responses).max(1), missing }
    }

    /// What waits of one length stand for that ended in a second: for how long each of those requests would have waited, ns, and how
    /// many of them there are. No more than are missing while that wait lasted, and none of them twice.
    pub fn behind(&mut self, second: u64, length_ns: u64, count: u64) -> Vec<(u64, u64)> {
        if length_ns < STOOD_STILL * self.rhythm_ns {
            return Vec::new();
        }
        let mut behind = Vec::new();
        for nth in 1..(length_ns / self.rhythm_ns).min(MOST) {
            let waits_ns = length_ns - nth * self.rhythm_ns;
            let granted = self.take(second.saturating_sub(length_ns.div_ceil(SECOND_NS))..=second, count);
            if granted == 0 {
                break;
            }
            behind.push((waits_ns, granted));
        }
        behind
    }

    fn take(&mut self, seconds: RangeInclusive<u64>, most: u64) -> u64 {
        let mut left = most;
        for (_, missing) in self.missing.range_mut(seconds) {
            let taken = left.min(*missing);
            (*missing, left) = (*missing - taken, left - taken);
        }
        most - left
    }
}

const SECOND_NS: u64 = 1_000_000_000;

/// The mean answer of the median second, ns.
fn rhythm_ns(responses: &[&Exchange]) -> u64 {
    let mut seconds: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for row in responses {
        let second = seconds.entry(second_of(row.t_ns)).or_default();
        *second = (second.0 + row.sum_ns, second.1 + row.count);
    }
    median(seconds.values().filter_map(|(sum, count)| sum.checked_div(*count)))
}

fn median(values: impl Iterator<Item = u64>) -> u64 {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1,000 requests of 1 ms begin in a second, and so many in the one in which one answer took a second.
    fn behind(began: u64) -> Vec<(u64, u64)> {
        let row = |second: u64, began| Exchange {
            t_ns: second * SECOND_NS,
            sum_ns: began * 1_000_000,
            count: began,
            began,
            ..Exchange::default()
        };
        let rows: Vec<Exchange> = (1..10).map(|second| row(second, if second == 5 { began } else { 1_000 })).collect();
        let responses: Vec<&Exchange> = rows.iter().collect();
        let second = second_of(rows[4].t_ns);
        let mut omitted = Omitted::of(&responses, (1..10).map(|second| second_of(second * SECOND_NS)));
        let behind = omitted.behind(second, SECOND_NS, 1);
        assert!(omitted.behind(second, SECOND_NS, 1).len() as u64 <= 1_000 - began - behind.len() as u64, "not twice");
        behind
    }

    #[test]
    fn as_many_as_are_missing() {
        let stood = behind(1);
        assert_eq!((stood.len(), stood[0], stood[998]), (999, (999_000_000, 1), (1_000_000, 1)));
        assert_eq!(behind(900).len(), 100, "some went on");
        assert_eq!(behind(1_000), [], "it asked all the time");
    }

    /// Nothing began for three seconds, of which there is no row.
    #[test]
    fn seconds_in_which_nothing_began() {
        let row = |second: u64| Exchange {
            t_ns: second * SECOND_NS,
            sum_ns: 1_000_000_000,
            count: 1_000,
            began: 1_000,
            ..Exchange::default()
        };
        let rows: Vec<Exchange> = (1..=3).chain(7..=10).map(row).collect();
        let responses: Vec<&Exchange> = rows.iter().collect();
        let mut omitted = Omitted::of(&responses, (1..=10).map(|second| second_of(second * SECOND_NS)));
        let behind = omitted.behind(second_of(7 * SECOND_NS), 3 * SECOND_NS, 1);
        assert_eq!((behind.len(), behind[0]), (2_999, (2_999_000_000, 1)));
    }
}
