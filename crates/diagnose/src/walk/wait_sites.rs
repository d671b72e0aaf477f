// SPDX-License-Identifier: Apache-2.0
//! Where in its program somebody waits.

use std::collections::BTreeMap;

use recording::tables::{Sample, WaitStack, Wakeup};

use super::futex;
use super::inner_loops::InnerLoops;
use super::who::{INNER, LOCK, SLEEP, TIMED, Who, kind_of_thread};
use crate::case::Case;
use crate::facts::stacks::Stacks;
use crate::runtimes::interpreter_locks::{self, InterpreterLock};
use crate::runtimes::parking;
use crate::syscall::{Family, family};

/// Parts of the names of functions that look up a host's name: of glibc, musl, and the resolver libraries.
const RESOLVERS: &[&str] =
    &["getaddrinfo", "gethostby", "_nss_dns_", "res_nsearch", "res_nquery", "res_nsend", "res_msend", "name_from_dns"];

/// Parts of the names of functions that only let time pass, where a runtime sleeps by other means than the call for it: the
/// JVM, .NET.
const SLEEPS: &[&str] = &["JVM_Sleep", "JavaThread::sleep", "ThreadNative_Sleep", "SleepEx"];

/// Where a lock of an interpreter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// Process.
    pub pid: u32,
    /// In its memory.
    pub address: u64,
    /// So far around it, too.
    pub wide: u64,
}

/// The lock of an interpreter is a mutex and one or two condition variables in a row, each a few words that threads sleep on.
const WIDE: u64 = 128;

/// The stack that was seen most often.
fn most(seen: &BTreeMap<u32, u64>) -> u32 {
    seen.iter().max_by_key(|(_, count)| **count).map_or(0, |(stack, _)| *stack)
}

/// A stack that was taken when a thread was about to wait.
#[derive(Clone, Copy, Debug)]
struct Before {
    t_ns: u64,
    syscall: i32,
    stack: u32,
}

/// User stacks by who waits, and whether before a lock; and by who wakes others.
#[derive(Clone, Debug, Default)]
pub struct WaitSites {
    seen: BTreeMap<Who, BTreeMap<u32, u64>>,
    /// By thread, in the order of time: before which wait a stack was taken.
    before: BTreeMap<u32, Vec<Before>>,
    waking: BTreeMap<(u32, String), BTreeMap<u32, u64>>,
    resolving: Vec<u32>,
    sleeping: Vec<u32>,
    parking: Vec<u32>,
    /// Locks of interpreters.
    interpreters: Vec<At>,
    interpreter: Option<&'static InterpreterLock>,
    /// Stacks of waits in futex, and those of them that stood before that lock.
    futex: (u64, u64),
}

impl WaitSites {
    /// Counts the stacks of table `wait_stack`.
    pub fn new(case: &Case, stacks: &Stacks, inner_loops: &InnerLoops) -> Self {
        let mut sites = Self::default();
        for row in case.recording.rows::<WaitStack>().iter().filter(|row| row.stack != 0) {
            if row.wakes {
                // Whoever gives back a lock wakes somebody too, and answers nobody.
                if family(&case.syscall(row.syscall)) == Family::Futex {
                    continue;
                }
                let who = (row.pid, kind_of_thread(&row.comm));
                *sites.waking.entry(who).or_default().entry(row.stack).or_default() += 1;
                continue;
            }
            let (comm, call) = (kind_of_thread(&row.comm), case.syscall(row.syscall));
            let is_inner = inner_loops.is_inner(case, (row.tid, &row.comm), (row.syscall, &row.args));
            let fd_kind = if is_inner { INNER } else { futex::kind(case, row) }.to_string();
            let who = Who { pid: row.pid, comm, call, fd_kind, ..Who::default() };
            *sites.seen.entry(who).or_default().entry(row.stack).or_default() += 1;
            let before = Before { t_ns: row.t_ns, syscall: row.syscall, stack: row.stack };
            sites.before.entry(row.tid).or_default().push(before);
        }
        sites.find_interpreters(case, stacks);
        sites.before.values_mut().for_each(|thread| thread.sort_by_key(|before| before.t_ns));
        sites.resolving = sites.with(stacks, RESOLVERS);
        sites.sleeping = sites.with(stacks, SLEEPS);
        sites.parking = sites.all().filter(|id| parking::parks(stacks.user(*id))).collect();
        sites
    }

    /// Locks of interpreters, by the stacks of those that wait in futex, and of those that were sampled in that call.
    fn find_interpreters(&mut self, case: &Case, stacks: &Stacks) {
        let waits = case.recording.rows::<WaitStack>().iter().filter(|row| !row.wakes);
        let waits = waits.map(|row| (row.pid, row.syscall, &row.args, row.stack));
        let samples = case.recording.rows::<Sample>().iter().filter(|row| row.kernel);
        let samples = samples.map(|row| (row.pid, row.syscall, &row.args, row.stack));
        for (pid, syscall, args, stack) in waits.chain(samples) {
            let Some(&address) = args.first().filter(|_| family(&case.syscall(syscall)) == Family::Futex) else {
                continue;
            };
            self.futex.0 += 1;
            let Some(lock) = interpreter_locks::of(stacks.user(stack)) else { continue };
            self.futex.1 += 1;
            self.interpreter = Some(lock);
            let at = At { pid, address, wide: if lock.alone { WIDE } else { 0 } };
            let tells = lock.alone || interpreter_locks::is_mutex(stacks.user(stack));
            if tells && !self.interpreters.contains(&at) {
                self.interpreters.push(at);
            }
        }
    }

    /// Whether threads that sleep in futex mostly stand before the lock of their interpreter, where the address does not tell.
    pub fn mostly_interpreter(&self) -> bool {
        let is_shared = self.interpreter.is_some_and(|lock| !lock.alone);
        is_shared && self.futex.1 * 2 >= self.futex.0
    }

    /// Where locks of interpreters are.
    pub fn interpreters(&self) -> &[At] {
        &self.interpreters
    }

    /// What that lock is called.
    pub fn interpreter(&self) -> Option<&'static InterpreterLock> {
        self.interpreter
    }

    /// Stacks with a function of a list.
    fn with(&self, stacks: &Stacks, list: &[&str]) -> Vec<u32> {
        let has = |id: &u32| stacks.user(*id).any(|code| list.iter().any(|name| code.symbol.contains(name)));
        self.all().filter(has).collect()
    }

    /// All stacks with which somebody waits.
    fn all(&self) -> impl Iterator<Item = u32> {
        self.seen.values().flat_map(BTreeMap::keys).copied()
    }

    /// Whether a runtime keeps a thread there that has no work: by the stack of the very wait, or else the usual one.
    pub fn parks(&self, case: &Case, row: &Wakeup, who: &Who) -> bool {
        if self.parking.is_empty() || !matches!(family(&who.call), Family::Futex | Family::Sleep) {
            return false;
        }
        // Who stands before a lock usually does so elsewhere than who has no work.
        let alike = || Who { fd_kind: futex::kind(case, row).to_string(), ..who.clone() };
        let own = self.of(row);
        self.parking.contains(&if own == 0 { self.usual(&alike()) } else { own })
    }

    /// The stack with which the very wait of a row began; 0 = none was taken.
    pub fn of(&self, row: &Wakeup) -> u32 {
        // When it began is known from the length of its neighbours too, so not to the nanosecond.
        let from = row.t_ns.saturating_sub(row.wait_ns.saturating_add(row.wait_ns / 4)).max(row.since_ns);
        let thread = self.before.get(&row.tid).map_or(&[][..], Vec::as_slice);
        let last = thread[..thread.partition_point(|before| before.t_ns < row.t_ns)].last();
        last.filter(|before| before.t_ns >= from && before.syscall == row.syscall).map_or(0, |before| before.stack)
    }

    /// The stack with which somebody usually waits; 0 = unknown.
    pub fn usual(&self, who: &Who) -> u32 {
        let kind = match who.fd_kind.as_str() {
            INNER => INNER,
            LOCK => LOCK,
            TIMED | SLEEP => TIMED,
            _ => "",
        };
        let key = Who { fd_kind: kind.into(), peer: String::new(), path: String::new(), ..who.clone() };
        self.seen.get(&key).map_or(0, most)
    }

    /// The stack with which threads outside the target usually wake others; 0 = unknown.
    pub fn waking(&self, pid: u32, comm: &str) -> u32 {
        self.waking.get(&(pid, kind_of_thread(comm))).map_or(0, most)
    }

    /// Whether somebody usually lets time pass there.
    pub fn sleeps(&self, who: &Who) -> bool {
        !self.sleeping.is_empty() && self.sleeping.contains(&self.usual(who))
    }

    /// Whether somebody usually waits there for a name to be looked up.
    pub fn asks_dns(&self, who: &Who) -> bool {
        !self.resolving.is_empty() && self.resolving.contains(&self.usual(who))
    }
}
