// SPDX-License-Identifier: Apache-2.0
//! What the target's time went to while it was not idle: wanting a CPU, or waiting for somebody, by chain.

use std::collections::BTreeMap;

use recording::tables::Wakeup;

use crate::case::{Case, Fact};
use crate::facts::stacks::{Code, Stacks};
use crate::ledger::threads::Threads;
use crate::runtimes::Part;
use crate::statistics::share;
use crate::syscall::{Family, family};
use crate::verdict::{self, Gap};
use crate::walk::chains::{Chain, Link, Nature};
use crate::walk::clients::Clients;
use crate::walk::{Kind, Walk, Who};
use crate::wording::short;

/// A thread that serves clients and sleeps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sleeper {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Command name.
    pub comm: String,
    /// The call that it sleeps in.
    pub call: String,
    /// Time in sleeps of its own, ns.
    pub slept_ns: f64,
    /// Sleeps that were picked.
    pub sleeps: u64,
    /// Waits that a client ended, of those picked.
    pub clients: u64,
}

/// Time of the target that was not idleness.
pub struct Waiting {
    /// Time in which its threads wanted a CPU, ns.
    pub demand_ns: f64,
    /// Time in which they waited for somebody, ns.
    pub waiting_ns: f64,
    /// Time in which they were blocked, and it cannot be told whether idle or not, ns.
    pub untold_ns: f64,
    /// Chains of the waiting, those that explain most first.
    pub chains: Vec<Chain>,
    /// Processes of which some wait was seen, and whether a thread of the target ended one: those it asked for something.
    pub others: BTreeMap<u32, bool>,
    /// Threads that sleep and serve clients, by time slept.
    pub sleepers: Vec<Sleeper>,
}

impl Fact for Waiting {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let walk = case.fact::<Walk>()?;
        let ledger = case.fact::<Threads>()?;
        let chains: Vec<Chain> = walk.chains().into_iter().filter(|c| c.nature() == Nature::Waiting).collect();
        let waiting_ns = chains.iter().map(|c| c.ns).fold(0.0, |sum, ns| sum + ns);
        let untold_ns =
            walk.chains().iter().filter(|c| c.nature() == Nature::Untold).map(|c| c.ns).fold(0.0, |s, ns| s + ns);
        let mut others = BTreeMap::new();
        for row in case.recording.rows::<Wakeup>() {
            let by_us = row.context == "thread" && walk.waits.keys().any(|who| who.pid == row.waker_pid);
            *others.entry(row.pid).or_default() |= by_us || row.asked > 0;
        }
        let demand_ns = ledger.total.demand_ns();
        Ok(Self { demand_ns, waiting_ns, untold_ns, chains, others, sleepers: sleepers(case, &*case.fact()?) })
    }
}

impl Waiting {
    /// Share of the time that was not idleness.
    pub fn share(&self, ns: f64) -> f64 {
        share(ns, self.demand_ns + self.waiting_ns)
    }

    /// Chains of a kind, and their time, ns.
    pub fn of(&self, wanted: impl Fn(&Chain) -> bool) -> (Vec<&Chain>, f64) {
        let chains: Vec<&Chain> = self.chains.iter().filter(|c| wanted(c)).collect();
        let ns = chains.iter().map(|c| c.ns).fold(0.0, |sum, ns| sum + ns);
        (chains, ns)
    }
}

fn sleepers(case: &Case, clients: &Clients) -> Vec<Sleeper> {
    let mut threads: BTreeMap<u32, Sleeper> = BTreeMap::new();
    for row in case.recording.rows::<Wakeup>() {
        let call = case.syscall(row.syscall);
        let sleeps = family(&call) == Family::Sleep;
        let client = clients.ended(case, row);
        if !sleeps && !client {
            continue;
        }
        let thread = threads.entry(row.tid).or_default();
        (thread.pid, thread.tid) = (row.pid, row.tid);
        thread.comm.clone_from(&row.comm);
        thread.clients += u64::from(client);
        if sleeps {
            thread.slept_ns += row.blocked_ns.max(row.wait_ns) as f64;
            thread.sleeps += 1;
            thread.call = call;
        }
    }
    let mut sleepers: Vec<Sleeper> = threads.into_values().filter(|t| t.sleeps > 0 && t.clients > 0).collect();
    sleepers.sort_by(|a, b| b.slept_ns.total_cmp(&a.slept_ns));
    sleepers
}

/// A chain as the verdict has it: its waits, and what it ends at.
pub fn links(chain: &Chain, stacks: &Stacks) -> Vec<verdict::Link> {
    let mut links: Vec<verdict::Link> = chain.links.iter().map(|link| wait(link, stacks)).collect();
    let end = &chain.end;
    let who = match end.kind {
        Kind::OnCpu | Kind::RunQueue | Kind::Short => format!("{}/{}", end.comm, end.pid),
        _ => String::new(),
    };
    let detail = if end.detail.is_empty() { String::new() } else { format!(" ({})", end.detail) };
    let waits_on = format!("{}{detail}", end.kind.words());
    links.push(verdict::Link { who, waits_on, seconds: chain.ns / 1e9, stack: Vec::new() });
    links
}

/// Functions of the kernel that every wait ends in: they say nothing about where.
const SCHEDULING: &[&str] = &["__schedule", "schedule", "schedule_timeout", "io_schedule"];

/// The program's own functions of a stack, without those that take a lock: everybody knows that.
pub fn callers(stack: u32, stacks: &Stacks) -> impl Iterator<Item = &Code> {
    stacks.callers(stack).filter(|code| code.part != Part::Lock)
}

/// Where a link waits: its program's own functions, innermost first, or the kernel's where those are not known.
pub fn places(link: &Link, stacks: &Stacks) -> Vec<String> {
    let own: Vec<String> = callers(link.code, stacks).map(Code::label).collect();
    if !own.is_empty() {
        return own;
    }
    let kernel = stacks.frames(link.stack).map(Code::label);
    kernel.filter(|name| !SCHEDULING.contains(&name.as_str())).collect()
}

/// The program's own functions with which somebody usually waits, as words; empty = unknown.
pub fn called_from(walk: &Walk, who: &Who, stacks: &Stacks) -> String {
    let own: Vec<String> = callers(walk.code(who), stacks).take(3).map(|code| short(&code.label())).collect();
    if own.is_empty() { String::new() } else { format!(", called from {}", own.join(" <- ")) }
}

fn wait(link: &Link, stacks: &Stacks) -> verdict::Link {
    verdict::Link {
        who: format!("{}/{}", link.who.comm, link.who.pid),
        waits_on: link.who.call_words(),
        seconds: link.ns / 1e9,
        stack: places(link, stacks),
    }
}
