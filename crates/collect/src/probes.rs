// SPDX-License-Identifier: Apache-2.0
//! Probes: programs in the kernel that run during a capture only. Each is a pair, `x.bpf.c` with the
//! hooks and `x.rs` with what user space does with them; none knows what its numbers mean.
//!
//! Links are never pinned, so the kernel detaches everything when this process ends, however it ends.

#![allow(unsafe_code)] // reading C structs out of maps and rings; every use says why it is sound

pub mod calls;
pub mod kernel_map;
pub mod ledger;
pub mod perf_event;
pub mod profile;
pub mod refusal;
pub mod run_stats;
pub mod shapes;

/// Text of a kernel command name: up to the first NUL.
pub(crate) fn comm(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// A command name as BTF types it, array of C characters.
pub(crate) fn comm_of_chars(chars: &[i8]) -> String {
    comm(&chars.iter().map(|&c| c.cast_unsigned()).collect::<Vec<u8>>())
}
