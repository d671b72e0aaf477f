// SPDX-License-Identifier: Apache-2.0
//! Packets that the kernel dropped.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// IP packets that the kernel dropped within one slice, in the network namespace of the target's first process: also those of
/// other processes there. A network card, and whatever drops without a socket buffer (as XDP), does not tell here. Of more of them than some
/// fifteen thousand a second on one CPU, each 64th stands for the others. What was in a socket that ends is no drop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Drop {
    /// End of the slice, ns after the capture's start.
    pub t_ns: u64,
    /// Why, in the kernel's words, `NETFILTER_DROP` or `SOCKET_RCVBUFF`; a number = a part of the kernel with reasons of its own;
    /// empty = it does not tell.
    pub reason: String,
    /// `tcp`, `udp` or `other`.
    pub protocol: String,
    /// `accepted` (to or from a port at which somebody listens in the namespace), `made` (a connection that somebody there made, or a
    /// segment that is of none), `none` (a datagram, or a segment for a port without a socket) or `others` (no port is known, or
    /// not even the network namespace, or more than are told apart in a slice).
    pub role: String,
    /// Own port, unless the connection was made; else 0.
    pub port: u32,
    /// Address and port of the other end where the connection was made, `10.0.0.9:5432`; else empty.
    pub peer: String,
    /// Each is the first segment of a connection, a SYN without ACK.
    pub begins: bool,
    /// Where: a stack of one frame; 0 = unknown.
    pub stack: u32,
    /// How many.
    pub count: u64,
}
