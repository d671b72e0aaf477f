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
/// Of the requests that usually begin while such a wait lasts, those that did not: fewer are missing by chance, of a generator that
/// goes on asking.
const MISSING: f64 = 0.5;
/// By how many standard deviations of those that usually begin in so many seconds more have to be missing.
const CHANCE: f64 = 2.0;

/// The connections over which a generator asks.
#[derive(Clone, Copy, Debug)]
pub struct Loops {
    /// How many there are on average; 0 = not known.
    pub connections: f64,
    /// Nearly all of them have a request under way, all the time; so it is taken where that is not known.
    pub wait: bool,
}

/// What is missing, second by second.
pub struct Omitted {
    /// The usual time between two requests on one connection, ns.
    rhythm_ns: u64,
    /// What usually begins in a second.
    usual: u64,
    /// What began in each, and of what usually does, what did not and stands for nothing yet.
    began: BTreeMap<u64, u64>,
    missing: BTreeMap<u64, u64>,
    /// Nearly all connections have a request under way, all the time.
    waits: bool,
}

impl Omitted {
    /// Learns what is usual, over these connections. A second that was followed and has no row is one
    /// in which nothing began.
    pub fn of(responses: &[&Exchange], followed: impl Iterator<Item = u64>, loops: Loops) -> Self {
        let seconds = || responses.iter().map(|row| second_of(row.t_ns));
        let within = seconds().min().unwrap_or_default()..=seconds().max().unwrap_or_default();
        let mut began: BTreeMap<u64, u64> =
            followed.filter(|second| within.contains(second)).map(|second| (second, 0)).collect();
        responses.iter().for_each(|row| *began.entry(second_of(row.t_ns)).or_default() += row.began);
        let usual = median(began.values().copied());
        let missing = began.iter().map(|(second, count)| (*second, usual.saturating_sub(*count))).collect();
        // Who pauses between two requests asks less often than it is answered.
        let paced_ns = (loops.connections * SECOND_NS as f64 / usual.max(1) as f64) as u64;
        let rhythm_ns = rhythm_ns(responses).max(paced_ns).max(1);
        Self { rhythm_ns, usual, began, missing, waits: loops.wait }
    }

    /// What waits of one length stand for that ended in a second: for how long each of those requests would have waited, ns, and how
    /// many of them there are. No more than are missing while that wait lasted, and none of them twice.
    pub fn behind(&mut self, second: u64, length_ns: u64, count: u64) -> Vec<(u64, u64)> {
        let lasted = || second.saturating_sub(length_ns.div_ceil(SECOND_NS))..=second;
        if length_ns < STOOD_STILL * self.rhythm_ns || !self.has_stopped(lasted(), length_ns) {
            return Vec::new();
        }
        let mut behind = Vec::new();
        for nth in 1..(length_ns / self.rhythm_ns).min(MOST) {
            let waits_ns = length_ns - nth * self.rhythm_ns;
            let granted = self.take(lasted(), count);
            if granted == 0 {
                break;
            }
            behind.push((waits_ns, granted));
        }
        behind
    }

    /// Whether the generator stopped asking for so long: one that waits for answers does, over the connection that stood still.
    fn has_stopped(&self, seconds: RangeInclusive<u64>, length_ns: u64) -> bool {
        if self.waits {
            return true;
        }
        // One that asks less by plan does so before and after it.
        let beside = [seconds.start().checked_sub(1), seconds.end().checked_add(1)].into_iter().flatten();
        let beside = beside.filter_map(|second| self.began.get(&second)).min().copied().unwrap_or_default();
        let usual = self.usual.min(beside);
        let missing: u64 = self.began.range(seconds.clone()).map(|(_, began)| usual.saturating_sub(*began)).sum();
        let by_chance = CHANCE * ((usual * seconds.count() as u64) as f64).sqrt();
        missing as f64 >= MISSING * usual as f64 * length_ns as f64 / SECOND_NS as f64 + by_chance
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

    const WAIT: Loops = Loops { connections: 0.0, wait: true };

    /// 1,000 requests of 1 ms begin in a second, and so many in the one in which one answer took a second.
    fn behind(began: u64, loops: Loops) -> Vec<(u64, u64)> {
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
        let mut omitted = Omitted::of(&responses, (1..10).map(|second| second_of(second * SECOND_NS)), loops);
        let behind = omitted.behind(second, SECOND_NS, 1);
        assert!(omitted.behind(second, SECOND_NS, 1).len() as u64 <= 1_000 - began - behind.len() as u64, "not twice");
        behind
    }

    #[test]
    fn as_many_as_are_missing() {
        let stood = behind(1, WAIT);
        assert_eq!((stood.len(), stood[0], stood[998]), (999, (999_000_000, 1), (1_000_000, 1)));
        assert_eq!(behind(900, WAIT).len(), 100, "some went on");
        assert_eq!(behind(1_000, WAIT), [], "it asked all the time");
    }

    /// Of twenty connections each asks every 20 ms.
    #[test]
    fn one_that_pauses_between_two_requests() {
        let paced = Loops { connections: 20.0, wait: false };
        let stood = behind(20, paced);
        assert_eq!((stood.len(), stood[0]), (49, (980_000_000, 1)));
        assert_eq!(behind(900, paced), [], "a tenth is chance: it goes on asking");
    }

    /// 1,000 a second, then 100 by plan, of which some take a second.
    #[test]
    fn one_that_asks_less_by_plan_has_not_stopped() {
        let row = |second: u64| {
            let count = if second <= 6 { 1_000 } else { 100 };
            Exchange { t_ns: second * SECOND_NS, sum_ns: count * 1_000_000, count, began: count, ..Exchange::default() }
        };
        let rows: Vec<Exchange> = (1..=10).map(row).collect();
        let responses: Vec<&Exchange> = rows.iter().collect();
        let paced = Loops { connections: 100.0, wait: false };
        let mut omitted = Omitted::of(&responses, (1..=10).map(|second| second_of(second * SECOND_NS)), paced);
        assert_eq!(omitted.behind(second_of(9 * SECOND_NS), 1_200_000_000, 20), []);
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
        let mut omitted = Omitted::of(&responses, (1..=10).map(|second| second_of(second * SECOND_NS)), WAIT);
        let behind = omitted.behind(second_of(7 * SECOND_NS), 3 * SECOND_NS, 1);
        assert_eq!((behind.len(), behind[0]), (2_999, (2_999_000_000, 1)));
    }
}
