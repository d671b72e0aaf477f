// SPDX-License-Identifier: Apache-2.0
//! Kernels without type information, or without a tracepoint. Both are simulated: in a mount namespace of
//! its own the command sees another /sys/kernel/btf, which is where the loader looks hooks up.

use std::fs;
use std::process::Output;

use testing::need;

use crate::tool::{Running, WAKEWALK, can_mount, kernel_allows, read, sentence, with_mounts};

const BTF: &str = "/sys/kernel/btf/vmlinux";

/// Runs on a kernel whose type information is the file `btf`.
fn with_btf(btf: &str, args: &[&str]) -> Output {
    let script = "mount --bind \"$1\" /sys/kernel/btf/vmlinux && shift && exec \"$@\"";
    with_mounts(script, &[&[btf, WAKEWALK], args].concat())
}

/// The type information of this kernel without one tracepoint: its name is another there.
fn without(dir: &std::path::Path, tracepoint: &str) -> String {
    let mut btf = fs::read(BTF).unwrap();
    let name = format!("\0btf_trace_{tracepoint}\0");
    let at = btf.windows(name.len()).position(|window| window == name.as_bytes()).unwrap();
    btf[at + name.len() - 2] = b'_';
    let path = dir.join(tracepoint);
    fs::write(&path, btf).unwrap();
    path.to_str().unwrap().to_string()
}

#[test]
fn no_type_information() {
    need!(kernel_allows());
    need!(can_mount());
    let target = Running::sleep();
    let script = "mount -t tmpfs none /sys/kernel/btf && exec \"$@\"";
    let said = sentence(&with_mounts(script, &[WAKEWALK, "diagnose", "--pid", &target.pid()]));
    assert!(said.contains("/sys/kernel/btf/vmlinux") && said.contains("CONFIG_DEBUG_INFO_BTF"), "{said}");
    let out = with_mounts(script, &[WAKEWALK, "doctor", "--json"]);
    let health: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(health["bpf"], false);
}

#[test]
fn no_tracepoint_of_system_calls() {
    need!(kernel_allows());
    need!(can_mount());
    let (dir, target) = (tempfile::tempdir().unwrap(), Running::spin());
    let btf = without(dir.path(), "sys_exit");
    let out = with_btf(&btf, &["diagnose", "--json", "--for", "1s", "--calls", "always", "--pid", &target.pid()]);
    let v = read(&out);
    let gap = v.gaps.iter().find(|gap| gap.what == "call").unwrap();
    assert!(gap.why.contains("no tracepoint sys_exit"), "{}", gap.why);
    assert!(v.coverage.thread_time > 0.99, "the ledger does not need it: {:?}", v.coverage);
}

#[test]
fn no_tracepoint_of_the_scheduler() {
    need!(kernel_allows());
    need!(can_mount());
    let (dir, target) = (tempfile::tempdir().unwrap(), Running::sleep());
    let btf = without(dir.path(), "sched_switch");
    let said = sentence(&with_btf(&btf, &["diagnose", "--for", "1s", "--pid", &target.pid()]));
    assert!(said.contains("no tracepoint sched_switch;") && said.contains("doctor"), "{said}");
}
