// SPDX-License-Identifier: Apache-2.0
//! When everything was told.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A burst of full detail: within it each wait of a followed thread has a row in `wakeup`, and each exchange that ends one in
/// `request`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Burst {
    /// Its end, ns after the capture's start.
    pub t_ns: u64,
    /// Its length.
    pub length_ns: u64,
}

impl Burst {
    /// It ends in the slice that comes after its own, or in its own, and may last as long as any.
    pub(super) fn times(part: &Range<u64>) -> Range<u64> {
        part.start.saturating_add(1)..u64::MAX
    }

    /// What of it lies in the part. One that began before it begins a moment later: what was under way then is not there as a whole.
    pub(super) fn part(&self, part: &Range<u64>) -> Option<Self> {
        let began = self.t_ns.saturating_sub(self.length_ns);
        let from = if began < part.start { part.start.saturating_add(1) } else { began };
        let to = self.t_ns.min(part.end);
        (from < to).then(|| Self { t_ns: to - part.start, length_ns: to - from })
    }
}
