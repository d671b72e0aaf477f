// SPDX-License-Identifier: Apache-2.0
//! Running loads and judging what was said of them.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::judge::codes;
use super::{ALL, LoadScenario};
use crate::builds;
use crate::cell::Cell;
use crate::disturbance::Watch;
use crate::draw::Draw;
use crate::paths::Paths;
use crate::pick;
use crate::probe;
use crate::runner::PAUSE;
use crate::scenario::Side;
use crate::score::aligned;
use crate::stop::Stop;

/// Arguments of `lab loads`.
#[derive(Debug, clap::Args)]
pub struct LoadsArgs {
    /// Only this one.
    pub name: Option<String>,
    /// So many whose turn it is.
    #[arg(long, conflicts_with = "name")]
    pub rotating: Option<usize>,
    /// Run so many variants of each: parameters drawn within the ranges in which the truth holds.
    #[arg(long, default_value_t = 0)]
    pub variants: u64,
    /// Seed of the first variant [default: another each time].
    #[arg(long, requires = "variants")]
    pub seed: Option<u64>,
    /// Attempts for a run in which the host was not disturbed.
    #[arg(long, default_value_t = 3)]
    pub attempts: u32,
}

/// What came of one side.
struct Outcome {
    said: String,
    objection: Option<String>,
    /// The run that counts was disturbed.
    disturbed: bool,
    /// It is wrong, and says no more than that the client was late.
    excused: bool,
}

impl Outcome {
    fn shown(&self) -> String {
        match &self.objection {
            None => "right".to_string(),
            Some(why) if self.excused => format!("SKIPPED, the host was disturbed: {why}"),
            Some(why) => format!("WRONG: {why}"),
        }
    }
}

/// Runs them; whether all was said rightly.
///
/// # Errors
/// There is no such load, or the runner was asked to end.
pub fn run(args: &LoadsArgs, paths: &Paths, stop: &Stop) -> Result<bool> {
    std::fs::create_dir_all(paths.lab())?;
    let picked = picked(args, paths)?;
    if probe::bpf_refused(paths) {
        println!("SKIPPED: this kernel refuses BPF altogether (wakewalk doctor says why)");
        println!("0 passed, 0 failed, {} skipped", picked.len());
        return Ok(!crate::is_ci());
    }
    let first = args.seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
    let seeds: Vec<Option<u64>> =
        if args.variants == 0 { vec![None] } else { (first..first + args.variants).map(Some).collect() };
    let mut rows = vec![["load", "side", "said", ""].map(String::from)];
    let (mut failed, mut skipped) = (0, 0);
    for seed in seeds {
        for load in &picked {
            eprintln!("{}: {}", load.name, load.about);
            builds::build(load.builds, paths)?;
            for side in sides(load) {
                let outcome = outcome(load, side, seed, args.attempts, paths, stop)?;
                skipped += usize::from(outcome.excused);
                failed += usize::from(outcome.objection.is_some() && !outcome.excused);
                let name = seed.map_or_else(|| load.name.to_string(), |seed| format!("{}, seed {seed}", load.name));
                let shown = outcome.shown();
                rows.push([name, format!("{side:?}").to_lowercase(), outcome.said, shown]);
            }
        }
    }
    print!("{}", aligned(&rows));
    println!("{} passed, {failed} failed, {skipped} skipped", rows.len() - 1 - failed - skipped);
    Ok(failed == 0)
}

fn sides(load: &LoadScenario) -> impl Iterator<Item = Side> {
    let twin = load.has_twin.then_some(Side::Twin);
    [Side::Fault].into_iter().chain(twin)
}

fn picked(args: &LoadsArgs, paths: &Paths) -> Result<Vec<&'static LoadScenario>> {
    if let Some(count) = args.rotating {
        let from = pick::commits(&paths.repository)?;
        return Ok((0..count.min(ALL.len())).map(|nth| ALL[(from * count + nth) % ALL.len()]).collect());
    }
    let wanted = |load: &&&LoadScenario| args.name.as_deref().is_none_or(|name| name == load.name);
    let picked: Vec<_> = ALL.iter().filter(wanted).copied().collect();
    if picked.is_empty() {
        let names: Vec<&str> = ALL.iter().map(|load| load.name).collect();
        bail!("there is no load of that name; there are {}", names.join(", "));
    }
    Ok(picked)
}

/// One side, once more where it came out wrong on a host that was disturbed.
fn outcome(
    load: &LoadScenario,
    side: Side,
    seed: Option<u64>,
    attempts: u32,
    paths: &Paths,
    stop: &Stop,
) -> Result<Outcome> {
    let mut made = 0;
    loop {
        let attempt = attempt(load, side, seed, paths, stop);
        stop.check()?;
        let outcome = attempt.unwrap_or_else(|error| Outcome {
            said: String::new(),
            objection: Some(format!("{error:#}")),
            disturbed: false,
            excused: false,
        });
        made += 1;
        if outcome.objection.is_none() || !outcome.disturbed || made >= attempts {
            return Ok(outcome);
        }
        eprintln!("  the host was disturbed, once more");
        stop.sleep(PAUSE * made)?;
    }
}

fn attempt(load: &LoadScenario, side: Side, seed: Option<u64>, paths: &Paths, stop: &Stop) -> Result<Outcome> {
    let mut cell = Cell::open(&format!("load-{}", load.name), paths, stop)?;
    cell.draw = seed.map_or_else(Draw::default, |seed| Draw::of(load.name, seed));
    let mut given = (load.stage)(&mut cell, paths, side)?;
    eprintln!("  {side:?} {} $ wakewalk load {}", cell.draw.told(), given.args.join(" "));
    let args: Vec<&str> = ["--json"].into_iter().chain(given.args.iter().map(String::as_str)).collect();
    let watch = Watch::start()?;
    let text = given.place.run(&mut cell, paths, &args, given.length)?;
    let disturbed = watch.finish(&cell.own_pids())?.is_too_much();
    let said: Value = serde_json::from_str(&text).context("wakewalk printed no JSON")?;
    let words = match said["verdict"].as_str() {
        Some(verdict) => format!("{verdict}: {}", codes(&said).join(", ")),
        None => format!("{:.0}/s: {}", said["knee"]["answered"].as_f64().unwrap_or(0.0), codes(&said).join(", ")),
    };
    given.truth.percentiles = given.measured.map(|measured| measured(&cell)).transpose()?.unwrap_or_default();
    let objection = given.truth.objection(&said);
    // Late it was, as who shares its CPUs with others is.
    let excused = objection.is_some() && disturbed && said["verdict"] == "client-limited" && codes(&said) == ["late"];
    Ok(Outcome { said: words, objection, disturbed, excused })
}
