// SPDX-License-Identifier: Apache-2.0
//! TCP sockets by state.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// TCP sockets in one state at one moment, at the begin and at the end of a capture, in the network namespace of the target's first
/// process: also those of other processes there, and those that no process has any more. Listeners are not among them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SocketState {
    /// When they were counted, ns after the capture's start.
    pub t_ns: u64,
    /// As the kernel calls it, `ESTABLISHED` or `CLOSE_WAIT` (the other end has closed it, and this one has not).
    pub state: String,
    /// `accepted` (at a port at which somebody listens in the namespace), `made`, or `others` (more than are told apart).
    pub role: String,
    /// Own port where it was accepted; else 0.
    pub port: u32,
    /// Address and port of the other end where it was made, `10.0.0.9:5432`; of those that were accepted and are in `TIME_WAIT` the
    /// client's address, `10.0.0.7`, of the four at a port with most of them; else empty.
    pub peer: String,
    /// A process has them: they stand in no accept queue, and are not left over.
    pub held: bool,
    /// How many.
    pub count: u64,
}

impl SocketState {
    /// Each was true until the next look, of which there is none within a capture.
    pub(super) fn times(part: &Range<u64>) -> Range<u64> {
        0..part.end.saturating_add(1)
    }

    /// A part begins with the look before it, and has the one at the end if it is as long as the capture.
    pub(super) fn part(&self, part: &Range<u64>) -> Option<Self> {
        (self.t_ns <= part.end).then(|| Self { t_ns: self.t_ns.saturating_sub(part.start), ..self.clone() })
    }
}
