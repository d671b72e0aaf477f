// SPDX-License-Identifier: Apache-2.0
//! Loads made up: one that gets slow half way, and a sweep over a service that answers slowly when few ask, and falls past its
//! limit.

use std::time::Duration;

use load::{Failure, Meanwhile, Run, Second, Sweep, Tried, Verdict, judge, sweep};

/// Requests a second that the service can do.
const LIMIT: f64 = 1000.0;
const SLO: Duration = Duration::from_millis(60);

/// A load of `rate` a second over some seconds, of which `answered` a second are; usual answers by second, µs.
pub fn run(rate: u64, answered: u64, seconds: u64, usual_us: impl Fn(u64) -> u64) -> Run {
    let mut run = Run { who: "this program".into(), planned: Some(rate as f64), pool: 64, ..Run::default() };
    (run.due, run.sent, run.in_time, run.sees_answers) = (rate * seconds, rate * seconds, answered * seconds, true);
    run.length = Duration::from_secs(seconds);
    (run.seen, run.lasted, run.spent.cpu) = (run.length, run.length, run.length.mul_f64(rate as f64 * 20e-6));
    for at in 0..seconds {
        let mut second = Second { due: rate, sent: rate, done: answered, ..Second::default() };
        for nth in 0..answered {
            // A few answers are slow, the others differ a little.
            let factor = if (at * answered + nth) % 200 == 199 { 400 } else { 85 + nth * 37 % 40 };
            let length = Duration::from_micros(usual_us(at) * factor / 100);
            second.latency.add(length);
            second.service.add(length.mul_f64(0.9));
            run.lag.add(Duration::from_micros(5 + nth % 40));
        }
        run.seconds.push(second);
    }
    run
}

/// Twenty seconds that become slow after eight, with failures.
pub fn slowing() -> Verdict {
    let mut run = run(400, 396, 20, |second| if second < 8 { 2000 } else { 20_000 });
    run.failures = [(Failure::Refused, 30), (Failure::Status, 50)].into();
    run.statuses = [(200, 7920), (503, 50)].into();
    run.seconds.iter_mut().for_each(|second| second.failed = 4);
    judge(&run, Some(SLO))
}

/// What the service did, as it calls itself.
pub fn service(name: &str, rate: f64) -> Meanwhile {
    let over = rate > LIMIT;
    let verdict = if over { "slow-dependency" } else { "healthy" }.into();
    let headline = if over { format!("{name} waits for its store") } else { format!("{name}: nothing stands out") };
    Meanwhile { verdict, headline, advice: "ask it for less".into(), cpus: 0.2 + rate.min(LIMIT) * 4e-4 }
}

/// From 20 a second up.
pub fn swept(name: &str) -> anyhow::Result<Sweep> {
    let mut load = |rate: f64| {
        let asked = rate as u64;
        let answered = if rate > LIMIT { 800 } else { asked };
        let usual = |_| match rate {
            rate if rate > LIMIT => 900_000,
            rate if rate < 100.0 => 40_000,
            _ => 2000 + asked * 3,
        };
        let verdict = judge(&run(asked, answered, 5, usual), Some(SLO));
        Ok(Some(Tried { verdict, service: Some(service(name, rate)) }))
    };
    sweep(20.0, 4000.0, &mut load)
}
