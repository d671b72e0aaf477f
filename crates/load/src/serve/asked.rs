// SPDX-License-Identifier: Apache-2.0
//! One connection of somebody who asks. It never blocks.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};

use crate::answer::{Answer, Which};
use crate::requests::{Asked, Requests};

/// Requests of one connection that are under way at most; further ones are read when one is answered.
const AHEAD: usize = 256;

/// A connection.
#[derive(Debug)]
pub(super) struct Asker {
    socket: OwnedFd,
    requests: Requests,
    /// Requests that are not answered yet.
    under_way: usize,
    /// Answers that are due and not sent, and how far the first one is: its write, and the bytes of that.
    unsent: VecDeque<Which>,
    at: (usize, usize),
    /// Bytes of a read that further requests were in than are taken ahead.
    rest: Vec<u8>,
    /// Nothing that comes now is read any more, or nothing can come.
    is_over: bool,
    /// The other end has closed its side, and all that it had sent is read.
    is_closed: bool,
    /// It may have.
    pub(super) ends: bool,
    /// Since when it has stood still with a part of something.
    since: Option<Duration>,
}

/// What a step has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// There may be more to read.
    More,
    /// It waits.
    Wait,
    /// It is to be closed.
    Gone {
        /// With a part of a request or of an answer.
        halved: bool,
    },
}

impl Step {
    pub(super) const fn is_gone(self) -> bool {
        matches!(self, Self::Gone { .. })
    }

    /// Itself, or that it is gone by then.
    pub(super) const fn or(self, then: Self) -> Self {
        if then.is_gone() { then } else { self }
    }
}

impl Asker {
    pub(super) fn new(socket: OwnedFd, length: Option<u64>) -> Self {
        Self {
            socket,
            requests: Requests::new(length),
            under_way: 0,
            unsent: VecDeque::new(),
            at: (0, 0),
            rest: Vec::new(),
            is_over: false,
            is_closed: false,
            ends: false,
            since: None,
        }
    }

    /// Whether another request is taken.
    pub(super) fn has_room(&self) -> bool {
        self.under_way < AHEAD
    }

    /// Reads once, and names what is to be answered.
    pub(super) fn read(&mut self, buffer: &mut [u8], asked: &mut dyn FnMut(Which)) -> Step {
        let rest = std::mem::take(&mut self.rest);
        if !rest.is_empty() {
            self.take(&rest, asked);
            return if self.rest.is_empty() { Step::More } else { Step::Wait };
        }
        if !self.has_room() || self.is_closed {
            return Step::Wait;
        }
        match recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
            Ok((0, _)) => self.closed(),
            Ok((got, _)) => {
                self.take(&buffer[..got], asked);
                // What comes later is an event of its own.
                if got == buffer.len() || self.ends { Step::More } else { Step::Wait }
            }
            Err(Errno::AGAIN) => Step::Wait,
            Err(Errno::INTR) => Step::More,
            Err(_) => Step::Gone { halved: self.is_amid() },
        }
    }

    /// Takes requests off what has come.
    fn take(&mut self, mut piece: &[u8], asked: &mut dyn FnMut(Which)) {
        let under_way = self.under_way;
        while !self.is_over && self.has_room() {
            let Some(one) = self.requests.next(&mut piece) else { break };
            let which = match one {
                Asked::Request { head_only, closes } => Which::Asked { head_only, closes },
                Asked::Garbage => Which::Garbage,
                // A word among answers would be taken for one of them.
                Asked::Pending if self.under_way > 0 => continue,
                Asked::Pending => {
                    self.unsent.push_back(Which::Pending);
                    continue;
                }
            };
            self.is_over = matches!(which, Which::Garbage | Which::Asked { closes: true, .. });
            self.under_way += 1;
            asked(which);
        }
        if !self.is_over && !self.has_room() {
            self.rest.extend_from_slice(piece);
        }
        // A body may take its time as long as it comes; a head may not.
        if !self.is_over && (self.under_way > under_way || !self.requests.is_in_head()) {
            self.since = None;
        }
    }

    /// The other end will ask nothing more; what it has asked is answered.
    fn closed(&mut self) -> Step {
        self.is_closed = true;
        if self.under_way == 0 { Step::Gone { halved: self.is_amid() } } else { Step::Wait }
    }

    fn is_amid(&self) -> bool {
        !self.is_over && self.requests.is_amid() || !self.unsent.is_empty()
    }

    /// An answer is due.
    pub(super) fn say(&mut self, which: Which, answer: &Answer) -> Step {
        self.unsent.push_back(which);
        self.send(answer)
    }

    /// Sends as much of what is due as the socket takes.
    pub(super) fn send(&mut self, answer: &Answer) -> Step {
        while let Some(which) = self.unsent.front().copied() {
            let Some(write) = answer.writes(which).get(self.at.0) else {
                self.sent(which);
                continue;
            };
            match send(&self.socket, &write[self.at.1..], SendFlags::NOSIGNAL) {
                Ok(sent) => {
                    let done = self.at.1 + sent;
                    self.at = if done < write.len() { (self.at.0, done) } else { (self.at.0 + 1, 0) };
                    self.since = None;
                }
                Err(Errno::AGAIN) => return Step::Wait,
                Err(Errno::INTR) => {}
                Err(_) => return Step::Gone { halved: true },
            }
        }
        if self.under_way == 0 && self.is_closed { Step::Gone { halved: self.is_amid() } } else { Step::Wait }
    }

    /// An answer is sent as a whole. After the last one this side is closed, and what still comes is read until the other end
    /// closes too: a socket that is closed with unread bytes takes back what was sent last.
    fn sent(&mut self, which: Which) {
        self.unsent.pop_front();
        self.at = (0, 0);
        if which != Which::Pending {
            self.under_way -= 1;
        }
        if self.is_over && self.under_way == 0 {
            let _ = shutdown(&self.socket, Shutdown::Write); // the other end may be gone
        }
    }

    /// Gives it up if it has stood for so long with a part of a request, with an answer that nobody takes, or with all said
    /// and the other end still open. The clock begins when it is first seen so.
    pub(super) fn stands(&mut self, now: Duration, timeout: Duration) -> Step {
        let halved = self.is_amid();
        if halved || self.is_over && self.under_way == 0 {
            let stood = now.saturating_sub(*self.since.get_or_insert(now));
            return if stood >= timeout { Step::Gone { halved } } else { Step::Wait };
        }
        self.since = None;
        Step::Wait
    }
}
