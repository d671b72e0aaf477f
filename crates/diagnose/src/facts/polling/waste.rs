// SPDX-License-Identifier: Apache-2.0
//! What empty calls cost a thread, estimated from its samples:
//!
//! - samples in the kernel inside such a call, times the share of these calls that found nothing;
//! - user-mode samples of the function that makes the empty calls (the loop), and calls such as
//!   clock_gettime that it makes beside them, times the share of its rounds that were empty, but no more than the empty
//!   calls have of its time in the kernel: a compiler puts the handlers of events into the loop, and one round with sixty of them
//!   outweighs hundreds without any;
//! - where the calls themselves are a tenth of the thread's time or more ([`TIGHT`]) and windows saw
//!   not one that found or sent anything, all of its samples: then the branch for "nothing
//!   happened" is all that ever ran. Not so for yields and sleeps, which never find anything: what
//!   their thread does in between may be its work. A simulation that glances at a socket between its steps finds
//!   nothing either, but its glances cost nothing: its work is its own.
//!
//! What the loop calls in other functions is *not* counted while it finds work: whether these are
//! the handler of events or the branch for nothing cannot be told, and the handler is honest. In an
//! interpreted program, loop and handler are the same function, and an event loop asks with nothing to wait for
//! only because its handlers keep queueing; there, all samples count already when rounds are tight and hardly one
//! in a thousand finds work.
//! Without samples of the thread, its CPU time is shared by number of calls.
//!
//! The constants here are part of this estimate: by which reckoning waste is counted, not how much of it is too much.

use std::collections::{BTreeMap, BTreeSet};

use super::{Asked, Spin, View, asks};
use crate::facts::profile::Place;
use crate::runtimes::Part;
use crate::runtimes::code::Code;
use crate::runtimes::event_loops::{self, EventLoop};
use crate::runtimes::spins::{self, RuntimeSpin};
use crate::statistics::{ratio, share};
use crate::syscall::{Family, family};

/// Share of a thread's samples inside its asking calls from which on its rounds are little else.
const TIGHT: f64 = 0.1;

/// Empty calls for each useful one from which on hardly a round finds work.
const HARDLY_ANY: f64 = 1000.0;

/// CPU time of a round that asks and does nothing else, at most, ns: a hundred times a cheap call.
const EMPTY_ROUND_NS: f64 = 50_000.0;

/// What a thread's empty calls cost, and who makes them.
pub(super) struct Waste {
    /// Wasted samples.
    pub samples: f64,
    /// The call path of the empty calls, innermost first.
    pub callers: Vec<String>,
    /// The event loop on it.
    pub event_loop: Option<&'static EventLoop>,
    /// The language runtime that makes them by itself.
    pub runtime: Option<&'static RuntimeSpin>,
}

impl View<'_> {
    /// Wasted samples of a thread, and the call path of the empty calls.
    pub(super) fn waste(&self, spin: &Spin, odds: &BTreeMap<i32, f64>) -> Waste {
        let mine: Vec<(&Place, f64)> = self
            .places
            .range(Place { pid: spin.pid, tid: spin.tid, kernel: false, syscall: i32::MIN, stack: 0 }..)
            .take_while(|(p, _)| (p.pid, p.tid) == (spin.pid, spin.tid))
            .map(|(p, &w)| (p, w as f64))
            .collect();
        let inside = |p: &Place| odds.get(&p.syscall).copied().filter(|_| p.kernel);
        let in_calls: f64 = mine.iter().filter_map(|(p, w)| Some(w * inside(p)?)).sum();
        let all_in_calls: f64 = mine.iter().filter(|(p, _)| inside(p).is_some()).map(|(_, w)| w).sum();
        let paths = mine.iter().filter(|(p, _)| inside(p).is_some_and(|o| o > 0.5));
        let (loops, callers) = self.callers(paths.clone().map(|(p, w)| (p.stack, *w)));
        let asking = paths.max_by(|a, b| a.1.total_cmp(&b.1)).map(|p| p.0.stack);
        let event_loop = asking.and_then(|stack| event_loops::of(self.stacks.user(stack)));
        let runtime = asking.and_then(|stack| spins::of(self.stacks.callers(stack)));
        let tight = spin.counted.as_ref().filter(|a| a.calls >= 100.0 && in_calls >= TIGHT * spin.samples);
        let interpreted = mine.iter().any(|(p, _)| inside(p).is_some() && self.is_interpreted(p));
        let only_empty = |a: &&Asked| match interpreted || event_loop.is_some() {
            true => a.empty_per_useful() >= HARDLY_ANY,
            false => a.found == 0.0 && !a.sent,
        };
        // A yield or a sleep has nothing to find, so it cannot tell what its thread does between two.
        let tells = |_: &&Asked| !matches!(family(&spin.syscall), Family::Yield | Family::Sleep);
        if let Some(asked) = tight.filter(only_empty).filter(tells) {
            return Waste { samples: spin.samples * asked.empty_share(), callers, event_loop, runtime };
        }
        let rounds = spin.counted.as_ref().map_or(share(in_calls, all_in_calls), Asked::empty_share);
        let (around, rest): (Vec<_>, Vec<_>) =
            mine.iter().filter(|(p, _)| inside(p).is_none()).partition(|(p, _)| self.is_loop(p, &loops));
        let sum = |of: &[(&Place, f64)]| of.iter().map(|(_, w)| w).sum::<f64>();
        let at_work: Vec<_> = rest.into_iter().filter(|(p, _)| p.kernel && p.syscall >= 0).collect();
        let rounds = rounds.min(share(in_calls, all_in_calls + sum(&at_work)));
        Waste { samples: in_calls + rounds * sum(&around), callers, event_loop, runtime }
    }

    /// Whether an interpreter runs the program at this place.
    fn is_interpreted(&self, place: &Place) -> bool {
        self.stacks.user(place.stack).any(|c| c.part == Part::Interpreter)
    }

    /// Whether a sample outside the asking calls is in the loop that makes them.
    fn is_loop(&self, place: &Place, loops: &BTreeSet<String>) -> bool {
        if place.kernel {
            // The round's clock_gettime, getpid …; bytes sent or a lock taken are work.
            let caller = self.stacks.callers(place.stack).next();
            let name = self.calls.sampled.get(&(place.pid, place.tid, place.syscall)).map_or("", |s| s.name.as_str());
            return family(name) == Family::Other && caller.is_some_and(|c| loops.contains(&c.label()));
        }
        let wrapper = |c: &Code| asks(family(c.symbol.trim_start_matches("__libc_").trim_start_matches('_')));
        let credited = self.stacks.credited(place.stack);
        credited.is_some_and(|(c, _)| loops.contains(&c.label()) || wrapper(c))
    }

    /// Functions that make the empty calls (those with at least a tenth of them), and the most
    /// common call path from the innermost such function outwards.
    fn callers(&self, stacks: impl Iterator<Item = (u32, f64)>) -> (BTreeSet<String>, Vec<String>) {
        let mut inner: BTreeMap<String, f64> = BTreeMap::new();
        let mut paths: BTreeMap<Vec<String>, f64> = BTreeMap::new();
        let mut all = 0.0;
        for (stack, weight) in stacks {
            let path: Vec<String> = self.stacks.callers(stack).take(4).map(Code::label).collect();
            all += weight;
            if let Some(first) = path.first() {
                *inner.entry(first.clone()).or_default() += weight;
                *paths.entry(path).or_default() += weight;
            }
        }
        // Deeper is better among equals: some unwinders stop early on some samples.
        let best = paths.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(a.0.len().cmp(&b.0.len())));
        (
            inner.into_iter().filter(|(_, w)| *w >= all / 10.0).map(|(f, _)| f).collect(),
            best.map_or(Vec::new(), |b| b.0),
        )
    }

    /// Waste without samples: empty calls as a share of all calls of the thread, if there are so
    /// many of them that its rounds have no time for anything else.
    pub(super) fn by_count(&self, spin: &Spin) -> f64 {
        let all: f64 = self.calls.of_thread(spin.pid, spin.tid).map(|(_, c)| c.calls as f64).sum();
        let on_cpu = ratio(spin.cpu_ns, self.length_ns);
        spin.counted.as_ref().map_or(0.0, |a| {
            let empty_per_second = a.per_second * a.empty_share();
            if ratio(on_cpu * 1e9, empty_per_second) > EMPTY_ROUND_NS { 0.0 } else { share(a.empty, all) }
        })
    }
}
