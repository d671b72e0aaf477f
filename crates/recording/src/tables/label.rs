// SPDX-License-Identifier: Apache-2.0
//! What was asked, by its label, and how long it took.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The exchanges of one slice at one of the target's ports, or with one peer that it asks, by what was asked: only where labels
/// were wanted (`--requests`). Where there are many exchanges, some are picked at random, and each stands for several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Label {
    /// End of the slice, ns after the capture's start.
    pub t_ns: u64,
    /// `accepted` or `made`, as in table `exchange`; the next two likewise.
    pub role: String,
    /// The target's own port where it was accepted; 0 where the target asks.
    pub port: u32,
    /// Address and port of the other end where the target asks; `others` = of the rest together; empty where a client asks.
    pub peer: String,
    /// `http`, `redis`, `postgresql` or `mysql`. Those without a label: `tls`, `http2`, `unknown` (none of these), `unread` (the
    /// bytes could not be read: through io_uring, or the first ones on a connection that stood before).
    pub protocol: String,
    /// Method and path without query and ids, command, or verb and table: `GET /items/*`, `HGETALL`, `SELECT orders`; `others` =
    /// more than are told apart; empty = none.
    pub label: String,
    /// What the first bytes of the answers say: `ok`, `elsewhere` (HTTP 3xx but for 304, Redis' MOVED and ASK), `refused` (HTTP 4xx),
    /// `failed` (HTTP 5xx, errors of Redis, PostgreSQL and MySQL); empty = nothing, or they are not known.
    pub outcome: String,
    /// Exchanges that were looked at.
    pub seen: u64,
    /// Those of them after whose request another one followed in the same bytes (HTTP without a body, Redis): what is counted and
    /// timed are batches, each until its first answer.
    pub pipelines: u64,
    /// Those that they stand for; the next three are of these.
    pub count: u64,
    /// Their response times, added up, ns.
    pub sum_ns: u64,
    /// Lengths that were met, each within 3 %, ns.
    pub length_ns: Vec<u64>,
    /// How many were so long, for each of `length_ns`.
    pub counts: Vec<u64>,
}
