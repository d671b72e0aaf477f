// SPDX-License-Identifier: Apache-2.0
//! `lab bench`: what wakewalk costs the service that it looks at and everybody else, measured from
//! outside, interleaved with not looking, and beside other tools on the same loads.
//!
//! An experiment is a file of `bench/experiments` and a line of `bench/experiments.rs`. It gives rows; a row's goal holds
//! only if the bad end of its interval does.

pub mod client;
mod experiments;
mod observed;
mod peers;
mod results;
mod rounds;
mod row;
mod service;
pub mod soak;
mod statistics;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::builds::{self, Build};
use crate::paths::Paths;
use crate::stop::Stop;
pub use observed::now_ns;
use results::{Results, Run};
use row::Row;

/// Pairs of each comparison, unless told otherwise.
pub const PAIRS: usize = 8;

/// So many times the pairs of other comparisons where a goal is a few percent.
const FINER: usize = 4;

/// One experiment.
pub struct Experiment {
    /// Its name, to be run alone.
    pub name: &'static str,
    /// What it measures, one sentence.
    pub about: &'static str,
    /// What has to be built first.
    pub builds: &'static [Build],
    /// Measures. Once the runner is asked to end, returns what there is.
    pub run: fn(&Bench<'_>) -> Result<Vec<Row>>,
}

/// What experiments are run with.
pub struct Bench<'a> {
    /// The checkout.
    pub paths: &'a Paths,
    /// Ends all waiting.
    pub stop: &'a Stop,
    /// Pairs of each comparison.
    pub pairs: usize,
    /// Without the other tools.
    pub skip_peers: bool,
    /// The wakewalk of another version, to be put beside this one.
    pub against: Option<PathBuf>,
}

impl Bench<'_> {
    /// How many rounds to measure, and what ends them early.
    fn rounds(&self) -> (usize, &Stop) {
        (self.pairs, self.stop)
    }

    /// Likewise where a goal is a few percent: noise falls with the root of the number.
    fn fine_rounds(&self) -> (usize, &Stop) {
        (self.pairs * FINER, self.stop)
    }

    /// Likewise for the other tools.
    fn peer_rounds(&self) -> (usize, &Stop) {
        (if self.skip_peers { 0 } else { self.pairs }, self.stop)
    }

    /// The other tools to put beside.
    fn peers(&self) -> &'static [peers::Peer] {
        if self.skip_peers { &[] } else { peers::ALL }
    }
}

/// Runs experiments, all or those that are named; prints their table, with what others gave before, and writes it after
/// each one anew, so that an interrupted run leaves what it had. False = an experiment failed.
///
/// # Errors
/// A name that there is not; the folder for results cannot be written.
pub fn run(bench: &Bench<'_>, names: &[String], document: bool) -> Result<bool> {
    let picked = pick(names)?;
    fs::create_dir_all(bench.paths.bench()).context("failed to make the folder of results")?;
    let file = bench.paths.bench().join("results.json");
    let order: Vec<&str> = experiments::ALL.iter().map(|e| e.name).collect();
    let mut results = Results::begin(&file);
    let mut failed = false;
    for experiment in picked {
        eprintln!("{}: {}", experiment.name, experiment.about);
        let (run, rows) = measure(bench, experiment);
        failed |= rows.is_err();
        results.add(run, rows, &order);
        results.write(&file)?;
        if bench.stop.check().is_err() {
            break;
        }
    }
    print!("{}", results.table());
    println!("written to {}", file.display());
    if document {
        results.put_into(&bench.paths.repository.join("docs/bench.md"))?;
    }
    bench.stop.check()?;
    Ok(!failed)
}

fn measure(bench: &Bench<'_>, experiment: &Experiment) -> (Run, Result<Vec<Row>>) {
    let began = Instant::now();
    let rows = builds::build(experiment.builds, bench.paths).and_then(|()| (experiment.run)(bench));
    let run = Run {
        experiment: experiment.name.into(),
        commit: commit(bench.paths),
        pairs: bench.pairs,
        seconds: began.elapsed().as_secs_f64(),
        interrupted: bench.stop.check().is_err(),
        failed: None,
    };
    (run, rows)
}

/// The commit that is checked out; empty where that cannot be told.
fn commit(paths: &Paths) -> String {
    let describe = ["describe", "--always", "--dirty", "--abbrev=7"];
    let output = Command::new("git").arg("-C").arg(&paths.repository).args(describe).output();
    output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string()).unwrap_or_default()
}

/// All experiments, for `lab bench --list`.
pub fn list() -> impl Iterator<Item = (&'static str, &'static str)> {
    experiments::ALL.iter().map(|e| (e.name, e.about))
}

fn pick(names: &[String]) -> Result<Vec<&'static Experiment>> {
    if names.is_empty() {
        return Ok(experiments::ALL.to_vec());
    }
    let find = |name: &String| experiments::ALL.iter().copied().find(|e| e.name == name);
    names
        .iter()
        .map(|name| match find(name) {
            Some(experiment) => Ok(experiment),
            None => {
                let all: Vec<&str> = experiments::ALL.iter().map(|e| e.name).collect();
                bail!("no experiment is called `{name}`; there are {}", all.join(", "))
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experiments_by_name() {
        assert_eq!(pick(&["nginx".into()]).unwrap().len(), 1);
        assert_eq!(pick(&[]).unwrap().len(), experiments::ALL.len());
        let error = pick(&["ngnix".into()]).err().unwrap().to_string();
        assert!(error.contains("`ngnix`") && error.contains("nginx"), "{error}");
    }

    #[test]
    fn every_source_is_there() {
        let repository = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for build in experiments::ALL.iter().flat_map(|e| e.builds) {
            let source = build.source();
            assert!(repository.join(&source).exists(), "{}", source.display());
        }
    }
}
