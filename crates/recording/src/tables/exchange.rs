// SPDX-License-Identifier: Apache-2.0
//! How long exchanges on the target's TCP connections took.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The exchanges of one slice at one of the target's ports, or with one peer that it asks, by one of their stages. An exchange
/// is what is said until the other end answers: mostly one request, of a pipeline several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Exchange {
    /// End of the slice, ns after the capture's start.
    pub t_ns: u64,
    /// `accepted` (a client asks the target) or `made` (the target asks).
    pub role: String,
    /// The target's own port where it was accepted, 0 = of the rest of these together; 0 where the target asks.
    pub port: u32,
    /// Address and port of the other end where the target asks, `10.0.0.9:5432`; `others` = of the rest together; empty where
    /// a client asks.
    pub peer: String,
    /// `response`: of an accepted one from the arrival of its first byte to the first write of the answer, of one that the
    /// target began from its first write to the arrival of the answer's first byte. `read_wait`: what had arrived until it
    /// was read. `first_read`: the same of the first exchange on a connection that a client made, where nothing tells when the
    /// target accepted it; then it is not in `read_wait`. `service`: of an accepted one, from the read to the answer.
    /// `rest`: of that, where further bytes came before the answer, until the last of them came; only of those.
    /// `handshake`: of a connection behind TLS from the client's hello to what is said to it. That is no exchange: it is in no other
    /// stage, but for the wait of what a client sent first, which is the `first_read` of such connections.
    pub stage: String,
    /// Exchanges that ended in this slice.
    pub count: u64,
    /// Their time, added up, ns.
    pub sum_ns: u64,
    /// Lengths that were met, each within 3 %, ns.
    pub length_ns: Vec<u64>,
    /// How many were so long, for each of `length_ns`.
    pub counts: Vec<u64>,
    /// Exchanges that began in this slice; this column and all that follow only with `response`.
    pub began: u64,
    /// Those whose connection was closed before an answer.
    pub unanswered: u64,
    /// Of these, those in which whoever owed the answer was the first to close, in order (without a reset), 1 ms or more (and the way
    /// there and back) after what was said last: the target where a client asks, else whom it asks.
    pub hung_up: u64,
    /// Connections on which whoever was connected to wrote something and was the first to close, in order and within 1 s, before the
    /// other end had said anything: the target where a client connects, else whom it asks.
    pub dismissed: u64,
    /// Of `count`, those in which more was asked before the answer: bytes that came later than the first were read, or a second
    /// write of the target's. Uploads, requests in several writes, or several requests at once.
    pub more: u64,
    /// Writes to clients beyond the first of an answer, or without any question: streams, pushes.
    pub pushed: u64,
    /// Answers on connections on which such writes came since the answer before, each of them 0.1 ms or longer after the write
    /// before it.
    pub continued: u64,
    /// Before those answers, since the write before each, ns, added up.
    pub continued_ns: u64,
    /// Those writes.
    pub apart: u64,
    /// Before those writes, likewise.
    pub apart_ns: u64,
    /// Of `count`, those that took 10 ms or longer and that two further writes followed, each of them 0.1 ms or longer after the write
    /// before it.
    pub streams: u64,
    /// Before those two writes, likewise.
    pub streams_ns: u64,
    /// Of an accepted one, the longest time without an answer to anybody at this port while at least one request waited, ns.
    pub stood_ns: u64,
    /// Requests that waited then, and were answered after it.
    pub stood: u64,
    /// Writes of either kind that began while Nagle's algorithm held small ones back: the socket has no TCP_NODELAY, and a
    /// segment that was not full was on its way. 0 also where the kernel has no hook at which a write begins (before 6.16).
    pub nagled: u64,
}
