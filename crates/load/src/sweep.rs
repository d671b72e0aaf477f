// SPDX-License-Identifier: Apache-2.0
//! One load after another, from few requests a second to more than the service can answer: where its limit is, and what
//! it does on the way there that nobody would expect.

mod findings;
mod pool;
mod promise;

use anyhow::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use pool::Pool;

use crate::reason::Reason;
use crate::reasons::FAILED;
use crate::run::Failure;
use crate::verdict::{Meanwhile, Verdict};
use pool::{Loads, TryOver};

/// What keeps a client from sending more.
pub(super) const CLIENT: [&str; 5] = ["client-cpu", "client-starved", "no-port", "no-descriptor", "unsent"];
/// Requests that may fail in any case.
const FEW: f64 = 2.5;
/// Standard deviations that 95 % of what is normal lies within.
const NORMAL: f64 = 1.96;
/// From one step to the next.
const FACTOR: f64 = 2.0;
/// How near the two sides of a knee come.
const NEAR: f64 = 1.05;
/// How many times as much is answered over twice as many connections, if their number was the limit.
const MORE: f64 = 1.1;
/// Times that a limit further down is looked for.
const MOST_CREDITS: usize = 8;
/// Of the most answers a second, what is left at a higher load if it falls.
const FALLS: f64 = 0.9;
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

impl Step {
    /// Whether the client could not send more, so that the load says nothing of the service's limit.
    pub fn is_of_client(&self) -> bool {
        is_client_full(&self.verdict)
    }
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
    /// Of the highest load, what was answered while it was asked, a second: what to plan with, because a load that lasts some seconds
    /// is sustained when a few hundredths of it are still under way at its end.
    pub answered: f64,
    /// The least of that, and of what the best load at the other side was answered, over all tries.
    pub least: f64,
    /// The most.
    pub most: f64,
}

/// Two loads between which something changes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sides {
    sustained: f64,
    not_sustained: f64,
}

/// Tries a load, requests a second; none = somebody ended it.
type Try<'a> = dyn FnMut(f64) -> Result<Option<Tried>> + 'a;

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Why no further load could be tried: nobody was there any more, or something else.
    #[serde(skip)]
    pub(crate) broken: Option<Reason>,
}

/// Sweeps from one rate to another; `load` tries one.
///
/// # Errors
/// A load could not be tried.
pub fn sweep(from: f64, to: f64, load: &mut Try<'_>) -> Result<Sweep> {
    sweep_over(from, to, Pool::default(), &mut |rate, _| load(rate))
}

/// The same over so many connections, and more of them where their number is the limit; `load` tries a rate over a number of them.
///
/// # Errors
/// A load could not be tried.
pub fn sweep_over(from: f64, to: f64, pool: Pool, load: &mut TryOver<'_>) -> Result<Sweep> {
    let mut sweep = Sweep::default();
    let mut loads = Loads::new(pool, load);
    if sweep.climb(from, to, &mut loads)? {
        let is_found = sweep.narrow(&mut loads, Sweep::below_the_client)?
            && sweep.narrow(&mut loads, Sweep::sides)?
            && sweep.narrow(&mut loads, Sweep::sides_of_promise)?;
        if is_found && sweep.repeat(&mut loads)? {
            sweep.confirm(&mut loads)?;
        }
        // Of what is known, also where somebody ended it.
        let is_known = !loads.is_out() && sweep.broken.is_none();
        sweep.knee = sweep.sides().filter(|_| is_known).map(|sides| sweep.knee_between(sides));
    }
    sweep.cpu = sweep.cpu_line();
    sweep.findings = sweep.findings_of(&loads);
    Ok(sweep)
}

impl Sweep {
    /// How many loads it takes at most, between two rates; a few more where the number of connections is found as well.
    pub fn most_loads(from: f64, to: f64) -> u32 {
        let doublings = (to / from).log(FACTOR).ceil().max(0.0);
        let halvings = (FACTOR.ln() / NEAR.ln()).log2().ceil();
        // Up, between the last two of them, and all of those below once more; what is not sustained is tried twice.
        (2.0 * (doublings + 1.0) + 2.0 * (halvings + 1.0)) as u32
    }

    /// Tries a load, over more connections if their number limits, and once more if it was not sustained: that may have been a bad
    /// moment, of the client too; false = somebody ended it.
    fn settle(&mut self, rate: f64, loads: &mut Loads<'_>) -> Result<bool> {
        if !self.step(rate, loads)? {
            return Ok(false);
        }
        if self.takes().is_some() && !self.over_few(rate, loads)? {
            return Ok(false);
        }
        while self.is_over() && !loads.is_enough() && self.is_for_connections() {
            let before = self.last_rate();
            let Some(grown) = loads.grow(rate, before) else { return Ok(true) };
            if !self.step(rate, loads)? {
                return Ok(false);
            }
            if self.is_over() && self.last_rate() < MORE * before {
                loads.shrink(grown);
                break;
            }
        }
        let is_settled = self.steps.last().is_none_or(|step| step.sustained);
        Ok(is_settled || self.step(rate, loads)?)
    }

    /// Tries a load again, and over as few connections as the service took, if that was no bad moment; false = somebody ended it.
    fn over_few(&mut self, rate: f64, loads: &mut Loads<'_>) -> Result<bool> {
        if !self.step(rate, loads)? {
            return Ok(false);
        }
        let few = self.takes().and_then(|takes| loads.narrow(rate, self.last_rate(), takes));
        let Some(before) = few else { return Ok(true) };
        let is_tried = self.step(rate, loads)?;
        if self.takes().is_some() {
            loads.widen(before);
        }
        Ok(is_tried)
    }

    fn last_rate(&self) -> f64 {
        self.steps.last().map_or(0.0, |step| step.verdict.rate)
    }

    /// Over how many connections the service answered, where that is why the last load was not sustained.
    fn takes(&self) -> Option<u64> {
        self.steps.last().filter(|_| self.is_over()).and_then(|step| step.verdict.takes)
    }

    /// Whether the service did not sustain the last load.
    fn is_over(&self) -> bool {
        self.steps.last().is_some_and(|step| !step.sustained && !step.is_of_client())
    }

    /// Whether the last load met the number of connections: what an answer takes alone is known from the loads below.
    fn is_for_connections(&self) -> bool {
        let Some(last) = self.steps.last() else { return false };
        let below = self.steps.iter().filter(|step| step.sustained && step.rate < last.rate);
        let alone = below.filter_map(|step| step.verdict.seconds.p50).min_by(f64::total_cmp);
        last.verdict.is_limited_by_connections(alone.or(last.verdict.quickest))
    }

    /// Tries a load; false = somebody ended it.
    fn step(&mut self, rate: f64, loads: &mut Loads<'_>) -> Result<bool> {
        let tried = match loads.load(rate) {
            // What is known by then is not lost.
            Err(error) if !self.steps.is_empty() => {
                self.broken = Some(self.broken_off(rate, &format!("{error:#}")));
                return Ok(false);
            }
            tried => tried?,
        };
        let Some(Tried { verdict, service }) = tried else {
            self.ended_early = true;
            return Ok(false);
        };
        let is_gone = nobody_is_there(&verdict);
        self.steps.push(Step { rate, sustained: is_sustained(&verdict), verdict, service });
        if is_gone {
            self.broken = Some(self.gone());
        }
        Ok(!is_gone)
    }

    /// Up, until it is not sustained any more.
    fn climb(&mut self, from: f64, to: f64, loads: &mut Loads<'_>) -> Result<bool> {
        let mut rate = from;
        loop {
            if !self.settle(rate, loads)? {
                return Ok(false);
            }
            let is_over = self.steps.last().is_some_and(|step| !step.sustained);
            if is_over || rate >= to {
                return Ok(true);
            }
            rate = (rate * FACTOR).min(to);
        }
    }

    /// Where the client was at its limit before the service was seen at its own, that may lie between there and the highest load below
    /// that was sustained.
    fn below_the_client(&self) -> Option<Sides> {
        let not_sustained = self.client_full().filter(|_| self.sides().is_none())?.rate;
        let below = self.steps.iter().filter(|step| step.sustained && step.rate < not_sustained);
        Some(Sides { sustained: below.map(|step| step.rate).max_by(f64::total_cmp)?, not_sustained })
    }

    /// Between two sides, until they are near enough, or a load between them tells nothing: the client was at its limit there.
    fn narrow(&mut self, loads: &mut Loads<'_>, sides: fn(&Self) -> Option<Sides>) -> Result<bool> {
        while let Some(at) = sides(self).filter(|_| !loads.is_out()) {
            if at.not_sustained <= NEAR * at.sustained {
                break;
            }
            if !self.settle((at.sustained * at.not_sustained).sqrt(), loads)? {
                return Ok(false);
            }
            if sides(self) == Some(at) {
                break;
            }
        }
        Ok(true)
    }

    /// The loads below the limit once more, by turns from both ends: what a warm service does, and what chance was; false = somebody
    /// ended it.
    fn repeat(&mut self, loads: &mut Loads<'_>) -> Result<bool> {
        let mut rates: Vec<f64> = self.steps.iter().filter(|step| step.sustained).map(|step| step.rate).collect();
        rates.sort_by(f64::total_cmp);
        let mut from_above = true;
        while !rates.is_empty() {
            let rate = if from_above { rates.pop() } else { Some(rates.remove(0)) };
            from_above = !from_above;
            let Some(rate) = rate else { break };
            if !self.again(rate, loads)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Tries a load once more; where it is not sustained this time, a third try tells which of both was chance.
    fn again(&mut self, rate: f64, loads: &mut Loads<'_>) -> Result<bool> {
        Ok(self.step(rate, loads)? && (!self.is_over() || self.step(rate, loads)?))
    }

    /// Looks further down where the highest load is sustained no more: on credit, as of a bucket of tokens, it was so once.
    fn confirm(&mut self, loads: &mut Loads<'_>) -> Result<bool> {
        for _ in 0..MOST_CREDITS {
            if !self.narrow(loads, Self::sides)? {
                return Ok(false);
            }
            let is_tried_once = |at: &Sides| self.steps.iter().filter(|step| step.rate == at.sustained).count() < 2;
            let Some(at) = self.sides().filter(is_tried_once) else { break };
            if !self.again(at.sustained, loads)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a load was sustained in most of its tries, or in half of them and the last one: the first may be a cold start.
    fn holds(&self, rate: f64) -> bool {
        let tries = || self.steps.iter().filter(|step| step.rate == rate && !step.is_of_client());
        let (all, sustained) = (tries().count(), tries().filter(|step| step.sustained).count());
        2 * sustained > all || 2 * sustained == all && tries().next_back().is_some_and(|last| last.sustained)
    }

    /// The highest load below the lowest one that was not sustained. One at which the client was at its limit says nothing of either.
    fn sides(&self) -> Option<Sides> {
        let over = self.steps.iter().filter(|step| !step.is_of_client() && !self.holds(step.rate));
        let over = over.map(|step| step.rate).min_by(f64::total_cmp)?;
        let below = self.steps.iter().filter(|step| step.rate < over && self.holds(step.rate));
        let sustained = below.map(|step| step.rate).max_by(f64::total_cmp)?;
        Some(Sides { sustained, not_sustained: over })
    }

    /// The limit, with what was answered on average over the tries of the load that was sustained.
    fn knee_between(&self, Sides { sustained, not_sustained }: Sides) -> Knee {
        let tries = |rate: f64, is_sustained: bool| {
            let tries = self.steps.iter().filter(move |step| step.rate == rate && step.sustained == is_sustained);
            tries.filter(|step| !step.is_of_client()).map(|step| step.verdict.answered_of(step.rate))
        };
        let below: Vec<f64> = tries(sustained, true).collect();
        let answered = below.iter().sum::<f64>() / below.len().max(1) as f64;
        // Where less is answered past the limit, that says nothing of it.
        let above = tries(not_sustained, false).max_by(f64::total_cmp).filter(|above| *above >= FALLS * answered);
        let (least, most) = below
            .into_iter()
            .chain(above)
            .fold((answered, answered), |(least, most), it| (least.min(it), most.max(it)));
        Knee { sustained, not_sustained, answered, least, most }
    }
}

/// Whether nobody takes connections any more: that is no limit of a load.
fn nobody_is_there(verdict: &Verdict) -> bool {
    let is_nobody =
        |entry: (&Failure, &u64)| *entry.1 > 0 && matches!(entry.0, Failure::Refused | Failure::Unreachable);
    let refused = verdict.errors.iter().filter(|entry| is_nobody(*entry)).map(|entry| *entry.1).sum::<u64>();
    let failed: u64 = verdict.errors.values().sum();
    verdict.answered == 0 && verdict.statuses.is_empty() && failed > 0 && refused as f64 >= KEPT * failed as f64
}

/// Whether the client could not send more. That it was late says something of response times, and nothing of a limit.
pub(crate) fn is_client_full(verdict: &Verdict) -> bool {
    verdict.reasons.iter().any(|reason| CLIENT.contains(&reason.code.as_str()))
}

fn is_sustained(verdict: &Verdict) -> bool {
    let failed: u64 = verdict.errors.iter().filter(|entry| !entry.0.is_own()).map(|entry| *entry.1).sum();
    let due = verdict.due.max(1) as f64;
    !is_client_full(verdict) && verdict.kept() >= KEPT && !is_more_than_a_few(failed as f64 / due, due)
}

/// Whether more than a hundredth failed, and not by chance: the lower end of the interval of 95 % (Wilson's) around the share. Of 25
/// requests, one that fails is four in a hundred, and says nothing of the next 25.
fn is_more_than_a_few(share: f64, of: f64) -> bool {
    let square = NORMAL * NORMAL / of.max(1.0);
    let middle = share + square / 2.0;
    let half = (square * (share * (1.0 - share).max(0.0) + square / 4.0)).sqrt();
    share * of > FEW && (middle - half) / (1.0 + square) > FAILED
}

#[cfg(test)]
mod tests;
