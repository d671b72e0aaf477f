// SPDX-License-Identifier: Apache-2.0
//! What all skipped tests rest on: they are skipped where the ledger's programs are refused. A kernel that takes BPF
//! programs of others and refuses ours is no reason to skip, it is our mistake.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use libbpf_rs::ProgramType;
use testing::{given, need};
use wakewalk_collect::doctor;

#[test]
fn a_kernel_that_takes_any_program_takes_ours() {
    need!(given(Path::new("/sys/kernel/btf/vmlinux").exists(), "the kernel has no type information"));
    let any = ProgramType::SocketFilter.is_supported().is_ok_and(|is| is);
    need!(given(any, "the kernel refuses BPF programs of any kind"));
    let health = doctor::examine();
    let refused: Vec<_> = health.facilities.iter().filter(|f| f.tried && !f.works).collect();
    assert!(health.bpf, "{refused:?}");
}
