// SPDX-License-Identifier: Apache-2.0
//! The walk: from a wait, through its wakeups, to the cause at the end.
//!
//! A wait ends because somebody woke the sleeper. What that waker did in the time of the wait is what the sleeper waited
//! for: it ran, it stood in a CPU's queue, or it waited itself, and then the same is asked about that wait, cut to the
//! time that both have in common. So every wait is spread over ends without a rest: code on a CPU, a timer, a packet, a
//! disk, a client who asked for nothing yet. Nothing is judged here.

mod births;
pub mod chains;
pub mod clients;
mod context;
mod ends;
pub(crate) mod futex;
mod hand_offs;
pub mod idleness;
mod inner_loops;
pub mod paths;
mod programs;
mod ran;
#[cfg(test)]
mod tests;
mod timelines;
mod wait_sites;
mod waits;
mod walker;
mod who;

use std::collections::{BTreeMap, BTreeSet};

use recording::tables::Wakeup;

use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::facts::stacks::Stacks;
use crate::runtimes::interpreter_locks::InterpreterLock;
use chains::Chain;
use clients::Clients;
use context::Context;
use ends::Ends;
pub use ends::{End, Kind};
use hand_offs::HandOffs;
use idleness::Idleness;
use inner_loops::InnerLoops;
use programs::Programs;
use timelines::Timelines;
use wait_sites::WaitSites;
use waits::Wait;
use walker::Walker;
pub use who::{
    AGAIN, DNS, HAND_OFF, INNER, INTERPRETER, LOCK, LOOP, PARKED, SLEEP, TIMED, Who, kind_of_thread, lasting, name,
};

/// Waits of the target that are walked; of more, every second, third and so on is, and counts for the others.
const MAX_ROOTS: usize = 20_000;

/// Waits that stand at the same place of a chain, added up.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Time, ns.
    pub ns: f64,
    /// How many waits that were picked.
    pub waits: u64,
    /// How many waits of their lengths make up that time: long ones are picked more often than short ones.
    pub number: f64,
    /// The same by kernel stack of the wait, ns.
    pub kernel_stacks: BTreeMap<u32, f64>,
    /// The same by user stack, of the waits before which one was taken, ns.
    pub user_stacks: BTreeMap<u32, f64>,
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
}

/// What the target waited for, and how it came out.
#[derive(Clone, Debug, Default)]
pub struct Walk {
    /// Waits of the target by thread name and call.
    pub waits: BTreeMap<Who, Node>,
    /// Blocked time of the target that was walked, ns.
    pub walked_ns: f64,
    /// Processes of the target; short-lived ones are not among them.
    pub target: BTreeSet<u32>,
    /// All ways through it, those that explain most time first.
    pub chains: Vec<Chain>,
    /// How much of its threads' waiting was idleness.
    pub idleness: Idleness,
    /// For how long threads were on a CPU while others stood before the lock of their interpreter, ns.
    pub had_interpreter: BTreeMap<(u32, u32), f64>,
    /// User stacks with which the target waits, and how often each was seen.
    sites: WaitSites,
    hand_offs: HandOffs,
    programs: Programs,
}

impl Walk {
    /// What is known of the target's threads before their waits are walked.
    fn unwalked(case: &Case, clients: &Clients, stacks: &Stacks) -> Self {
        let (target, programs) = (target_pids(case), Programs::new(case));
        let inner_loops = InnerLoops::new(case, clients, &target);
        let sites = WaitSites::new(case, stacks, &inner_loops);
        let hand_offs = HandOffs::new(case, clients, &target, &sites, inner_loops);
        Self { target, sites, hand_offs, programs, ..Self::default() }
    }

    /// Id in table `stack` of the user stack with which somebody usually waits; 0 = unknown.
    pub fn code(&self, who: &Who) -> u32 {
        self.sites.usual(who)
    }

    /// Whether some of the target's threads serve one client at a time.
    pub fn has_serving_threads(&self) -> bool {
        self.hand_offs.serve()
    }

    /// Whether a thread of the target serves one client at a time.
    pub fn serves_one(&self, tid: u32) -> bool {
        self.hand_offs.serves(tid)
    }

    /// The lock of an interpreter before which threads of the target were seen.
    pub fn interpreter_lock(&self) -> Option<&'static InterpreterLock> {
        self.sites.interpreter()
    }

    /// Whether a wait of one thread for another is most likely one for that lock, where the address does not tell.
    pub fn mostly_interpreter(&self) -> bool {
        self.sites.mostly_interpreter()
    }

    /// Whether a thread of the target waited for its turn.
    pub fn is_turn(&self, case: &Case, row: &Wakeup) -> bool {
        self.target.contains(&row.pid) && self.hand_offs.held_in_turn(case, row) == Some(HAND_OFF)
    }

    /// Whether a thread of the target only let time pass in a wait.
    pub fn slept(&self, case: &Case, row: &Wakeup) -> bool {
        let (comm, call) = (kind_of_thread(&row.comm), case.syscall(row.syscall));
        let mut who = Who { pid: row.pid, comm, call, ..Who::default() };
        if self.sites.parks(case, row, &who) {
            return false; // the runtime's own round
        }
        if row.context == "interrupt" && futex::kind(case, row) == TIMED {
            who.fd_kind = TIMED.to_string();
            return self.sites.sleeps(&who);
        }
        who.sleeps()
    }

    /// Id of the user stack with which a thread outside the target usually wakes others; 0 = unknown.
    pub fn waking(&self, pid: u32, comm: &str) -> u32 {
        self.sites.waking(pid, comm)
    }

    /// The same of whoever stands at an end: the one who did it, or `last`, who waited for it.
    pub fn answer(&self, last: &Who, end: &End) -> u32 {
        if end.name().is_empty() { self.waking(last.pid, &last.comm) } else { self.waking(end.pid, &end.comm) }
    }
}

impl Fact for Walk {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let rows = case.recording.rows::<Wakeup>();
        if !case.recording.tables.has::<Wakeup>() {
            return Err(Gap::not_recorded("walk", "wakeups were not recorded"));
        }
        let stacks = case.fact::<Stacks>()?;
        let clients = case.fact::<Clients>()?;
        let mut walk = Self::unwalked(case, &clients, &stacks);
        let ends = Ends::new(case, &stacks, &walk.hand_offs.inner_loops)?;
        let context = Context {
            case,
            ends: &ends,
            timelines: &Timelines::new(case, rows, &ends),
            target: &walk.target,
            hand_offs: &walk.hand_offs,
            sites: &walk.sites,
        };
        let roots: Vec<&Wait<'_>> =
            context.timelines.waits().filter(|wait| walk.target.contains(&wait.row.pid)).collect();
        let stride = roots.len().div_ceil(MAX_ROOTS).max(1);
        let mut walker = Walker::new(&context);
        for wait in roots.into_iter().step_by(stride) {
            let (row, ns) = (wait.row, wait.ns * stride as f64);
            walk.walked_ns += ns;
            walk.idleness.book(&context, row, ns);
            if context.held_in_turn(row) == Some(INTERPRETER) {
                had_interpreter(&context, wait, stride as f64, &mut walk.had_interpreter);
            }
            let who = context.who(row);
            let is_handed = is_handed(&context, &who, row) && !clients.ended(case, row);
            let node = context.book_on(who, row, ns, &mut walk.waits);
            if is_handed {
                node.end(End::of_waker(Kind::HandOver, row, ""), ns);
            } else {
                walker.follow(row, (wait.begin(), wait.end()), ns, node);
            }
        }
        walk.idleness.settle();
        walk.chains = chains::of(&walk);
        Ok(walk)
    }
}

/// Whether another thread of the target handed something to one: what that other one waited for is counted there. But who writes to a
/// process that the target has started, as to a program for its log, stands until that one has read.
fn is_handed(context: &Context<'_, '_>, who: &Who, row: &Wakeup) -> bool {
    let is_read_there = row.waker_pid != row.pid && who.fills_a_pipe();
    let within = row.context == "thread" && context.target.contains(&row.waker_pid) && !is_read_there;
    within && context.held_in_turn(row).is_none()
}

/// Books who may have had the lock of an interpreter while a thread stood before it.
fn had_interpreter(context: &Context<'_, '_>, wait: &Wait<'_>, times: f64, had: &mut BTreeMap<(u32, u32), f64>) {
    for holder in context.meanwhile(wait.row, (wait.begin(), wait.end())) {
        *had.entry((wait.row.pid, holder.tid)).or_default() += holder.on_cpu_ns * times;
    }
}

/// Processes of the target; short-lived ones are not among them.
fn target_pids(case: &Case) -> BTreeSet<u32> {
    let processes = case.recording.rows::<recording::tables::Process>();
    let named = case.recording.meta.target.pids.iter().copied();
    processes.iter().map(|p| p.pid).filter(|pid| *pid != 0).chain(named).collect()
}
