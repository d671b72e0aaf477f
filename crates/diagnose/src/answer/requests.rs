// SPDX-License-Identifier: Apache-2.0
//! How long requests took, as the kernel saw it.

use std::collections::BTreeMap;

use recording::role::{ACCEPTED, MADE};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The exchanges at one port of the target's, or with one peer that it asks. An exchange lasts from the first byte of what is
/// asked to the first byte of the answer: mostly one request, of a pipeline several.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RequestTimes {
    /// `accepted` (clients ask the target), `made` (the target asks), or `stream`: the target writes in a rhythm of its own, and
    /// what comes after something that a client sends is the next part, no answer. Then all times are left out or 0.
    pub role: String,
    /// The listening socket, `tcp 0.0.0.0:8080`; else the address that is asked.
    pub endpoint: String,
    /// Answered in the window; where a part of it was followed, as many as that stands for. So are all other numbers of them here.
    pub exchanges: u64,
    /// Closed before an answer.
    pub unanswered: u64,
    /// Those, and the answers that say that the service failed, as far as they were looked at (`--requests`; of some, as many as
    /// that stands for).
    #[serde(default)]
    pub errors: u64,
    /// Requests that got no answer in the window, for so long that response times do not tell how clients fare; left out = hardly
    /// any. Long polls and what clients send without wanting an answer look the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hanging: Option<HangingTimes>,
    /// Several requests are often under way on one connection at once, or they are uploads: then the times are those of the
    /// whole of it; of requests that are written several at once (a pipeline), each counts as one, until its first answer.
    pub mixed: bool,
    /// Response times, each within 3 %.
    pub seconds: Quantiles,
    /// Handshakes of TLS, from the client's hello to what is said to it, which are in none of the other times; left out = none were
    /// seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshakes: Option<Handshakes>,
    /// Parts of them: `read_wait` (what had arrived until the target read it) and, where clients ask, `service` (from there to
    /// the answer). Where connections stand in the accept queue, `accept` is the `read_wait` of the first request of each: until
    /// it was accepted and read. Where clients send what they ask in parts, `rest` is the part of `service` until the last one had
    /// arrived, of those that came so.
    pub stages: BTreeMap<String, Quantiles>,
    /// Stages of which only the average is known, seconds for each exchange: `held` (bytes stood in the target's send queue:
    /// where clients ask, after the answer began and so beyond the response time; else a part of it) and `wire` (all was sent
    /// and not acknowledged yet; left out where the other end puts acknowledgements off, because it would not be the wire); `later`
    /// (the target went on writing an answer after its first bytes, with which response times end; left out where that is little).
    #[serde(default)]
    pub on_average: BTreeMap<String, f64>,
    /// What those that were followed from end to end waited for, most first; empty = none were.
    #[serde(default)]
    pub path: Vec<PathPart>,
    /// By what was asked, the slowest first; only of a capture with `--requests`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<LabelTimes>,
    /// Share of exchanges without a label, by why: `tls`, `http2`, `unknown` (another protocol), `unread` (the bytes could not be
    /// read); likewise.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unlabelled: BTreeMap<String, f64>,
    /// The slowest of those that were followed from end to end, if it has a label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowest: Option<Slowest>,
}

/// Handshakes of TLS.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Handshakes {
    /// How many began and were answered in the window.
    pub count: u64,
    /// Their times, each within 3 %.
    pub seconds: Quantiles,
    /// Where the time of those went that were followed from end to end, most first; of clients', where these wait for them for most of
    /// the time, and long.
    #[serde(default)]
    pub path: Vec<PathPart>,
}

/// Requests without an answer.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct HangingTimes {
    /// At a time, on average.
    pub connections: f64,
    /// For how long their clients had waited, on average over the looks at them.
    pub seconds: f64,
}

/// Requests of one label.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LabelTimes {
    /// Method and path without query and ids, command, or verb and table: `GET /items/*`, `HGETALL`, `SELECT orders`; `others` =
    /// more than are told apart.
    pub label: String,
    /// `http`, `redis`, `postgresql` or `mysql`.
    pub protocol: String,
    /// Answered in the window.
    pub exchanges: u64,
    /// Of these, the ones that were looked at: where there are many, some are picked at random.
    pub sampled: u64,
    /// Response times, each within 3 %.
    pub seconds: Quantiles,
    /// Of the time of all requests of the endpoint, 0 to 1.
    pub share: f64,
    /// Of `exchanges`, answers that say that the service failed: HTTP 5xx, errors of Redis, PostgreSQL and MySQL.
    #[serde(default)]
    pub failed: u64,
    /// Of `exchanges`, answers that say that whoever asked is to blame: HTTP 4xx.
    #[serde(default)]
    pub refused: u64,
    /// Of the CPU time of all labelled requests that were followed from end to end, 0 to 1; left out where none were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_share: Option<f64>,
}

/// A single request.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Slowest {
    /// What was asked.
    pub label: String,
    /// Its response time.
    pub seconds: f64,
}

/// A part of the time from the arrival of requests to their answers.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PathPart {
    /// Whose part it is, `nginx/17`: the thread that answers, or one of its process.
    #[serde(default)]
    pub who: String,
    /// Who kept them, and in what, in words.
    pub what: String,
    /// Of their time, 0 to 1.
    pub share: f64,
    /// On average, of each.
    pub seconds: f64,
    /// It passed before the thread came to the request: it was at something else.
    pub before_turn: bool,
    /// Where it waited: the program's functions, innermost first, the kernel's where those are not known; empty = it was awake,
    /// or that was not seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
}

/// Lengths of time in seconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Quantiles {
    /// Half are not longer.
    pub p50: f64,
    /// Nine of ten are not.
    pub p90: f64,
    /// 99 of a hundred.
    pub p99: f64,
    /// 999 of a thousand.
    pub p999: f64,
    /// On average.
    pub mean: f64,
}

impl RequestTimes {
    /// Whether clients ask there.
    pub fn is_accepted(&self) -> bool {
        self.role == ACCEPTED
    }

    /// Whether it is somebody whom the target asks.
    pub fn is_made(&self) -> bool {
        self.role == MADE
    }
}
