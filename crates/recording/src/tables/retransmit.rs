// SPDX-License-Identifier: Apache-2.0
//! TCP segments that were sent again, and connections that were reset.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// TCP segments that were sent again and resets within one slice, in the network namespace of the target's first process:
/// also those of other processes there. Segments that answer the opening of a connection (SYN and ACK) are not among the former.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Retransmit {
    /// End of the slice, ns after the capture's start.
    pub t_ns: u64,
    /// `retransmit` (a segment was sent again), `reset_sent` or `reset_received`.
    pub kind: String,
    /// The connection's state as the kernel calls it, `SYN_SENT` or `ESTABLISHED`; empty = there was no socket.
    pub state: String,
    /// The segment could not be sent again, for there was no route or no memory. Older kernels tell only of those that could.
    pub failed: bool,
    /// `accepted` (at a port at which somebody listens in the namespace), `made`, `none` (a segment came for a port without a
    /// socket) or `others` (more than are told apart in a slice).
    pub role: String,
    /// Own port where it was accepted, or where there was no socket; else 0.
    pub port: u32,
    /// Address and port of the other end where the connection was made, `10.0.0.9:5432`; else empty.
    pub peer: String,
    /// Of a reset that was sent: why, in the kernel's words, `NO_SOCKET` or `TCP_ABORT_ON_CLOSE`; empty = it does not tell.
    pub reason: String,
    /// Of a reset that was sent where it was accepted: nothing had been sent to the client before on that connection. Whoever closes a
    /// connection with bytes in it that he has not read, or before they come, makes the kernel send one.
    pub unanswered: bool,
    /// How many.
    pub count: u64,
}
