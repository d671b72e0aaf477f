// SPDX-License-Identifier: Apache-2.0
//! `lab scripted`: services whose requests follow a script, and what a diagnosis says that they waited for.
//!
//! The generator (`lab/scripted/request.c`) draws from a seed how the service is built and what each request does; it keeps
//! the truth by its own clock. The paths of the verdict are set against it: what most of a request's time went to, and
//! each step's time.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use diagnose::verdict::{PathPart, Verdict};
use serde::Deserialize;

use crate::builds::{self, Build};
use crate::cell::{Cell, Program};
use crate::documents;
use crate::paths::Paths;
use crate::probe::Probe;
use crate::scenario::Aim;
use crate::stop::Stop;

const BUILD: Build = Build::C("lab/scripted/request.c", "request");
const MARK: &str = "<!-- output of `make scripted`: begin -->";
const SECONDS: u64 = 4;
const LIMIT: Duration = Duration::from_secs(10);
/// Share of right roots that is wanted.
const GOAL: f64 = 0.95;
/// How far a step's time may be from the truth, as a share of it.
const WITHIN: f64 = 0.05;
/// What is nearer is near enough, seconds: a wakeup takes as long.
const SLACK: f64 = 0.0001;
/// The same of `turn`, which holds the way there and back and the client's own wakeup.
const TURN_SLACK: f64 = 0.0004;
/// Shares of the response time under this are not judged: a tenth is what a reader sees in a bar.
const MIN_SHARE: f64 = 0.1;

/// What the generator draws.
#[derive(Debug, Deserialize)]
struct Script {
    pid: u32,
    shape: String,
    clients: u32,
    store_sleeps: bool,
    /// What each request does, in words.
    script: Vec<String>,
}

impl Script {
    fn words(&self) -> String {
        let store = if self.store_sleeps { "sleeps" } else { "computes" };
        format!("{} ({} clients, the store {store}): {}", self.shape, self.clients, self.script.join(", "))
    }
}

/// What requests have spent so far, ns by step; `requests` is their number, `response` what clients waited.
type Totals = BTreeMap<String, f64>;

/// Services of one shape.
#[derive(Default)]
struct Line {
    right: usize,
    all: usize,
    /// Told over true seconds of each step that is judged, and whether that is near enough.
    steps: Vec<(f64, bool)>,
}

/// Diagnoses `count` scripted services and prints the score; false = a goal was missed.
///
/// # Errors
/// The generator cannot be built or run, or the runner was asked to end.
pub fn run(count: usize, document: bool, paths: &Paths, stop: &Stop) -> Result<bool> {
    builds::build(&[BUILD], paths)?;
    fs::create_dir_all(paths.lab())?;
    let mut lines: BTreeMap<String, Line> = BTreeMap::new();
    for seed in 0..count {
        let (script, truth, verdict) = one(seed, paths, stop)?;
        lines.entry(script.shape.clone()).or_default().add(seed, &script, &truth, &seen(&verdict));
    }
    let text = table(&lines);
    print!("{text}");
    if document {
        documents::put(&paths.repository.join("docs/requests.md"), MARK, &text)?;
    }
    Ok(lines.values().all(Line::holds))
}

fn one(seed: usize, paths: &Paths, stop: &Stop) -> Result<(Script, Totals, Verdict)> {
    let mut cell = Cell::open("request", paths, stop)?;
    cell.start(Program::built("request").args([seed.to_string()]))?;
    stop.poll(LIMIT, || {
        cell.check_running()?;
        Ok(totals(&cell.printed("request")).is_some_and(|so_far| so_far["requests"] > 0.0))
    })?;
    stop.sleep(Duration::from_millis(200))?;
    let group = cell.group("observer")?.path().to_path_buf();
    let probe = Probe { paths, stop, seconds: SECONDS, save: Some(paths.recording("request")), group };
    let said = cell.printed("request");
    let before = totals(&said).context("it printed nothing")?;
    let script: Script = serde_json::from_str(said.lines().next().unwrap_or_default())
        .with_context(|| format!("the service printed `{said}`"))?;
    let verdict = probe.diagnose(&Aim::Pid(script.pid))?;
    let after = totals(&cell.printed("request")).context("it printed nothing")?;
    Ok((script, each(&before, &after), verdict))
}

/// The last whole line of totals.
fn totals(said: &str) -> Option<Totals> {
    let whole = &said[..=said.rfind('\n')?];
    serde_json::from_str(whole.lines().skip(1).last()?).ok()
}

/// Seconds of each step for a request, between two totals. What clients wait beyond all steps is `turn`: the way there
/// and back, and the time until somebody reads.
fn each(before: &Totals, after: &Totals) -> Totals {
    let spent = |what: &str| after[what] - before[what];
    let requests = spent("requests").max(1.0) * 1e9;
    let mut each: Totals = after.keys().map(|what| (what.clone(), spent(what) / requests)).collect();
    each.remove("requests");
    let response = each.remove("response").unwrap_or_default();
    each.insert("turn".into(), response - each.values().sum::<f64>());
    each
}

/// What no step is: a thread that has the request is ready, and has no CPU.
const READY: &str = "ready";

/// What the verdict says.
struct Seen {
    steps: Totals,
    /// The longest part, in its words.
    most: String,
}

fn seen(verdict: &Verdict) -> Seen {
    let accepted = verdict.requests.iter().find(|r| r.is_accepted());
    let path = accepted.map_or(&[][..], |r| &r.path[..]);
    let mut steps = Totals::new();
    for part in path {
        *steps.entry(step(part).into()).or_default() += part.seconds;
    }
    let of_step =
        |name: &str| path.iter().filter(|part| step(part) == name).max_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let most = longest(&steps).and_then(|name| of_step(&name)).map_or(String::new(), |part| part.what.clone());
    Seen { steps, most }
}

/// Which step a part of a path is.
fn step(part: &PathPart) -> &'static str {
    let first = part.what.split(" < ").next().unwrap_or_default();
    match first {
        _ if part.before_turn => "turn",
        _ if first.contains("(lock)") => "lock",
        _ if first.contains("127.0.0.1:") => "ask",
        _ if first.contains("nanosleep") => "sleep",
        _ if first.ends_with(" on a CPU") => "compute",
        _ if first.ends_with("ready, without a CPU") => READY,
        _ => "other",
    }
}

fn longest(steps: &Totals) -> Option<String> {
    steps.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(step, _)| step.clone())
}

/// Steps that are long enough to judge, with their true and their told seconds.
fn judged<'a>(truth: &'a Totals, told: &'a Totals) -> impl Iterator<Item = (&'a String, (f64, f64))> {
    let response: f64 = truth.values().sum();
    // The service's clock counts a wait for a CPU to whatever step it meets.
    let ready = told.get(READY).copied().unwrap_or_default();
    let long = truth.iter().filter(move |(_, seconds)| **seconds >= response * MIN_SHARE);
    long.map(move |(step, seconds)| {
        let told = told.get(step).copied().unwrap_or_default();
        (step, (*seconds, if told <= *seconds { (told + ready).min(*seconds) } else { told }))
    })
}

/// Whether what was told of a step is near enough to the truth.
fn is_close(step: &str, is: f64, told: f64) -> bool {
    let slack = if step == "turn" { TURN_SLACK } else { SLACK };
    (told - is).abs() <= (is * WITHIN).max(slack)
}

/// What is wrong with what most of the time is said to go to; none = it is what the script says.
fn objection(script: &Script, truth: &Totals, seen: &Seen) -> Option<String> {
    let (is, told) = (longest(truth).unwrap_or_default(), longest(&seen.steps).unwrap_or_default());
    // Two steps as long as each other are both the longest.
    let as_long = truth.get(&told).is_some_and(|seconds| *seconds >= truth[&is] * (1.0 - WITHIN));
    let end = match told.as_str() {
        "ask" if script.store_sleeps => "sleep",
        "ask" => "CPU",
        _ => "",
    };
    let right = (is == told || as_long) && seen.most.contains(end);
    (!right).then(|| format!("most is {is}, told was {told}: {}", seen.most))
}

impl Line {
    fn add(&mut self, seed: usize, script: &Script, truth: &Totals, seen: &Seen) {
        self.all += 1;
        match objection(script, truth, seen) {
            None => self.right += 1,
            Some(why) => eprintln!("seed {seed}, {}: {why}", script.words()),
        }
        for (step, (is, told)) in judged(truth, &seen.steps) {
            let is_close = is_close(step, is, told);
            self.steps.push((told / is, is_close));
            if !is_close {
                eprintln!(
                    "seed {seed}, {}: {step} took {:.2} ms, told were {:.2} ms",
                    script.words(),
                    is * 1e3,
                    told * 1e3
                );
            }
        }
    }

    fn close(&self) -> usize {
        self.steps.iter().filter(|(_, is_close)| *is_close).count()
    }

    fn holds(&self) -> bool {
        self.right as f64 >= self.all as f64 * GOAL && self.close() == self.steps.len()
    }

    fn furthest(&self) -> f64 {
        let ratios = self.steps.iter().map(|(ratio, _)| *ratio);
        ratios.max_by(|a, b| (a - 1.0).abs().total_cmp(&(b - 1.0).abs())).unwrap_or(f64::NAN)
    }
}

fn table(lines: &BTreeMap<String, Line>) -> String {
    let mut text =
        "| shape | right root | goal | steps told within 5 % or 0.1 ms | furthest, told over true | holds |\n\
                    |---|---:|---:|---:|---:|---|\n"
            .to_string();
    for (shape, line) in lines {
        let _ = writeln!(
            text,
            "| {shape} | {} of {} | {:.0} % | {} of {} | {:.3} | {} |",
            line.right,
            line.all,
            GOAL * 100.0,
            line.close(),
            line.steps.len(),
            line.furthest(),
            if line.holds() { "yes" } else { "**no**" }
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals_of(steps: &[(&str, f64)]) -> Totals {
        steps.iter().map(|(step, value)| ((*step).to_string(), *value)).collect()
    }

    fn part(what: &str, before_turn: bool) -> PathPart {
        PathPart { what: what.into(), before_turn, ..PathPart::default() }
    }

    #[test]
    fn what_clients_wait_beyond_the_script_is_their_turn() {
        let said = "{\"pid\": 1}\n{\"requests\": 2, \"response\": 8e6, \"lock\": 4e6}\n{\"requests\": 4, \"respo";
        let before = totals(said).unwrap();
        let after = totals_of(&[("requests", 4.0), ("response", 28e6), ("lock", 14e6)]);
        assert_eq!(each(&before, &after), totals_of(&[("lock", 0.005), ("turn", 0.005)]));
        assert!(totals("{\"pid\": 1}\n").is_none());
    }

    #[test]
    fn parts_are_told_by_what_the_thread_does() {
        assert_eq!(
            step(&part("service/1 in futex (lock) < another of its threads in a sleep of its own", false)),
            "lock"
        );
        assert_eq!(step(&part("service/1 in epoll_wait (127.0.0.1:9) < store/2: code on a CPU", false)), "ask");
        assert_eq!(step(&part("service/1 in clock_nanosleep", false)), "sleep");
        assert_eq!(step(&part("service/1: ready, without a CPU", false)), READY);
        assert_eq!(step(&part("before its turn: service/1 on a CPU", true)), "turn");
    }

    #[test]
    fn a_step_is_near_enough_within_a_twentieth_and_what_the_thread_had_no_cpu() {
        let truth = totals_of(&[("ask", 0.008), ("lock", 0.004), ("turn", 0.0001)]);
        let told = totals_of(&[("ask", 0.007), ("lock", 0.0045), (READY, 0.0009)]);
        let judged: Vec<_> = judged(&truth, &told).collect();
        assert_eq!(judged.len(), 2, "a short one is not");
        assert!((judged[0].1.1 - 0.0079).abs() < 1e-9 && is_close("ask", 0.008, judged[0].1.1));
        assert!(!is_close("lock", 0.004, judged[1].1.1), "{judged:?}");
    }

    #[test]
    fn the_root_must_be_the_right_one() {
        let script =
            |store_sleeps| Script { pid: 1, shape: "pool".into(), clients: 1, store_sleeps, script: Vec::new() };
        let truth = totals_of(&[("ask", 0.008), ("lock", 0.004)]);
        let seen = |steps: &[(&str, f64)], most: &str| Seen { steps: totals_of(steps), most: most.into() };
        let told = seen(&[("ask", 0.008), ("lock", 0.004)], "service/1 in read < store/2 in a sleep of its own");
        assert_eq!(objection(&script(true), &truth, &told), None);
        assert!(objection(&script(false), &truth, &told).is_some(), "the store computes");
        assert!(objection(&script(true), &truth, &seen(&[("lock", 0.008)], "")).is_some());
    }

    #[test]
    fn the_document_has_a_place_for_the_score() {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/requests.md");
        assert!(documents::fill(&fs::read_to_string(file).unwrap(), MARK, "x").is_ok());
    }
}
