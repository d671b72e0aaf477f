// SPDX-License-Identifier: Apache-2.0
//! One frame of a stack, with the part that its function plays.

use super::Part;

/// One frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Code {
    /// Function; empty = unknown.
    pub symbol: String,
    /// Module; empty = unknown.
    pub module: String,
    /// Offset in the module's file, for unnamed JIT code its address; 0 = unknown.
    pub offset: u64,
    /// `kernel`, `native`, `jit` or `unknown`.
    pub kind: String,
    /// Source line, where debug information gives it.
    pub source: String,
    /// What part the function plays.
    pub part: Part,
}

impl Code {
    /// Whether the frame is the kernel's.
    pub fn is_kernel(&self) -> bool {
        self.kind == "kernel" || self.module == "kernel"
    }

    /// Whether it was compiled at run time.
    pub fn is_jit(&self) -> bool {
        self.kind == "jit"
    }

    /// The function for people: its name, or that it has none.
    pub fn label(&self) -> String {
        match (self.symbol.is_empty(), self.module.is_empty()) {
            (false, _) => self.symbol.clone(),
            (true, _) if self.is_jit() => "unnamed JIT-compiled code".to_string(),
            (true, false) => format!("unnamed code in {}", self.file()),
            (true, true) => "unknown code".to_string(),
        }
    }

    /// File name of the module.
    pub fn file(&self) -> &str {
        self.module.rsplit('/').next().unwrap_or(&self.module)
    }
}
