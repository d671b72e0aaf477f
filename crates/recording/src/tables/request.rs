// SPDX-License-Identifier: Apache-2.0
//! Single exchanges, from end to end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One exchange on a TCP connection of the target that ended in a burst (table `burst`), or the first half of a handshake of TLS.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Request {
    /// Where a client asked, when the first write of the answer began, else when its first byte arrived, ns after the capture's
    /// start.
    pub t_ns: u64,
    /// `accepted` (a client asks the target) or `made` (the target asks).
    pub role: String,
    /// It is no exchange, but the first half of a handshake of TLS, from the hello to what is said to it.
    pub handshake: bool,
    /// The target's own port where it was accepted; 0 where the target asks.
    pub port: u32,
    /// Address and port of the other end.
    pub peer: String,
    /// Process id of the target's end.
    pub pid: u32,
    /// When the first byte of what was asked arrived or, where the target asks, was written.
    pub began_ns: u64,
    /// Thread that read it, or wrote it.
    pub began_tid: u32,
    /// When what was asked was read or, where the target asks, the answer.
    pub read_ns: u64,
    /// When the last bytes of what a client asked came, if they came after its first were read; 0 = they did not, or the target
    /// asks.
    pub rest_ns: u64,
    /// Thread that wrote the answer, or read it.
    pub ended_tid: u32,
    /// What was asked, as in table `label`; empty = it has no label, or none was wanted.
    pub label: String,
}

impl Request {
    /// Whether a client asked something: a hello of TLS asks for nothing.
    pub fn is_of_client(&self) -> bool {
        self.is_accepted() && !self.handshake
    }
}
