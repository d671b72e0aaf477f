// SPDX-License-Identifier: Apache-2.0
//! `wakewalk diagnose`: capture or open a recording, diagnose it, draw the verdict.

use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use collect::capture::{self, Afterwards};
use collect::probes::Room;
use collect::target::{Resolved, Target};
use collect::{courtesy, oom};
use diagnose::comparison::{self, Named, Per};
use diagnose::timeline::timeline;
use diagnose::verdict::Verdict;
use diagnose::{Case, Question};
use recording::{Meta, Recording, Writer};
use report::compared::Compared;
use report::formats::json;
use report::section::Section;
use report::views::Material;

use crate::args;
use crate::commands::wait_and_become::Started;
use crate::plan::{self, Plan, Source, TOOL};
use crate::progress::Line;
use crate::scratch::Scratch;
use crate::watchdog::{self, Watched};
use crate::{left, page, parts, say, scratch, stop};

/// Runs the command.
pub fn run(args: &args::Diagnose) -> Result<()> {
    let plan = plan::diagnose(args)?;
    let baseline = args.baseline.as_ref().map(|dir| open_baseline(dir)).transpose()?;
    let baseline = baseline.as_ref();
    match &plan.source {
        Source::Saved(dir) => {
            let (recording, _) = parts::open(dir, args.at)?;
            let case = case(args, &recording, baseline);
            let mut verdict = diagnose::judge(&case);
            if let Some(every) = args.every {
                verdict.timeline = timeline(&recording, every, args.slo).context("failed to make the timeline")?;
            }
            draw(args, &case, baseline, &verdict)
        }
        Source::Running(target) => {
            live(args, baseline, |dir| capture(&plan, target, None, dir, &*stop::on_signal()?, &mut || {}))
        }
        Source::Started(command) => {
            let started = Started::new(command)?;
            let target = Target::Pid(started.pid());
            live(args, baseline, move |dir| {
                let mut started = started; // ended with the capture, not with the verdict
                capture(&plan, &target, Some(&mut started), dir, &*stop::on_signal()?, &mut || {})
            })
        }
    }
}

fn case<'r>(args: &args::Diagnose, recording: &'r Recording, baseline: Option<&Baseline>) -> Case<'r> {
    let compared = baseline.map(|baseline| comparison::against(&baseline.named(), recording, Per::Auto));
    Case::asked(recording, Question { compared, slo: args.slo })
}

/// A capture always goes through a recording on disk; without --save it is gone afterwards. The verdict is made beside the
/// target, and what that costs belongs to the capture's cost.
fn live(
    args: &args::Diagnose,
    baseline: Option<&Baseline>,
    capture: impl FnOnce(&Path) -> Result<Afterwards>,
) -> Result<()> {
    let temporary = if args.save.is_none() { Some(scratch::folder()?) } else { None };
    let dir = args.save.as_deref().or(temporary.as_ref().map(Scratch::path)).context("no folder to record in")?;
    let afterwards = capture(dir)?;
    courtesy::stand_back(); // as the thread that captured did
    courtesy::during(courtesy::PATIENCE, || {
        let recording = recording::open(dir)?;
        let case = case(args, &recording, baseline);
        let mut verdict = diagnose::judge(&case);
        let cost = afterwards.so_far();
        diagnose::add_cost(&mut verdict, &recording, &cost);
        let amended = args.save.as_ref().map_or(Ok(()), |dir| recording.amend(dir, &[cost]));
        let drawn = draw(args, &case, baseline, &verdict);
        amended.and(drawn)
    })
}

/// The recording to compare with.
struct Baseline {
    recording: Recording,
    label: String,
}

impl Baseline {
    fn named(&self) -> Named<'_> {
        Named { recording: &self.recording, label: self.label.clone() }
    }
}

/// Opened, and compared with itself for a try, before the capture: a baseline that is of no use must not cost one.
fn open_baseline(dir: &Path) -> Result<Baseline> {
    let baseline = Baseline { recording: parts::open(dir, None)?.0, label: dir.display().to_string() };
    comparison::compare(&baseline.named(), &baseline.named(), Per::Auto)
        .context("the baseline cannot be compared with")?;
    Ok(baseline)
}

/// Captures a target into a folder until its time is over or `stop` is set; `begun` is called again and again once the window
/// is open.
pub(super) fn capture(
    plan: &Plan,
    target: &Target,
    mut started: Option<&mut Started>,
    dir: &Path,
    stop: &AtomicBool,
    begun: &mut (dyn FnMut() + Send),
) -> Result<Afterwards> {
    let watched = Watched { dir, is_kept: plan.is_kept, length: plan.length, stop };
    watchdog::over(&watched, |is_open| {
        let capture_plan = capture_plan(plan, resolve(target, started.as_deref())?);
        for note in &capture_plan.target.notes {
            say::sentence("note", note);
        }
        if started.is_none() {
            oom::be_the_first();
        }
        let line = Line::new(plan.length);
        let mut writer = Writer::create(dir, &Meta { tool: TOOL.into(), ..Meta::default() })?;
        let captured = capture::run(&capture_plan, &mut writer, stop, &mut |p| {
            is_open.store(true, Ordering::Relaxed);
            if let Some(started) = &mut started {
                started.go();
            }
            begun();
            line.show(p.elapsed, p.length, p.doing);
        });
        captured.map_err(|error| left::behind(error, dir, plan.is_kept))
    })
}

/// The processes of a target, which may be a command that was started for it.
fn resolve(target: &Target, started: Option<&Started>) -> Result<Resolved> {
    let mut resolved = courtesy::in_slices(courtesy::PATIENCE, || target.resolve(Path::new("/")))?;
    match started {
        Some(started) => {
            resolved.named = format!("-- {}", started.command());
            resolved.comm = started.name();
        }
        None => plan::check_target(&resolved)?,
    }
    Ok(resolved)
}

fn capture_plan(plan: &Plan, target: Resolved) -> capture::Plan {
    capture::Plan {
        target,
        length: plan.length,
        slice: capture::SLICE,
        calls: plan.calls,
        labels: plan.labels,
        role: plan.role,
        slo: plan.slo,
        root: Path::new("/").to_path_buf(),
        tool: TOOL.into(),
        room: Room::Whole,
    }
}

fn sections(case: &Case<'_>, baseline: Option<&Baseline>, verdict: &Verdict) -> Vec<Section> {
    let before = baseline.map(|baseline| Case::new(&baseline.recording));
    let compared = before.as_ref().zip(verdict.comparison.as_ref());
    let compared = compared.map(|(before, comparison)| Compared { comparison, cases: [before, case] });
    report::verdict::sections(&Material::new(verdict, case), compared.as_ref())
}

fn draw(args: &args::Diagnose, case: &Case<'_>, baseline: Option<&Baseline>, verdict: &Verdict) -> Result<()> {
    let sections = sections(case, baseline, verdict);
    // The verdict first: a page that cannot be written must not cost it. Nor does it cost the page that nobody reads on (`| head`).
    let printed = print(args, verdict, &sections).context("failed to print the verdict");
    if let Some(file) = &args.html {
        page::write(file, &report::verdict::page(verdict, &sections)?)?;
    }
    for (what, path) in [("page", &args.html), ("recording", &args.save)] {
        if let Some(path) = path {
            say::sentence(what, &path.display().to_string());
        }
    }
    printed
}

fn print(args: &args::Diagnose, verdict: &Verdict, sections: &[Section]) -> Result<()> {
    let mut out = anstream::stdout().lock();
    if args.json {
        writeln!(out, "{}", json::text(verdict)?.trim_end())?;
    } else if args.full {
        report::verdict::draw(verdict, sections, width(), &mut out)?;
    } else {
        report::verdict::draw_brief(verdict, sections, width(), &mut out)?;
    }
    Ok(out.flush()?)
}

/// Columns to fill: those of the terminal, but lines over 100 are hard to read.
pub fn width() -> usize {
    terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0)).clamp(60, 100)
}
