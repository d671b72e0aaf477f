// SPDX-License-Identifier: Apache-2.0
//! One load after another, from few requests a second to more than the service can answer: where its limit is, and what
//! it does on the way there that nobody would expect.

mod findings;

use anyhow::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reason::Reason;
use crate::reasons::FAILED;
use crate::verdict::{Meanwhile, Verdict, Word};

/// What keeps a client from sending more.
const CLIENT: [&str; 4] = ["client-cpu", "client-starved", "no-port", "no-descriptor"];
/// From one step to the next.
const FACTOR: f64 = 2.0;
/// How near the two sides of a knee come.
const NEAR: f64 = 1.05;
/// Of what was asked, what has to be answered while it was asked.
const KEPT: f64 = 0.97;

/// One load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// Requests a second.
    pub rate: f64,
    /// Whether they were answered.
    pub sustained: bool,
    /// What came of it.
    pub verdict: Verdict,
    /// What the service did meanwhile; none = it was not diagnosed.
    pub service: Option<Meanwhile>,
}

/// What came of one load.
pub struct Tried {
    /// The verdict on it.
    pub verdict: Verdict,
    /// What the service did meanwhile.
    pub service: Option<Meanwhile>,
}

/// The service's CPU time as a straight line over the loads that it sustained.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuLine {
    /// CPUs that it would use without a request.
    pub floor: f64,
    /// CPU time for each further request, seconds.
    pub seconds_per_request: f64,
}

/// The limit lies between two loads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Knee {
    /// The highest load that was answered, requests a second.
    pub sustained: f64,
    /// The lowest one that was not.
    pub not_sustained: f64,
}

/// Tries a load, requests a second; none = somebody ended it.
type Try<'a> = dyn FnMut(f64) -> Result<Option<Tried>> + 'a;

/// All of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sweep {
    /// The limit; none = it was not reached, or the client reached its own before.
    pub knee: Option<Knee>,
    /// What the service's CPU time follows; none = it was not diagnosed at three loads.
    pub cpu: Option<CpuLine>,
    /// What is to be known.
    pub findings: Vec<Reason>,
    /// The loads, in the order in which they were tried.
    pub steps: Vec<Step>,
    /// Somebody ended it early.
    pub ended_early: bool,
}

/// Sweeps from one rate to another; `load` tries one.
///
/// # Errors
/// A load could not be tried.
pub fn sweep(from: f64, to: f64, load: &mut Try<'_>) -> Result<Sweep> {
    let mut sweep = Sweep { knee: None, cpu: None, findings: Vec::new(), steps: Vec::new(), ended_early: false };
    if sweep.climb(from, to, load)? && sweep.narrow(load)? {
        sweep.repeat(load)?;
    }
    sweep.cpu = sweep.cpu_line();
    sweep.findings = sweep.findings_of();
    Ok(sweep)
}

impl Sweep {
    /// Tries a load, once more if it was not sustained: that may have been a bad moment; false = somebody ended it.
    fn settle(&mut self, rate: f64, load: &mut Try<'_>) -> Result<bool> {
        let is_over = |step: &Step| !step.sustained && !is_client_full(&step.verdict);
        Ok(self.step(rate, load)? && (!self.steps.last().is_some_and(is_over) || self.step(rate, load)?))
    }

    /// Tries a load; false = somebody ended it.
    fn step(&mut self, rate: f64, load: &mut Try<'_>) -> Result<bool> {
        let Some(Tried { verdict, service }) = load(rate)? else {
            self.ended_early = true;
            return Ok(false);
        };
        self.steps.push(Step { rate, sustained: is_sustained(&verdict), verdict, service });
        Ok(true)
    }

    /// Up, until it is not sustained any more.
    fn climb(&mut self, from: f64, to: f64, load: &mut Try<'_>) -> Result<bool> {
        let mut rate = from;
        loop {
            if !self.settle(rate, load)? {
                return Ok(false);
            }
            let is_over = self.steps.last().is_some_and(|step| !step.sustained);
            if is_over || rate >= to {
                return Ok(true);
            }
            rate = (rate * FACTOR).min(to);
        }
    }

    /// Between the two sides of the knee, until they are near enough.
    fn narrow(&mut self, load: &mut Try<'_>) -> Result<bool> {
        while let Some(knee) = self.sides() {
            if knee.not_sustained <= NEAR * knee.sustained {
                break;
            }
            if !self.settle((knee.sustained * knee.not_sustained).sqrt(), load)? {
                return Ok(false);
            }
        }
        self.knee = self.sides();
        Ok(true)
    }

    /// The loads below the limit once more, by turns from both ends: what a warm service does, and what chance was.
    fn repeat(&mut self, load: &mut Try<'_>) -> Result<()> {
        let mut rates: Vec<f64> = self.steps.iter().filter(|step| step.sustained).map(|step| step.rate).collect();
        rates.sort_by(f64::total_cmp);
        let mut from_above = true;
        while !rates.is_empty() {
            let rate = if from_above { rates.pop() } else { Some(rates.remove(0)) };
            from_above = !from_above;
            if let Some(rate) = rate
                && !self.step(rate, load)?
            {
                break;
            }
        }
        Ok(())
    }

    /// The highest load below the lowest one that was not sustained; none where the client was at its limit there.
    fn sides(&self) -> Option<Knee> {
        let ever = |rate: f64| self.steps.iter().any(|step| step.rate == rate && step.sustained);
        let over = self.steps.iter().filter(|step| !ever(step.rate)).min_by(|a, b| a.rate.total_cmp(&b.rate))?;
        if is_client_full(&over.verdict) {
            return None;
        }
        let below = self.steps.iter().filter(|step| step.sustained && step.rate < over.rate);
        let sustained = below.map(|step| step.rate).max_by(f64::total_cmp)?;
        Some(Knee { sustained, not_sustained: over.rate })
    }
}

/// Whether the client could not send more. That it was late says something of response times, and nothing of a limit.
fn is_client_full(verdict: &Verdict) -> bool {
    verdict.verdict == Word::ClientLimited
        && verdict.reasons.iter().any(|reason| CLIENT.contains(&reason.code.as_str()))
}

fn is_sustained(verdict: &Verdict) -> bool {
    let failed: u64 = verdict.errors.iter().filter(|entry| !entry.0.is_own()).map(|entry| *entry.1).sum();
    let due = verdict.due.max(1) as f64;
    !is_client_full(verdict)
        && verdict.kept() >= KEPT - 2.0 / due
        && failed as f64 <= FAILED * due
        && verdict.slo.is_none_or(|slo| slo.broken <= FAILED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lengths::Percentiles;

    /// A service that answers so many a second, and how long its answers take at a rate.
    fn swept(limit: f64, p50: impl Fn(f64) -> f64, past: impl Fn(f64) -> f64) -> Sweep {
        let mut load = |rate: f64| {
            let answered = if rate <= limit { rate } else { past(rate) };
            let mut verdict = crate::judge(&crate::Run::default(), None);
            (verdict.verdict, verdict.rate, verdict.length, verdict.due) =
                (Word::Valid, answered, 5.0, (rate * 5.0) as u64);
            verdict.corrected = Percentiles { p50: Some(p50(rate)), ..Percentiles::default() };
            Ok(Some(Tried { verdict, service: None }))
        };
        sweep(5.0, 40_000.0, &mut load).unwrap()
    }

    fn codes(sweep: &Sweep) -> Vec<&str> {
        sweep.findings.iter().map(|finding| finding.code.as_str()).collect()
    }

    #[test]
    fn a_limit_is_found_within_a_twentieth() {
        for limit in [77.0, 333.0, 1000.0, 12_345.0, 30_000.0] {
            let sweep = swept(limit, |_| 0.001, |_| limit);
            let knee = sweep.knee.unwrap();
            assert!(knee.sustained <= limit / (KEPT - 0.01) && limit < knee.not_sustained, "{limit}: {knee:?}");
            assert!(knee.not_sustained <= NEAR * knee.sustained, "{knee:?}");
            assert!(codes(&sweep).is_empty() && sweep.steps.len() < 50, "{:?}", sweep.findings);
        }
        assert_eq!(codes(&swept(50_000.0, |_| 0.001, |_| 0.0)), ["not-reached"]);
        assert_eq!(codes(&swept(2.0, |_| 0.001, |_| 2.0)), ["over-from-the-start"]);
    }

    #[test]
    fn a_cold_start_is_no_limit() {
        let mut tries = 0;
        let mut load = |rate: f64| {
            tries += 1;
            let mut verdict = crate::judge(&crate::Run::default(), None);
            let answered = if tries == 1 { 1.0 } else { rate.min(1000.0) };
            (verdict.verdict, verdict.rate, verdict.length, verdict.due) =
                (Word::Valid, answered, 5.0, (rate * 5.0) as u64);
            Ok(Some(Tried { verdict, service: None }))
        };
        let sweep = sweep(5.0, 40_000.0, &mut load).unwrap();
        assert!(sweep.knee.is_some() && codes(&sweep).is_empty(), "{:?}", sweep.findings);
    }

    #[test]
    fn paradoxes_are_named() {
        let held = swept(1000.0, |rate| if rate < 50.0 { 0.040 } else { 0.002 }, |_| 1000.0);
        assert_eq!(codes(&held), ["latency-falls"], "{:?}", held.findings);
        let falls = swept(1000.0, |_| 0.002, |_| 300.0);
        assert_eq!(codes(&falls), ["throughput-falls"]);
        let warmer = swept(1000.0, |rate| if rate < 10.0 { 0.0011 } else { 0.001 }, |_| 1000.0);
        assert!(codes(&warmer).is_empty(), "a tenth is no paradox");
    }

    #[test]
    fn cpu_time_that_does_not_follow_the_load_is_named() {
        for (floor, expected) in [(0.8, ["cpu-floor"].as_slice()), (0.01, &[])] {
            let mut load = |rate: f64| {
                let mut verdict = crate::judge(&crate::Run::default(), None);
                (verdict.verdict, verdict.rate, verdict.length, verdict.due) =
                    (Word::Valid, rate.min(900.0), 5.0, (rate * 5.0) as u64);
                let [verdict_of_it, headline, advice] = [(); 3].map(|()| String::new());
                let cpus = floor + 1e-3 * rate.min(900.0);
                Ok(Some(Tried { verdict, service: Some(Meanwhile { verdict: verdict_of_it, headline, advice, cpus }) }))
            };
            let sweep = sweep(5.0, 40_000.0, &mut load).unwrap();
            let line = sweep.cpu.unwrap();
            assert!((line.floor - floor).abs() < 1e-6 && (line.seconds_per_request - 1e-3).abs() < 1e-9, "{line:?}");
            let found: Vec<&str> = codes(&sweep).into_iter().filter(|code| *code != "service").collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn the_client_s_own_limit_is_none_of_the_service() {
        let mut load = |rate: f64| {
            let mut verdict = crate::judge(&crate::Run::default(), None);
            (verdict.rate, verdict.length, verdict.due) = (rate, 5.0, (rate * 5.0) as u64);
            verdict.verdict = Word::ClientLimited;
            let code = if rate > 100.0 { "client-cpu" } else { "late" };
            verdict.reasons = vec![Reason { code: code.into(), sentence: String::new() }];
            Ok(Some(Tried { verdict, service: None }))
        };
        let sweep = sweep(5.0, 1000.0, &mut load).unwrap();
        assert!(sweep.knee.is_none() && codes(&sweep) == ["client-limited"], "{:?}", sweep.findings);
    }
}
