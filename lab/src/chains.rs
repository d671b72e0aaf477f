// SPDX-License-Identifier: Apache-2.0
//! `lab chains`: chains of processes with scripted waits, and how often a diagnosis of the first one finds the root.
//!
//! The generator (`lab/chains/chain.c`) draws from a seed what connects neighbours, who polls before it reads, and what
//! the last one does; it prints the truth. The verdict on the first process is set against it.

use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use diagnose::verdict::{Finding, Verdict};
use serde::Deserialize;

use crate::builds::{self, Build};
use crate::cell::{Cell, Program};
use crate::documents;
use crate::paths::Paths;
use crate::probe::Probe;
use crate::scenario::Aim;
use crate::stop::Stop;

/// Lengths of chains.
const HOPS: [usize; 5] = [1, 2, 3, 5, 8];
/// Percent of rounds in which a process is interrupted by a signal.
const SPURIOUS: [u32; 2] = [0, 10];
/// Share of right roots that is wanted up to five hops, and beyond.
const GOALS: (f64, f64) = (0.95, 0.85);
/// How far blamed time may be from blocked time on average, as a share.
const BLAME_WITHIN: f64 = 0.05;
const SECONDS: u64 = 4;
const LIMIT: Duration = Duration::from_secs(10);
const BUILD: Build = Build::C("lab/chains/chain.c", "chain");
const MARK: &str = "<!-- output of `make chains`: begin -->";

/// The truth about a chain, as the generator prints it.
#[derive(Debug, Deserialize)]
struct Truth {
    pid: u32,
    root_pid: u32,
    root: String,
    /// What connects neighbours.
    links: Vec<String>,
}

/// Chains of one length.
struct Line {
    hops: usize,
    spurious: u32,
    right: usize,
    all: usize,
    /// Blamed time over blocked time, one a chain.
    blamed: Vec<f64>,
}

/// Runs `each` chains of every length and prints the score; false = a goal was missed.
///
/// # Errors
/// The generator cannot be built or run, or the runner was asked to end.
pub fn run(each: usize, document: bool, paths: &Paths, stop: &Stop) -> Result<bool> {
    builds::build(&[BUILD], paths)?;
    fs::create_dir_all(paths.lab())?;
    let mut lines = Vec::new();
    for spurious in SPURIOUS {
        for hops in HOPS {
            lines.push(line(hops, spurious, each, paths, stop)?);
        }
    }
    let text = table(&lines);
    print!("{text}");
    if document {
        documents::put(&paths.repository.join("docs/walk.md"), MARK, &text)?;
    }
    Ok(lines.iter().all(Line::holds))
}

fn line(hops: usize, spurious: u32, each: usize, paths: &Paths, stop: &Stop) -> Result<Line> {
    let mut line = Line { hops, spurious, right: 0, all: each, blamed: Vec::new() };
    for seed in 0..each {
        let (truth, verdict) = one(seed, hops, spurious, paths, stop)?;
        let finding = verdict.findings.iter().find(|f| f.cause == "slow-dependency");
        match finding.map_or(Some("no finding".to_string()), |f| objection(f, &truth)) {
            None => line.right += 1,
            Some(why) => {
                let (links, root) = (truth.links.join(", "), &truth.root);
                eprintln!("{hops} hops ({links}) to {root}, {spurious} % spurious, seed {seed}: {why}");
            }
        }
        line.blamed.extend(finding.map(|f| f.explains.seconds / blocked(&verdict)));
    }
    Ok(line)
}

fn one(seed: usize, hops: usize, spurious: u32, paths: &Paths, stop: &Stop) -> Result<(Truth, Verdict)> {
    let mut cell = Cell::open("chain", paths, stop)?;
    let args = [seed.to_string(), hops.to_string(), spurious.to_string()];
    cell.start(Program::built("chain").args(args))?;
    let mut said = String::new();
    stop.poll(LIMIT, || {
        cell.check_running()?;
        said = cell.printed("chain");
        Ok(said.ends_with('\n'))
    })?;
    let truth: Truth = serde_json::from_str(&said).with_context(|| format!("the chain printed `{said}`"))?;
    stop.sleep(Duration::from_millis(200))?;
    let group = cell.group("observer")?.path().to_path_buf();
    let probe = Probe { paths, stop, seconds: SECONDS, save: Some(paths.recording("chain")), group };
    let verdict = probe.diagnose(&Aim::Pid(truth.pid))?;
    Ok((truth, verdict))
}

/// What is wrong with the chain of a finding; none = it ends where the truth says.
fn objection(finding: &Finding, truth: &Truth) -> Option<String> {
    let told: Vec<String> = finding.chain.iter().map(|l| format!("{} {}", l.who, l.waits_on)).collect();
    let [.., before, last] = &finding.chain[..] else { return Some("a chain without links".into()) };
    let is_root = |who: &str| who.ends_with(&format!("/{}", truth.root_pid));
    let right = match truth.root.as_str() {
        "cpu" => last.waits_on.starts_with("code on a CPU") && is_root(&last.who),
        _ => last.waits_on.starts_with("its own timer") && is_root(&before.who),
    };
    (!right).then(|| told.join(" < "))
}

fn blocked(verdict: &Verdict) -> f64 {
    verdict.ledger.threads.iter().filter(|(line, _)| line.starts_with("blocked")).map(|(_, seconds)| seconds).sum()
}

impl Line {
    fn holds(&self) -> bool {
        let roots = self.right as f64 >= self.all as f64 * if self.hops <= 5 { GOALS.0 } else { GOALS.1 };
        roots && (self.mean_blame() - 1.0).abs() <= BLAME_WITHIN
    }

    fn mean_blame(&self) -> f64 {
        self.blamed.iter().sum::<f64>() / self.blamed.len() as f64
    }

    /// The blamed time that is furthest from the blocked time, as a ratio.
    fn worst_blame(&self) -> f64 {
        self.blamed.iter().copied().max_by(|a, b| (a - 1.0).abs().total_cmp(&(b - 1.0).abs())).unwrap_or(f64::NAN)
    }
}

fn table(lines: &[Line]) -> String {
    let mut text =
        "| hops | spurious wakeups | right root | goal | blamed over blocked time, mean | furthest | goal | holds |\n\
                    |---:|---:|---:|---:|---:|---:|---:|---|\n"
            .to_string();
    for line in lines {
        let goal = if line.hops <= 5 { GOALS.0 } else { GOALS.1 };
        let _ = writeln!(
            text,
            "| {} | {} % | {} of {} | {:.0} % | {:.3} | {:.3} | 1 ± {BLAME_WITHIN} | {} |",
            line.hops,
            line.spurious,
            line.right,
            line.all,
            goal * 100.0,
            line.mean_blame(),
            line.worst_blame(),
            if line.holds() { "yes" } else { "**no**" }
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnose::verdict::Link;

    fn finding(chain: &[(&str, &str)]) -> Finding {
        let link = |(who, waits_on): &(&str, &str)| Link {
            who: (*who).into(),
            waits_on: (*waits_on).into(),
            ..Link::default()
        };
        Finding { chain: chain.iter().map(link).collect(), ..Finding::default() }
    }

    #[test]
    fn the_root_must_be_the_right_one() {
        let truth = |root: &str| Truth { pid: 1, root_pid: 12, root: root.into(), links: Vec::new() };
        let timer = finding(&[("n0/1", "read"), ("n1/12", "nanosleep"), ("", "its own timer (hrtimer_wakeup)")]);
        let cpu = finding(&[("n0/1", "read"), ("n1/12", "code on a CPU (until it called write)")]);
        assert_eq!(objection(&timer, &truth("timer")), None);
        assert_eq!(objection(&cpu, &truth("cpu")), None);
        assert!(objection(&cpu, &truth("timer")).is_some() && objection(&timer, &truth("cpu")).is_some());
        let other = finding(&[("n0/1", "read"), ("n1/2", "code on a CPU")]);
        assert!(objection(&other, &truth("cpu")).unwrap().contains("n1/2"));
    }

    #[test]
    fn the_document_has_a_place_for_the_score() {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/walk.md");
        assert!(documents::fill(&fs::read_to_string(file).unwrap(), MARK, "x").is_ok());
    }
}
