// SPDX-License-Identifier: Apache-2.0
//! An endpoint that does nothing: it answers every request alike, so long after it was whole, so that a hop can be replaced
//! by one whose time is known. The delay is a timer and no CPU time, and requests do not wait for each other.
//!
//! It answers and never connects.

mod asked;

use std::collections::{HashMap, VecDeque};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, accept_with, bind, listen, socket_with, sockopt};

use crate::address::{Address, Protocol};
use crate::answer::{Answer, Which};
use crate::lengths::Lengths;
use crate::limits;
use asked::{Asker, Step};

/// What a connection says when its other end is gone, or asks nothing more.
const ENDS: epoll::EventFlags = epoll::EventFlags::RDHUP.union(epoll::EventFlags::HUP).union(epoll::EventFlags::ERR);
/// Reads of one connection until it is the others' turn.
const TURN: usize = 64;
/// Events that one look takes.
const EVENTS: usize = 256;
/// How much of a connection one read takes.
const BUFFER: usize = 64 << 10;
/// How often it looks whether it is to end, and who has stood still for too long.
const TICK: Duration = Duration::from_millis(100);
/// Connections that the kernel holds until they are accepted.
const BACKLOG: i32 = 4096;
/// Connections at most; more wait to be accepted.
const MOST_CONNECTIONS: u64 = 16_384;
/// The token of the listening socket; connections count from 1 and never get there.
const LISTENER: u64 = 0;

/// What an endpoint is.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Where it listens.
    pub at: Address,
    /// Bytes of a request; none = HTTP says where it ends.
    pub request: Option<u64>,
    /// What it answers.
    pub answer: Answer,
    /// How long after a request is whole its answer is sent.
    pub delay: Duration,
    /// TCP_NODELAY on its connections: without it, a small write may wait for the acknowledgement of the one before.
    pub nodelay: bool,
    /// Who has sent a part of a request and nothing more for so long, or does not take his answer, is given up.
    pub timeout: Duration,
    /// When it ends.
    pub length: Duration,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Served {
    /// Requests that were answered.
    pub answered: u64,
    /// Connections that were accepted.
    pub connections: u64,
    /// Connections that were closed because something came that is no request.
    pub garbage: u64,
    /// Connections that were given up, or ended, with a part of a request or of an answer.
    pub halves: u64,
    /// From when answers were due until they were sent: what the endpoint added by itself.
    pub lag: Lengths,
    /// For how long it was there.
    pub length: Duration,
}

/// Answers until the time is up or `stop` says so; `ready` hears once where it listens.
///
/// # Errors
/// The address cannot be listened at; the sentence says why and what to do.
pub fn serve(endpoint: &Endpoint, stop: &dyn Fn() -> bool, ready: &mut dyn FnMut(SocketAddr)) -> Result<Served> {
    limits::bound("--delay", endpoint.delay)?;
    limits::bound("--timeout", endpoint.timeout)?;
    let mut server = Server::new(endpoint)?;
    ready(server.at);
    while !stop() && server.now() < endpoint.length {
        server.turn()?;
    }
    server.served.length = server.now();
    Ok(server.served)
}

struct Server<'a> {
    endpoint: &'a Endpoint,
    at: SocketAddr,
    listener: OwnedFd,
    epoll: OwnedFd,
    start: Instant,
    /// Connections by token. No token is used twice, so that what is due of one that has gone is nobody's.
    askers: HashMap<u64, Asker>,
    accepted: u64,
    most: u64,
    /// Whether new connections are taken.
    is_open: bool,
    /// Answers and when they are due: all are delayed alike, so that the first to come is the first to go.
    due: VecDeque<(Duration, u64, Which)>,
    /// Connections with more to read, whose turn is over.
    again: Vec<u64>,
    ticked: Duration,
    buffer: Vec<u8>,
    served: Served,
}

impl<'a> Server<'a> {
    fn new(endpoint: &'a Endpoint) -> Result<Self> {
        let at = endpoint.at.resolve()?;
        let most = limits::room(MOST_CONNECTIONS);
        let listener = listening(at)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).context("failed to make an epoll instance")?;
        epoll::add(&epoll, &listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)
            .context("failed to wait for connections")?;
        Ok(Self {
            endpoint,
            at,
            listener,
            epoll,
            start: Instant::now(),
            askers: HashMap::new(),
            accepted: 0,
            most,
            is_open: true,
            due: VecDeque::new(),
            again: Vec::new(),
            ticked: Duration::ZERO,
            buffer: vec![0; BUFFER],
            served: Served::default(),
        })
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Waits for what comes next, and does it.
    fn turn(&mut self) -> Result<()> {
        let next = self.due.front().map_or(Duration::MAX, |entry| entry.0).min(self.ticked + TICK);
        let pause = next.min(self.endpoint.length).saturating_sub(self.now());
        self.look(if self.again.is_empty() { pause } else { Duration::ZERO })?;
        std::mem::take(&mut self.again).into_iter().for_each(|token| self.read(token));
        while let Some((token, has_room)) = self.answer() {
            if has_room {
                self.read(token);
            }
        }
        if self.now() >= self.ticked + TICK {
            self.tick();
        }
        Ok(())
    }

    fn look(&mut self, pause: Duration) -> Result<()> {
        let timeout = Timespec { tv_sec: pause.as_secs() as i64, tv_nsec: i64::from(pause.subsec_nanos()) };
        let mut events = [MaybeUninit::<epoll::Event>::uninit(); EVENTS];
        let events = match epoll::wait(&self.epoll, &mut events, Some(&timeout)) {
            Err(Errno::INTR) => return Ok(()),
            ready => ready.context("failed to wait for requests")?.0,
        };
        for event in events {
            let (flags, data) = (event.flags, event.data);
            match data.u64() {
                LISTENER => self.accept(),
                token => self.on_event(token, flags),
            }
        }
        Ok(())
    }

    fn accept(&mut self) {
        while (self.askers.len() as u64) < self.most {
            let socket = match accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => socket,
                Err(Errno::AGAIN) => return,
                // Who gave up meanwhile is not there any more.
                Err(Errno::INTR | Errno::CONNABORTED) => continue,
                Err(_) => break,
            };
            self.served.connections += 1;
            self.accepted += 1;
            let _ = sockopt::set_tcp_nodelay(&socket, self.endpoint.nodelay); // one that is gone already
            // Each change is told once, so that no answer costs a call to say what is waited for.
            let flags =
                epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
            if epoll::add(&self.epoll, &socket, epoll::EventData::new_u64(self.accepted), flags).is_ok() {
                self.askers.insert(self.accepted, Asker::new(socket, self.endpoint.request));
            }
        }
        // No room: those who come wait in the kernel until there is.
        self.open(false);
    }

    /// Takes new connections, or leaves them where they are.
    fn open(&mut self, is_open: bool) {
        let flags = if is_open { epoll::EventFlags::IN } else { epoll::EventFlags::empty() };
        let data = epoll::EventData::new_u64(LISTENER);
        if self.is_open != is_open && epoll::modify(&self.epoll, &self.listener, data, flags).is_ok() {
            self.is_open = is_open;
        }
    }

    fn on_event(&mut self, token: u64, flags: epoll::EventFlags) {
        if let Some(asker) = self.askers.get_mut(&token) {
            asker.ends |= flags.intersects(ENDS);
            let step = asker.send(&self.endpoint.answer);
            self.after(token, step);
            self.read(token);
        }
    }

    /// Reads what is there; where nothing is to wait for, it is answered at once.
    fn read(&mut self, token: u64) {
        for _ in 0..TURN {
            let (now, delay, due) = (self.start.elapsed(), self.endpoint.delay, &mut self.due);
            let Some(asker) = self.askers.get_mut(&token) else { return };
            let step =
                asker.read(&mut self.buffer, &mut |which| due.push_back((now.saturating_add(delay), token, which)));
            let step = if step.is_gone() { step } else { step.or(asker.send(&self.endpoint.answer)) };
            self.after(token, step);
            let mut has_room = false;
            while let Some((_, room)) = if delay.is_zero() { self.answer() } else { None } {
                has_room |= room;
            }
            if step != Step::More && !has_room {
                return;
            }
        }
        self.again.push(token);
    }

    /// Sends the next answer that is due: whose, and whether it can be read on, which it could not before.
    fn answer(&mut self) -> Option<(u64, bool)> {
        let now = self.now();
        let (due, token, which) = self.due.front().copied().filter(|entry| entry.0 <= now)?;
        self.due.pop_front();
        let Some(asker) = self.askers.get_mut(&token) else { return Some((token, false)) };
        self.served.answered += u64::from(matches!(which, Which::Asked { .. }));
        self.served.garbage += u64::from(which == Which::Garbage);
        self.served.lag.add(now.saturating_sub(due));
        let had_room = asker.has_room();
        let step = asker.say(which, &self.endpoint.answer);
        let has_room = !had_room && asker.has_room();
        self.after(token, step);
        Some((token, has_room))
    }

    /// What a step of a connection has come to.
    fn after(&mut self, token: u64, step: Step) {
        if let Step::Gone { halved } = step {
            self.served.halves += u64::from(halved);
            self.askers.remove(&token);
        }
    }

    /// Gives up who has stood still for too long.
    fn tick(&mut self) {
        self.ticked = self.now();
        let (now, timeout, halves) = (self.ticked, self.endpoint.timeout, &mut self.served.halves);
        self.askers.retain(|_, asker| match asker.stands(now, timeout) {
            Step::Gone { halved } => {
                *halves += u64::from(halved);
                false
            }
            _ => true,
        });
        self.open(true);
    }
}

/// A socket that listens at an address and nowhere else.
fn listening(at: SocketAddr) -> Result<OwnedFd> {
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let listened = || -> Result<OwnedFd, Errno> {
        let socket = socket_with(family, SocketType::STREAM, flags, None)?;
        // Connections of an earlier run that are still in TIME_WAIT are no reason to wait.
        sockopt::set_socket_reuseaddr(&socket, true)?;
        bind(&socket, &at)?;
        listen(&socket, BACKLOG)?;
        Ok(socket)
    };
    let (ip, port) = (at.ip(), at.port());
    match listened() {
        Ok(socket) => Ok(socket),
        Err(Errno::ADDRINUSE) => {
            bail!("port {port} of {ip} is taken; `ss -ltnp sport = :{port}` shows by whom, or name another port")
        }
        Err(Errno::ACCESS) => {
            bail!("port {port} needs privileges (CAP_NET_BIND_SERVICE); run it with sudo, or name a port from 1024 on")
        }
        Err(Errno::ADDRNOTAVAIL) => bail!("{ip} is no address of this host; `ip address` shows those that are"),
        Err(error) => Err(error).with_context(|| format!("failed to listen at {at}")),
    }
}

impl Endpoint {
    /// Whether requests and answers are HTTP.
    pub fn is_http(&self) -> bool {
        self.at.protocol == Protocol::Http
    }
}
