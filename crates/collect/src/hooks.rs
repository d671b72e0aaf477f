// SPDX-License-Identifier: Apache-2.0
//! Why a probe could not be loaded, where the kernel lacks what it hangs on: its own answer is the number
//! of an error, "no such process".

use std::fs;
use std::path::Path;

use anyhow::{Error, anyhow};

/// Where the kernel describes its types and tracepoints.
const BTF: &str = "sys/kernel/btf/vmlinux";

/// The reason in words, for a probe that needs these tracepoints; `error` itself if nothing is missing.
pub fn explain(root: &Path, needed: &[&str], error: Error) -> Error {
    let Ok(types) = fs::read(root.join(BTF)) else {
        return anyhow!(
            "this kernel does not describe its types (no /{BTF}), and without that no probe can be loaded; it takes a \
             kernel built with CONFIG_DEBUG_INFO_BTF=y, as all distributions have since about 2021. `sudo wakewalk \
             doctor` says what works here"
        );
    };
    let is_missing = |name: &&&str| {
        let symbol = format!("\0btf_trace_{name}\0");
        !types.windows(symbol.len()).any(|window| window == symbol.as_bytes())
    };
    let missing: Vec<&str> = needed.iter().filter(is_missing).copied().collect();
    if missing.is_empty() {
        return error;
    }
    anyhow!(
        "{error:#}: this kernel has no tracepoint {}; `sudo wakewalk doctor` says what works here",
        missing.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_root::FakeRoot;

    #[test]
    fn what_is_missing_is_named() {
        let root = FakeRoot::new();
        let said = |needed: &[&str]| explain(root.path(), needed, anyhow!("refused")).to_string();
        assert!(said(&["a"]).contains("CONFIG_DEBUG_INFO_BTF"));
        root.file(BTF, b"\0btf_trace_a\0btf_trace_ab\0");
        assert_eq!(said(&["a", "ab"]), "refused");
        assert!(said(&["a", "b"]).contains("refused: this kernel has no tracepoint b;"));
    }
}
