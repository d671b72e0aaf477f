// SPDX-License-Identifier: Apache-2.0
//! The walk: from a wait, through its wakeups, to the cause at the end.
//!
//! A wait ends because somebody woke the sleeper. What that waker did in the time of the wait is what the sleeper waited
//! for: it ran, it stood in a CPU's queue, or it waited itself, and then the same is asked about that wait, cut to the
//! time that both have in common. So every wait is spread over ends without a rest: code on a CPU, a timer, a packet, a
//! disk, a client who asked for nothing yet. Nothing is judged here.

pub mod chains;
pub mod clients;
mod ends;
#[cfg(test)]
mod tests;
mod timelines;

use std::collections::BTreeMap;

use recording::tables::{WaitStack, Wakeup};

use crate::case::{Case, Fact, gap};
use crate::facts::stacks::Stacks;
use crate::verdict::Gap;
use clients::Clients;
use ends::Ends;
pub use ends::{End, Kind};
use timelines::{Part, Timelines};

/// Hops of a chain; longer ones end as unseen.
const MAX_DEPTH: usize = 16;

/// Steps of the whole walk: beyond, time ends as unseen, so that no recording takes for ever.
const MAX_STEPS: usize = 4_000_000;

/// Waits of the target that are walked; of more, every second, third and so on is, and counts for the others.
const MAX_ROOTS: usize = 20_000;

/// Pieces of a wait shorter than this are not walked on.
const MIN_PIECE_NS: f64 = 5_000.0;

/// Whose waits a node adds up: threads of one name in one process, in one system call.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Who {
    /// Process id.
    pub pid: u32,
    /// Threads' command name.
    pub comm: String,
    /// System call; `none` outside one.
    pub call: String,
    /// Kind of the file that the call is about; `lock` where it is a lock that another thread holds.
    pub fd_kind: String,
}

impl Who {
    /// What it waits in, in words.
    pub fn call_words(&self) -> String {
        let call = if self.call == "none" { "a page fault" } else { &self.call };
        match self.fd_kind.as_str() {
            "" | "anon" => call.to_string(),
            kind => format!("{call} ({kind})"),
        }
    }
}

/// Waits that stand at the same place of a chain, added up.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Time, ns.
    pub ns: f64,
    /// How many waits that were picked.
    pub waits: u64,
    /// The same by kernel stack of the wait, ns.
    pub stacks: BTreeMap<u32, f64>,
    /// What the wakers of these waits waited for meanwhile.
    pub children: BTreeMap<Who, Node>,
    /// What they did instead of waiting, or who needs no explanation, ns.
    pub ends: BTreeMap<End, f64>,
}

impl Node {
    fn end(&mut self, end: End, ns: f64) {
        if ns > 0.0 {
            *self.ends.entry(end).or_default() += ns;
        }
    }

    /// Time by end, over the node and all below it, ns.
    pub fn by_end(&self) -> BTreeMap<&End, f64> {
        let mut sums = BTreeMap::new();
        self.add_ends(&mut sums);
        sums
    }

    fn add_ends<'n>(&'n self, sums: &mut BTreeMap<&'n End, f64>) {
        for (end, ns) in &self.ends {
            *sums.entry(end).or_default() += ns;
        }
        self.children.values().for_each(|child| child.add_ends(sums));
    }
}

/// What the target waited for, and how it came out.
#[derive(Clone, Debug, Default)]
pub struct Walk {
    /// Waits of the target by thread name and call.
    pub waits: BTreeMap<Who, Node>,
    /// Blocked time of the target that was walked, ns.
    pub walked_ns: f64,
    /// User stacks with which the target waits, and how often each was seen.
    codes: BTreeMap<Who, BTreeMap<u32, u64>>,
}

impl Walk {
    /// Id in table `stack` of the user stack with which somebody usually waits; 0 = unknown.
    pub fn code(&self, who: &Who) -> u32 {
        let lock = if who.fd_kind == LOCK { LOCK } else { "" };
        let key = Who { fd_kind: lock.to_string(), ..who.clone() };
        let most = self.codes.get(&key).and_then(|seen| seen.iter().max_by_key(|(_, count)| **count));
        most.map_or(0, |(stack, _)| *stack)
    }
}

/// User stacks by who waits, and whether before a lock.
fn codes(case: &Case) -> BTreeMap<Who, BTreeMap<u32, u64>> {
    let mut codes: BTreeMap<Who, BTreeMap<u32, u64>> = BTreeMap::new();
    for row in case.recording.rows::<WaitStack>().iter().filter(|row| row.stack != 0) {
        let lock = if is_lock(case, row.syscall, &row.args) { LOCK } else { "" };
        let (comm, call) = (row.comm.clone(), case.syscall(row.syscall));
        let who = Who { pid: row.pid, comm, call, fd_kind: lock.to_string() };
        *codes.entry(who).or_default().entry(row.stack).or_default() += 1;
    }
    codes
}

/// What stands for the kind of file where a lock is waited for.
const LOCK: &str = "lock";

impl Fact for Walk {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let rows = case.recording.rows::<Wakeup>();
        if !case.recording.tables.has::<Wakeup>() {
            return Err(gap("walk", "wakeups were not recorded"));
        }
        let stacks = case.fact::<Stacks>()?;
        let target = target_pids(case);
        let ends = Ends::new(case, &stacks)?;
        let clients = case.fact::<Clients>()?;
        let timelines = Timelines::new(rows);
        let roots = roots(rows.iter().filter(|row| target.contains(&row.pid)), &ends);
        let stride = roots.len().div_ceil(MAX_ROOTS).max(1);
        let mut walker = Walker { case, ends: &ends, timelines: &timelines, path: Vec::new(), within: false, steps: 0 };
        let mut walk = Walk { codes: codes(case), ..Walk::default() };
        for (row, ns) in roots.into_iter().step_by(stride) {
            let ns = ns * stride as f64;
            walk.walked_ns += ns;
            // What one thread of the target hands to another is a wait of that other one, and counted there.
            let from_within =
                row.context == "thread" && target.contains(&row.waker_pid) && !is_lock(case, row.syscall, &row.args);
            walker.within = from_within && !clients.ended(case, row);
            walker.enter(row, (begin(row), row.t_ns as f64), ns, &mut walk.waits);
        }
        Ok(walk)
    }
}

/// Waits to explain, with the time that each stands for. One that a signal interrupted goes on when the call is made
/// again: its time is that of the next piece.
fn roots<'r>(rows: impl Iterator<Item = &'r Wakeup>, ends: &Ends<'_>) -> Vec<(&'r Wakeup, f64)> {
    let mut cut_short: BTreeMap<u32, (&Wakeup, f64)> = BTreeMap::new();
    let mut roots = Vec::new();
    for row in rows {
        let mut ns = row.blocked_ns.max(row.wait_ns) as f64;
        match cut_short.remove(&row.tid) {
            Some((before, length)) if before.syscall == row.syscall => ns += length,
            other => roots.extend(other),
        }
        if row.syscall >= 0 && ends.is_cut_short(row) {
            cut_short.insert(row.tid, (row, ns));
        } else {
            roots.push((row, ns));
        }
    }
    roots.extend(cut_short.into_values());
    roots
}

/// Processes of the target; short-lived ones are not among them.
fn target_pids(case: &Case) -> std::collections::BTreeSet<u32> {
    let processes = case.recording.rows::<recording::tables::Process>();
    let named = case.recording.meta.target.pids.iter().copied();
    processes.iter().map(|p| p.pid).filter(|pid| *pid != 0).chain(named).collect()
}

/// When a wait began, ns after the capture's start.
fn begin(row: &Wakeup) -> f64 {
    row.t_ns as f64 - row.wait_ns as f64
}

struct Walker<'a, 'r> {
    case: &'a Case<'r>,
    ends: &'a Ends<'a>,
    timelines: &'a Timelines<'a>,
    /// Threads whose waits are being explained, from the root.
    path: Vec<u32>,
    /// The root that is walked was ended by another thread of the target.
    within: bool,
    steps: usize,
}

impl Walker<'_, '_> {
    /// Books `ns` on the wait of a row, and explains it by what happened in the span.
    fn enter(&mut self, row: &Wakeup, span: (f64, f64), ns: f64, nodes: &mut BTreeMap<Who, Node>) {
        let who = Who {
            pid: row.pid,
            comm: row.comm.clone(),
            call: self.case.syscall(row.syscall),
            fd_kind: if is_lock(self.case, row.syscall, &row.args) { LOCK.to_string() } else { row.fd_kind.clone() },
        };
        let node = nodes.entry(who).or_default();
        node.ns += ns;
        node.waits += 1;
        *node.stacks.entry(row.stack).or_default() += ns;
        if self.within && self.path.is_empty() {
            return node.end(End::of_waker(Kind::HandOver, row, ""), ns);
        }
        match self.ends.of(row) {
            Some(end) => node.end(end, ns),
            None => self.explain(row, span, ns, node),
        }
    }

    fn is_same_lock(&self, a: &Wakeup, b: &Wakeup) -> bool {
        let is_lock = |row: &Wakeup| is_lock(self.case, row.syscall, &row.args);
        a.pid == b.pid && a.args.first() == b.args.first() && is_lock(a) && is_lock(b)
    }

    /// Spreads a wait that a thread ended over what that thread did meanwhile.
    fn explain(&mut self, row: &Wakeup, span: (f64, f64), ns: f64, node: &mut Node) {
        self.steps += 1;
        let length = span.1 - span.0;
        if length < MIN_PIECE_NS || self.path.len() >= MAX_DEPTH || self.steps > MAX_STEPS {
            let kind = if length < MIN_PIECE_NS { Kind::Short } else { Kind::Unseen };
            return node.end(End::of_waker(kind, row, ""), ns);
        }
        self.path.push(row.tid);
        let activity = self.timelines.activity(row.waker_tid, span);
        // The answer came right after somebody else had brought something: that is what was waited for, as in a queue.
        let brought = activity.waits.last().is_some_and(|p| is_brought(p.row, row, &self.path));
        let says_nothing =
            |wait: &Wakeup| brought || is_new_work(wait, row, &self.path) || self.ends.is_cut_short(wait);
        let (new, other): (Vec<_>, Vec<_>) = activity.waits.into_iter().partition(|p| says_nothing(p.row));
        let time = |parts: &[Part<'_>]| parts.iter().map(Part::length).sum::<f64>();
        let scale = ns / length;
        // Work that came in for a waker does not say what the work at hand waited for, nor does a signal: their time
        // is spread over what does.
        let spread = if other.is_empty() { 1.0 } else { 1.0 + time(&new) / time(&other) };
        if other.is_empty() {
            node.end(End::of_waker(Kind::Client, row, ""), time(&new) * scale);
        }
        for part in other {
            let ns = part.length() * spread * scale;
            // Whoever stood before the same lock adds nothing: all of them wait for those who held it in turn.
            if self.is_same_lock(row, part.row) {
                self.explain(part.row, part.span, ns, node);
            } else {
                self.enter(part.row, part.span, ns, &mut node.children);
            }
        }
        for (kind, length) in activity.active {
            node.end(End::of_waker(kind, row, self.ends.code_of_waker(row)), length * scale);
        }
        self.path.pop();
    }
}

/// Whether a wait is for a lock that another thread holds. Mutexes of glibc, of Rust's library and of Go's runtime put a
/// 2 where they sleep on one; condition variables, which sleep until there is work, put a sequence number there.
fn is_lock(case: &Case, syscall: i32, args: &[u64]) -> bool {
    const OPERATION: u64 = 0x7f;
    const WAIT: [u64; 2] = [0, 9]; // FUTEX_WAIT, FUTEX_WAIT_BITSET
    const LOCK: [u64; 2] = [6, 13]; // FUTEX_LOCK_PI, FUTEX_LOCK_PI2
    const CONTENDED: u64 = 2;
    let [_, operation, value, ..] = *args else { return false };
    let operation = operation & OPERATION;
    let is_futex = crate::syscall::family(&case.syscall(syscall)) == crate::syscall::Family::Futex;
    let contended = value & 0xffff_ffff == CONTENDED;
    is_futex && (LOCK.contains(&operation) || WAIT.contains(&operation) && contended)
}

/// Whether a wait of a waker ended because somebody outside the chain asked it for something at the same port.
fn is_brought(wait: &Wakeup, asked: &Wakeup, path: &[u32]) -> bool {
    is_new_work(wait, asked, path) && !path.contains(&wait.waker_tid)
}

/// Whether a wait of a waker ended with something new to do for it: by somebody who waits for it already, or by
/// another one through the port at which it was asked.
fn is_new_work(wait: &Wakeup, asked: &Wakeup, path: &[u32]) -> bool {
    let through_same_port = asked.waker_local_port != 0 && wait.waker_remote_port == asked.waker_local_port;
    let of_path = wait.context == "thread" && path.contains(&wait.waker_tid);
    of_path || wait.context == "thread" && through_same_port
}
