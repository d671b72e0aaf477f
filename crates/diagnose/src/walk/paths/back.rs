// SPDX-License-Identifier: Apache-2.0
//! One request, walked backwards.

mod line;

use std::collections::BTreeMap;
use std::iter;

use recording::tables::{Birth, Request, Thread, Wakeup};

use super::answerers::{Answerers, awaited};
use super::given_back::GivenBack;
use super::tree::{Book, Meanwhile};
use super::whole::{Whole, length_ns, needed};
use crate::runtimes::collectors::Collector;
use crate::walk::births::At;
use crate::walk::clients::UNIX;
use crate::walk::context::{Context, MOST_THREADS};
use crate::walk::futex::is_futex;
use crate::walk::ran::{self, Ran};
use crate::walk::timelines::IDLE;
use crate::walk::waits::Wait;
use crate::walk::walker::Walker;
use crate::walk::who::{LOOP, PARKED, TIMED};
use crate::walk::{End, Kind, Who, kind_of_thread};

/// Hops of a path from thread to thread; what lies before counts as unseen.
const MAX_HOPS: usize = 512;

/// What all walks need.
pub struct Back<'a, 'r> {
    context: &'a Context<'a, 'r>,
    whole: &'a Whole<'r>,
    /// One for all: its bound on steps is one for the whole recording.
    walker: Walker<'a, 'r>,
    answerers: Answerers<'a>,
    given_back: GivenBack,
    /// Process and name of each thread, as the ledger has them, which does not name those that lived shortly.
    names: BTreeMap<u32, (u32, String)>,
    /// Of each process, its threads, and how long each was on a CPU, slice by slice.
    threads: BTreeMap<u32, BTreeMap<u32, Vec<Ran>>>,
    /// CPUs that its requests need at once if each of them computes.
    needed: f64,
}

/// Spans for which that is asked, ns: a shorter one explains nothing.
const WORTH_NS: f64 = 1e6;

/// Of a span, on a CPU in any of the threads: a runtime that moves a task from one to another loses some of it.
const ALL_THE_TIME: f64 = 0.8;

impl<'a, 'r> Back<'a, 'r> {
    pub fn new(context: &'a Context<'a, 'r>, whole: &'a Whole<'r>) -> Self {
        let rows = context.case.recording.rows::<Thread>();
        let born = context.case.recording.rows::<Birth>();
        // Whoever was just started still has the name of whoever did that.
        let named = born.iter().map(|row| {
            let wait = context.timelines.waits_of(row.tid).first();
            (row.tid, row.pid, wait.map_or(&row.comm, |wait| &wait.row.comm))
        });
        let named = named.chain(rows.iter().map(|row| (row.tid, row.pid, &row.comm)));
        let names = named.map(|(tid, pid, comm)| (tid, (pid, kind_of_thread(comm)))).collect();
        let mut threads: BTreeMap<u32, BTreeMap<u32, Vec<Ran>>> = BTreeMap::new();
        for row in rows {
            threads.entry(row.pid).or_default().entry(row.tid).or_default().push(Ran::of(row, row.cpu_ns));
        }
        threads
            .values_mut()
            .flat_map(BTreeMap::values_mut)
            .for_each(|ran| ran.sort_by(|a, b| a.end().total_cmp(&b.end())));
        let (walker, answerers) = (Walker::new(context), Answerers::new(context));
        let needed = needed(context.case);
        let given_back = GivenBack::new(context, whole, context.case.recording.rows::<Wakeup>());
        Self { context, whole, walker, answerers, given_back, names, threads, needed }
    }

    /// Whether threads of a process were on a CPU for all of a span, for all requests that were in hand: a job beside them may be on one.
    fn computes(&self, pid: u32, span: (f64, f64)) -> bool {
        let length = span.1 - span.0;
        let Some(threads) = self.threads.get(&pid).filter(|t| t.len() <= MOST_THREADS && length >= WORTH_NS) else {
            return false;
        };
        let timelines = self.context.timelines;
        let on_cpu = |(tid, ran): (&u32, &Vec<Ran>)| {
            // One that never waited has no row, and a wait that goes on has none yet: the ledger knows how much it ran.
            let most = ran::at_most(ran, span);
            match timelines.waits_of(*tid) {
                [] => most,
                _ => timelines.activity(*tid, span).active.get(&Kind::OnCpu).map_or(0.0, |ns| ns.min(most)),
            }
        };
        threads.iter().map(on_cpu).sum::<f64>() >= length * ALL_THE_TIME * self.needed
    }

    /// Books the parts of a request.
    pub fn walk(&mut self, request: &Request, book: &mut dyn Book) {
        book.begin(length_ns(request) as f64);
        let end = request.t_ns as f64;
        let read = (request.read_ns as f64).min(end);
        let (context, whole) = (self.context, self.whole);
        let rest = if whole.is_in_parts(request) { (request.rest_ns as f64).min(end) } else { 0.0 };
        let mut path =
            OnePath { all: self, context, whole, request, book, read, rest, has_waited: false, is_behind: false };
        let mut at = At { tid: request.ended_tid, ns: end };
        for _ in 0..MAX_HOPS {
            if at.ns <= read {
                break;
            }
            let next = path.step(at);
            let same = next.tid == at.tid;
            (path.has_waited, path.is_behind) = (path.has_waited && same, path.is_behind && same);
            at = next;
        }
        path.inside(at.tid, (read, at.ns));
        path.lay_unread();
    }
}

/// The walk of one request.
struct OnePath<'p, 'a, 'r> {
    all: &'p mut Back<'a, 'r>,
    context: &'a Context<'a, 'r>,
    whole: &'a Whole<'r>,
    request: &'p Request,
    book: &'p mut dyn Book,
    /// When what was asked was read.
    read: f64,
    /// When the rest of it came; 0 = that was all.
    rest: f64,
    /// The thread has waited for this request since it last had to do with another one.
    has_waited: bool,
    /// Before that it had another one in hand, and took this one from a queue.
    is_behind: bool,
}

impl OnePath<'_, '_, '_> {
    /// Explains the time before `at`, back to where somebody else had the request or the same thread began to wait.
    fn step(&mut self, at: At) -> At {
        if let Some(question) = self.whole.own_question(self.request, (self.read, at.ns)) {
            return self.asked(At { tid: question.ended_tid, ..at }, question);
        }
        let woken = self.context.timelines.last_wait(at.tid, at.ns).filter(|wait| wait.end() > self.read);
        let since = woken.map_or(self.read, Wait::end);
        let question = self.whole.question(at.tid, (self.read, at.ns)).filter(|q| q.read_ns as f64 >= since);
        let came = question.map_or(since, |question| question.read_ns as f64);
        if let Some(done) = self.all.given_back.last(at.tid, (came, at.ns), self.own()).filter(|_| self.has_waited) {
            return self.stood_behind(at, done);
        }
        if let Some(question) = question {
            return if self.is_of_another(at.tid, question) {
                self.stood(at, question)
            } else {
                self.asked(at, question)
            };
        }
        let Some(wait) = woken else {
            let before = self.started_by(at, self.read);
            self.ran(at.tid, (before.ns, at.ns));
            return before;
        };
        self.ran(at.tid, (since, at.ns));
        self.waited(at.tid, wait)
    }

    /// Whether the thread answered another client with what it had asked, before it waited again.
    fn is_of_another(&self, tid: u32, question: &Request) -> bool {
        let Some(answered) = self.whole.answered_after(tid, question.read_ns) else { return false };
        let turn_ends =
            self.context.timelines.next_wait(tid, question.read_ns as f64).map_or(f64::INFINITY, Wait::begin);
        answered != self.request.t_ns && (answered as f64) < turn_ends
    }

    /// The request went on when the answer to somebody else's question had come: it stood in a queue inside, as before a pool of
    /// connections.
    fn stood(&mut self, at: At, question: &Request) -> At {
        let read = (question.read_ns as f64).min(at.ns);
        self.ran(at.tid, (read, at.ns));
        self.inside(at.tid, (self.read, read));
        At { tid: self.request.began_tid, ns: self.read }
    }

    /// The answer to a question of the target's own came, and the path goes on where that was asked.
    fn asked(&mut self, at: At, question: &Request) -> At {
        let read = (question.read_ns as f64).min(at.ns);
        // A recording may tell it in any order.
        let began = (question.began_ns as f64).min(read);
        let came = (question.t_ns as f64).clamp(began, read);
        self.ran(at.tid, (read, at.ns));
        self.is_at(at.tid, (came, read), true);
        let waiter = awaited(self.context, at.tid, (began, came));
        let (pid, comm) = self.thread(at.tid);
        let call = waiter.map_or("none".to_string(), |wait| self.context.case.syscall(wait.row.syscall));
        let who = Who { pid, comm, call, fd_kind: "socket".into(), peer: question.peer.clone(), path: String::new() };
        let ns = came - began;
        let node = self.book.at(at.tid, (began, came)).side(false).waits.entry(who).or_default();
        (node.ns, node.waits, node.number) = (node.ns + ns, node.waits + 1, node.number + 1.0);
        match waiter {
            Some(wait) => {
                self.context.book_places(wait.row, ns, node);
                self.all.walker.follow(wait.row, (began, came), ns, node);
            }
            None => match self.all.answerers.of(self.context, &question.peer, came) {
                Some(row) => self.all.walker.follow(row, (began, came), ns, node),
                None => node.end(UNSEEN, ns),
            },
        }
        self.has_waited = true;
        At { tid: question.began_tid, ns: began.max(self.read) }
    }

    /// A wait that ended within the request: it was for it, or somebody handed the request over then.
    fn waited(&mut self, tid: u32, wait: &Wait<'_>) -> At {
        let Context { ends, target, hand_offs, .. } = self.context;
        let row = wait.row;
        let who = self.context.who(row);
        let polls = who.polls() && !hand_offs.serves(tid);
        let is_free = polls || who.fd_kind == PARKED;
        // Who read or wrote something was awake then, whatever the scheduler's counters, which are a bit behind, make of it.
        let begin = self.whole.seen_awake(tid, (wait.begin(), wait.end())).unwrap_or(wait.begin());
        let is_for_helper = !is_free && self.is_for_helper(wait);
        // Who waits for a helper, while it has another one in hand, or for whatever is to be answered next, looks the same.
        if !is_free && (begin >= self.read || self.is_behind && !is_for_helper) {
            let span = (begin.max(self.read), wait.end());
            match is_for_helper {
                true => {
                    let since = self.all.given_back.since(self.context, row.waker_tid, span, self.own());
                    self.was_helped(row.waker_tid, since, span);
                }
                false if begin < self.read => self.asked_and_blocked(wait, span, None),
                false => self.blocked(wait, span, None),
            }
            self.has_waited |= !is_for_helper;
            return At { tid, ns: span.0 };
        }
        // It was free until then: whoever woke it had the request, if that can be told.
        let end = ends.of(row);
        if end.is_none() && target.contains(&row.waker_pid) && row.waker_tid != tid {
            return At { tid: row.waker_tid, ns: wait.end() };
        }
        // The answer to somebody else's question: what this request waited for comes after that, such as its turn to ask.
        let of_another = end.is_none() && is_free && row.family != UNIX && ends.clients.asked_by(row).is_some();
        match end.map(|end| end.kind) {
            _ if of_another => self.inside(tid, (self.read, wait.end())),
            kind => self.was_free(wait, kind, polls),
        }
        At { tid: self.request.began_tid, ns: self.read }
    }

    /// A wait of a thread that was free until it ended, and answered then.
    fn was_free(&mut self, wait: &Wait<'_>, ended_by: Option<Kind>, polls: bool) {
        let (row, rest) = (wait.row, (self.read, wait.end()));
        match ended_by {
            // A loop with several requests under way: its timer may have been for another one of them.
            Some(Kind::Timer) if polls && (!self.whole.answered_others(row.pid, rest) || self.was_idle(row, rest)) => {
                self.asked_and_blocked(wait, rest, Some(LOOP));
            }
            // It looks for work now and then, and sleeps in between; or it is never told that there is some.
            Some(Kind::Timer) if self.looks_at_times(row) => self.asked_and_blocked(wait, rest, None),
            Some(Kind::Client) if polls && self.is_of_another_client(row) && self.was_idle(row, rest) => {
                let (pid, comm) = self.thread(row.tid);
                self.book.at(row.tid, rest).inside(pid, comm, Meanwhile::Listening, rest.1 - rest.0);
            }
            Some(Kind::Timer | Kind::Client | Kind::Packet | Kind::Interrupt | Kind::Kernel | Kind::TcpTimer) => {
                self.inside(row.tid, rest);
            }
            _ => self.blocked(wait, rest, None),
        }
    }

    /// Whether a wait was a sleep, or one for others with a time of its own, in no runtime that parks threads so.
    fn looks_at_times(&self, row: &Wakeup) -> bool {
        let who = self.context.who(row);
        who.sleeps() || who.fd_kind == TIMED
    }

    /// Whether somebody else than the client whose request it is ended a wait.
    fn is_of_another_client(&self, row: &Wakeup) -> bool {
        let own = self.request.peer.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        let by = if row.waker_local_port == 0 { row.remote_port } else { row.waker_local_port };
        by != 0 && own.is_some_and(|own: u32| own != by)
    }

    /// Whether the one thread that serves had next to nothing to do until a wait ended: that it answered then is hardly an accident.
    /// Where the rest of what was asked came later, that is what it waited for.
    fn was_idle(&self, row: &Wakeup, span: (f64, f64)) -> bool {
        self.rest <= self.read
            && self.whole.serves_alone(row.pid, row.tid)
            && self.context.timelines.asleep(row.tid, span) >= (span.1 - span.0) * IDLE
    }

    /// Books a wait that went on while the rest of what was asked was still to come.
    fn asked_and_blocked(&mut self, wait: &Wait<'_>, (from, until): (f64, f64), kind: Option<&str>) {
        let asked = self.rest.clamp(from, until);
        self.inside(wait.row.tid, (from, asked));
        if until > asked {
            self.blocked(wait, (asked, until), kind);
        }
    }

    /// Books a wait of which the span belongs to the request.
    fn blocked(&mut self, wait: &Wait<'_>, span: (f64, f64), kind: Option<&str>) {
        let ns = span.1 - span.0;
        let waits = &mut self.book.at(wait.row.tid, span).side(self.is_behind).waits;
        let mut who = self.context.who(wait.row);
        if let Some(kind) = kind {
            who.fd_kind = kind.to_string();
        }
        let node = self.context.book_on(who, wait.row, ns, waits);
        self.all.walker.follow(wait.row, span, ns, node);
    }

    /// Whether a thread that serves clients waited for one of its process that had no request in hand: part of the work was given away,
    /// as to a pool for what can be done side by side, and what that one did was done for this request. Who holds a lock that a request
    /// waits for has one of its own in hand, and a collector for which the program stands still works for nobody.
    fn is_for_helper(&self, wait: &Wait<'_>) -> bool {
        let Context { case, timelines, .. } = self.context;
        let (row, at) = (wait.row, wait.end());
        let is_untold = is_futex(case, row.syscall) && self.context.held_in_turn(row).is_none();
        let of_another = row.context == "thread" && row.waker_tid != row.tid && row.waker_pid == row.pid;
        let collects = Collector::of(&row.waker_comm, iter::empty()).is_some();
        let same_turn =
            |ended: u64| timelines.next_wait(row.waker_tid, ended as f64).is_none_or(|next| next.begin() >= at);
        is_untold
            && of_another
            && !collects
            && self.whole.serves(row.tid)
            && !self.whole.in_hand(row.waker_tid, at, same_turn)
    }

    /// A thread was awake; before it last had to do with another request, it was not at this one, unless it had read it by then.
    fn ran(&mut self, tid: u32, (from, until): (f64, f64)) {
        if tid == self.request.began_tid {
            return self.is_at(tid, (from, until), false);
        }
        let turn = self.whole.moment(tid, (from, until)).filter(|_| !self.is_behind);
        let came = turn.unwrap_or(if self.is_behind { until } else { from });
        self.is_at(tid, (came, until), false);
        self.is_at(tid, (from, came), true);
        // Of several that are answered at once, a wait before all of them is for none that came earlier.
        self.is_behind |= turn.is_some() && self.has_waited;
    }

    /// Books what a thread did in a span.
    fn is_at(&mut self, tid: u32, span: (f64, f64), before: bool) {
        if span.1 <= span.0 {
            return;
        }
        let activity = self.context.timelines.activity(tid, span);
        let (pid, comm) = self.thread(tid);
        for (kind, ns) in activity.active {
            *self.book.at(tid, span).side(before).awake.entry((kind, pid, comm.clone())).or_default() += ns;
        }
        for part in activity.waits {
            let waits = &mut self.book.at(tid, part.span).side(before).waits;
            let node = self.context.book(part.row, part.length(), waits);
            self.all.walker.follow(part.row, part.span, part.length(), node);
        }
    }

    /// Nothing is seen that the request waited for: it was not all there yet, or it is at something that the kernel does not see.
    fn inside(&mut self, tid: u32, (from, until): (f64, f64)) {
        let (pid, comm) = self.thread(tid);
        let rest = self.rest.clamp(from, until);
        for (span, is_asked) in [((from, rest), false), ((rest, until), true)] {
            let meanwhile = if self.all.computes(pid, span) { Meanwhile::Computing } else { Meanwhile::Unknown };
            let ns = span.1 - span.0;
            if ns <= 0.0 {
                continue;
            }
            let tree = self.book.at(tid, span);
            match is_asked || meanwhile == Meanwhile::Computing {
                true => tree.inside(pid, comm.clone(), meanwhile, ns),
                false => tree.asking(pid, comm.clone(), ns),
            }
        }
    }

    fn thread(&self, tid: u32) -> (u32, String) {
        if let Some(known) = self.all.names.get(&tid) {
            return known.clone();
        }
        let waits = self.context.timelines.waits_of(tid).first();
        waits.map_or((self.request.pid, String::new()), |wait| (wait.row.pid, kind_of_thread(&wait.row.comm)))
    }
}

/// Nobody knows what whoever was asked did.
const UNSEEN: End = End { kind: Kind::Unseen, pid: 0, comm: String::new(), detail: String::new() };
