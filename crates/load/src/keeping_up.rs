// SPDX-License-Identifier: Apache-2.0
//! What is under way when a load ends, although the service keeps up with it: as many as come while an answer takes its time. More
//! than that is a queue that grows; and so is what is under way in the middle, and twice as much at the end.

use crate::lengths::Lengths;
use crate::run::{Run, Second, together};

/// Of the answers, the quickest: they have met no queue.
const QUICKEST: f64 = 0.01;
/// Of the length: where answers take longer on average, they may do so because of the queue.
const SHORT: f64 = 0.25;
/// Of answers in the first half, those in the second where no queue grows: in one that does they take three times as long.
const STEADY: f64 = 1.3;
/// By how many standard deviations more may be under way by chance: one load in six is above that, but of a few in a hundred too few
/// to matter. And by how many requests at least.
const CHANCE: f64 = 1.0;
const FEW: f64 = 2.0;
/// Of the answers: as long as so many of them take, they usually do.
const USUAL: f64 = 0.9;
/// Of what is left of the second half of a load, what the first has left, if a queue grows.
const HALF: f64 = 0.5;

/// Requests that may be under way at the end; `from` is the first second that counts, `service` what answers take from then on.
pub(crate) fn under_way(run: &Run, from: usize, service: &Lengths) -> f64 {
    let Some(rate) = run.planned else { return 0.0 };
    let alone = rate * service.quantile(QUICKEST).unwrap_or(0.0);
    alone.max(on_average(run, from, rate))
}

/// The second half of a load, where all that a service is going to be is warm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SecondHalf {
    /// Answers that came in it, for each request that was due in it.
    pub through: f64,
    /// The same with what chance may have left under way; 1 = no queue grew.
    pub kept: f64,
}

/// How the second half went; `from` is the first second that counts. None = there is no plan, no second in each half, or answers take
/// so long that those are no halves.
pub(crate) fn second_half(run: &Run, from: usize) -> Option<SecondHalf> {
    run.planned?;
    let [first, second] = halves(run, from);
    let sum = |part: &[Second], of: fn(&Second) -> u64| part.iter().map(of).sum::<u64>() as f64;
    let (due, done) = (sum(second, |second| second.due), sum(second, |second| second.done));
    // Answers that take longer than the first half are under way in the middle, and in the second half no longer.
    let is_long = together(first).0.quantile(USUAL).is_some_and(|usual| usual > first.len() as f64);
    if first.is_empty() || due == 0.0 || is_long {
        return None;
    }
    let by_then = &run.seconds[..from + first.len()];
    let under_way = (sum(by_then, |second| second.due) - sum(by_then, |second| second.done)).max(0.0);
    // As much was left of the first half. A pause near the end leaves as much, and is none of a queue.
    let grows = under_way >= HALF * (due - done);
    let chance = CHANCE * (2.0 * under_way).sqrt() + FEW;
    Some(SecondHalf { through: done / due, kept: if grows { (done + chance) / due } else { 1.0 } })
}

/// The whole seconds of a load from the first one that counts, in two halves; the first is empty where there is but one.
fn halves(run: &Run, from: usize) -> [&[Second]; 2] {
    let whole = (run.length.as_secs() as usize).min(run.seconds.len());
    let counted = run.seconds.get(from..whole).unwrap_or_default();
    let (first, second) = counted.split_at(counted.len() / 2);
    [first, second]
}

/// By the mean of the answers: where these differ, many are under way of the long ones. Of those in the first half, because in a queue
/// that grows answers take longer and longer, and that is not to explain itself. Where those of the second half take no longer, none
/// grows, however long they take.
fn on_average(run: &Run, from: usize, rate: f64) -> f64 {
    let [first, second] = halves(run, from);
    let first = if first.is_empty() { run.seconds.get(from..=from).unwrap_or_default() } else { first };
    let [latency, later] = [first, second].map(|part| together(part).0.mean());
    let is_steady = latency.zip(later).is_some_and(|(first, second)| second <= STEADY * first);
    let is_none = |mean: &f64| *mean <= SHORT * run.length.as_secs_f64() || is_steady;
    let mean = together(first).1.mean().filter(is_none);
    let many = rate * mean.unwrap_or(0.0);
    many + (CHANCE * many.sqrt()).max(FEW)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::arrivals::{Arrivals, Spread};
    use crate::judge;

    const SECONDS: f64 = 5.0;
    const POOL: usize = 64;
    /// Of what is asked, what a sweep takes for sustained.
    const KEPT: f64 = 0.97;

    /// A load of a service that takes `takes` for each request, and answers `at_a_time` of them at a time: the share that it kept.
    fn kept(rate: f64, at_a_time: usize, mut takes: impl FnMut() -> f64) -> f64 {
        let length = Duration::from_secs_f64(SECONDS);
        let mut run = Run { planned: Some(rate), length, seen: length, lasted: length, ..Run::default() };
        let mut arrivals = Arrivals::new(rate, Spread::Poisson);
        let (mut free, mut ends) = (vec![0.0_f64; at_a_time], Vec::<f64>::new());
        while let Some(due) = arrivals.take(length) {
            let at = due.as_secs_f64();
            // The request before which all connections were taken has to end first.
            ends.sort_by(f64::total_cmp);
            let sent = ends.len().checked_sub(POOL).map_or(at, |nth| at.max(ends[nth]));
            let server = free.iter_mut().min_by(|a, b| a.total_cmp(b)).unwrap();
            *server = server.max(sent) + takes();
            let end = *server;
            ends.push(end);
            let of = |from: f64| Duration::from_secs_f64(end - from);
            (run.due, run.sent) = (run.due + 1, run.sent + 1);
            run.second(due).due += 1;
            run.add_answer(due, (of(at), of(sent)), 2, end <= SECONDS);
        }
        judge(&run, None).kept()
    }

    /// So many of a hundred tries are sustained.
    fn sustained(rate: f64, at_a_time: usize, takes: impl Fn(&mut fastrand::Rng) -> f64) -> usize {
        let try_it = |seed| {
            let mut random = fastrand::Rng::with_seed(seed);
            kept(rate, at_a_time, || takes(&mut random)) >= KEPT
        };
        (0..100).filter(|seed| try_it(*seed)).count()
    }

    fn exponential(mean: f64) -> impl Fn(&mut fastrand::Rng) -> f64 {
        move |random| -mean * (1.0 - random.f64()).ln()
    }

    #[test]
    fn answers_that_differ_are_no_queue() {
        let quick_or_long = |quick: u32, quick_s: f64, long_s: f64| {
            move |random: &mut fastrand::Rng| if random.u32(..100) < quick { quick_s } else { long_s }
        };
        for rate in [40.0, 80.0, 160.0] {
            let many = [
                sustained(rate, 1000, exponential(0.2)),
                sustained(rate, 1000, quick_or_long(1, 0.001, 0.3)),
                sustained(rate, 1000, quick_or_long(90, 0.001, 1.0)),
            ];
            assert!(many.iter().all(|many| *many >= 97), "{rate}: {many:?}");
        }
    }

    /// A tenth more than a service can answer, of which its own long answers seem to say why they are not there.
    #[test]
    fn an_overload_does_not_explain_itself() {
        let overload = |times: f64| {
            let mut run = Run { planned: Some(160.0 * times), length: Duration::from_secs(10), ..Run::default() };
            for nth in 0..(1600.0 * times) as u64 {
                let (due, done) =
                    (nth as f64 / (160.0 * times), (nth as f64 / 160.0).max(nth as f64 / (160.0 * times)));
                let due_at = Duration::from_secs_f64(due);
                run.second(due_at).due += 1;
                let takes = Duration::from_secs_f64(done - due + 0.02);
                run.add_answer(due_at, (takes, takes), 2, done + 0.02 <= 10.0);
            }
            second_half(&run, 0)
        };
        let over = overload(1.1).unwrap();
        assert!((over.through - 1.0 / 1.1).abs() < 0.01 && over.kept < 0.95, "{over:?}");
        assert!(overload(0.9).unwrap().kept >= 1.0);
    }

    /// All answers take 2.4 s of a load of five, or some of them 3 s: as many are under way all the time.
    #[test]
    fn long_answers_are_no_queue() {
        let kept = |long: u64, takes: f64| {
            let mut run = Run { planned: Some(100.0), length: Duration::from_secs(5), ..Run::default() };
            for nth in 0..500_u64 {
                let due = nth as f64 / 100.0;
                let takes = if nth % 100 < long { takes } else { 0.001 };
                run.second(Duration::from_secs_f64(due)).due += 1;
                let latency = Duration::from_secs_f64(takes);
                run.add_answer(Duration::from_secs_f64(due), (latency, latency), 2, due + takes <= 5.0);
            }
            second_half(&run, 0).map_or(1.0, |half| half.kept)
        };
        assert!(kept(100, 2.4) >= KEPT && kept(20, 3.0) >= KEPT && kept(5, 3.0) >= KEPT);
    }

    /// Between a quarter and a half of a load, and no limit.
    #[test]
    fn answers_that_are_long_and_differ_are_no_queue() {
        let between = |from: f64, to: f64| move |random: &mut fastrand::Rng| from + (to - from) * random.f64();
        for rate in [8.0, 16.0, 32.0] {
            let many = [sustained(rate, 1000, between(1.0, 2.0)), sustained(rate, 1000, between(0.5, 3.0))];
            assert!(many.iter().all(|many| *many >= 90), "{rate}: {many:?}");
        }
    }

    #[test]
    fn a_queue_that_grows_is_found() {
        for (at_a_time, takes) in [(1, 0.004), (2, 0.05), (8, 0.02), (20, 0.2)] {
            let limit = at_a_time as f64 / takes;
            let many = [1.0, 1.1, 2.0, 4.0].map(|times| sustained(times * limit, at_a_time, |_| takes));
            assert_eq!(many, [100, 0, 0, 0], "{at_a_time} at a time, {takes} s each");
        }
        assert!(sustained(60.0, 8, exponential(0.2)) <= 2, "40 a second, by chance more and less");
    }
}
