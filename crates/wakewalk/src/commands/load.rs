// SPDX-License-Identifier: Apache-2.0
//! `wakewalk load`: loads a service, and says what the numbers are worth.

use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use collect::capture::CallCounting;
use collect::target::Target;
use diagnose::Case;
use load::{Address, Meanwhile, Plan, Rate, Tried, Verdict};
use report::load::{Answer, SweepAnswer};

use crate::args::load::{Load, Whom};
use crate::commands::kept::Kept;
use crate::commands::wait_and_become::Started;
use crate::plan::{self, TOOL, check_length};
use crate::progress::Line;
use crate::{message, say, scratch, stop};

/// How long requests are sent, where nothing is said.
const LENGTH: Duration = Duration::from_secs(10);
/// The same at each load of a sweep.
const STEP: Duration = Duration::from_secs(5);
/// When somebody else's generator is ended.
const LONGEST: Duration = Duration::from_secs(600);

/// Runs the command.
pub fn run(args: &Load) -> Result<()> {
    if let Some(length) = args.length {
        check_length(length)?;
    }
    if let Some(dir) = &args.save {
        plan::check_save(dir)?;
    }
    let kept = Kept::new(args.save.is_some());
    if !args.command.is_empty() {
        return generator(args, kept);
    }
    ensure!(
        !args.serve.is_nowhere(),
        "--delay, --request, --status and --nodelay are of an endpoint: --serve names it"
    );
    if let Some(at) = &args.serve.at {
        return super::serve::run(args, at);
    }
    let to = args.to.as_ref().context("no address")?;
    let plan = plan(args, to)?;
    let stop = stop::on_signal()?;
    match args.sweep {
        None => {
            let tried = tried(&plan, args, &kept, &stop)?;
            let answer = Answer::new(TOOL, to.to_string(), tried.verdict, tried.service);
            print(args, &answer, |width, out| report::load::draw(&answer, width, out))?;
        }
        Some((from, until)) => {
            let mut step = |rate| step(&plan, args, rate, &kept, &stop);
            let swept = load::sweep(from, until, &mut step)?;
            ensure!(!swept.steps.is_empty(), "it was ended before the first load was over");
            let answer = SweepAnswer::new(TOOL, to.to_string(), swept);
            print(args, &answer, |width, out| report::load::draw_sweep(&answer, width, out))?;
        }
    }
    save(args, kept, &to.to_string())
}

/// After the verdict: a disk that is full must not cost it.
fn save(args: &Load, kept: Kept, named: &str) -> Result<()> {
    let Some(dir) = &args.save else { return Ok(()) };
    kept.save(dir, named)?;
    say::sentence("recording", &dir.display().to_string());
    Ok(())
}

fn print(
    args: &Load,
    answer: &impl serde::Serialize,
    draw: impl FnOnce(usize, &mut dyn std::io::Write) -> std::io::Result<()>,
) -> Result<()> {
    let mut out = anstream::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(answer).context("failed to write JSON")?)?;
    } else {
        draw(super::diagnose::width(), &mut out)?;
    }
    Ok(out.flush()?)
}

fn load(plan: &Plan, args: &Load, kept: &Kept, stop: &AtomicBool, tell: &dyn Fn(Duration)) -> Result<Verdict> {
    let is_stopped = || stop.load(Ordering::Relaxed);
    let run = load::run(plan, &is_stopped, &mut |elapsed, _| tell(elapsed))?;
    let verdict = load::judge(&run, args.slo);
    kept.add(run);
    Ok(verdict)
}

/// One load of a sweep; none = somebody ended it.
fn step(plan: &Plan, args: &Load, rate: f64, kept: &Kept, stop: &AtomicBool) -> Result<Option<Tried>> {
    let tried = tried(&Plan { rate: Rate::PerSecond(rate), ..plan.clone() }, args, kept, stop)?;
    Ok((!stop.load(Ordering::Relaxed)).then_some(tried))
}

/// One load, and where it is asked for, what the service did meanwhile.
fn tried(plan: &Plan, args: &Load, kept: &Kept, stop: &AtomicBool) -> Result<Tried> {
    let Some(whom) = args.diagnose else {
        let line = Line::new(plan.length);
        let verdict = load(plan, args, kept, stop, &|elapsed| line.show(elapsed, plan.length, "loading"))?;
        return Ok(Tried { verdict, service: None });
    };
    plan::check_privileges()?;
    let target = match whom {
        Whom::Loaded => Target::Port(plan.to.port),
        Whom::Pid(pid) => Target::Pid(pid),
        Whom::Port(port) => Target::Port(port),
    };
    let dir = scratch::folder()?;
    let verdict = beside(plan, (args, kept), &target, dir.path(), stop)?;
    let recording = recording::open(dir.path())?;
    let found = diagnose::judge(&Case::new(&recording));
    let (headline, advice, cpus) = (found.headline, found.advice, load::cpus(&recording));
    Ok(Tried { verdict, service: Some(Meanwhile { verdict: found.verdict, headline, advice, cpus }) })
}

/// Loads while it captures. The load waits for the window: that the probes are loaded is not to be felt in it.
fn beside(
    plan: &Plan,
    (args, kept): (&Load, &Kept),
    target: &Target,
    dir: &Path,
    stop: &AtomicBool,
) -> Result<Verdict> {
    let capture = plan::Plan {
        source: plan::Source::Running(target.clone()),
        length: plan.length.max(plan::SHORTEST),
        calls: CallCounting::Auto,
        labels: false,
        slo: args.slo,
    };
    thread::scope(|scope| {
        let (go, gone) = mpsc::channel();
        let loader = scope.spawn(move || match gone.recv() {
            Ok(()) => load(plan, args, kept, stop, &|_| {}),
            Err(_) => bail!("the service could not be diagnosed"),
        });
        let mut go = Some(go);
        let captured = super::diagnose::capture(&capture, target, None, dir, &mut || {
            go.take().map(|go| go.send(()));
        });
        drop(go);
        let loaded = loader.join().map_err(|_| anyhow!("the load has failed"))?;
        captured.and(loaded)
    })
}

/// Somebody else's generator, as the kernel saw it.
fn generator(args: &Load, kept: Kept) -> Result<()> {
    plan::check_privileges()?;
    let started = Started::new(&args.command)?;
    let (target, command) = (Target::Pid(started.pid()), started.command().to_string());
    let capture = plan::Plan {
        source: plan::Source::Started(args.command.clone()),
        length: args.length.unwrap_or(LONGEST),
        calls: CallCounting::Never,
        labels: false,
        slo: args.slo,
    };
    let dir = scratch::folder()?;
    super::diagnose::capture(&capture, &target, Some(started), dir.path(), &mut || {})?;
    let run = load::observed(&recording::open(dir.path())?)?;
    let answer = Answer::new(TOOL, command.clone(), load::judge(&run, args.slo), None);
    print(args, &answer, |width, out| report::load::draw(&answer, width, out))?;
    kept.add(run);
    save(args, kept, &command)
}

fn plan(args: &Load, to: &Address) -> Result<Plan> {
    let usual = if args.sweep.is_some() { STEP } else { LENGTH };
    message::plan(&args.message, to, args.rate.unwrap_or(Rate::Max), args.length.unwrap_or(usual))
}
