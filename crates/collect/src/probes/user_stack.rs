// SPDX-License-Identifier: Apache-2.0
//! How much of a thread's user stack a probe copies (`bpf/snapshot.bpf.h`).

const CHUNK: u32 = 4096;
const MAX_CHUNKS: u32 = 8;

/// Pieces that hold so many bytes of stack.
pub(super) fn chunks(stack_bytes: u32) -> u32 {
    stack_bytes.div_ceil(CHUNK).clamp(1, MAX_CHUNKS)
}
