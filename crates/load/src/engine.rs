// SPDX-License-Identifier: Apache-2.0
//! The loop: it sends by the plan, whether or not answers come, and counts each answer's time from the moment that the
//! plan named. (A generator that waits for answers pauses with the service, and never sees the bad part.)

mod ending;
mod replies;

use std::collections::{BTreeMap, VecDeque};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use crate::arrivals::Arrivals;
use crate::client::Spent;
use crate::connection::{Connection, State};
use crate::plan::{Plan, Rate};
use crate::run::{Failure, Run};

/// Events that one look takes.
const EVENTS: usize = 256;
/// Requests that are sent until it is looked at what has come: some hundred microseconds of work. A loop that is behind its plan
/// would else do nothing but send.
const TURN: usize = 64;
/// How much of a reply one read takes.
const BUFFER: usize = 64 << 10;
/// How often the caller is told how far it is.
const TELL: Duration = Duration::from_millis(100);
/// Requests that wait for a connection at most: it does not grow with `--timeout` until there is no memory.
const MOST_WAITING: usize = 1 << 22;
/// Deadlines beside those of connections: of answers that have come, until they are thrown away.
const OLD_DEADLINES: usize = 4096;

pub(crate) struct Engine<'a> {
    plan: &'a Plan,
    to: SocketAddr,
    epoll: OwnedFd,
    start: Instant,
    connections: Vec<Connection>,
    /// Connections without a request, the one that had one last at the back: it is taken first. In turns each would rest for so long at
    /// a low rate that services close it as idle, and handshakes be a part of answers that those of few clients have none of.
    free: VecDeque<usize>,
    /// When the requests were due that found no connection free.
    waiting: VecDeque<Duration>,
    /// When requests that are under way fail, and pauses end: the moment, the connection, its request.
    deadlines: VecDeque<(Duration, usize, u64)>,
    pauses: VecDeque<(Duration, usize, u64)>,
    /// Connections with more to read, whose turn is over; whether they are read to the end.
    again: BTreeMap<usize, bool>,
    opened: usize,
    /// When the last answer came.
    last_answer: Duration,
    /// What this thread had taken when it began.
    before: Spent,
    run: Run,
    buffer: Vec<u8>,
}

impl<'a> Engine<'a> {
    pub(crate) fn new(plan: &'a Plan) -> Result<Self> {
        let to = plan.to.reachable(&plan.sources)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).context("failed to make an epoll instance")?;
        Ok(Self {
            plan,
            to,
            epoll,
            start: Instant::now(),
            connections: (0..plan.connections).map(|_| Connection::default()).collect(),
            // The first that is opened is the first that is taken: a service that takes few at a time would wait for a request of it.
            free: (0..plan.connections).rev().collect(),
            waiting: VecDeque::new(),
            deadlines: VecDeque::new(),
            pauses: VecDeque::new(),
            again: BTreeMap::new(),
            opened: 0,
            last_answer: Duration::ZERO,
            before: Spent::default(),
            run: Run::of(plan),
            buffer: vec![0; BUFFER],
        })
    }

    /// Sends until the plan ends, then waits for what is under way; `stop` ends both.
    pub(crate) fn run(mut self, stop: &dyn Fn() -> bool, tell: &mut dyn FnMut(Duration, &Run)) -> Result<Run> {
        (self.start, self.before) = (Instant::now(), Spent::now());
        let mut arrivals = match self.plan.rate {
            Rate::PerSecond(rate) => Some(Arrivals::new(rate, self.plan.spread)),
            Rate::Max => None,
        };
        let mut told = Duration::ZERO;
        let mut end = self.plan.length;
        loop {
            let now = self.now();
            if now >= end {
                self.has_asked(now);
            }
            self.expire(now);
            if let Some(by) = self.ended_by(stop, now, end) {
                self.leave(now);
                self.run.ended = Some(by);
                end = end.min(now);
                break;
            }
            // What was due before the end is sent, however late it was noticed.
            if arrivals.as_ref().map_or(now, Arrivals::next) < end {
                self.send_due(arrivals.as_mut(), end);
            } else if now >= end && self.is_done() {
                break;
            }
            let next = arrivals.as_ref().map(Arrivals::next).filter(|next| *next < end);
            let next = next.unwrap_or(if now < end { end } else { now + TELL });
            // Nothing is sent meanwhile.
            let full_since = if self.is_full() { self.now().min(end) } else { end };
            self.look(self.pause(next))?;
            self.run.full += self.now().min(end).saturating_sub(full_since);
            if now >= told + TELL {
                told = now;
                tell(now, &self.run);
            }
        }
        self.has_asked(self.now());
        // In a closed loop nothing is due while nobody is answered: that is a part of the load all the same.
        if end > Duration::ZERO {
            self.run.second(end.saturating_sub(Duration::from_nanos(1)));
        }
        (self.run.length, self.run.seen, self.run.lasted) = (end, end, self.now());
        Ok(self.run)
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Whether requests are due and no connection is free. In a closed loop one always is.
    fn is_full(&self) -> bool {
        self.free.is_empty() && (self.plan.rate == Rate::Max || !self.waiting.is_empty())
    }

    fn is_done(&self) -> bool {
        self.waiting.is_empty() && !self.connections.iter().any(|connection| connection.busy)
    }

    /// How long to wait for events at most.
    fn pause(&self, next: Duration) -> Duration {
        if !self.again.is_empty() {
            return Duration::ZERO;
        }
        let first = |queue: &VecDeque<(Duration, usize, u64)>| queue.front().map_or(Duration::MAX, |entry| entry.0);
        let due = next.min(first(&self.deadlines)).min(first(&self.pauses));
        due.saturating_sub(self.now()).min(TELL)
    }

    /// Sends what is due, and what has waited, as long as connections are free; of a plan that it is behind a turn's worth.
    fn send_due(&mut self, arrivals: Option<&mut Arrivals>, end: Duration) {
        if let Some(arrivals) = arrivals {
            for _ in 0..TURN {
                let now = self.now();
                let Some(due) = arrivals.take(now).filter(|due| *due < end) else { break };
                self.run.lag.add(now.saturating_sub(due));
                self.run.due += 1;
                self.run.second(due).due += 1;
                // Nobody waits for it any more: to send it now would only be one more load.
                if due.saturating_add(self.plan.timeout) <= now {
                    self.count(Failure::Unsent, due);
                    continue;
                }
                self.wait(due);
                self.send_waiting();
            }
        } else {
            // One try each: a connection that fails at once is free again at once.
            for _ in 0..self.free.len() {
                let now = self.now();
                self.run.due += 1;
                self.run.second(now).due += 1;
                self.waiting.push_back(now);
                self.send_waiting();
            }
        }
    }

    /// Lets a request wait for a connection; where too many do, it fails as it would when its time is over.
    fn wait(&mut self, due: Duration) {
        if self.waiting.len() >= MOST_WAITING {
            return self.count(Failure::Timeout, due);
        }
        self.waiting.push_back(due);
    }

    fn send_waiting(&mut self) {
        for _ in 0..self.free.len() {
            let Some(due) = self.waiting.pop_front() else { break };
            if let Some(token) = self.free.pop_back() {
                self.send(token, due);
            }
        }
    }

    fn send(&mut self, token: usize, due: Duration) {
        let now = self.now();
        self.run.sent += 1;
        self.run.second(due).sent += 1;
        let connection = &mut self.connections[token];
        (connection.busy, connection.due, connection.sent) = (true, due, now);
        self.run.taken.asked += u64::from(connection.requests == 0);
        connection.requests += 1;
        self.deadlines.push_back((due.saturating_add(self.plan.timeout), token, connection.requests));
        if self.deadlines.len() > 2 * self.connections.len() + OLD_DEADLINES {
            let connections = &self.connections;
            self.deadlines.retain(|(_, token, nth)| connections[*token].busy && connections[*token].requests == *nth);
        }
        self.begin(token);
    }

    /// Begins to write a connection's request; on a new connection where there is none.
    fn begin(&mut self, token: usize) {
        let connection = &mut self.connections[token];
        connection.reply.begin(self.plan.request.reply);
        if connection.state == State::Closed {
            if let Err(failure) = self.open(token) {
                self.fail(token, failure);
            }
            return;
        }
        connection.state = State::Writing(0, 0);
        self.write(token);
    }

    fn open(&mut self, token: usize) -> Result<(), Failure> {
        let sources = &self.plan.sources;
        let from = (!sources.is_empty()).then(|| sources[self.opened % sources.len()]);
        (self.opened, self.run.connections) = (self.opened + 1, self.run.connections + 1);
        let connection = &mut self.connections[token];
        connection.open(self.to, from)?;
        let socket = connection.socket().ok_or(Failure::Other)?;
        // Each change is told once, so that no connection costs a call to say what is waited for.
        let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        epoll::add(&self.epoll, socket, epoll::EventData::new_u64(token as u64), flags).map_err(|_| Failure::Other)
    }

    fn write(&mut self, token: usize) {
        let connection = &mut self.connections[token];
        match connection.write(&self.plan.request) {
            Err(failure) => self.retry_or_fail(token, failure),
            Ok(()) if matches!(connection.state, State::Thinking(_)) => {
                let entry = (self.start.elapsed().saturating_add(self.plan.request.think), token, connection.requests);
                self.pauses.push_back(entry);
            }
            Ok(()) => {}
        }
    }

    /// Takes what has happened, and waits for it up to `pause`.
    fn look(&mut self, pause: Duration) -> Result<()> {
        let timeout = Timespec { tv_sec: pause.as_secs() as i64, tv_nsec: i64::from(pause.subsec_nanos()) };
        let mut events = [MaybeUninit::<epoll::Event>::uninit(); EVENTS];
        let events = match epoll::wait(&self.epoll, &mut events, Some(&timeout)) {
            Err(Errno::INTR) => return Ok(()),
            ready => ready.context("failed to wait for answers")?.0,
        };
        for event in events {
            let (flags, data) = (event.flags, event.data);
            self.on_event(data.u64() as usize, flags);
        }
        for (token, to_the_end) in std::mem::take(&mut self.again) {
            self.read(token, to_the_end);
        }
        Ok(())
    }

    fn on_event(&mut self, token: usize, flags: epoll::EventFlags) {
        let connection = &mut self.connections[token];
        if connection.state == State::Connecting {
            if !flags.intersects(epoll::EventFlags::OUT | epoll::EventFlags::ERR | epoll::EventFlags::HUP) {
                return;
            }
            match connection.connected() {
                Err(failure) => return self.fail(token, failure),
                Ok(()) => connection.state = State::Writing(0, 0),
            }
        }
        if matches!(connection.state, State::Writing(..)) {
            self.write(token);
        }
        let ends = epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        if flags.intersects(epoll::EventFlags::IN | ends) {
            self.read(token, flags.intersects(ends));
        }
    }

    /// Ends pauses, and gives up what has waited too long, under way or for a connection.
    fn expire(&mut self, now: Duration) {
        while let Some((_, token, request)) = pop_due(&mut self.pauses, |entry| entry.0 <= now) {
            let connection = &mut self.connections[token];
            if let (true, State::Thinking(nth)) = (connection.requests == request, connection.state) {
                connection.state = State::Writing(nth, 0);
                self.write(token);
            }
        }
        while let Some((_, token, request)) = pop_due(&mut self.deadlines, |entry| entry.0 <= now) {
            if self.connections[token].busy && self.connections[token].requests == request {
                self.fail(token, Failure::Timeout);
            }
        }
        let timeout = self.plan.timeout;
        while let Some(due) = pop_due(&mut self.waiting, |due| due.saturating_add(timeout) <= now) {
            self.count(Failure::Timeout, due);
        }
        self.send_waiting();
    }
}

/// The first of a queue, if it is due.
fn pop_due<T>(queue: &mut VecDeque<T>, is_due: impl Fn(&T) -> bool) -> Option<T> {
    if queue.front().is_some_and(is_due) { queue.pop_front() } else { None }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::arrivals::Spread;
    use crate::plan::Request;

    fn plan(listener: &TcpListener) -> Plan {
        Plan {
            to: format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap(),
            request: Request::default(),
            rate: Rate::PerSecond(1000.0),
            spread: Spread::Uniform,
            length: Duration::from_secs(60),
            connections: 2,
            new_connections: false,
            sources: Vec::new(),
            timeout: Duration::from_secs(10),
            may_be_silent: false,
        }
    }

    /// Nobody answers, and everybody waits for an hour.
    #[test]
    fn what_waits_does_not_grow_without_end() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let plan = Plan { timeout: Duration::from_secs(3600), ..plan(&listener) };
        let mut engine = Engine::new(&plan).unwrap();
        let many = MOST_WAITING + 5;
        (0..many).for_each(|nth| engine.wait(Duration::from_micros(nth as u64)));
        assert_eq!((engine.waiting.len(), engine.run.failed()), (MOST_WAITING, 5));
        for nth in 0..100_000 {
            engine.send(0, Duration::from_micros(nth));
            engine.connections[0].busy = false;
        }
        assert!(engine.deadlines.len() <= OLD_DEADLINES + 10, "{}", engine.deadlines.len());
    }

    #[test]
    fn what_nobody_waits_for_any_more_is_not_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let plan = Plan { timeout: Duration::from_millis(100), ..plan(&listener) };
        let mut engine = Engine::new(&plan).unwrap();
        engine.start = Instant::now().checked_sub(Duration::from_secs(10)).unwrap();
        engine.send_due(Some(&mut Arrivals::new(1000.0, Spread::Uniform)), plan.length);
        assert_eq!((engine.run.sent, engine.run.failures.get(&Failure::Unsent)), (0, Some(&(TURN as u64))));
    }

    #[test]
    fn a_loop_that_is_behind_its_plan_looks_what_has_come() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let plan = plan(&listener);
        let mut engine = Engine::new(&plan).unwrap();
        engine.start = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        let mut arrivals = Arrivals::new(1000.0, Spread::Uniform);
        engine.send_due(Some(&mut arrivals), plan.length);
        assert_eq!((engine.run.due, engine.run.sent), (TURN as u64, 2), "a thousand are due");
        assert_eq!(engine.pause(arrivals.next()), Duration::ZERO, "and it comes back to them at once");
    }
}
