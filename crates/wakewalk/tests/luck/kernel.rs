// SPDX-License-Identifier: Apache-2.0
//! Kernels without type information, or without a tracepoint. Both are simulated: in a mount namespace of
//! its own the command sees another /sys/kernel/btf, which is where the loader looks hooks up.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use recording::tables::Gap;
use testing::need;

use crate::tool::{
    Running, WAKEWALK, can_mount, in_mounts, kernel_allows, poll, read, sentence, wakewalk, with_mounts,
};

const BTF: &str = "/sys/kernel/btf/vmlinux";

/// A run on a kernel whose type information is the file `btf`.
fn on_btf(btf: &str, args: &[&str]) -> Command {
    let script = "mount --bind \"$1\" /sys/kernel/btf/vmlinux && shift && exec \"$@\"";
    in_mounts(script, &[&[btf, WAKEWALK], args].concat())
}

fn with_btf(btf: &str, args: &[&str]) -> Output {
    on_btf(btf, args).output().unwrap()
}

/// The type information of this kernel without some tracepoints: their names are others there.
fn without(dir: &Path, tracepoints: &[&str]) -> String {
    let mut btf = fs::read(BTF).unwrap();
    for tracepoint in tracepoints {
        let name = format!("\0btf_trace_{tracepoint}\0");
        let at = btf.windows(name.len()).position(|window| window == name.as_bytes()).unwrap();
        btf[at + name.len() - 2] = b'_';
    }
    let path = dir.join("btf");
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
    let btf = without(dir.path(), &["sys_exit"]);
    let out = with_btf(&btf, &["diagnose", "--json", "--for", "1s", "--calls", "always", "--pid", &target.pid()]);
    let v = read(&out);
    let gap = v.gaps.iter().find(|gap| gap.what == "call").unwrap();
    assert!(gap.why.contains("no tracepoint sys_exit"), "{}", gap.why);
    assert!(v.coverage.thread_time > 0.99, "the ledger does not need it: {:?}", v.coverage);
}

/// One gap is known before the clock starts, one comes with the first window on calls.
#[test]
fn a_capture_that_was_killed_has_said_what_it_could_not_see() {
    need!(kernel_allows());
    need!(can_mount());
    let (dir, target) = (tempfile::tempdir().unwrap(), Running::spin());
    let btf = without(dir.path(), &["tcp_send_reset", "sys_exit"]);
    let folder = dir.path().join("recording");
    let (folder, pid) = (folder.to_str().unwrap(), target.pid());
    let args = ["diagnose", "--for", "300s", "--calls", "always", "--pid", &pid, "--save", folder];
    let mut capture = Running::start(&mut on_btf(&btf, &args));
    let says = |what| recording::open(Path::new(folder)).is_ok_and(|r| r.rows::<Gap>().iter().any(|g| g.what == what));
    poll("a gap of a slice", || says("call").then_some(()));
    capture.0.kill().unwrap();
    capture.0.wait().unwrap();
    let v = read(&wakewalk(&["diagnose", "--json", "--from", folder]));
    for what in ["retransmit", "call", "the end"] {
        assert_eq!(v.gaps.iter().filter(|gap| gap.what == what).count(), 1, "{what}: {:?}", v.gaps);
    }
    assert!(v.cost.cpu_seconds > 0.0 && v.cost.kernel_map_bytes > 0 && v.cost.peak_rss_bytes > 0, "{:?}", v.cost);
}

#[test]
fn no_tracepoint_of_the_scheduler() {
    need!(kernel_allows());
    need!(can_mount());
    let (dir, target) = (tempfile::tempdir().unwrap(), Running::sleep());
    let btf = without(dir.path(), &["sched_switch"]);
    let said = sentence(&with_btf(&btf, &["diagnose", "--for", "1s", "--pid", &target.pid()]));
    assert!(said.contains("no tracepoint sched_switch;") && said.contains("doctor"), "{said}");
}
