// SPDX-License-Identifier: Apache-2.0
//! The steps of a walk.

use recording::tables::Wakeup;

use super::Node;
use super::context::{Context, Holder};
use super::ends::{End, Kind};
use super::timelines::{IDLE, Part};
use super::{INTERPRETER, kind_of_thread};
use crate::statistics::share;
use crate::syscall::{Family, family};

/// Hops of a chain; longer ones end as unseen.
const MAX_DEPTH: usize = 16;

/// Steps of the whole walk: beyond, time ends as unseen, so that no recording takes for ever.
const MAX_STEPS: usize = 4_000_000;

/// Pieces of a wait shorter than this are not walked on.
const MIN_PIECE_NS: f64 = 5_000.0;

/// Of a span, in which a waker waited: then what came in last says more than that a timer ran out some time before.
const HALF_ASLEEP: f64 = 0.5;

pub struct Walker<'a, 'r> {
    context: &'a Context<'a, 'r>,
    /// Threads whose waits are being explained, from the root.
    path: Vec<Asker>,
    steps: usize,
}

/// Somebody on the way from the root who waits for the next.
#[derive(Clone, Copy)]
struct Asker {
    tid: u32,
    /// Family and number of the port at which the process of the next one answers it; 0 = unknown.
    port: (u32, u32),
}

impl<'a, 'r> Walker<'a, 'r> {
    pub fn new(context: &'a Context<'a, 'r>) -> Self {
        Self { context, path: Vec::new(), steps: 0 }
    }

    /// Explains a wait by what happened in the span.
    pub fn follow(&mut self, row: &Wakeup, span: (f64, f64), ns: f64, node: &mut Node) {
        if self.context.held_in_turn(row) == Some(INTERPRETER) {
            return self.took_turns(row, span, ns, node);
        }
        let due = if came_in(row, &self.path) { self.context.ends.due(row) } else { None };
        match due.or_else(|| self.context.ends.of(row)) {
            Some(end) => node.end(end, ns),
            None => self.explain(row, span, ns, node),
        }
    }

    /// Spreads a wait for the lock of an interpreter over those who may have had it, as far as they were awake: what such a
    /// thread waits for itself, it waits for without the lock.
    fn took_turns(&self, row: &Wakeup, span: (f64, f64), ns: f64, node: &mut Node) {
        let holders = self.context.meanwhile(row, span);
        let sum = |of: fn(&Holder<'_>) -> f64| holders.iter().map(of).sum::<f64>();
        let (on_cpu, queued) = (sum(|h| h.on_cpu_ns), sum(|h| h.queued_ns));
        // Several may be ready at once, of whom one has the lock.
        let rest = queued.min((span.1 - span.0 - on_cpu).max(0.0));
        let end = |kind, comm: &str| End { kind, pid: row.pid, comm: kind_of_thread(comm), detail: String::new() };
        if on_cpu + rest <= 0.0 {
            return node.end(end(Kind::Unseen, &row.comm), ns);
        }
        for holder in &holders {
            let each = ns / (on_cpu + rest);
            node.end(end(Kind::OnCpu, holder.comm), holder.on_cpu_ns * each);
            node.end(end(Kind::RunQueue, holder.comm), share(holder.queued_ns, queued) * rest * each);
        }
    }

    /// Spreads a wait that a thread ended over what that thread did meanwhile.
    fn explain(&mut self, row: &Wakeup, span: (f64, f64), ns: f64, node: &mut Node) {
        self.steps += 1;
        let length = span.1 - span.0;
        if length < MIN_PIECE_NS || self.path.len() >= MAX_DEPTH || self.steps > MAX_STEPS {
            let kind = if length < MIN_PIECE_NS { Kind::Short } else { Kind::Unseen };
            return node.end(End::of_waker(kind, row, ""), ns);
        }
        self.path.push(self.asker(row));
        let Context { timelines, hand_offs, .. } = self.context;
        let activity = timelines.handed_on(row.waker_tid, span, |tid| hand_offs.serves(tid));
        let (cut, whole): (Vec<_>, Vec<Part<'_>>) = activity.waits.into_iter().partition(|part| part.cut);
        // What it began to wait for after that is none of the sleeper's.
        let last = whole.iter().rfind(|part| part.row.t_ns as f64 <= span.1).map(|part| part.row);
        let in_turn = self.context.held_in_turn(row).is_some();
        let asleep = share(whole.iter().map(Part::length).sum(), length);
        let came_last = last.filter(|last| !in_turn && asleep >= HALF_ASLEEP && self.only_came_in(last));
        let (silent, telling): (Vec<Part<'_>>, Vec<_>) = self.parted(in_turn, came_last, whole);
        let time = |parts: &[Part<'_>]| parts.iter().map(Part::length).sum::<f64>();
        let (telling, scale) = self.deep(row, telling, (length, ns), node);
        // The time of waits that say nothing is spread over those that do: what came in cut one wait into several. Where it
        // came in last, and there was nothing else to do, it is what ended the wait. Of what several hold in turn before it comes to the sleeper, only as
        // far as there are so many of them.
        let (mute, told) = (time(&silent) + time(&cut), time(&telling));
        let most = match in_turn {
            true => told * self.context.queue_length(row) as f64,
            false if came_last.is_some() && asleep >= IDLE => 0.0,
            false => f64::INFINITY,
        };
        let spread = if telling.is_empty() { 1.0 } else { 1.0 + mute.min(most) / told };
        let rest = if mute > 0.0 { 1.0 - (told * (spread - 1.0)).min(mute) / mute } else { 0.0 };
        node.end(End::of_waker(Kind::Client, row, ""), time(&silent) * rest * scale);
        node.end(End::of_waker(Kind::Short, row, ""), time(&cut) * rest * scale);
        for part in telling {
            let ns = part.length() * spread * scale;
            // Whoever stood before the same adds nothing: all of them wait for those who held it in turn.
            if self.context.are_for_the_same(row, part.row) {
                self.explain(part.row, part.span, ns, node);
            } else {
                let child = self.context.book(part.row, ns, &mut node.children);
                self.follow(part.row, part.span, ns, child);
            }
        }
        for (kind, length) in activity.active {
            node.end(End::of_waker(kind, row, self.context.ends.code_of_waker(row)), length * scale);
        }
        self.path.pop();
    }

    /// Where a chain is as long as any, those who stood before the same are left out: whoever held it before them did as this one
    /// does, and for as long. Besides the rest, for how much of the wait each ns of it stands.
    fn deep<'p>(
        &self,
        row: &Wakeup,
        telling: Vec<Part<'p>>,
        (length, ns): (f64, f64),
        node: &mut Node,
    ) -> (Vec<Part<'p>>, f64) {
        let is_same = |part: &Part<'_>| self.context.are_for_the_same(row, part.row);
        let before: f64 = telling.iter().filter(|part| is_same(part)).map(Part::length).sum();
        let held = length - before;
        if self.path.len() < MAX_DEPTH || before <= 0.0 || held < MIN_PIECE_NS {
            return (telling, ns / length);
        }
        let alike = held * self.context.queue_length(row) as f64;
        let unseen = ns * share((before - alike).max(0.0), length);
        node.end(End::of_waker(Kind::Unseen, row, ""), unseen);
        (telling.into_iter().filter(|part| !is_same(part)).collect(), (ns - unseen) / held)
    }

    /// The sleeper of a row as one who waits for the row's waker. Threads of one process hand on what was asked of it.
    fn asker(&self, row: &Wakeup) -> Asker {
        let port = match self.path.last() {
            _ if row.waker_local_port != 0 => (row.waker_family, row.waker_local_port),
            Some(before) if row.waker_pid == row.pid => before.port,
            _ => (0, 0),
        };
        Asker { tid: row.tid, port }
    }

    /// A waker's waits, apart: work that came in for it does not say what the work at hand waited for, nor that the holder
    /// of what is held in turn had nothing to do before it took it. Where such work came right before the answer, nor does it
    /// that a timer of its loop had run out before that; and where somebody else had brought it, that is what was waited
    /// for, as in a queue.
    fn parted<'p>(
        &self,
        in_turn: bool,
        came_last: Option<&Wakeup>,
        waits: Vec<Part<'p>>,
    ) -> (Vec<Part<'p>>, Vec<Part<'p>>) {
        let Context { case, ends, .. } = self.context;
        let brought = came_last.is_some_and(|last| last.context == "thread" && !asks(last, &self.path));
        let ticks = |wait: &Wakeup| {
            family(&case.syscall(wait.syscall)) == Family::Poll
                && ends.of(wait).is_some_and(|end| end.kind == Kind::Timer)
        };
        waits.into_iter().partition(|Part { row: wait, .. }| {
            brought
                || self.only_came_in(wait)
                || in_turn && ends.clients.ended(case, wait)
                || came_last.is_some() && ticks(wait)
        })
    }

    /// Whether a wait of a waker ended because it was asked something, and for nothing else.
    fn only_came_in(&self, wait: &Wakeup) -> bool {
        came_in(wait, &self.path) && self.context.ends.due(wait).is_none()
    }
}

/// Whether a wait of a waker ended because it was asked something: by somebody who already waits for it, or where it was asked itself.
fn came_in(wait: &Wakeup, path: &[Asker]) -> bool {
    asks(wait, path) || comes_in(wait, path)
}

/// Whether a wait of a waker was ended by somebody who already waits for it.
fn asks(wait: &Wakeup, path: &[Asker]) -> bool {
    wait.context == "thread" && path.iter().any(|asker| asker.tid == wait.waker_tid)
}

/// Whether a wait of a waker ended with something that came in at the port at which it was asked itself.
fn comes_in(wait: &Wakeup, path: &[Asker]) -> bool {
    let Some(Asker { port, .. }) = path.last().filter(|asker| asker.port.1 != 0) else { return false };
    let written = wait.context == "thread" && (wait.waker_family, wait.waker_remote_port) == *port;
    written || (wait.family, wait.local_port) == *port
}
