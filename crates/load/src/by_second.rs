// SPDX-License-Identifier: Apache-2.0
//! How a load went second by second, in no more rows than somebody can look at.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::{Run, Second, together};

/// Rows at most; of a longer load each is of more than a second.
const ROWS: usize = 600;
/// Answers without which a percentile is chance.
const FEW: u64 = 10;

/// A second of a load, or a few of one of over ten minutes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Moment {
    /// Seconds from the start.
    pub from: u64,
    /// Seconds that it is of: 1; more in a load of over ten minutes, less where the load ended within it.
    pub seconds: f64,
    /// Requests that were due in it.
    pub due: u64,
    /// Answers to them, whenever they came.
    pub answered: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// Half of the answers took no longer from when they were due, seconds; none = there are fewer than ten.
    pub p50: Option<f64>,
    /// 99 in a hundred, seconds; of fewer than a hundred answers nearly the longest. None = as above, or not shown because the
    /// client was at its limit.
    pub p99: Option<f64>,
}

/// All of them; of a load that was followed for a part of the time, those that were.
pub(crate) fn by_second(run: &Run) -> Vec<Moment> {
    let size = run.seconds.len().div_ceil(ROWS).max(1);
    let parts = run.seconds.chunks(size).enumerate();
    parts.filter_map(|(nth, seconds)| moment(nth * size, seconds, run)).collect()
}

fn moment(from: usize, seconds: &[Second], run: &Run) -> Option<Moment> {
    let length = |nth: usize| (run.length.as_secs_f64() - (from + nth) as f64).clamp(0.0, 1.0);
    let long: f64 = (0..seconds.len()).filter(|nth| run.is_followed(from + nth)).map(length).sum();
    let (latency, service) = together(seconds);
    let quantile = |share: f64| latency.quantile(share).filter(|_| service.count() >= FEW);
    let [due, failed] = [|s: &Second| s.due, |s: &Second| s.failed].map(|of| seconds.iter().map(of).sum::<u64>());
    (long > 0.0 || due > 0).then(|| Moment {
        from: from as u64,
        seconds: long,
        due,
        answered: service.count(),
        failed,
        p50: quantile(0.5),
        p99: quantile(0.99),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// A load of so many seconds, with so many answers in each.
    fn run(length: Duration, answers: u64) -> Run {
        let mut run = Run { length, seen: length, ..Run::default() };
        for nth in 0..length.as_secs_f64().ceil() as u64 {
            let second = run.second(Duration::from_secs(nth));
            (second.due, second.failed) = (answers + 1, 1);
            (0..answers).for_each(|_| second.latency.add(Duration::from_millis(1 + nth % 2)));
            (0..answers).for_each(|_| second.service.add(Duration::from_millis(1)));
        }
        run
    }

    #[test]
    fn each_second_has_its_own_numbers() {
        let moments = by_second(&run(Duration::from_millis(2500), 10));
        let cells: Vec<_> = moments.iter().map(|it| (it.from, it.seconds, it.due, it.answered, it.failed)).collect();
        assert_eq!(cells, [(0, 1.0, 11, 10, 1), (1, 1.0, 11, 10, 1), (2, 0.5, 11, 10, 1)]);
        assert!(moments[0].p50 < Some(0.0015) && moments[1].p50 > Some(0.0015), "{moments:?}");
        let few = by_second(&run(Duration::from_secs(1), 9));
        assert_eq!((few[0].answered, few[0].p50, few[0].p99), (9, None, None));
    }

    #[test]
    fn there_are_never_more_than_can_be_looked_at() {
        for (seconds, rows, each) in [(600, 600, 1.0), (601, 301, 2.0), (3600, 600, 6.0)] {
            let run = run(Duration::from_secs(seconds), 1);
            let moments = by_second(&run);
            assert_eq!((moments.len(), moments[0].seconds), (rows, each), "{seconds}");
            assert_eq!(moments.iter().map(|it| it.answered).sum::<u64>(), seconds, "none is lost");
            assert_eq!(moments.iter().map(|it| it.seconds).sum::<f64>(), seconds as f64);
        }
    }

    #[test]
    fn seconds_that_were_not_followed_are_not_empty_ones() {
        let mut run = run(Duration::from_secs(4), 20);
        run.followed = Some([0, 2].into());
        run.seconds[1] = Second::default();
        run.seconds[3] = Second::default();
        assert_eq!(by_second(&run).iter().map(|it| it.from).collect::<Vec<_>>(), [0, 2]);
    }
}
