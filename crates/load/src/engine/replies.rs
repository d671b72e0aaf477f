// SPDX-License-Identifier: Apache-2.0
//! What comes back over the connections of a load, and what a request without an answer counts as.

use std::time::Duration;

use super::Engine;
use crate::connection::{Connection, State};
use crate::plan::Plan;
use crate::reply::Progress;
use crate::run::{Failure, Stood};

/// Reads of one connection until it is the others' turn.
const READS: usize = 64;
/// From when a request was sent: a close that comes no later was on its way already, or nearly so.
const CROSSING: Duration = Duration::from_millis(5);

impl Engine<'_> {
    /// Reads what is there, as long as it is this connection's turn; to the very end if the other end has closed it.
    pub(super) fn read(&mut self, token: usize, to_the_end: bool) {
        for _ in 0..READS {
            let connection = &mut self.connections[token];
            if connection.socket().is_none() {
                return;
            }
            let got = match connection.read(&mut self.buffer) {
                Ok(None) => return,
                Ok(Some(0)) => return self.closed(token),
                Ok(Some(got)) => got,
                Err(failure) => return self.retry_or_fail(token, failure),
            };
            if !connection.busy {
                // Said without being asked: a farewell, or a protocol that greets.
                return self.closed(token);
            }
            let first = connection.reply.is_empty();
            if first && connection.state != State::Waiting && !matches!(connection.state, State::Writing(..)) {
                return self.fail(token, Failure::Garbage);
            }
            match connection.reply.add(&self.buffer[..got]) {
                Progress::Partial => {}
                Progress::Garbage => return self.fail(token, Failure::Garbage),
                Progress::Whole => {
                    self.answered(token, to_the_end || connection_ends(self.plan, &self.connections[token]));
                }
                Progress::Last => self.answered(token, true),
            }
            if got < self.buffer.len() && !to_the_end {
                return;
            }
        }
        // Nothing new may come that tells of the rest.
        *self.again.entry(token).or_default() |= to_the_end;
    }

    fn answered(&mut self, token: usize, closes: bool) {
        let now = self.now();
        self.has_stood(now);
        let connection = &mut self.connections[token];
        let (latency, service) = (now.saturating_sub(connection.due), now.saturating_sub(connection.sent));
        let (due, status, bytes) = (connection.due, connection.reply.status, connection.reply.bytes);
        connection.busy = false;
        connection.answers += 1;
        self.run.taken.answered += u64::from(!std::mem::replace(&mut connection.was_answered, true));
        if closes {
            connection.close();
        } else {
            connection.state = State::Idle;
        }
        if status != 0 {
            *self.run.statuses.entry(status).or_default() += 1;
        }
        if status >= 400 {
            self.run.refusals.add(latency);
            self.count(Failure::Status, due);
        } else {
            self.run.add_answer(due, (latency, service), bytes, now <= self.plan.length);
        }
        self.release(token);
        self.send_waiting();
    }

    /// Until this answer nobody had one since the last, or since the first of those that wait was asked for.
    fn has_stood(&mut self, now: Duration) {
        let last = std::mem::replace(&mut self.last_answer, now);
        // All connections are looked at only where it may be the longest.
        if now.saturating_sub(last) <= self.run.stood.length {
            return;
        }
        let busy = || self.connections.iter().filter(|connection| connection.busy);
        let from = busy().map(|connection| connection.sent).min().map_or(now, |first| last.max(first));
        // Nobody asks any more, and the long ones are left.
        if from >= self.plan.length {
            return;
        }
        if now.saturating_sub(from) > self.run.stood.length {
            let waiting = busy().count() + self.waiting.len();
            self.run.stood = Stood { length: now.saturating_sub(from), from, waiting };
        }
    }

    /// The other end has closed the connection.
    fn closed(&mut self, token: usize) {
        let connection = &mut self.connections[token];
        if !connection.busy {
            return connection.close();
        }
        match connection.reply.close() {
            Progress::Last => self.answered(token, true),
            _ => self.retry_or_fail(token, Failure::Closed),
        }
    }

    /// A service closes connections that it finds idle; a request that crossed that is sent again. One that dies of requests closes
    /// them as soon: so these are counted, and none is sent again that could be done twice.
    pub(super) fn retry_or_fail(&mut self, token: usize, failure: Failure) {
        let now = self.now();
        let connection = &mut self.connections[token];
        let is_unanswered = connection.answers > 0 && connection.reply.is_empty();
        let has_crossed = is_unanswered && now.saturating_sub(connection.sent) <= CROSSING;
        let is_close = matches!(failure, Failure::Closed | Failure::Reset);
        if connection.busy && has_crossed && is_close && self.plan.request.may_repeat {
            connection.close();
            self.run.sent_again += 1;
            return self.begin(token);
        }
        self.fail(token, failure);
    }

    /// A request has failed, or an idle connection.
    pub(super) fn fail(&mut self, token: usize, failure: Failure) {
        let connection = &mut self.connections[token];
        connection.close();
        if !std::mem::take(&mut connection.busy) {
            return;
        }
        let (due, is_untaken) = (connection.due, failure == Failure::Timeout && !connection.was_answered);
        self.run.taken.in_vain += u64::from(is_untaken);
        self.count(failure, due);
        self.release(token);
    }

    /// A connection has no request any more; those that are open come before those that are not.
    fn release(&mut self, token: usize) {
        match self.connections[token].state {
            State::Closed => self.free.push_front(token),
            _ => self.free.push_back(token),
        }
    }

    pub(super) fn count(&mut self, failure: Failure, due: Duration) {
        *self.run.failures.entry(failure).or_default() += 1;
        self.run.second(due).failed += 1;
    }
}

/// Whether a connection ends although the other end would keep it: each request has its own, or the answer came before
/// all of the request was sent.
fn connection_ends(plan: &Plan, connection: &Connection) -> bool {
    plan.new_connections || connection.state != State::Waiting
}
