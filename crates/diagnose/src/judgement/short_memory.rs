// SPDX-License-Identifier: Apache-2.0
//! Whether memory was so short that this is why threads waited for pages.

use crate::facts::memory::{Memory, Shortage};

/// Times that a limit was met, or that the host had no room: fewer are chance, as a page of somebody's that is swapped in.
const SEVERAL: f64 = 10.0;

/// What was short.
pub(crate) fn shortage(memory: &Memory) -> Option<&Shortage> {
    memory.shortages.iter().find(|shortage| shortage.times >= SEVERAL)
}
