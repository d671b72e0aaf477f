// SPDX-License-Identifier: Apache-2.0
//! Which end of the target's connections was to speak next.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// Of these, the ones with bytes that came and were not read yet.
    pub unread: u64,
    /// The ones with bytes that were written and could not be sent yet.
    pub unsent: u64,
    /// The ones in which an answer was owed: data had come from the end that asks, and since then nothing from the other.
    /// At least so many; the kernel keeps these times to a jiffy. A thread that stands in a read of an accepted connection
    /// alone owes nothing there.
    pub unanswered: u64,
    /// Of those, the ones in which it had been owed for 10 ms or longer.
    pub late: u64,
    /// For how long it had been owed in those, ns, added up.
    pub late_ns: u64,
}
