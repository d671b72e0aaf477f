// SPDX-License-Identifier: Apache-2.0
//! Asking without finding: what each thread's empty calls, and the loop around them, cost.
//!
//! An empty call is a poll, receive, accept, yield or tiny sleep that returned at once with
//! nothing. What it costs is estimated in `polling/waste.rs`; the counts and glimpses that the
//! estimate rests on are gathered here.

mod sites;
mod waste;

use std::collections::{BTreeMap, BTreeSet};

use super::calls::{Calls, Counted, OnDescriptor, SOON_NS, Sampled, TINY_NS};
use super::profile::{Place, Profile};
use super::stacks::Stacks;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::ledger::threads::Threads;
use crate::runtimes::event_loops::EventLoop;
use crate::runtimes::spins::RuntimeSpin;
use crate::statistics::{ratio, share};
use crate::syscall::{Family, Timeout, family};

/// Sampled results needed before their share means anything.
const MIN_RESULTS: u64 = 10;

/// Counts of one thread's asking calls, from windows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// Calls that ask for something.
    pub calls: f64,
    /// Of these, empty ones that did not wait.
    pub empty: f64,
    /// Calls that found events, bytes or connections, the larger of polls and receives.
    pub found: f64,
    /// Ready events that no call of the process ever took; they are among `empty`.
    pub unconsumed: f64,
    /// Calls per second.
    pub per_second: f64,
    /// Share of poll calls with timeout 0, where the argument is known.
    pub zero_timeout: Option<f64>,
    /// Whether the thread sent anything.
    pub sent: bool,
    /// Call, descriptor and its empty share.
    pub descriptors: Vec<(String, i32, f64)>,
}

impl Asked {
    /// Share of calls that found nothing at once.
    pub fn empty_share(&self) -> f64 {
        share(self.empty, self.calls)
    }

    /// Empty calls for each call that found something; the number of empty calls if none did.
    pub fn empty_per_useful(&self) -> f64 {
        self.empty / self.found.max(1.0)
    }
}

/// The same from sampled registers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Glimpsed {
    /// Samples with a known timeout argument.
    pub timeouts: f64,
    /// Of these with timeout 0, or a call that never waits.
    pub zero: f64,
    /// Samples with a known result.
    pub results: f64,
    /// Of these, results that say nothing was found.
    pub empty: f64,
}

/// One thread that makes asking calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spin {
    /// Process id.
    pub pid: u32,
    /// Thread id; of several threads the first.
    pub tid: u32,
    /// How many threads this stands for.
    pub threads: usize,
    /// Command name.
    pub comm: String,
    /// On-CPU time, ns.
    pub cpu_ns: f64,
    /// Of this, spent on empty calls and the loop around them, ns.
    pub wasted_ns: f64,
    /// The asking call that cost most.
    pub syscall: String,
    /// From windows; none if they did not see the thread.
    pub counted: Option<Asked>,
    /// From registers.
    pub sampled: Glimpsed,
    /// Samples of the thread; 0 = the waste is shared by number of calls.
    pub samples: f64,
    /// Functions that make the empty calls, innermost first, outside libc and glue.
    pub callers: Vec<String>,
    /// The event loop that makes them, if it is one in general use.
    pub event_loop: Option<&'static EventLoop>,
    /// The language runtime that makes them, if it is its own way to wait.
    pub runtime: Option<&'static RuntimeSpin>,
    /// Times that the thread gave up its CPU by itself; none without the ledger.
    pub voluntary_switches: Option<u64>,
}

impl Spin {
    /// Share of the thread's CPU time that is wasted.
    pub fn wasted_share(&self) -> f64 {
        share(self.wasted_ns, self.cpu_ns)
    }
}

/// All threads that ask, most waste first.
pub struct Polling {
    /// The threads.
    pub threads: Vec<Spin>,
    /// Many threads of one process that ask by the same call, together: each for itself costs next to nothing.
    pub sites: Vec<Spin>,
    /// Whether windows counted calls.
    pub counted: bool,
    /// Whether there are samples.
    pub sampled: bool,
}

impl Fact for Polling {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let calls = case.fact::<Calls>()?;
        let (profile, nowhere) = (case.fact::<Profile>().ok(), BTreeMap::new());
        let view = View {
            threads: case.fact::<Threads>().ok(),
            profile: profile.as_deref(),
            places: profile.as_ref().map_or(&nowhere, |p| &p.places),
            stacks: case.fact::<Stacks>()?,
            calls: &calls,
            others: others(&calls),
            length_ns: case.length_ns(),
            together: 1,
        };
        let counted = calls.windows.counted_ns > 0.0 && !calls.counted.is_empty();
        if !counted && view.profile.is_none() {
            return Err(Gap::not_recorded("call", "neither samples nor windows show the target's system calls"));
        }
        let asks = |name: &str| asks(family(name));
        let mut ids: BTreeSet<(u32, u32)> = BTreeSet::new();
        ids.extend(calls.counted.iter().filter(|(_, c)| asks(&c.name)).map(|(k, _)| (k.0, k.1)));
        ids.extend(calls.sampled.iter().filter(|(_, s)| asks(&s.name)).map(|(k, _)| (k.0, k.1)));
        let ids = ids.into_iter().filter(|id| id.1 != 0);
        let mut threads: Vec<Spin> = ids.map(|id| view.spin(view.thread(id))).collect();
        let mut sites = sites::sites(&view, &threads);
        for spins in [&mut threads, &mut sites] {
            spins.sort_by(|a, b| b.wasted_ns.total_cmp(&a.wasted_ns).then((a.pid, a.tid).cmp(&(b.pid, b.tid))));
        }
        Ok(Polling { threads, sites, counted, sampled: view.profile.is_some() })
    }
}

fn asks(family: Family) -> bool {
    matches!(family, Family::Poll | Family::Receive | Family::Accept | Family::Yield | Family::Sleep)
}

/// Calls of each process outside the poll family: whether anybody takes what polls find.
fn others(calls: &Calls) -> BTreeMap<u32, f64> {
    let mut all: BTreeMap<u32, f64> = BTreeMap::new();
    for (key, call) in calls.counted.iter().filter(|(_, c)| c.family != Family::Poll) {
        *all.entry(key.0).or_default() += call.calls as f64;
    }
    all
}

/// The facts that one thread's numbers are made from; of several threads together, with one name for all.
struct View<'a> {
    threads: Option<std::sync::Arc<Threads>>,
    profile: Option<&'a Profile>,
    places: &'a BTreeMap<Place, u64>,
    stacks: std::sync::Arc<Stacks>,
    calls: &'a Calls,
    others: BTreeMap<u32, f64>,
    length_ns: f64,
    /// How many threads have one name.
    together: usize,
}

impl View<'_> {
    /// What is known of a thread before its calls are looked at.
    fn thread(&self, (pid, tid): (u32, u32)) -> Spin {
        let ledger = self.threads.as_ref().and_then(|t| t.thread(pid, tid));
        let seen = self.profile.and_then(|p| p.threads.get(&(pid, tid)));
        let hz = self.profile.map_or(0.0, |p| f64::from(p.hz));
        let samples = seen.map_or(0.0, |s| s.samples as f64);
        Spin {
            pid,
            tid,
            threads: 1,
            comm: ledger.map(|l| l.comm.clone()).or_else(|| seen.map(|s| s.comm.clone())).unwrap_or_default(),
            cpu_ns: ledger.map_or(ratio(samples * 1e9, hz), |l| l.lines.cpu_ns),
            samples,
            voluntary_switches: ledger.map(|l| l.voluntary_switches),
            ..Spin::default()
        }
    }

    /// The same with what its calls tell.
    fn spin(&self, mut spin: Spin) -> Spin {
        let (pid, tid) = (spin.pid, spin.tid);
        spin.counted = self.asked(pid, tid);
        spin.sampled = self.glimpsed(pid, tid);
        let odds: BTreeMap<i32, f64> =
            self.numbers(pid, tid).into_iter().map(|n| (n, self.odds(pid, tid, n))).collect();
        spin.syscall = self.main_call(pid, tid, &odds);
        let wasted = if spin.samples > 0.0 {
            let waste = self.waste(&spin, &odds);
            (spin.callers, spin.event_loop, spin.runtime) = (waste.callers, waste.event_loop, waste.runtime);
            ratio(waste.samples, spin.samples)
        } else {
            self.by_count(&spin)
        };
        spin.wasted_ns = spin.cpu_ns * wasted.clamp(0.0, 1.0);
        spin
    }

    /// Numbers of the asking calls of a thread.
    fn numbers(&self, pid: u32, tid: u32) -> BTreeSet<i32> {
        let counted = self.calls.of_thread(pid, tid).filter(|(_, c)| asks(c.family)).map(|(n, _)| n);
        counted.chain(self.glimpses(pid, tid).map(|(n, _)| n)).collect()
    }

    fn glimpses(&self, pid: u32, tid: u32) -> impl Iterator<Item = (i32, &Sampled)> {
        let range = self.calls.sampled.range((pid, tid, i32::MIN)..=(pid, tid, i32::MAX));
        range.filter(|(_, s)| asks(family(&s.name))).map(|(k, s)| (k.2, s))
    }

    fn asked(&self, pid: u32, tid: u32) -> Option<Asked> {
        let mut all = Asked::default();
        let (mut polls, mut receives, mut zero, mut known) = (0.0, 0.0, 0.0, 0.0);
        for (_, call) in self.calls.of_thread(pid, tid) {
            all.sent |= call.family == Family::Send && call.found > 0;
            if !asks(call.family) {
                continue;
            }
            all.calls += call.calls as f64;
            all.per_second += call.per_second;
            all.empty += self.in_vain(call);
            let found = call.found as f64;
            if call.family == Family::Poll {
                polls += found
            } else {
                receives += found
            }
            zero += call.timeouts.get(&Timeout::Zero).copied().unwrap_or(0) as f64;
            known += call.timeouts.iter().filter(|(t, _)| **t != Timeout::Unknown).map(|(_, n)| *n as f64).sum::<f64>();
            let on = |(&fd, d): (&i32, &OnDescriptor)| (call.name.clone(), fd, share(d.empty as f64, d.calls as f64));
            all.descriptors.extend(call.descriptors.iter().map(on));
        }
        all.unconsumed = self.unconsumed(pid, polls);
        all.empty += all.unconsumed;
        all.found = (polls - all.unconsumed).max(receives);
        all.zero_timeout = (known > 0.0).then(|| share(zero, known));
        (all.calls > 0.0).then_some(all)
    }

    /// Ready events of level-triggered polls that nobody takes: the process makes hardly a call
    /// for each twenty of them, and they come too fast for anything to happen between.
    fn unconsumed(&self, pid: u32, polls: f64) -> f64 {
        let interval_ns = ratio(self.calls.windows.counted_ns * self.together as f64, polls);
        let others = self.others.get(&pid).copied().unwrap_or(0.0);
        if polls > 0.0 && others < polls / 20.0 && interval_ns < TINY_NS as f64 { polls } else { 0.0 }
    }

    fn glimpsed(&self, pid: u32, tid: u32) -> Glimpsed {
        let mut all = Glimpsed::default();
        for (_, s) in self.glimpses(pid, tid) {
            let of = |t: Timeout| s.timeouts.get(&t).copied().unwrap_or(0) as f64;
            let every: u64 = s.timeouts.values().sum();
            let never_waits = family(&s.name) == Family::Yield;
            all.timeouts += if never_waits { s.samples as f64 } else { every as f64 - of(Timeout::Unknown) };
            all.zero += if never_waits { s.samples as f64 } else { of(Timeout::Zero) };
            all.results += s.results as f64;
            all.empty += s.empty_results as f64;
        }
        all
    }

    /// Empty calls that did not wait: by their argument, or, where that is a pointer, because they followed each other
    /// so fast that there was no time to wait in. For many threads together, a short wait is none either.
    fn in_vain(&self, call: &Counted) -> f64 {
        let (by_argument, short_ns) = match self.together {
            1 => (call.empty_at_once, TINY_NS),
            _ => (call.empty_soon, SOON_NS),
        };
        let each = ratio(call.per_second, self.together as f64);
        let fast = ratio(1e9, each) < short_ns as f64 && each > 0.0;
        by_argument as f64 + if fast { call.empty_unknown_wait as f64 } else { 0.0 }
    }

    /// How likely a sample inside this call of this thread is a call that found nothing at once.
    fn odds(&self, pid: u32, tid: u32, number: i32) -> f64 {
        let sampled = self.calls.sampled.get(&(pid, tid, number));
        let zero = sampled.and_then(zero_share);
        if let Some(call) = self.calls.counted.get(&(pid, tid, number)).filter(|c| c.calls > 0) {
            let fruitless = self.unconsumed(pid, if call.family == Family::Poll { call.found as f64 } else { 0.0 });
            // Calls that block cost more CPU each than those that do not, so where registers tell
            // them apart the odds are those among calls that were not to wait.
            return match zero.filter(|_| call.at_once > 0 && fruitless == 0.0 && self.together == 1) {
                Some(zero) => zero * share(call.empty_at_once as f64, call.at_once as f64),
                None => share(self.in_vain(call) + fruitless, call.calls as f64),
            };
        }
        let Some(s) = sampled else { return 0.0 };
        match family(&s.name) {
            Family::Yield => 1.0,
            _ if s.results < MIN_RESULTS => 0.0, // timeout 0 alone convicts nobody
            Family::Poll => zero.unwrap_or(0.0) * share(s.empty_results as f64, s.results as f64),
            Family::Receive | Family::Accept => share(s.empty_results as f64, s.results as f64),
            _ => 0.0,
        }
    }

    /// The asking call with the most samples in empty calls, else the most empty calls.
    fn main_call(&self, pid: u32, tid: u32, odds: &BTreeMap<i32, f64>) -> String {
        let cost = |n: i32| {
            let key = (pid, tid, n);
            let samples = self.calls.sampled.get(&key).map_or(0.0, |s| s.samples as f64);
            let calls = self.calls.counted.get(&key).map_or(0.0, |c| c.empty as f64);
            (samples * odds.get(&n).copied().unwrap_or(0.0), calls)
        };
        let best = odds.keys().copied().max_by(|&a, &b| {
            let (a, b) = (cost(a), cost(b));
            a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        let key = (pid, tid, best.unwrap_or(-1));
        let counted = self.calls.counted.get(&key).map(|c| c.name.clone());
        counted.or_else(|| self.calls.sampled.get(&key).map(|s| s.name.clone())).unwrap_or_default()
    }
}

/// Share of sampled calls with timeout 0, of those whose timeout the registers show.
fn zero_share(s: &Sampled) -> Option<f64> {
    let known: u64 = s.timeouts.iter().filter(|(t, _)| **t != Timeout::Unknown).map(|(_, n)| n).sum();
    let zero = s.timeouts.get(&Timeout::Zero).copied().unwrap_or(0);
    (known >= MIN_RESULTS).then(|| share(zero as f64, known as f64))
}
