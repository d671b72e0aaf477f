// SPDX-License-Identifier: Apache-2.0
//! A service that is diagnosed while it is loaded.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use collect::capture::{CallCounting, Role};
use collect::target::Target;
use diagnose::Case;
use diagnose::likeness::{Asked, Likeness, likeness};
use load::Meanwhile;
use recording::Recording;

use crate::args::load::Load;
use crate::{parts, plan, say, scratch};

/// The recording of production, if there is one: it is read before anything begins.
pub(super) fn production(args: &Load) -> Result<Option<Asked>> {
    let Some(dir) = &args.like else { return Ok(None) };
    let (recording, name) = parts::open(dir, args.like_at)?;
    let asked = Asked::of(&Case::new(&recording));
    asked.map(Some).map_err(|why| anyhow!("`{name}` does not tell how clients ask: {why}"))
}

/// What a service was diagnosed.
pub(super) struct Diagnosed {
    pub verdict: diagnose::verdict::Verdict,
    /// CPUs that it used.
    cpus: f64,
    /// How it was asked, beside production.
    likeness: Option<Likeness>,
}

impl Diagnosed {
    pub fn of(recording: &Recording, case: &Case, production: Option<&Asked>) -> Self {
        let likeness = production.map(|production| likeness(production, case));
        Self { verdict: diagnose::judge(case), cpus: load::cpus(recording), likeness }
    }
}

/// What is told of it.
pub(super) fn told(service: Option<Diagnosed>) -> (Option<Meanwhile>, Option<Likeness>) {
    let Some(Diagnosed { verdict: found, cpus, likeness }) = service else { return (None, None) };
    let meanwhile = Meanwhile { verdict: found.verdict, headline: found.headline, advice: found.advice, cpus };
    (Some(meanwhile), likeness)
}

/// A service that is looked at while something else goes on.
pub(super) struct Beside<'a> {
    pub target: &'a Target,
    pub length: Duration,
    pub slo: Option<Duration>,
    /// How it is asked in production.
    pub production: Option<&'a Asked>,
}

impl Beside<'_> {
    /// What the service does while `work` goes on: it is captured from before until its time is over, or the work. None = the capture
    /// came to nothing, which is said, and does not cost what the work found.
    pub fn during<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<(T, Option<Diagnosed>)> {
        let source = plan::Source::Running(self.target.clone());
        let (calls, role, length) = (CallCounting::Auto, Role::Service, self.length);
        let labels = self.production.is_some_and(Asked::is_labelled);
        let capture = plan::Plan { source, length, calls, labels, role, slo: self.slo, is_kept: false };
        let (dir, over) = (scratch::folder()?, AtomicBool::new(false));
        let target = self.target;
        let (done, captured) = thread::scope(|scope| {
            let (open, opened) = mpsc::channel();
            let (dir, over) = (dir.path(), &over);
            let capturing = move || {
                // Dropped when the window is open, or never will be.
                let mut open = Some(open);
                crate::commands::diagnose::capture(&capture, target, None, dir, over, &mut || {
                    let _ = open.take().map(|open| open.send(())); // who waited for it is gone: it will be over soon
                })
            };
            let capturing =
                thread::Builder::new().spawn_scoped(scope, capturing).context("failed to start a thread")?;
            let done = opened.recv().is_ok().then(work);
            over.store(true, Ordering::Relaxed);
            let captured = capturing.join().map_err(|_| anyhow!("the service could not be observed"))?;
            match (done, captured) {
                (None, Err(why)) => Err(why),
                (done, captured) => Ok((done.context("the service could not be observed")??, captured)),
            }
        })?;
        let recording = captured.and_then(|_| recording::open(dir.path()));
        let diagnosed = recording.map(|recording| Diagnosed::of(&recording, &Case::new(&recording), self.production));
        let diagnosed = diagnosed.inspect_err(|why| say::sentence("the service is not diagnosed", &format!("{why:#}")));
        Ok((done, diagnosed.ok()))
    }
}
