// SPDX-License-Identifier: Apache-2.0
//! `wakewalk load`: loads a service, and says what the numbers are worth.

mod beside;

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use collect::capture::{CallCounting, Role};
use collect::target::Target;
use diagnose::Case;
use diagnose::facts::local_ports::LocalPorts;
use diagnose::facts::requests::Requests;
use diagnose::likeness::Asked;
use load::{Address, Plan, Pool, Ports, Rate, Reason, Run, Sweep, Tried, Verdict};
use report::load::{Answer, SweepAnswer};
use report::numbers;

use self::beside::{Beside, Diagnosed, production, told};
use crate::args::load::{Load, Whom};
use crate::commands::kept::Kept;
use crate::commands::wait_and_become::Started;
use crate::plan::{self, TOOL, check_html, check_length};
use crate::progress::{self, Line};
use crate::{message, page, say, scratch, stop};

/// How long requests are sent, where nothing is said.
const LENGTH: Duration = Duration::from_secs(10);
/// The same at each load of a sweep.
const STEP: Duration = Duration::from_secs(5);
/// At least.
const SHORTEST_STEP: Duration = Duration::from_secs(2);
/// When somebody else's generator is ended.
const LONGEST: Duration = Duration::from_secs(600);

/// Runs the command.
pub fn run(args: &Load) -> Result<()> {
    check(args)?;
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
    ensure!(
        args.rate.is_some() || args.sweep.is_some(),
        "how much to ask is not said: --rate 1000 is a load of so many requests a second, --sweep 5..40000 finds the limit"
    );
    let plan = plan(args, to)?;
    let stop = stop::on_signal()?;
    match args.sweep {
        None => {
            // Where it is diagnosed, that nobody is answered is no reason to say nothing.
            let plan = Plan { may_be_silent: args.diagnose.is_some(), ..plan };
            let production = production(args)?;
            let (verdict, service) = tried(&plan, args, production.as_ref(), &kept, &stop)?;
            let (service, likeness) = told(service);
            let answer = Answer::new(TOOL, to.to_string(), verdict, service).beside(likeness);
            say_load(args, &answer, kept, &to.to_string())
        }
        Some((from, until)) => {
            let swept = sweep(plan, args, (from, until), &kept, &stop)?;
            say_sweep(args, &SweepAnswer::new(TOOL, to.to_string(), swept), kept, &to.to_string())
        }
    }
}

/// What can be said before anything begins.
fn check(args: &Load) -> Result<()> {
    if let Some(length) = args.length {
        check_length(length)?;
    }
    if let Some(length) = args.length.filter(|_| args.sweep.is_some()) {
        // Whether it keeps up shows in the second half, by the second.
        ensure!(
            length >= SHORTEST_STEP,
            "each load of a sweep has to last 2s at least: in less, no queue is seen to grow"
        );
    }
    if let Some(file) = &args.html {
        check_html(file)?;
    }
    if let Some(dir) = &args.save {
        plan::check_save(dir)?;
    }
    Ok(())
}

/// One load after another; what the service was asked and did not answer it may finish first.
fn sweep(mut plan: Plan, args: &Load, (from, to): (f64, f64), kept: &Kept, stop: &AtomicBool) -> Result<Sweep> {
    let mut rest = Duration::ZERO;
    let (pool, length) = (Pool::of(&plan), plan.length);
    // Once it is known that somebody answers.
    let mut how_long = Some(|| say_how_long(Sweep::most_loads(from, to), length));
    let mut step = |rate, connections| {
        pause(rest, stop);
        plan.connections = connections;
        let tried = step(&plan, args, rate, kept, stop)?;
        if let Some(Tried { verdict, .. }) = &tried {
            how_long.take().filter(|_| verdict.answered > 0).iter().for_each(|say| say());
            progress::done(
                "load",
                &format!("{} a second were asked, {} answered", load::rounded(rate), load::rounded(verdict.rate)),
            );
        }
        rest = tried.as_ref().map_or(Duration::ZERO, |tried| tried.verdict.left_over());
        plan.may_be_silent |= tried.as_ref().is_some_and(|tried| tried.verdict.answered > 0);
        Ok(tried)
    };
    let swept = load::sweep_over(from, to, pool, &mut step)?;
    ensure!(!swept.steps.is_empty(), "it was ended before its first load was over, so that there is nothing to tell");
    Ok(swept)
}

fn say_how_long(loads: u32, length: Duration) {
    let (each, longest) = (length.as_secs_f64(), (length * loads).as_secs_f64());
    say::sentence(
        "load",
        &format!(
            "up to {loads} loads of {} each, so {} and little more; Ctrl-C ends it with what is known by then",
            numbers::seconds(each),
            numbers::minutes(longest)
        ),
    );
}

fn save(args: &Load, kept: Kept, named: &str) -> Result<()> {
    let Some(dir) = &args.save else { return Ok(()) };
    kept.save(dir, named)?;
    say::sentence("recording", &dir.display().to_string());
    Ok(())
}

/// The verdict first: a page or a recording that cannot be written must not cost it. Nor does it cost these that nobody reads on
/// (`| head`).
fn say_load(args: &Load, answer: &Answer, kept: Kept, named: &str) -> Result<()> {
    let printed = super::print(args.json, answer, |width, out| report::load::draw(answer, args.full, width, out));
    let written = write_page(args, || report::load::page(answer));
    written.and(save(args, kept, named)).and(printed)
}

/// The same of a sweep.
fn say_sweep(args: &Load, answer: &SweepAnswer, kept: Kept, named: &str) -> Result<()> {
    let printed = super::print(args.json, answer, |width, out| report::load::draw_sweep(answer, args.full, width, out));
    let written = write_page(args, || report::load::sweep_page(answer));
    written.and(save(args, kept, named)).and(printed)
}

fn write_page(args: &Load, page: impl FnOnce() -> Result<String>) -> Result<()> {
    if let Some(file) = &args.html {
        page::write(file, &page()?)?;
        say::sentence("page", &file.display().to_string());
    }
    Ok(())
}

fn load(plan: &Plan, args: &Load, kept: &Kept, stop: &AtomicBool, tell: &dyn Fn(Duration)) -> Result<Verdict> {
    let is_stopped = || stop.load(Ordering::Relaxed);
    let run = load::run(plan, &is_stopped, &mut |elapsed, _| tell(elapsed))?;
    let verdict = load::judge(&run, args.slo);
    kept.add(run);
    Ok(verdict)
}

fn pause(length: Duration, stop: &AtomicBool) {
    let until = Instant::now() + length;
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(20).min(length));
    }
}

/// One load of a sweep; none = somebody ended it.
fn step(plan: &Plan, args: &Load, rate: f64, kept: &Kept, stop: &AtomicBool) -> Result<Option<Tried>> {
    let (verdict, service) = tried(&Plan { rate: Rate::PerSecond(rate), ..plan.clone() }, args, None, kept, stop)?;
    Ok((!stop.load(Ordering::Relaxed)).then_some(Tried { verdict, service: told(service).0 }))
}

/// One load, and where it is asked for, what the service did meanwhile.
fn tried(
    plan: &Plan,
    args: &Load,
    production: Option<&Asked>,
    kept: &Kept,
    stop: &AtomicBool,
) -> Result<(Verdict, Option<Diagnosed>)> {
    let Some(whom) = args.diagnose else {
        let line = Line::new(plan.length);
        let verdict = load(plan, args, kept, stop, &|elapsed| line.show(elapsed, plan.length, "loading"))?;
        return Ok((verdict, None));
    };
    let target = match whom {
        Whom::Loaded => whoever_is_loaded(plan)?,
        Whom::Pid(pid) => Target::Pid(pid),
        Whom::Port(port) => Target::Port(port),
    };
    plan::check_privileges()?;
    let length = plan.length.max(plan::SHORTEST);
    // The load waits for the window: that the probes are loaded is not to be felt in it.
    let beside = Beside { target: &target, length, slo: args.slo, production };
    beside.during(|| load(plan, args, kept, stop, &|_| {}))
}

/// Whoever listens on the port of the URL, if that is on this host: on another one somebody else has that port.
fn whoever_is_loaded(plan: &Plan) -> Result<Target> {
    let address = plan.to.resolve()?.ip();
    ensure!(
        load::is_here(address),
        "{address} is no address of this host, so that whoever answers there cannot be looked at from here; if it runs here all \
         the same, as in a container, --diagnose=PID names it"
    );
    Ok(Target::Port(plan.to.port))
}

/// Captures somebody else's generator, and where it is asked for, what the service did meanwhile.
fn observe(args: &Load, production: Option<&Asked>, started: &mut Started, dir: &Path) -> Result<Option<Diagnosed>> {
    let (stop, target) = (stop::on_signal()?, Target::Pid(started.pid()));
    let plan = plan::Plan {
        source: plan::Source::Started(args.command.clone()),
        length: args.length.unwrap_or(LONGEST),
        calls: CallCounting::Never,
        // What its answers say of themselves: one that fails quickly is no quick one.
        labels: true,
        role: Role::Generator,
        slo: args.slo,
        is_kept: false,
    };
    let mut capture = || super::diagnose::capture(&plan, &target, Some(started), dir, &stop, &mut || {});
    let service = match args.diagnose {
        None => return capture().map(|_| None),
        Some(Whom::Loaded) => {
            bail!("whom COMMAND loads is not known: --diagnose=PID or --diagnose=port:PORT says it")
        }
        Some(Whom::Pid(pid)) => Target::Pid(pid),
        Some(Whom::Port(port)) => Target::Port(port),
    };
    let beside = Beside { target: &service, length: plan::LONGEST, slo: args.slo, production };
    Ok(beside.during(capture)?.1)
}

/// Somebody else's generator, as the kernel saw it.
fn generator(args: &Load, kept: Kept) -> Result<()> {
    plan::check_privileges()?;
    let production = production(args)?;
    let (mut started, dir) = (Started::new(&args.command)?, scratch::folder()?);
    let command = started.command().to_string();
    let service = observe(args, production.as_ref(), &mut started, dir.path())?;
    let ended = how_it_ended(&mut started);
    drop(started); // ended with the capture, not with the verdict
    let recording = recording::open(dir.path())?;
    let case = Case::new(&recording);
    let own = Diagnosed::of(&recording, &case, None);
    // Where the generator's sockets are in other namespaces, as those of clients behind a gateway, only the service sees it.
    let of_service = service.as_ref().map(|service| between(&service.verdict, load::is_between_at_service));
    let beside = between(&own.verdict, load::is_between).into_iter().chain(of_service.into_iter().flatten());
    let (settling, small): (Vec<Between>, Vec<Between>) = beside.partition(|between| between.settles);
    let observed = load::observed(&recording, settling.into_iter().map(|between| between.reason).next());
    let mut run = observed.map_err(|error| match &ended {
        Some(how) => error.context(how.clone()),
        None => error,
    })?;
    let ended = ended.map(|how| format!("{how}: what it printed may be of a part of its load"));
    let ended = ended.map(|sentence| Reason { code: "exit-status".into(), sentence });
    run.noted.extend(small.into_iter().map(|between| between.reason).take(1).chain(ended).chain(ports(&case, &run)));
    let (service, likeness) = told(service);
    let answer = Answer::new(TOOL, command.clone(), load::judge(&run, args.slo), service).beside(likeness);
    kept.add_from(run, recording.meta.start_ns);
    say_load(args, &answer, kept, &command)
}

/// That the local ports towards one of those whom a generator asks come to an end.
fn ports(case: &Case, run: &Run) -> Option<Reason> {
    let (ports, requests) = (case.fact::<LocalPorts>().ok()?, case.fact::<Requests>().ok()?);
    let kept = ports.towards.iter().filter(|it| requests.of(false, &it.destination).is_some() && !it.is_used_again);
    let most = kept.max_by(|a, b| a.most.total_cmp(&b.most))?;
    let used = Ports { towards: &most.destination, used: most.most, ended: most.time_wait, range: ports.range };
    load::run_out_of_ports(run, &used)
}

/// That a generator ended otherwise than well.
fn how_it_ended(started: &mut Started) -> Option<String> {
    let status = started.ended().filter(|status| !status.success())?;
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit status {code}"),
        (None, signal) => format!("was ended by signal {}", signal.unwrap_or_default()),
    };
    Some(format!("`{}` {how}", started.name()))
}

/// What stood between a generator and its service.
struct Between {
    reason: Reason,
    /// Whether what was counted says nothing of the service then.
    settles: bool,
}

/// Of what it is a share, beside another cause that comes first: so little is to be known, and does not decide.
const FEW: f64 = 0.01;

/// What stood between a generator and its service, if one of them is accused of something that is neither one's.
fn between(found: &diagnose::verdict::Verdict, is_between: fn(&str) -> bool) -> Option<Between> {
    let finding = found.findings.iter().find(|finding| is_between(&finding.cause))?;
    let is_first = found.verdict == finding.cause;
    let what_to_do = if is_first { format!(": {}", found.advice) } else { String::new() };
    let sentence = format!("{}: {}{what_to_do}", finding.cause, finding.summary);
    let reason = Reason { code: finding.cause.clone(), sentence };
    Some(Between { reason, settles: is_first || finding.explains.share > FEW })
}

fn plan(args: &Load, to: &Address) -> Result<Plan> {
    let usual = if args.sweep.is_some() { STEP } else { LENGTH };
    message::plan(&args.message, to, args.rate.unwrap_or(Rate::Max), args.length.unwrap_or(usual))
}
