// SPDX-License-Identifier: Apache-2.0
//! Which end of the target's connections was to speak next, and what kept bytes in their send queues.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An answer that is owed for so long is late, ns: a few jiffies, in which the kernel counts.
pub const LATE_NS: u64 = 10_000_000;

/// The target's TCP connections at one of its ports, or to one peer, as the looks of one slice found them. Counts are sums
/// over the looks: divided by `looks` they are averages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Connection {
    /// End of the slice, ns after the capture's start.
    pub t_ns: u64,
    /// `accepted` (a client asked for it) or `made` (the target asked for it itself).
    pub role: String,
    /// The target's own port where it was accepted; 0 where the target made it.
    pub port: u32,
    /// Address and port of the other end where the target made it, `10.0.0.9:5432`; `others` = of the rest together;
    /// empty where it was accepted.
    pub peer: String,
    /// How often the target's connections were looked at in this slice.
    pub looks: u64,
    /// Connections, over all looks.
    pub open: u64,
    /// Beside these, the ones that were asked for and that nobody had answered yet (SYN sent), over all looks.
    pub opening: u64,
    /// Of the open ones, those with bytes that came and were not read yet.
    pub unread: u64,
    /// The ones with bytes that were written and could not be sent yet.
    pub unsent: u64,
    /// The ones in which an answer was owed: data had come from the end that asks, and since then nothing from the other, or
    /// only what answered a part of it, at once, while the rest lies unread.
    /// At least so many; the kernel keeps these times to a jiffy. A thread that stands in a read of an accepted connection
    /// alone owes nothing there.
    pub unanswered: u64,
    /// The most of those that one look found.
    pub most_unanswered: u64,
    /// Of those, the ones in which it had been owed for 10 ms or longer.
    pub late: u64,
    /// The most of those that one look found. In recordings of older versions it is 0.
    pub most_late: u64,
    /// For how long it had been owed in those, ns, added up.
    pub late_ns: u64,
    /// Accepted connections of which a look first found that more had come where an answer was late at the look before, and still none
    /// had gone out: whoever waits for one rarely goes on sending. Each is counted once. In recordings of older versions it is 0.
    pub went_on: u64,
    /// Of the open ones, those that were accepted, in which the last question was answered, and in a read of which, or a poll of it
    /// alone, one of the target's threads stands: it serves nobody else meanwhile. In recordings of older versions it is 0.
    pub kept: u64,
    /// Of `late`, the ones that were accepted and in which what came lies unread. In recordings of older versions it is 0.
    pub late_unread: u64,
    /// Of `late`, the ones which the target made and in a read of which, or a poll of it alone, one of its threads stands.
    pub awaited: u64,
    /// Of `unsent`, the ones whose bytes Nagle's algorithm held: less than a full segment, without TCP_NODELAY, until what was
    /// sent before is acknowledged.
    pub nagle: u64,
    /// How long ago data had been sent last in those, ns, added up.
    pub nagle_ns: u64,
    /// Of `unsent`, by TCP_CORK.
    pub cork: u64,
    /// Of `unsent`, by the other end's window.
    pub rwnd: u64,
    /// That window in those, bytes, added up.
    pub window_bytes: u64,
    /// That window at its widest since the connection was opened, likewise.
    pub widest_bytes: u64,
    /// Of `unsent`, by the congestion window.
    pub cwnd: u64,
    /// Of `unsent`, by pacing: the congestion control spreads what it sends over time, as BBR does.
    pub paced: u64,
    /// Of `unsent`, by anything else: the queue of the interface, repairs, a write that went on at that moment. In recordings
    /// of older versions all of these are 0.
    pub other: u64,
    /// The ones with nothing unsent and something on its way, unacknowledged.
    pub on_its_way: u64,
    /// Of `unsent` and `on_its_way`, as the next six, the ones whose writer found the send buffer full.
    pub no_room: u64,
    /// With TCP_NODELAY.
    pub nodelay: u64,
    /// With SO_KEEPALIVE.
    pub keepalive: u64,
    /// Whose send buffer the program has sized itself (SO_SNDBUF).
    pub own_sndbuf: u64,
    /// Likewise the receive buffer (SO_RCVBUF).
    pub own_rcvbuf: u64,
    /// Their round trips as the kernel smoothes them, with the time that the other end takes to acknowledge, ns, added up.
    pub srtt_ns: u64,
    /// The shortest round trip that any of them had of late, ns; 0 = none is known.
    pub min_rtt_ns: u64,
    /// For how long there was something unsent or unacknowledged, from look to look, over all connections that were looked at,
    /// ns; the kernel adds it up in jiffies.
    pub busy_ns: u64,
    /// Of that, held by the other end's window.
    pub rwnd_ns: u64,
    /// Of that, with nothing to send because the writer stood before a full send buffer.
    pub sndbuf_ns: u64,
    /// Of `cwnd`, the ones in slow start: the window has met no limit of the network, nothing was sent again, and no more was
    /// acknowledged since the connection was opened than about that window.
    pub slow_start: u64,
    /// Likewise, but the window had been twice as wide or wider before: it was made small again after a pause.
    pub restarted: u64,
    /// The congestion window in both of these, segments, added up.
    pub slow_start_cwnd: u64,
    /// Bytes that stood unsent in both of these, added up.
    pub slow_start_unsent: u64,
    /// Connections that stood in the accept queue of the port, over all looks; beside `open`.
    pub queued: u64,
    /// Segments sent again, from look to look.
    pub retransmits: u64,
    /// Segments with data that were sent, those among them, likewise. In recordings of older versions it is 0.
    pub segments_out: u64,
    /// Segments with data that came, likewise.
    pub segments: u64,
    /// Of those, in connections that the other end's window held for a quarter of their busy time or longer, so far.
    pub rwnd_segments: u64,
    /// Likewise the full send buffer.
    pub sndbuf_segments: u64,
}
