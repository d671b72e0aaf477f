// SPDX-License-Identifier: Apache-2.0
//! A load as rows of tables: counts and lengths, second by second.

use std::time::Duration;

use recording::Tables;
use recording::tables::{LoadLatency, LoadSecond};

use crate::lengths::{Lengths, Percentiles};
use crate::run::{Run, Second};

/// Adds the rows of a load that was planned at `rate` and began `after` the first one.
pub fn save(run: &Run, step: u32, after: Duration, tables: &mut Tables) {
    let rate = run.planned;
    // Tables without rows are there too.
    tables.extend::<LoadSecond>([]);
    tables.extend::<LoadLatency>([]);
    for (nth, second) in run.seconds.iter().enumerate() {
        let t_ns = ns((after + Duration::from_secs(nth as u64 + 1)).as_secs_f64());
        tables.extend([row(second, step, rate, t_ns)]);
        for (since, lengths) in [("due", &second.latency), ("sent", &second.service)] {
            let of =
                |(from_ns, to_ns, count)| LoadLatency { step, rate, t_ns, since: since.into(), from_ns, to_ns, count };
            tables.extend(lengths.bins().map(of));
        }
    }
}

fn row(second: &Second, step: u32, rate: Option<f64>, t_ns: u64) -> LoadSecond {
    let known = |lengths: &Lengths| Percentiles::of(lengths);
    let (due, sent) = (known(&second.latency), known(&second.service));
    LoadSecond {
        step,
        rate,
        t_ns,
        due: second.due,
        sent: second.sent,
        answered: second.service.count(),
        failed: second.failed,
        p50_ns: due.p50.map(ns),
        p90_ns: due.p90.map(ns),
        p99_ns: due.p99.map(ns),
        p999_ns: due.p999.map(ns),
        longest_ns: due.longest.map(ns),
        sent_p50_ns: sent.p50.map(ns),
        sent_p99_ns: sent.p99.map(ns),
    }
}

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_add_up_to_what_was_counted() {
        let mut run = Run { planned: Some(100.0), ..Run::default() };
        for nth in 0..3_u64 {
            let mut second = Second { due: 100, sent: 100, failed: nth, ..Second::default() };
            (0..100 - nth).for_each(|us| second.latency.add(Duration::from_micros(1000 + 10 * us)));
            (0..100 - nth).for_each(|_| second.service.add(Duration::from_micros(900)));
            run.seconds.push(second);
        }
        let mut tables = Tables::default();
        save(&run, 1, Duration::from_millis(500), &mut tables);
        let seconds = tables.rows::<LoadSecond>();
        assert_eq!(seconds.iter().map(|row| row.t_ns).collect::<Vec<_>>(), [15, 25, 35].map(|t| t * 100_000_000));
        assert!(seconds[0].p50_ns.is_some() && seconds[0].p99_ns.is_none(), "one answer beyond is chance");
        for (nth, second) in seconds.iter().enumerate() {
            let rows = tables.rows::<LoadLatency>().iter().filter(|row| row.t_ns == second.t_ns);
            let due: Vec<&LoadLatency> = rows.filter(|row| row.since == "due").collect();
            assert_eq!(due.iter().map(|row| row.count).sum::<u64>(), 100 - nth as u64);
            assert!(due.iter().all(|row| row.from_ns <= row.to_ns && row.count > 0 && row.step == 1), "{due:?}");
            assert!(due.windows(2).all(|two| two[0].to_ns < two[1].from_ns));
        }
    }
}
