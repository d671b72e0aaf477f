// SPDX-License-Identifier: Apache-2.0
//! `wakewalk bisect`: which hop has the time. From one run, by the ledgers; or by an experiment, a service beside itself with
//! one hop replaced.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use collect::capture::{CallCounting, Role};
use collect::courtesy;
use collect::target::Target;
use diagnose::Case;
use load::{Address, Pair, Plan, Rate, Verdict, replaced_first};
use recording::Recording;
use report::bisect::{Answer, BesideAnswer};

use crate::args::bisect::Bisect;
use crate::commands::wait_and_become::Started;
use crate::plan::{self, Source, TOOL, check_length};
use crate::progress::Line;
use crate::{message, parts, say, scratch, stop};

/// How long it observes, where nothing is said.
const LENGTH: Duration = Duration::from_secs(10);
/// The same for each load of an experiment.
const STEP: Duration = Duration::from_secs(5);
/// Before the first one, each side is loaded for so long: what is cold is no difference between them.
const WARM_UP: Duration = Duration::from_secs(1);

/// Runs the command. Any answer is a success, also that nothing could be told.
pub fn run(args: &Bisect) -> Result<()> {
    if let Some(length) = args.length {
        check_length(length)?;
    }
    match (&args.to, &args.beside, args.rate) {
        (Some(to), Some(beside), Some(rate)) => experiment(args, [to, beside], rate),
        _ => ledgers(args),
    }
}

/// The hops of one run.
fn ledgers(args: &Bisect) -> Result<()> {
    let recording = recording(args)?;
    let answer = courtesy::during(courtesy::PATIENCE, || {
        let case = Case::new(&recording);
        Answer::new(&case, &diagnose::judge(&case))
    });
    super::print(args.json, &answer, |width, out| report::bisect::draw(&answer, width, out))
}

fn recording(args: &Bisect) -> Result<Recording> {
    let source = plan::source(&args.target);
    let (target, mut started) = match &source {
        Source::Saved(dir) => return Ok(parts::open(dir, None)?.0),
        Source::Running(target) => (target.clone(), None),
        Source::Started(command) => {
            let started = Started::new(command)?;
            (Target::Pid(started.pid()), Some(started))
        }
    };
    plan::check_privileges()?;
    let length = args.length.unwrap_or(LENGTH);
    let (calls, role) = (CallCounting::Auto, Role::Service);
    let capture = plan::Plan { source, length, calls, labels: false, role, slo: None, is_kept: false };
    let dir = scratch::folder()?;
    super::diagnose::capture(&capture, &target, started.as_mut(), dir.path(), &*stop::on_signal()?, &mut || {})?;
    drop(started); // ended with the capture
    recording::open(dir.path())
}

/// Loads both by turns.
fn experiment(args: &Bisect, [to, beside]: [&Address; 2], rate: f64) -> Result<()> {
    ensure!(to != beside, "both addresses are the same service; name in --beside the one whose hop is replaced");
    let length = args.length.unwrap_or(STEP);
    let plan = |to| message::plan(&args.message, to, Rate::PerSecond(rate), length);
    let plans = [plan(to)?, plan(beside)?];
    let stop = stop::on_signal()?;
    for plan in &plans {
        loaded(&Plan { length: WARM_UP, ..plan.clone() }, &stop)?;
    }
    let (mut pairs, line) = (Vec::new(), Line::new(length * 2 * args.pairs));
    for nth in 0..args.pairs {
        line.show(length * 2 * nth, length * 2 * args.pairs, "loading");
        let order = if replaced_first(nth as usize) { [1, 0] } else { [0, 1] };
        let both = loaded(&plans[order[0]], &stop).and_then(|first| Ok([first, loaded(&plans[order[1]], &stop)?]));
        let [first, second] = match both {
            // What is known by then is not lost.
            Err(why) if nth > 0 => {
                say::sentence("no further pair could be loaded", &format!("{why:#}"));
                break;
            }
            both => both?,
        };
        let (as_it_is, replaced) = if order[0] == 0 { (first, second) } else { (second, first) };
        if stop.load(Ordering::Relaxed) {
            ensure!(nth > 0, "it was ended before the first pair was over, so that there is nothing to tell");
            break;
        }
        pairs.push(Pair { as_it_is, replaced });
    }
    drop(line);
    let answer = BesideAnswer::new(TOOL, [to, beside].map(ToString::to_string), rate, load::beside(pairs));
    super::print(args.json, &answer, |width, out| report::bisect::draw_beside(&answer, width, out))
}

fn loaded(plan: &Plan, stop: &AtomicBool) -> Result<Verdict> {
    let run = load::run(plan, &|| stop.load(Ordering::Relaxed), &mut |_, _| {})?;
    Ok(load::judge(&run, None))
}
