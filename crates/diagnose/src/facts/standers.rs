// SPDX-License-Identifier: Apache-2.0
//! Threads that stood in one wait when the capture ended: in what, called from where, and with which requests in hand.

use std::collections::{BTreeMap, BTreeSet};

use recording::tables::{Standing, Wakeup};

use super::stacks::Stacks;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::ledger::blocked::{Blocked, of_wakeup};
use crate::runtimes::{event_loops, parking};
use crate::walk::clients::Clients;
use crate::walk::{INNER, PARKED, Who, futex, kind_of_thread};

/// One of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Stander {
    /// Its kind of thread, and in what it stands.
    pub who: Who,
    /// Thread id.
    pub tid: u32,
    /// Line of the ledger.
    pub line: Blocked,
    /// For how long so far, ns.
    pub wait_ns: f64,
    /// Requests that it has read and that nobody has answered.
    pub requests: f64,
    /// That is how threads wait for work: for a client, for whatever a poll may tell, or where a runtime keeps them.
    pub is_for_work: bool,
    /// The thread that has the mutex before which it stands; none = it stands before no mutex whose owner is known.
    pub owner: Option<u32>,
    /// User stack; 0 = unknown.
    pub stack: u32,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub struct Standers {
    /// In the order of the recording.
    pub all: Vec<Stander>,
}

/// Threads that stand at one place.
#[derive(Clone, Debug)]
pub struct Place<'s> {
    /// Those, the one that has stood longest first.
    pub threads: Vec<&'s Stander>,
    /// Functions of the program, innermost first.
    pub from: Vec<String>,
}

impl Place<'_> {
    /// Requests that these threads have read.
    pub fn requests(&self) -> f64 {
        self.threads.iter().map(|stander| stander.requests).sum()
    }
}

impl Standers {
    /// Places where threads stand for something else than work, those with most requests and most threads first.
    pub fn places(&self, stacks: &Stacks) -> Vec<Place<'_>> {
        let mut by_place: BTreeMap<_, Vec<&Stander>> = BTreeMap::new();
        for stander in self.all.iter().filter(|stander| !stander.is_for_work) {
            by_place.entry((&stander.who, functions(stacks, stander))).or_default().push(stander);
        }
        let mut places: Vec<Place<'_>> = by_place
            .into_iter()
            .map(|((_, from), mut threads)| {
                threads.sort_by(|a, b| b.wait_ns.total_cmp(&a.wait_ns));
                Place { threads, from }
            })
            .collect();
        places.sort_by(|a, b| b.requests().total_cmp(&a.requests()).then(b.threads.len().cmp(&a.threads.len())));
        places
    }
}

/// The program's own functions in which a thread stands, those that have a name, innermost first.
pub fn functions(stacks: &Stacks, stander: &Stander) -> Vec<String> {
    let own = stacks.callers_of_locks(stander.stack).filter(|code| !code.symbol.is_empty());
    own.map(|code| code.symbol.clone()).collect()
}

impl Fact for Standers {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let rows = case.recording.rows::<Standing>();
        let (clients, stacks) = (case.fact::<Clients>()?, case.fact::<Stacks>()?);
        // Of many at one place, a few show their stacks.
        let shown = rows.iter().filter(|row| row.user_stack != 0).map(|row| (place(row), row.user_stack));
        let shown: BTreeMap<_, _> = shown.collect();
        let stack = |row: &Standing| match row.user_stack {
            0 => shown.get(&place(row)).copied().unwrap_or(0),
            own => own,
        };
        let mut all: Vec<Stander> = rows.iter().map(|row| stander(case, &clients, &stacks, row, stack(row))).collect();
        // Whoever has the lock takes work with it: so do those behind, in their turn.
        let leaders: BTreeSet<u32> = all.iter().filter(|one| one.is_for_work).map(|one| one.tid).collect();
        all.iter_mut()
            .filter(|one| one.owner.is_some_and(|owner| leaders.contains(&owner)))
            .for_each(|one| one.is_for_work = true);
        Ok(Self { all })
    }
}

/// What two rows have in common that stand at the same place of a program.
fn place(row: &Standing) -> (u32, i32, Option<u64>, u32) {
    (row.pid, row.syscall, row.args.first().copied().filter(|_| !row.own_frame), row.stack)
}

fn stander(case: &Case, clients: &Clients, stacks: &Stacks, row: &Standing, stack: u32) -> Stander {
    let wait = as_wakeup(row);
    let line = of_wakeup(case, stacks, &wait);
    let peer = clients.asked_by(&wait);
    let is_parked = parking::parks(stacks.user(stack));
    let is_inner = line == Blocked::Poll && event_loops::is_inside(stacks.user(stack));
    let polls = line == Blocked::Poll && peer.is_none() && !is_inner;
    let fd_kind = match futex::kind(case, &wait) {
        _ if is_parked => PARKED.to_string(),
        _ if is_inner => INNER.to_string(),
        "" => row.fd_kind.clone(),
        kind => kind.to_string(),
    };
    let is_for_work = is_parked || line == Blocked::Accept || polls || clients.is_read(case, &wait);
    let has_owner = row.owner != 0 && futex::is_lock(case, &wait) && in_mutex(stacks, stack);
    let comm = kind_of_thread(&row.comm);
    Stander {
        who: Who {
            pid: row.pid,
            comm,
            call: case.syscall(row.syscall),
            fd_kind,
            peer: peer.unwrap_or_default(),
            path: row.path.clone(),
        },
        tid: row.tid,
        line,
        wait_ns: row.wait_ns as f64,
        requests: f64::from(row.requests),
        is_for_work,
        owner: has_owner.then_some(row.owner),
        stack,
    }
}

/// Whether a stack stands in the C library's mutex, the one kind that keeps its owner where it is looked for.
fn in_mutex(stacks: &Stacks, stack: u32) -> bool {
    const MUTEX: [&str; 2] = ["mutex_lock", "lll_lock_wait"];
    let is_libc =
        |file: &str| file.starts_with("libc.so") || file.starts_with("libc-2") || file.starts_with("libpthread");
    stacks.user(stack).any(|code| is_libc(code.file()) && MUTEX.iter().any(|part| code.symbol.contains(part)))
}

/// The same as if it had ended now, by nobody.
fn as_wakeup(row: &Standing) -> Wakeup {
    Wakeup {
        t_ns: row.t_ns,
        pid: row.pid,
        tid: row.tid,
        comm: row.comm.clone(),
        wait_ns: row.wait_ns,
        syscall: row.syscall,
        args: row.args.clone(),
        own_frame: row.own_frame,
        fd_kind: row.fd_kind.clone(),
        file_system: row.file_system,
        state: row.state,
        io_wait: row.io_wait,
        stack: row.stack,
        family: row.family,
        local_port: row.local_port,
        remote_port: row.remote_port,
        peer: row.peer.clone(),
        path: row.path.clone(),
        ..Wakeup::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    fn of(rows: &str) -> Vec<Stander> {
        let text = format!(
            "meta host.arch=x86_64 length_ns=4e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
             process pid=1 listen=[\"tcp 0.0.0.0:80\"]
             frame id=1 symbol=pthread_mutex_lock module=/lib/libc.so.6 kind=native
             frame id=2 symbol=debit module=/svc kind=native
             frame id=3 symbol=std::mutex::lock module=/svc kind=native
             stack id=1 frames=[1,2] complete=true
             stack id=2 frames=[3,2] complete=true
             {rows}"
        );
        Case::new(&parse(&text).unwrap()).fact::<Standers>().unwrap().all.clone()
    }

    const LOCK: &str = "standing pid=1 tid=2 comm=w-7 wait_ns=3e9 syscall=202 args=[64,128,2,0] owner=9";

    #[test]
    fn the_owner_of_a_mutex_of_the_c_library() {
        let all = of(&format!("{LOCK} user_stack=1\n{LOCK}\n{}", LOCK.replace("128,2,", "128,7,")));
        assert_eq!((all[0].owner, all[0].who.fd_kind.as_str()), (Some(9), "lock"));
        assert_eq!((all[1].owner, all[1].stack), (Some(9), 1), "another thread shows the place");
        assert_eq!((all[2].owner, all[2].who.fd_kind.as_str()), (None, ""), "a condition variable");
        assert_eq!(of(&format!("{LOCK} user_stack=2"))[0].owner, None, "another library's");
        assert_eq!(of(LOCK)[0].owner, None, "nobody knows what it is");
    }

    #[test]
    fn who_waits_for_work() {
        let idle = |row: &str| of(&format!("standing pid=1 tid=2 wait_ns=3e9 {row}"))[0].is_for_work;
        assert!(idle("syscall=43") && idle("syscall=232"), "accept, epoll_wait");
        assert!(idle("syscall=45 fd_kind=socket family=2 local_port=80 remote_port=5 peer=10.0.0.9"), "a client");
        assert!(!idle("syscall=45 fd_kind=socket family=2 local_port=7 remote_port=5432 peer=10.0.0.9"));
        assert!(!idle("syscall=7 fd_kind=socket family=2 local_port=7 remote_port=5432 peer=10.0.0.9"), "in a poll");
        assert!(!idle("syscall=230") && !idle("syscall=202 args=[64,128,7,0]"));
    }
}
