// SPDX-License-Identifier: Apache-2.0
//! An open-loop client: it sends by a plan, whether or not answers come, and counts each answer's
//! time from the moment that the plan named (a closed loop pauses with the server and never sees the
//! bad part). It says how late it was itself. Replies must be of constant length, so it needs no
//! parser; it learns the length from the first.

mod plan;

use std::collections::VecDeque;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use super::observed::now_ns;
use plan::Plan;

pub use plan::{Answer, read_diary};

/// The timer's token; connections have those from 0.
const TIMER: u64 = u64::MAX;
/// After so much silence the first reply is whole.
const SILENCE: Duration = Duration::from_millis(100);
/// Requests that wait for a free connection; more and the server is far over its limit.
const MAX_WAITING: usize = 200_000;

/// What to ask, how often, how long.
#[derive(Clone, Debug, clap::Args)]
pub struct Ask {
    /// Loopback port.
    #[arg(long)]
    pub port: u16,
    /// Requests a second; 0 = the next one as soon as an answer is there, to find the limit.
    #[arg(long)]
    pub rate: f64,
    /// Connections.
    #[arg(long)]
    pub connections: usize,
    /// How long.
    #[arg(long)]
    pub seconds: f64,
    /// File with the request's bytes.
    #[arg(long)]
    pub request: PathBuf,
    /// Where the diary of answers goes.
    #[arg(long)]
    pub diary: PathBuf,
}

struct Connection {
    stream: TcpStream,
    /// When the plan wanted the request that is under way, and when it was sent.
    wanted_ns: u64,
    sent_ns: u64,
    left: usize,
}

struct Client {
    request: Vec<u8>,
    reply: usize,
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
/// The service went away, or its replies have no constant length.
pub fn ask(args: &Ask) -> Result<()> {
    let mut client = Client::connect(args)?;
    let begin = now_ns()?;
    let end = begin + Duration::from_secs_f64(args.seconds).as_nanos() as u64;
    let mut plan = (args.rate > 0.0).then(|| Plan::new(args.rate, begin));
    loop {
        let now = now_ns()?;
        if now >= end {
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
        let request =
            fs::read(&args.request).with_context(|| format!("failed to read `{}`", args.request.display()))?;
        let open = || TcpStream::connect((Ipv4Addr::LOCALHOST, args.port)).context("failed to connect to the service");
        let reply = reply_length(open()?, &request)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
        epoll.add(timer.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, TIMER))?;
        let mut connections = Vec::new();
        for token in 0..args.connections {
            let stream = open()?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            epoll.add(stream.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, token as u64))?;
            connections.push(Connection { stream, wanted_ns: 0, sent_ns: 0, left: 0 });
        }
        let free = (0..connections.len()).collect();
        let (waiting, diary, buffer) = (VecDeque::new(), Vec::new(), vec![0; 1 << 16]);
        Ok(Self { request, reply, epoll, timer, connections, free, waiting, diary, buffer })
    }

    /// Sends what is waiting, as long as connections are free.
    fn send(&mut self) -> Result<()> {
        while let Some(&token) = self.free.last() {
            let Some(wanted_ns) = self.waiting.pop_front() else { break };
            self.free.pop();
            let connection = &mut self.connections[token];
            (connection.wanted_ns, connection.sent_ns, connection.left) = (wanted_ns, now_ns()?, self.reply);
            connection.stream.write_all(&self.request).context("failed to send a request")?;
        }
        Ok(())
    }

    /// Waits for answers or the plan's next moment.
    fn receive(&mut self) -> Result<()> {
        let mut events = [EpollEvent::empty(); 64];
        let ready = self.epoll.wait(&mut events, EpollTimeout::from(100u16))?;
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
        let got = match connection.stream.read(&mut self.buffer) {
            Ok(0) => bail!("the service closed a connection"),
            Ok(got) => got,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error).context("failed to read an answer"),
        };
        ensure!(got <= connection.left, "replies have no constant length; this client cannot tell them apart");
        connection.left -= got;
        if connection.left == 0 {
            let since = |from: u64, until: u64| u32::try_from(until.saturating_sub(from)).unwrap_or(u32::MAX);
            let (wanted_ns, sent_ns) = (connection.wanted_ns, connection.sent_ns);
            let took_ns = since(wanted_ns, now_ns()?);
            self.diary.push(Answer { wanted_ns, took_ns, lag_ns: since(wanted_ns, sent_ns) });
            self.free.push(token);
        }
        Ok(())
    }

    fn wake_at(&self, at_ns: u64) -> Result<()> {
        let at = TimeSpec::from_duration(Duration::from_nanos(at_ns));
        Ok(self.timer.set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)?)
    }
}

/// Length of a reply: what comes until there is silence.
fn reply_length(mut stream: TcpStream, request: &[u8]) -> Result<usize> {
    stream.write_all(request).context("failed to send the first request")?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut buffer = vec![0; 1 << 16];
    let mut length = stream.read(&mut buffer).context("the service did not answer the first request")?;
    stream.set_read_timeout(Some(SILENCE))?;
    while let Ok(more) = stream.read(&mut buffer) {
        ensure!(more > 0, "the service closed the connection after one answer");
        length += more;
    }
    ensure!(length > 0, "the service closed the connection without an answer");
    Ok(length)
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
        ("--port", ask.port.to_string()),
        ("--rate", ask.rate.to_string()),
        ("--connections", ask.connections.to_string()),
        ("--seconds", ask.seconds.to_string()),
        ("--request", path(&ask.request)),
        ("--diary", path(&ask.diary)),
    ];
    let mut args = vec!["ask".to_string()];
    args.extend(flags.into_iter().flat_map(|(flag, value)| [flag.to_string(), value]));
    args
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
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
        ask(&Ask { port: server(slow), rate, connections, seconds: 1.0, request, diary: diary.clone() }).unwrap();
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
}
