// SPDX-License-Identifier: Apache-2.0
//! The largest line of the ledger that is not idleness: what a reader should be told first, whatever the verdict.

use std::collections::BTreeMap;

use super::blocked::{Blocked, Evidence, kind, symbols};
use super::threads::Threads;
use crate::case::Case;
use crate::facts::stacks::Stacks;
use crate::facts::waiting::Waiting;
use crate::statistics::share;
use crate::walk::chains::Chain;

/// A line of the ledger, without what of it was idleness.
#[derive(Clone, Debug, PartialEq)]
pub struct Largest {
    /// Its public name.
    pub line: &'static str,
    /// Time on it, ns.
    pub ns: f64,
    /// Share of it in all threads' active time.
    pub of_busy: f64,
}

/// Kinds of blocks that an idle thread stands in too: how much of them was waiting, only the walk tells.
const MAYBE_IDLE: &[Blocked] = &[
    Blocked::SocketRead,
    Blocked::Accept,
    Blocked::Poll,
    Blocked::Futex,
    Blocked::Semaphore,
    Blocked::Sleep,
    Blocked::Pipe,
    Blocked::Tty,
    Blocked::Child,
    Blocked::Other,
    Blocked::Unattributed,
];

/// The largest line that is not idleness; none = nothing but idleness, or there is no ledger.
pub fn largest(case: &Case) -> Option<Largest> {
    let lines = lines(case)?;
    let all: f64 = lines.iter().map(|(_, ns)| ns).sum();
    let (line, ns) = lines.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, ns)| *ns > 0.0)?;
    Some(Largest { line, ns, of_busy: share(ns, all) })
}

/// Active time by the ledger, ns: all of its lines without what of them was idleness.
pub fn active_ns(case: &Case) -> f64 {
    lines(case).map_or(0.0, |lines| lines.iter().map(|(_, ns)| ns).sum())
}

/// The ledger's lines without what of them was idleness, ns.
fn lines(case: &Case) -> Option<Vec<(&'static str, f64)>> {
    let ledger = case.fact::<Threads>().ok()?;
    let waited = waited(case);
    let busy = |(line, ns): (&'static str, f64)| match MAYBE_IDLE.iter().find(|kind| kind.line() == line) {
        Some(kind) => (line, ns.min(waited.get(kind).copied().unwrap_or(0.0))),
        None => (line, ns),
    };
    Some(ledger.total.named().into_iter().map(busy).collect())
}

/// Time of kinds of blocks in which somebody was waited for, ns.
fn waited(case: &Case) -> BTreeMap<Blocked, f64> {
    let mut by_kind = BTreeMap::new();
    let (Ok(waiting), Ok(stacks)) = (case.fact::<Waiting>(), case.fact::<Stacks>()) else { return by_kind };
    for chain in &waiting.chains {
        *by_kind.entry(kind_of(chain, &stacks)).or_default() += chain.ns;
    }
    by_kind
}

/// The line that a chain begins on.
pub fn line_of(chain: &Chain, stacks: &Stacks) -> &'static str {
    kind_of(chain, stacks).line()
}

/// The kind of block that a chain begins with.
fn kind_of(chain: &Chain, stacks: &Stacks) -> Blocked {
    let first = &chain.links[0];
    kind(&Evidence {
        syscall: &first.who.call,
        fd_kind: &first.who.fd_kind,
        file_system: 0,
        state: 1,
        io_wait: false,
        stack: &symbols(stacks, first.stack),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    fn told(text: &str) -> Option<Largest> {
        let recording = parse(text).unwrap();
        largest(&Case::new(&recording))
    }

    #[test]
    fn idleness_is_left_out() {
        let text = "meta host.arch=x86_64 length_ns=1e9 target.pids=[1]
            frame id=1 symbol=down_read module=kernel kind=kernel
            frame id=2 symbol=vm_mmap_pgoff module=kernel kind=kernel
            stack id=1 frames=[1,2]
            wakeup
            thread pid=1 tid=1 wall_ns=9e9 cpu_ns=1e8 blocked_ns=89e8
            wait pid=1 tid=1 syscall=232 state=1 total_ns=86e8
            wait pid=1 tid=1 syscall=9 state=2 stack=1 count=9 total_ns=3e8";
        let found = told(text).unwrap();
        assert_eq!((found.line, found.ns, found.of_busy), ("blocked_kernel_lock", 3e8, 0.75));
    }

    #[test]
    fn waiting_for_others_counts_as_far_as_the_walk_goes() {
        let text = "meta host.arch=x86_64 length_ns=1e9 target.pids=[1]
            frame id=1 symbol=hrtimer_wakeup module=kernel kind=kernel
            stack id=1 frames=[1]
            wakeup t_ns=900e6 pid=1 tid=1 comm=api wait_ns=5e8 blocked_ns=5e8 syscall=35 state=1 context=interrupt waker_stack=1
            thread pid=1 tid=1 wall_ns=9e9 cpu_ns=1e8 blocked_ns=89e8
            wait pid=1 tid=1 syscall=35 state=1 total_ns=89e8";
        let found = told(text).unwrap();
        assert_eq!((found.line, found.ns), ("blocked_sleep", 5e8));
        assert_eq!(told(""), None);
    }
}
