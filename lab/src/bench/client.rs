// SPDX-License-Identifier: Apache-2.0
//! An open-loop client: it sends by a plan, whether or not answers come, and counts each answer's
//! time from the moment that the plan named (a closed loop pauses with the server and never sees the
//! bad part). It says how late it was itself. Replies are of constant length, which it learns from the
//! first, or HTTP; before its first request it can say whatever a protocol wants as a greeting.

mod plan;
mod reply;
mod wire;

use std::collections::VecDeque;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use super::observed::now_ns;
use crate::stop::Stop;
use plan::Plan;
use reply::{Progress, Replies, Reply};
use wire::Wire;

pub use plan::{Answer, read_diary};
pub use wire::Address;

/// The timer's token; connections have those from 0.
const TIMER: u64 = u64::MAX;
/// What stands for a number in a request: where all ask the same at once, some services answer all at once.
const NUMBER: &[u8] = b"~~~~";
/// How long the first reply may take, and after how much silence it is whole.
const FIRST_REPLY: (Duration, Duration) = (Duration::from_secs(5), Duration::from_millis(100));
/// Requests that wait for a free connection; more and the server is far over its limit.
const MAX_WAITING: usize = 200_000;

/// What to ask, how often, how long.
#[derive(Clone, Debug, clap::Args)]
pub struct Ask {
    /// Where: a loopback port, `udp:PORT` or `unix:PATH`.
    #[arg(long)]
    pub to: Address,
    /// Requests a second; 0 = the next one as soon as an answer is there, to find the limit.
    #[arg(long)]
    pub rate: f64,
    /// Connections.
    #[arg(long)]
    pub connections: usize,
    /// How long; SIGTERM ends it earlier.
    #[arg(long)]
    pub seconds: f64,
    /// File with what a new connection says first; may be given several times, and be empty where the service speaks.
    #[arg(long)]
    pub hello: Vec<PathBuf>,
    /// File with the request's bytes; the first `~~~~` in it is another number each time.
    #[arg(long)]
    pub request: PathBuf,
    /// Replies are HTTP, instead of constant in length.
    #[arg(long)]
    pub http: bool,
    /// Where the diary of answers goes.
    #[arg(long)]
    pub diary: PathBuf,
}

struct Connection {
    /// None = the service closed it, and the next request opens it anew.
    wire: Option<Wire>,
    /// Whether a request is under way, when the plan wanted it, and when it was sent.
    busy: bool,
    wanted_ns: u64,
    sent_ns: u64,
    reply: Reply,
}

struct Client {
    to: Address,
    hello: Vec<Vec<u8>>,
    request: Vec<u8>,
    /// Where in the request its number goes, and the last one.
    numbered: Option<usize>,
    number: usize,
    replies: Replies,
    epoll: Epoll,
    timer: TimerFd,
    connections: Vec<Connection>,
    free: Vec<usize>,
    waiting: VecDeque<u64>,
    diary: Vec<Answer>,
    buffer: Vec<u8>,
}

/// Asks until the time is up and writes the diary.
///
/// # Errors
/// The service went away, or answered what this client cannot tell apart or what says no.
pub fn ask(args: &Ask, stop: &Stop) -> Result<()> {
    let mut client = Client::connect(args)?;
    let begin = now_ns()?;
    let end = begin + Duration::from_secs_f64(args.seconds).as_nanos() as u64;
    let mut plan = (args.rate > 0.0).then(|| Plan::new(args.rate, begin));
    loop {
        let now = now_ns()?;
        if now >= end || stop.check().is_err() {
            break;
        }
        match &mut plan {
            Some(plan) => {
                client.waiting.extend(plan.due(now));
                client.wake_at(plan.next_ns())?;
            }
            None => client.waiting.resize(client.free.len(), now),
        }
        ensure!(client.waiting.len() < MAX_WAITING, "the service is far slower than the plan");
        client.send()?;
        client.receive()?;
    }
    plan::write_diary(&args.diary, &client.diary)
}

impl Client {
    fn connect(args: &Ask) -> Result<Self> {
        let read = |path: &PathBuf| fs::read(path).with_context(|| format!("failed to read `{}`", path.display()));
        let (mut request, hello) = (read(&args.request)?, args.hello.iter().map(read).collect::<Result<Vec<_>>>()?);
        let numbered = request.windows(NUMBER.len()).position(|bytes| bytes == NUMBER);
        if let Some(at) = numbered {
            put_number(&mut request, at, 0); // the length of a reply is that of one to a number
        }
        let replies = match args.http {
            true => Replies::Http,
            false => Replies::Alike(reply_length(&args.to, &hello, &request)?),
        };
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
        epoll.add(timer.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, TIMER))?;
        let closed = || Connection { wire: None, busy: false, wanted_ns: 0, sent_ns: 0, reply: Reply::default() };
        let mut client = Self {
            to: args.to.clone(),
            hello,
            numbered,
            number: 0,
            request,
            replies,
            epoll,
            timer,
            connections: (0..args.connections).map(|_| closed()).collect(),
            free: (0..args.connections).collect(),
            waiting: VecDeque::new(),
            diary: Vec::new(),
            buffer: vec![0; 1 << 16],
        };
        (0..args.connections).try_for_each(|token| client.open(token))?;
        Ok(client)
    }

    fn open(&mut self, token: usize) -> Result<()> {
        let wire = Wire::open(&self.to, &self.hello)?;
        self.epoll.add(wire.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, token as u64))?;
        self.connections[token].wire = Some(wire);
        Ok(())
    }

    /// Sends what is waiting, as long as connections are free.
    fn send(&mut self) -> Result<()> {
        while let Some(&token) = self.free.last() {
            let Some(wanted_ns) = self.waiting.pop_front() else { break };
            self.free.pop();
            let connection = &mut self.connections[token];
            if let Some(at) = self.numbered {
                self.number = (self.number + 1) % 10_000;
                put_number(&mut self.request, at, self.number);
            }
            connection.reply.clear();
            (connection.busy, connection.wanted_ns, connection.sent_ns) = (true, wanted_ns, now_ns()?);
            self.put(token)?;
        }
        Ok(())
    }

    /// Writes the request; on a new connection where the service has closed the old one.
    fn put(&mut self, token: usize) -> Result<()> {
        if let Some(wire) = &mut self.connections[token].wire {
            match wire.write_all(&self.request) {
                Ok(()) => return Ok(()),
                Err(error) if is_closed(&error) => self.connections[token].wire = None,
                Err(error) => return Err(error).context("failed to send a request"),
            }
        }
        self.open(token)?;
        let wire = self.connections[token].wire.as_mut().context("a connection was not opened")?;
        wire.write_all(&self.request).context("failed to send a request")
    }

    /// Waits for answers or the plan's next moment.
    fn receive(&mut self) -> Result<()> {
        let mut events = [EpollEvent::empty(); 64];
        let ready = match self.epoll.wait(&mut events, EpollTimeout::from(100u16)) {
            Err(Errno::EINTR) => 0,
            ready => ready?,
        };
        for event in &events[..ready] {
            match event.data() {
                TIMER => drop(self.timer.wait()), // read so that it is quiet until it is set again
                token => self.answer(usize::try_from(token)?)?,
            }
        }
        Ok(())
    }

    fn answer(&mut self, token: usize) -> Result<()> {
        let connection = &mut self.connections[token];
        let Some(wire) = &mut connection.wire else { return Ok(()) };
        let got = match wire.read(&mut self.buffer) {
            Ok(0) => return self.closed(token),
            Ok(got) => got,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(()),
            Err(error) if is_closed(&error) => return self.closed(token),
            Err(error) => return Err(error).context("failed to read an answer"),
        };
        ensure!(connection.busy, "the service said something that nobody had asked for");
        let progress = connection.reply.add(self.replies, &self.buffer[..got])?;
        if progress == Progress::Last {
            connection.wire = None;
        }
        if progress != Progress::Partial {
            connection.busy = false;
            let since = |from: u64, until: u64| u32::try_from(until.saturating_sub(from)).unwrap_or(u32::MAX);
            let (wanted_ns, sent_ns) = (connection.wanted_ns, connection.sent_ns);
            let took_ns = since(wanted_ns, now_ns()?);
            self.diary.push(Answer { wanted_ns, took_ns, lag_ns: since(wanted_ns, sent_ns) });
            self.free.push(token);
        }
        Ok(())
    }

    /// A web service closes connections that it finds idle; a request that crossed that is sent again.
    fn closed(&mut self, token: usize) -> Result<()> {
        let connection = &mut self.connections[token];
        if self.replies != Replies::Http || !connection.reply.is_empty() && connection.busy {
            bail!("the service closed a connection");
        }
        connection.wire = None;
        if connection.busy { self.put(token) } else { Ok(()) }
    }

    fn wake_at(&self, at_ns: u64) -> Result<()> {
        let at = TimeSpec::from_duration(Duration::from_nanos(at_ns));
        Ok(self.timer.set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)?)
    }
}

fn is_closed(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted)
}

fn put_number(request: &mut [u8], at: usize, number: usize) {
    request[at..at + NUMBER.len()].copy_from_slice(format!("{number:04}").as_bytes());
}

/// Length of a reply: what comes until there is silence.
fn reply_length(to: &Address, hello: &[Vec<u8>], request: &[u8]) -> Result<usize> {
    let mut wire = Wire::connect(to)?;
    wire.greet(hello)?;
    wire.write_all(request).context("failed to send the first request")?;
    wire.hear(FIRST_REPLY.0, FIRST_REPLY.1).context("the service did not answer the first request")
}

/// The value under which `share` of the values lie; `values` need not be sorted.
pub fn percentile(values: &mut [u32], share: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    let at = ((values.len() as f64 * share).ceil() as usize).saturating_sub(1).min(last);
    let (_, value, _) = values.select_nth_unstable(at);
    Some(f64::from(*value))
}

/// The command line that runs it in a cell.
pub fn command(ask: &Ask) -> Vec<String> {
    let path = |path: &Path| path.display().to_string();
    let flags = [
        ("--to", ask.to.to_string()),
        ("--rate", ask.rate.to_string()),
        ("--connections", ask.connections.to_string()),
        ("--seconds", ask.seconds.to_string()),
        ("--request", path(&ask.request)),
        ("--diary", path(&ask.diary)),
    ];
    let mut args = vec!["ask".to_string()];
    args.extend(flags.into_iter().flat_map(|(flag, value)| [flag.to_string(), value]));
    args.extend(ask.hello.iter().flat_map(|hello| ["--hello".to_string(), path(hello)]));
    args.extend(ask.http.then(|| "--http".to_string()));
    args
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::thread;

    /// Answers `hello` to every `ask`; one request is answered `slow` later.
    fn server(slow: Duration) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for (number, stream) in listener.incoming().flatten().enumerate() {
                thread::spawn(move || serve(stream, if number == 1 { slow } else { Duration::ZERO }));
            }
        });
        port
    }

    fn serve(mut stream: TcpStream, slow: Duration) {
        let mut request = [0; 3];
        let mut first = true;
        while stream.read_exact(&mut request).is_ok() {
            if std::mem::take(&mut first) {
                thread::sleep(slow);
            }
            if stream.write_all(b"hello").is_err() {
                return;
            }
        }
    }

    fn answers(rate: f64, connections: usize, slow: Duration) -> Vec<Answer> {
        let dir = tempfile::tempdir().unwrap();
        let (request, diary) = (dir.path().join("request"), dir.path().join("diary"));
        fs::write(&request, "ask").unwrap();
        let (to, hello, http) = (Address::Tcp(server(slow)), Vec::new(), false);
        let args = Ask { to, rate, connections, seconds: 1.0, hello, request, http, diary: diary.clone() };
        ask(&args, &Stop::default()).unwrap();
        read_diary(&diary).unwrap()
    }

    #[test]
    fn a_frozen_server_is_measured_by_everybody_who_would_have_come() {
        // One connection: all that the plan sends in the 300 ms of the freeze has to wait for its end.
        let answers = answers(200.0, 1, Duration::from_millis(300));
        let waited = answers.iter().filter(|a| a.took_ns > 50_000_000).count();
        assert!(waited >= 20, "{waited} of {}", answers.len());
        assert!(
            answers.iter().filter(|a| a.lag_ns > 50_000_000).count() >= 20,
            "the lag says that no connection was free"
        );
    }

    #[test]
    fn without_a_rate_the_loop_is_closed() {
        let answers = answers(0.0, 4, Duration::ZERO);
        assert!(
            !answers.is_empty()
                && answers.windows(2).all(|pair| pair[0].wanted_ns <= pair[1].wanted_ns + 1_000_000_000)
        );
    }

    #[test]
    fn percentiles() {
        let mut values: Vec<u32> = (1..=100).rev().collect();
        assert_eq!([0.5, 0.99, 1.0].map(|share| percentile(&mut values, share).unwrap()), [50.0, 99.0, 100.0]);
        assert_eq!(percentile(&mut [], 0.5), None);
    }

    #[test]
    fn a_web_service_may_close_connections_between_answers() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let to = Address::Tcp(listener.local_addr().unwrap().port());
        thread::spawn(move || {
            for (number, mut stream) in listener.incoming().flatten().enumerate() {
                let _ = stream.read(&mut [0; 100]).unwrap();
                // Every second one is closed without a word of warning.
                let warning = if number % 2 == 0 { "Connection: close\r\n" } else { "" };
                let _ = write!(stream, "HTTP/1.1 200 OK\r\n{warning}Content-Length: 2\r\n\r\nok");
            }
        });
        let dir = tempfile::tempdir().unwrap();
        let (request, diary) = (dir.path().join("request"), dir.path().join("diary"));
        fs::write(&request, "GET / HTTP/1.1\r\n\r\n").unwrap();
        let hello = Vec::new();
        let args = Ask { to, rate: 100.0, connections: 2, seconds: 0.5, hello, request, http: true, diary };
        ask(&args, &Stop::default()).unwrap();
        assert!(read_diary(&args.diary).unwrap().len() > 10);
    }
}
