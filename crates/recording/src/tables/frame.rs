// SPDX-License-Identifier: Apache-2.0
//! Functions on stacks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One frame: a function in a module. A frame can have a second row, which holds: its source line was asked for later.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Frame {
    /// Id, from 1.
    pub id: u32,
    /// Function name, demangled; empty = unknown.
    pub symbol: String,
    /// `kernel`, a file name of a binary or library, `[jit]`, or empty = unknown.
    pub module: String,
    /// Offset of the address in the module's file (kernel, and named JIT code: 0; JIT code without a name: the
    /// address itself).
    pub offset: u64,
    /// `kernel`, `native`, `jit` (compiled at run time; a perf map names it) or `unknown`.
    pub kind: String,
    /// Source file and line where debug information gives them, `reactor.c:42`; else empty.
    pub source: String,
}
