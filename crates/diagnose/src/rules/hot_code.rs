// SPDX-License-Identifier: Apache-2.0
//! One function's own work on a CPU is the time.
//!
//! *Own* is self time, with a helper's (libc, assembly leaf) credited to its caller. Inclusive time
//! convicts nobody: a server's loop is on every sample of its thread. With a baseline, a function that
//! grew is one too (`growth`).

mod advice;
mod growth;
mod words;

use self::advice::Advice;
use super::{Check, Checked, NotIt, Outcome, Rule, evidence, explained, found, not_it};
use crate::answer::{Measured, Reason, Unit};
use crate::case::Case;
use crate::facts::limits::Limits;
use crate::facts::polling::Polling;
use crate::facts::profile::{Function, Place, Profile};
use crate::facts::stacks::Stacks;
use crate::judgement::full::{FULL, Full, full};
use crate::judgement::poller::poller;
use crate::remarks::own_queue;
use crate::runtimes::Part;
use crate::runtimes::jit::{self, Names};
use crate::statistics::{ratio, share, share_error};
use crate::verdict::{Explains, Finding, Subject};
use crate::wording::{percent, plural};

pub(super) static RULE: Rule = Rule { cause: "hot-code", explain: explain!("hot-code"), check: Check::Accuses(check) };

/// Two fifths of the busy time: then halving this one function frees a fifth of the resource.
const MIN_SHARE: f64 = 0.40;

/// User time must clearly be most of the busy time: near one half, the kernel is as good a place
/// to look. What samples show must be above this by two standard errors, or chance decides.
const MIN_USER: f64 = 0.6;

/// Fewer samples say nothing about 40 %: the standard error would be 7 points.
const MIN_SAMPLES: f64 = 50.0;

/// Nearly all: beside a loop there are only the few samples whose stacks could not be read to their end.
const MOST_STACKS: f64 = 0.9;

/// A full thread that is less than a tenth of the target's CPU time is a side job.
const MIN_OF_TARGET: f64 = 0.1;

/// Demand of a thread that has more to do than to wait.
const BUSY: f64 = 0.5;

/// What fills a resource; else what grew against the baseline, whether or not anything is full.
fn check(case: &Case) -> Checked {
    let filled = fills(case);
    if let Ok(Outcome::Found(..)) = filled {
        return filled;
    }
    match (growth::grown(case), filled) {
        (Some(Ok((finding, said))), _) => Ok(Outcome::Found(Box::new(finding), said)),
        (Some(Err(why)), Ok(Outcome::RuledOut(not_it))) => {
            let why = format!("{}; against the baseline {why}", not_it.why);
            Ok(Outcome::RuledOut(NotIt { why, could_be: true, ..not_it }))
        }
        (_, filled) => filled,
    }
}

fn fills(case: &Case) -> Checked {
    let limits = case.fact::<Limits>()?;
    let full = full(&limits);
    if full.is_empty() {
        let busiest = limits.threads.first().map_or(String::new(), |t| {
            format!("; the busiest thread, {} (tid {}), is {} busy", t.comm, t.tid, percent(t.demand))
        });
        let why = format!("no thread, CPU or quota is full (90 % or more){busiest}");
        let busiest = limits.threads.first().map_or(0.0, |t| t.demand);
        let could_be = busiest >= BUSY;
        return not_it(Reason::TooLittle, Some(Measured::new(busiest, FULL, Unit::Share)), could_be, why);
    }
    let profile = case.fact::<Profile>()?;
    let stacks = case.fact::<Stacks>()?;
    let mut reasons = Vec::new();
    let names = jit::names(stacks.beside_jit());
    let mut best: Option<(Finding, Advice)> = None;
    for f in &full {
        if let Some(poller) = poller(case, f.thread()) {
            reasons.push(format!("{} full with the work of {}, which polls by choice", f.what, poller.name));
            continue;
        }
        let scope = Scope::new(case, f, &profile, &stacks);
        match scope.judge() {
            Ok(top) => {
                let advice = advice::advice(case, f, top);
                let finding = scope.finding(case, &limits, top, (names, &advice));
                if best.as_ref().is_none_or(|b| finding.explains.seconds > b.0.explains.seconds) {
                    let unnamed = top.jit && !top.named;
                    best = Some((finding, if unnamed { words::unnamed_jit(names) } else { advice }));
                }
            }
            Err(why) => reasons.push(why),
        }
    }
    let Some((finding, advice)) = best else { return explained(reasons.swap_remove(0)) };
    let headline = words::headline(case, &finding, &advice, own_queue::remark(case));
    found(finding, headline, advice.briefly)
}

/// What is full, and the samples that tell with what.
struct Scope<'a> {
    full: &'a Full,
    /// By credited samples; those of threads that poll in vain left out.
    functions: Vec<Function>,
    samples: f64,
    /// So many samples of the full rate would tell as much.
    effective: f64,
    user: f64,
    /// Share of these samples in threads whose time goes into empty calls.
    spinning: f64,
    /// Share of the target's samples.
    of_target: f64,
}

impl<'a> Scope<'a> {
    fn new(case: &Case, full: &'a Full, profile: &Profile, stacks: &Stacks) -> Self {
        let inside = |p: &Place| full.threads.is_empty() || full.threads.contains(&(p.pid, p.tid));
        let spins: Vec<(u32, u32)> = case.fact::<Polling>().map_or_else(
            |_| Vec::new(),
            |polling| polling.threads.iter().filter(|s| s.wasted_share() >= 0.5).map(|s| (s.pid, s.tid)).collect(),
        );
        let sum = |only: &dyn Fn(&Place) -> bool| {
            profile.places.iter().filter(|(p, _)| only(p)).map(|(_, n)| *n as f64).sum::<f64>()
        };
        let samples = sum(&inside);
        Scope {
            full,
            functions: profile.functions(stacks, |p| inside(p) && !spins.contains(&(p.pid, p.tid))),
            samples,
            effective: samples * ratio(profile.weights.effective(), profile.total.samples as f64),
            user: sum(&|p| inside(p) && !p.kernel),
            spinning: share(sum(&|p| inside(p) && spins.contains(&(p.pid, p.tid))), samples),
            of_target: share(samples, profile.total.samples as f64),
        }
    }

    /// The hot function, or why there is none.
    fn judge(&self) -> Result<&Function, String> {
        let what = &format!("{} full", self.full.what);
        if self.samples < MIN_SAMPLES {
            return Err(format!("{what}: {} say too little (under 50)", plural(self.samples as usize, "sample")));
        }
        if self.spinning >= 0.5 {
            return Err(format!("{what}: its time goes into calls that find nothing, not into one function"));
        }
        if self.of_target < MIN_OF_TARGET {
            return Err(format!("{what}, but with {} of the target's CPU time (under 10 %)", percent(self.of_target)));
        }
        if let Some(why) = self.not_user() {
            return Err(format!("{what}: {why}"));
        }
        let first = self.functions.iter().rev().filter(|f| !f.scattered && f.credited > 0);
        let first = first.max_by(|a, b| self.part(a).total_cmp(&self.part(b)));
        let Some(top) = first.filter(|f| self.part(f) >= MIN_SHARE) else {
            let first =
                first.map_or("none has a name".into(), |f| format!("{} leads with {}", f.name, percent(self.part(f))));
            return Err(format!("{what}: no function's own time is 40 % or more; {first}"));
        };
        match words::not_its_own(top.part) {
            Some(why) => Err(format!("{what}: {} holds {}, {why}", top.name, percent(self.part(top)))),
            None => Ok(top),
        }
    }

    /// Why user mode is not clearly most of the busy time, if it is not.
    fn not_user(&self) -> Option<String> {
        let (user, error) = (share(self.user, self.samples), share_error(self.user, self.samples, self.effective));
        let told = format!("{} of its CPU time is in user mode", percent(user));
        if user < MIN_USER {
            return Some(format!("{told} (under 60 %), the rest in the kernel"));
        }
        let chance = user - 2.0 * error < MIN_USER;
        chance.then(|| format!("{told}, not clearly over 60 % (standard error {})", percent(error)))
    }

    /// Share of the busy time that a function's own work is. A thread's first function, on nearly all of its stacks, is a
    /// loop in which everything happens: what helpers did for it is not one thing, so only its own instructions count. Unless
    /// that is nearly all of the time, as in a loop that goes round for nothing.
    fn part(&self, f: &Function) -> f64 {
        let all = share(f.credited as f64, self.samples);
        let is_loop = f.outermost as f64 >= self.samples * MOST_STACKS;
        if is_loop && all < MOST_STACKS { share(f.own as f64, self.samples) } else { all }
    }

    fn finding(&self, case: &Case, limits: &Limits, top: &Function, said: (&Names, &Advice)) -> Finding {
        let part = self.part(top);
        let of_target = part * self.of_target;
        // The scheduler says that it is full, the samples with what: two witnesses, if the
        // function has a name and fullness is measured.
        let sources = if top.named && self.full.certain && top.part == Part::Own { 2 } else { 1 };
        Finding {
            summary: words::summary(
                self.full,
                top,
                (part, self.full.does_not_serve(case)),
                said.1,
                own_queue::remark(case),
            ),
            subject: Subject {
                pid: self.full.threads.first().map(|t| t.0).or(case.recording.meta.target.pids.first().copied()),
                tid: self.full.threads.first().filter(|_| self.full.threads.len() == 1).map(|t| t.1),
                comm: Some(self.full.comm.clone()).filter(|c| !c.is_empty()),
                function: Some(top.name.clone()),
                ..Subject::default()
            },
            explains: Explains {
                share: of_target,
                of: "on-CPU time".into(),
                seconds: of_target * limits.cores * case.seconds(),
            },
            evidence: self.rows(case, top),
            remedy: words::remedy(top, of_target, said),
            check: "After the change the function's share falls, and the same load needs less CPU time.".into(),
            ..RULE.finding(case, sources)
        }
    }

    fn rows(&self, case: &Case, top: &Function) -> Vec<crate::verdict::Evidence> {
        let full = self.full.threads.first().map(|thread| thread.0);
        let pid = full.or(case.recording.meta.target.pids.first().copied()).unwrap_or(0);
        let perf = format!("perf record -F 199 -g -p {pid} -- sleep 10 && perf report --no-children");
        let error = share_error(top.credited as f64, self.samples, self.effective);
        let second = self.functions.iter().filter(|f| f.name != top.name).map(|f| self.part(f)).fold(0.0, f64::max);
        vec![
            evidence(
                &format!("own time of {} (standard error {})", top.name, percent(error)),
                self.part(top) * 100.0,
                "%",
                "under 40",
                perf.as_str(),
            ),
            evidence("the same without helpers", share(top.own as f64, self.samples) * 100.0, "%", "", perf.as_str()),
            evidence("on the stack", share(top.inclusive as f64, self.samples) * 100.0, "%", "", perf.as_str()),
            evidence("the next function", second * 100.0, "%", "", perf),
            evidence("user mode", share(self.user, self.samples) * 100.0, "%", "", ""),
            evidence(
                &format!("use of the full resource ({} full)", self.full.what),
                self.full.utilization * 100.0,
                "%",
                "under 90",
                "top -H",
            ),
        ]
    }
}

#[cfg(test)]
#[path = "hot_code/tests.rs"]
mod tests;
