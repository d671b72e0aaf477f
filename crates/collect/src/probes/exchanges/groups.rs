// SPDX-License-Identifier: Apache-2.0
//! What is new in a group of connections since it was asked last.

use std::net::SocketAddr;

use super::super::address;
use super::Histogram;
use super::histogram::middle_ns;
use super::skel::types;

/// Exchanges at one port or with one peer since the last call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Clients ask; the port is the target's own.
    pub accepted: bool,
    /// Own port; 0 = several that are not told apart, or the target asks.
    pub port: u16,
    /// Whom the target asks; none = several that are not told apart, or clients ask.
    pub peer: Option<SocketAddr>,
    /// From what was asked to the answer.
    pub response: Histogram,
    /// From an arrival to its read; of connections that are accepted, but for their first.
    pub read_wait: Histogram,
    /// The first exchange of a connection that was accepted: from its arrival to the first read.
    pub first_read: Histogram,
    /// Of those that clients sent in parts, from the read of the first one to the arrival of the last.
    pub rest: Histogram,
    /// From the read to the answer.
    pub service: Histogram,
    /// From the hello of TLS to what is said to it, which is in none of the above but in `first_read`.
    pub handshake: Histogram,
    /// Exchanges that began.
    pub began: u64,
    /// Connections that were closed before an answer.
    pub unanswered: u64,
    /// Of these, those in which whoever owed the answer closed first, in order, 1 ms or more after what was said last.
    pub hung_up: u64,
    /// Connections on which whoever was connected to said something and closed within 1 s, before the other end had said anything.
    pub dismissed: u64,
    /// Answered ones in which more was asked meanwhile.
    pub more: u64,
    /// Writes to clients beyond the first of an answer.
    pub pushed: u64,
    /// Answers after such writes, of which each came some time after the one before it: a stream goes on, or a long answer ended.
    pub continued: u64,
    /// Before those answers, since the write before, added up, ns.
    pub continued_ns: u64,
    /// Those writes.
    pub apart: u64,
    /// Before those writes, likewise, ns.
    pub apart_ns: u64,
    /// Answers that took 10 ms or longer and that two further writes followed, each some time after the one before it.
    pub streams: u64,
    /// Before those two writes, likewise, ns.
    pub streams_ns: u64,
    /// The longest time without an answer to anybody, while somebody waited for one, ns.
    pub stood_ns: u64,
    /// Requests that waited then.
    pub stood: u64,
    /// Writes that Nagle's algorithm kept until what was sent before was acknowledged.
    pub nagled: u64,
}

impl Group {
    /// Whether anything happened.
    pub(super) fn has_any(&self) -> bool {
        let answered = self.response.count + self.handshake.count;
        self.began + self.unanswered + self.dismissed + self.pushed + answered > 0
    }
}

/// Of a group without a key, which are several, `accepted` says whether they are ports.
pub(super) fn difference(
    key: Option<&types::group_key>,
    accepted: bool,
    now: &types::group,
    told: &types::group,
) -> Group {
    let [response, read_wait, service, first_read, rest, handshake] = [0, 1, 2, 3, 4, 5].map(|stage| {
        let (now, told) = (&now.stages[stage], &told.stages[stage]);
        let bins = now.bins.iter().zip(&told.bins).enumerate();
        let bins = bins.map(|(at, (now, told))| (middle_ns(at), u64::from(now.wrapping_sub(*told))));
        let bins: Vec<(u64, u64)> = bins.filter(|(_, count)| *count > 0).collect();
        let count = bins.iter().map(|(_, count)| count).sum();
        Histogram { count, sum_ns: now.sum.saturating_sub(told.sum), bins }
    });
    Group {
        accepted,
        port: key.filter(|_| accepted).map_or(0, |key| key.port),
        peer: key.filter(|_| !accepted).map(|key| address(key.family, key.peer, key.port)),
        response,
        read_wait,
        first_read,
        rest,
        service,
        handshake,
        began: now.began.saturating_sub(told.began),
        unanswered: now.unanswered.saturating_sub(told.unanswered),
        hung_up: now.hung_up.saturating_sub(told.hung_up),
        dismissed: now.dismissed.saturating_sub(told.dismissed),
        more: now.more.saturating_sub(told.more),
        pushed: now.pushed.saturating_sub(told.pushed),
        continued: now.continued.saturating_sub(told.continued),
        continued_ns: now.continued_ns.saturating_sub(told.continued_ns),
        apart: now.apart.saturating_sub(told.apart),
        apart_ns: now.apart_ns.saturating_sub(told.apart_ns),
        streams: now.streams.saturating_sub(told.streams),
        streams_ns: now.streams_ns.saturating_sub(told.streams_ns),
        stood_ns: now.stood_ns,
        stood: now.stood,
        nagled: now.nagled.saturating_sub(told.nagled),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_is_told_once() {
        let mut now = types::group::default();
        now.stages[0].bins[20] = 5;
        (now.stages[0].sum, now.began) = (100, 6);
        let told = types::group { began: 2, ..types::group::default() };
        let key = types::group_key { accepted: 1, port: 80, ..types::group_key::default() };
        let group = difference(Some(&key), true, &now, &told);
        assert_eq!((group.accepted, group.port, group.began, group.peer), (true, 80, 4, None));
        assert_eq!((group.response.count, &group.response.bins[..]), (5, &[(middle_ns(20), 5)][..]));
        assert_eq!(difference(Some(&key), true, &now, &now).response, Histogram::default());
    }
}
