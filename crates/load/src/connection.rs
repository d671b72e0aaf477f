// SPDX-License-Identifier: Apache-2.0
//! One connection of a load, which never blocks.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::IpBindAddressNoPort;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, connect, recv, send, socket_with, sockopt,
};

use crate::plan::Request;
use crate::reply::Reply;
use crate::run::Failure;

/// What a connection is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// There is none.
    #[default]
    Closed,
    /// Its handshake is under way.
    Connecting,
    /// It is open, and nothing is asked.
    Idle,
    /// A request is being written: the write, and how many of its bytes are gone.
    Writing(usize, usize),
    /// The next write of a request is due after a pause.
    Thinking(usize),
    /// The answer is outstanding.
    Waiting,
}

/// A connection and the request on it.
#[derive(Debug, Default)]
pub struct Connection {
    socket: Option<OwnedFd>,
    /// What it is at.
    pub state: State,
    /// Whether a request is on it, and when it was due and sent.
    pub busy: bool,
    /// Due.
    pub due: Duration,
    /// Sent: when its first write began, or on a new connection its handshake.
    pub sent: Duration,
    /// Requests so far; tells a deadline of an earlier one from that of the present.
    pub requests: u64,
    /// Answers on this socket: one that had some may have been closed while the request was on its way.
    pub answers: u64,
    /// Whether any request on it, also on a socket before this one, was answered.
    pub was_answered: bool,
    /// The reply.
    pub reply: Reply,
}

/// How a step of a connection ended.
pub type Step<T = ()> = Result<T, Failure>;

impl Connection {
    /// Begins a handshake.
    pub fn open(&mut self, to: SocketAddr, from: Option<IpAddr>) -> Step {
        let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, None).map_err(failure)?;
        // A small request is not to wait for the acknowledgement of the one before it.
        sockopt::set_tcp_nodelay(&socket, true).map_err(failure)?;
        if let Some(from) = from {
            // Else one port is one connection at a time, wherever to, and a minute more. Kernels before 4.2 know no other way.
            let _ = setsockopt(&socket, IpBindAddressNoPort, &true);
            bind(&socket, &SocketAddr::new(from, 0)).map_err(failure)?;
        }
        match connect(&socket, &to) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(failure(error)),
        }
        (self.state, self.answers) = (State::Connecting, 0);
        self.socket = Some(socket);
        Ok(())
    }

    /// Its socket.
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(AsFd::as_fd)
    }

    /// Closes it.
    pub fn close(&mut self) {
        self.socket = None;
        self.state = State::Closed;
    }

    /// Whether its handshake went well.
    pub fn connected(&self) -> Step {
        let socket = self.socket().ok_or(Failure::Other)?;
        sockopt::socket_error(socket).map_err(failure)?.map_err(failure)
    }

    /// Writes as much of a request as the socket takes, up to the next pause.
    pub fn write(&mut self, request: &Request) -> Step {
        while let State::Writing(nth, done) = self.state {
            let (Some(socket), Some(write)) = (self.socket.as_ref(), request.writes.get(nth)) else {
                self.state = State::Waiting;
                break;
            };
            match send(socket, &write[done..], SendFlags::NOSIGNAL) {
                Ok(sent) if done + sent < write.len() => self.state = State::Writing(nth, done + sent),
                Ok(_) if nth + 1 == request.writes.len() => self.state = State::Waiting,
                Ok(_) if request.think > Duration::ZERO => self.state = State::Thinking(nth + 1),
                Ok(_) => self.state = State::Writing(nth + 1, 0),
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(failure(error)),
            }
        }
        Ok(())
    }

    /// Reads once: bytes, 0 = the other end has closed it, none = nothing is there.
    pub fn read(&self, buffer: &mut [u8]) -> Step<Option<usize>> {
        let socket = self.socket().ok_or(Failure::Other)?;
        loop {
            match recv(socket, &mut *buffer, RecvFlags::empty()) {
                Ok((got, _)) => return Ok(Some(got)),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(failure(error)),
            }
        }
    }
}

/// What an error of the system says of a request.
fn failure(error: Errno) -> Failure {
    match error {
        Errno::CONNREFUSED => Failure::Refused,
        Errno::CONNRESET | Errno::PIPE | Errno::CONNABORTED => Failure::Reset,
        Errno::TIMEDOUT => Failure::Timeout,
        Errno::ADDRNOTAVAIL | Errno::ADDRINUSE => Failure::NoPort,
        Errno::MFILE | Errno::NFILE => Failure::NoDescriptor,
        Errno::NETUNREACH | Errno::HOSTUNREACH => Failure::Unreachable,
        _ => Failure::Other,
    }
}
