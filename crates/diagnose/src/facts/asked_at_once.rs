// SPDX-License-Identifier: Apache-2.0
//! How many questions to each peer were under way at once, at every moment of the bursts; whether the next one began when another was
//! answered, so it is where somebody counts them; and whether clients were answered after that, so it is where their requests ask.

use std::collections::BTreeMap;

use recording::tables::{Burst, Request};

use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::statistics::{ratio, share};

/// A question that has nothing to do with the answers begins so soon after one of them one time in so many: however they come, in step or
/// in batches.
const PARTS: f64 = 4.0;

/// Of the questions, by their length: one that waits for something to come may outlast a burst, and is left out.
const NOT_THE_LONGEST: f64 = 0.99;

/// Of the time: a health check now and then makes no more of them.
const NEARLY_ALL: f64 = 0.98;

/// By peer.
pub struct AskedAtOnce(pub BTreeMap<String, AtOnce>);

/// Questions to one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AtOnce {
    /// Questions that were seen from end to end.
    pub questions: f64,
    /// Under way at once, on average.
    pub usual: f64,
    /// At most, but for moments.
    pub most: f64,
    /// Of the questions with which there were as many under way: those that began soon after an answer had come.
    pub handed_on: f64,
    /// Of the answers to clients: those that came soon after one from there.
    pub passed_on: f64,
}

impl Fact for AskedAtOnce {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let bursts = stretches(case.recording.rows::<Burst>());
        let mut by_peer: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
        let mut answers = Vec::new();
        for row in case.recording.rows::<Request>() {
            if row.is_of_client() {
                answers.push(row.t_ns);
            } else if row.is_made() {
                by_peer.entry(row.peer.clone()).or_default().push((row.began_ns, row.t_ns));
            }
        }
        answers.sort_unstable();
        let of_peer = |(peer, asked): (String, Vec<(u64, u64)>)| (peer, at_once(asked, &bursts, &answers));
        Ok(Self(by_peer.into_iter().map(of_peer).collect()))
    }
}

/// Beginnings and ends of what bursts cover without a break, ns.
fn stretches(bursts: &[Burst]) -> Vec<(u64, u64)> {
    /// The next one begins with what it takes to end the one before.
    const BREAK_NS: u64 = 1_000_000;

    let mut all: Vec<(u64, u64)> =
        bursts.iter().map(|row| (row.t_ns.saturating_sub(row.length_ns), row.t_ns)).collect();
    all.sort_unstable();
    all.dedup_by(|next, before| {
        let goes_on = next.0 <= before.1 + BREAK_NS;
        if goes_on {
            before.1 = before.1.max(next.1);
        }
        goes_on
    });
    all
}

fn at_once(mut asked: Vec<(u64, u64)>, stretches: &[(u64, u64)], answers: &[u64]) -> AtOnce {
    // By their ends, so that those of a stretch are found at once.
    asked.sort_unstable_by_key(|question| question.1);
    let longest = usual_at_most(&asked);
    let mut count = Count::default();
    for (from, until) in stretches {
        // What is still under way at the end of a stretch is not told.
        let seen = (*from, until.saturating_sub(longest));
        let first = asked.partition_point(|question| question.1 <= seen.0);
        let last = asked.partition_point(|question| question.1 <= *until);
        let within = asked.get(first..last).unwrap_or_default().iter().filter(|question| question.0 < seen.1);
        count.stretch(seen, &within.copied().collect::<Vec<_>>());
    }
    let soon = count.soon_ns();
    // From each of its ends to the next one: there may be very many peers, and answers.
    let ends = asked.iter().map(|question| question.1);
    let nexts = ends.clone().skip(1).chain([u64::MAX]);
    let by = |ns: u64| answers.partition_point(|answer| *answer < ns);
    let until = |end: u64, next: u64| next.min(end.saturating_add(soon as u64).saturating_add(1));
    let passed_on: usize = ends.zip(nexts).map(|(end, next)| by(until(end, next)) - by(end)).sum();
    count.result(soon, share(passed_on as f64, answers.len() as f64))
}

/// How long questions take, but for a few that outlast all others, ns.
fn usual_at_most(asked: &[(u64, u64)]) -> u64 {
    let mut lengths: Vec<u64> = asked.iter().map(|(began, ended)| ended.saturating_sub(*began)).collect();
    lengths.sort_unstable();
    let at = (lengths.len() as f64 * NOT_THE_LONGEST).ceil() as usize;
    lengths.get(at.saturating_sub(1)).copied().unwrap_or(0)
}

/// Sums over stretches.
#[derive(Default)]
struct Count {
    questions: f64,
    /// From one answer to the next, ns.
    gaps_ns: Vec<f64>,
    /// By how many were under way.
    levels: BTreeMap<i64, Level>,
}

/// Moments at which as many were under way.
#[derive(Default)]
struct Level {
    ns: f64,
    /// Questions that made it as many: how long before each the last answer had come, ns.
    after_ns: Vec<u64>,
}

impl Count {
    fn stretch(&mut self, (from, until): (u64, u64), asked: &[(u64, u64)]) {
        self.questions += asked.len() as f64;
        // An answer that comes with the next question comes before it.
        let began = asked.iter().map(|a| (a.0, 1));
        let mut steps: Vec<(u64, i64)> = began.chain(asked.iter().map(|a| (a.1, -1))).collect();
        steps.sort_unstable();
        let (mut under_way, mut since, mut answered) = (0, from, None);
        for (ns, step) in steps.into_iter().filter(|(ns, _)| *ns < until).chain([(until, 0)]) {
            self.levels.entry(under_way).or_default().ns += ns.max(since).saturating_sub(since) as f64;
            since = since.max(ns);
            under_way += step;
            match answered {
                before if step < 0 => {
                    self.gaps_ns.extend(before.map(|before: u64| (ns - before) as f64));
                    answered = Some(ns);
                }
                Some(answered) if step > 0 && ns >= from => {
                    self.levels.entry(under_way).or_default().after_ns.push(ns - answered);
                }
                _ => {}
            }
        }
    }

    fn length_ns(&self) -> f64 {
        self.levels.values().map(|level| level.ns).sum()
    }

    /// Within this time after an answer something comes, by chance, one time in [`PARTS`].
    fn soon_ns(&self) -> f64 {
        let mut gaps = self.gaps_ns.clone();
        gaps.sort_by(f64::total_cmp);
        let mut left = gaps.iter().sum::<f64>() / PARTS;
        // Shorter ones are part of it whole, the longer ones as far as it goes.
        for (nth, gap) in gaps.iter().enumerate() {
            let longer = (gaps.len() - nth) as f64;
            if gap * longer >= left {
                return left / longer;
            }
            left -= gap;
        }
        0.0
    }

    fn result(&self, soon_ns: f64, passed_on: f64) -> AtOnce {
        let length_ns = self.length_ns();
        let under_way_ns: f64 = self.levels.iter().map(|(number, level)| *number as f64 * level.ns).sum();
        let mut up_to = 0.0;
        let most = self.levels.iter().find(|(_, level)| {
            up_to += level.ns;
            up_to >= length_ns * NEARLY_ALL
        });
        let most = most.map_or(0, |(number, _)| *number);
        let last: Vec<u64> = self.levels.range(most..).flat_map(|(_, level)| level.after_ns.iter().copied()).collect();
        let soon_after = last.iter().filter(|ns| **ns as f64 <= soon_ns).count();
        AtOnce {
            questions: self.questions,
            usual: ratio(under_way_ns, length_ns),
            most: most as f64,
            handed_on: share(soon_after as f64, last.len() as f64),
            passed_on,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One burst of 10 s.
    fn of(asked: impl IntoIterator<Item = (u64, u64)>) -> AtOnce {
        at_once(asked.into_iter().collect(), &[(0, 10_000)], &[])
    }

    #[test]
    fn two_at_a_time_each_when_another_is_answered() {
        let pair = |nth: u64| [(nth * 51, nth * 51 + 50), (nth * 51, nth * 51 + 49)];
        let counted = of((0..196).flat_map(pair));
        assert_eq!((counted.questions, counted.most, counted.handed_on), (392.0, 2.0, 1.0));
        assert!((counted.usual - 1.94).abs() < 0.02, "{}", counted.usual);
    }

    /// A loop takes the answers of six as they come together, and then asks for six more.
    #[test]
    fn six_at_a_time_in_step() {
        let six = |nth: u64| (0..6).map(move |k| (nth * 220 + k * 3, nth * 220 + 200 + k / 2));
        let counted = of((0..45).flat_map(six));
        assert_eq!((counted.questions, counted.most, counted.handed_on), (270.0, 6.0, 1.0));
    }

    #[test]
    fn a_rate_that_happens_to_make_two() {
        // Every 24 ms, each for 50 ms: an answer comes 22 ms before the next question.
        let counted = of((0..400).map(|nth| (nth * 24, nth * 24 + 50)));
        assert_eq!((counted.most, counted.handed_on), (3.0, 0.0));
        let counted = of((0..400).map(|nth| (nth * 24, nth * 24 + 38)));
        assert_eq!((counted.most, counted.handed_on), (2.0, 0.0));
    }

    #[test]
    fn a_health_check_beside_them_is_not_one_more() {
        let checks = (0..5).map(|nth| (nth * 2_000 + 20, nth * 2_000 + 25));
        let counted = of((0..199).map(|nth| (nth * 50, nth * 50 + 49)).chain(checks));
        assert!(counted.most == 1.0 && counted.handed_on > 0.9, "{counted:?}");
    }

    #[test]
    fn answers_to_clients_come_after_those_from_there_or_when_they_like() {
        let asked: Vec<(u64, u64)> = (0..199).map(|nth| (nth * 50, nth * 50 + 49)).collect();
        let of = |answers: &[u64]| at_once(asked.clone(), &[(0, 10_000)], answers).passed_on;
        assert_eq!(of(&[50, 101, 153, 3_300]), 1.0);
        assert_eq!(of(&[75, 130, 171, 3_340]), 0.0);
    }

    #[test]
    fn one_that_outlasts_a_burst_hides_no_others() {
        let asked = (0..199).map(|nth| (nth * 50, nth * 50 + 49)).chain([(0, 9_990)]);
        assert_eq!(of(asked).questions, 200.0);
    }

    #[test]
    fn what_is_under_way_at_an_end_is_left_out() {
        let counted = of([(0, 9_000)]);
        assert_eq!((counted.questions, counted.usual, counted.most, counted.handed_on), (1.0, 1.0, 1.0, 0.0));
        assert_eq!(at_once(Vec::new(), &[(0, 10)], &[5]).questions, 0.0);
        let rows = [(2_000, 1_000), (3_000, 999), (9_000, 500)];
        let bursts = rows.map(|(t_ns, length_ns)| Burst { t_ns: t_ns * 1_000, length_ns: length_ns * 1_000 });
        assert_eq!(stretches(&bursts), [(1_000_000, 3_000_000), (8_500_000, 9_000_000)]);
    }
}
