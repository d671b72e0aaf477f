// SPDX-License-Identifier: Apache-2.0
//! The runner: one scenario after the other, each side in a cell of its own, repeated where it came out wrong while the
//! host was disturbed.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use diagnose::verdict::Verdict;

use crate::builds;
use crate::cell::Cell;
use crate::disturbance::{Disturbance, Watch};
use crate::draw::Draw;
use crate::paths::Paths;
use crate::probe::Probe;
use crate::scenario::{Scenario, Side};
use crate::score::{Outcome, Row};
use crate::stop::Stop;

/// How often a side is run at most, until it came out right or was undisturbed.
pub const MAX_ATTEMPTS: u32 = 4;
/// Pause before the first repetition; twice as long before the next, and so on.
pub const PAUSE: Duration = Duration::from_secs(5);

/// How scenarios are run.
#[derive(Clone, Copy)]
pub struct Runner<'a> {
    /// The checkout.
    pub paths: &'a Paths,
    /// Ends all waiting.
    pub stop: &'a Stop,
    /// Observed time of each side.
    pub seconds: u64,
    /// Attempts for a run that is right or undisturbed.
    pub attempts: u32,
    /// What parameters are drawn by; none = they are as usual.
    pub seed: Option<u64>,
}

impl Runner<'_> {
    /// Runs scenarios, by each seed. Those that came out wrong while the host was disturbed all the time get one more
    /// chance when the others are done: what disturbs lasts for minutes.
    ///
    /// # Errors
    /// The runner was asked to end. Everything else is an outcome.
    pub fn run_all(&self, scenarios: &[&Scenario], seeds: &[Option<u64>]) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        let all = || seeds.iter().flat_map(|seed| scenarios.iter().map(|scenario| (*scenario, *seed)));
        for (scenario, seed) in all() {
            eprintln!("{}: {}", scenario.name, scenario.about);
            rows.push(Runner { seed, ..*self }.run(scenario)?);
        }
        for (row, (scenario, seed)) in rows.iter_mut().zip(all()) {
            if row.deserves_another() {
                eprintln!("{}: the host was disturbed all the time; once more now", scenario.name);
                *row = Runner { seed, ..*self }.run(scenario)?;
            }
        }
        Ok(rows)
    }

    /// Runs both sides of a scenario.
    fn run(&self, scenario: &Scenario) -> Result<Row> {
        if let Err(error) = builds::build(scenario.builds, self.paths) {
            return Ok(Row::failed(scenario, &error));
        }
        let fault = self.run_side(scenario, Side::Fault)?;
        let twin = match scenario.twin {
            Some(_) => Some(self.run_side(scenario, Side::Twin)?),
            None => None,
        };
        Ok(Row { seed: self.seed, ..Row::new(scenario, fault, twin) })
    }

    fn run_side(&self, scenario: &Scenario, side: Side) -> Result<Outcome> {
        let outcome = self.outcome(scenario, side)?;
        // Of variants, those that came out wrong are kept to look into; as usual, the last run is.
        let recording = self.paths.recording(&self.name(scenario, side));
        match &outcome.objection {
            None if self.seed.is_some() => drop(fs::remove_dir_all(recording)),
            None => {}
            // At once: whoever interrupts the run is to know.
            Some(why) => eprintln!("  wrong: {why}; its recording is in `{}`", recording.display()),
        }
        Ok(outcome)
    }

    /// Name of a run's recording.
    fn name(&self, scenario: &Scenario, side: Side) -> String {
        let name = scenario.recording_name(side);
        self.seed.map_or_else(|| name.clone(), |seed| format!("{name}.seed-{seed}"))
    }

    fn outcome(&self, scenario: &Scenario, side: Side) -> Result<Outcome> {
        let truth = scenario.truth(side).context("the scenario has no such side")?;
        let mut drawn = String::new();
        let mut disturbances = Vec::new();
        loop {
            let attempt = self.attempt(scenario, side, &mut drawn);
            self.stop.check()?;
            let (verdict, disturbance) = match attempt {
                Ok(done) => done,
                Err(error) => {
                    return Ok(Outcome { drawn, ..Outcome::broken(side, truth, &error, disturbances) });
                }
            };
            disturbances.push(disturbance);
            let last = disturbances.len() >= self.attempts as usize;
            let outcome = Outcome { drawn: drawn.clone(), ..Outcome::new(side, truth, &verdict, disturbances.clone()) };
            // A disturbance makes a verdict wrong, not right.
            if last || outcome.objection.is_none() || !disturbance.is_too_much() {
                return Ok(outcome);
            }
            eprintln!(
                "  {}: {}; but the host was disturbed (steal {:.0} %, other processes {:.0} % of the CPUs), once more",
                scenario.recording_name(side),
                outcome.objection.unwrap_or_default(),
                disturbance.steal_share * 100.0,
                disturbance.outside_share * 100.0
            );
            self.stop.sleep(PAUSE * disturbances.len() as u32)?;
        }
    }

    fn attempt(&self, scenario: &Scenario, side: Side, drawn: &mut String) -> Result<(Verdict, Disturbance)> {
        let name = self.name(scenario, side);
        let mut cell = Cell::open(&name, self.paths, self.stop)?;
        cell.draw = self.seed.map_or_else(Draw::default, |seed| Draw::of(scenario.name, seed));
        let aim = (scenario.stage)(&mut cell, side);
        if cell.draw.told() != *drawn {
            *drawn = cell.draw.told();
            eprintln!("  {name}: {drawn}");
        }
        let aim = aim?;
        cell.check_running()?;
        let watch = Watch::start()?;
        let probe = Probe {
            paths: self.paths,
            stop: self.stop,
            seconds: self.seconds,
            save: Some(self.paths.recording(&name)),
            group: cell.group("observer")?.path().to_path_buf(),
        };
        let is_labelled = scenario.truth(side).is_some_and(|truth| truth.slow.is_some());
        let options: &[&str] = if is_labelled { &["--requests"] } else { &[] };
        let verdict = probe.diagnose_with(&aim, options)?;
        let disturbance = watch.finish(&cell.own_pids())?;
        // Load that ended early would have left the service idle under our eyes.
        cell.check_running()?;
        Ok((verdict, disturbance))
    }
}
