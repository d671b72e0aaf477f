// SPDX-License-Identifier: Apache-2.0
//! Two captures at once see the same and do not disturb each other.

use std::process::{Command, Stdio};

use testing::need;

use crate::tool::{Running, WAKEWALK, kernel_allows, read};

#[test]
fn two_captures_of_one_target() {
    need!(kernel_allows());
    let target = Running::spin();
    let start = || {
        let mut command = Command::new(WAKEWALK);
        command.args(["diagnose", "--json", "--for", "2s", "--calls", "always", "--pid", &target.pid()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let captures = [start(), start()].map(|child| read(&child.wait_with_output().unwrap()));
    for v in &captures {
        assert_eq!(v.target.pids, [target.0.id()]);
        assert!(!v.gaps.iter().any(|gap| gap.why.contains("were lost")), "{:?}", v.gaps);
        assert!(v.coverage.thread_time > 0.99 && v.window.ended == "time", "{:?}", v.coverage);
        assert!(v.ledger.threads["wall"] > 1.0 && v.cost.cpu_seconds > 0.0, "{:?}", v.ledger);
    }
}

#[test]
fn two_captures_into_one_folder() {
    need!(kernel_allows());
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("recording");
    let target = Running::sleep();
    let start = || {
        let mut command = Command::new(WAKEWALK);
        command.args(["diagnose", "--json", "--for", "1s", "--pid", &target.pid(), "--save"]).arg(&folder);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut outs = [start(), start()].map(|child| child.wait_with_output().unwrap());
    outs.sort_by_key(|out| out.status.code());
    read(&outs[0]);
    let said = String::from_utf8_lossy(&outs[1].stderr).into_owned();
    assert_eq!(outs[1].status.code(), Some(2), "{said}");
    // It came too late to find the folder empty, or just in time to find it taken.
    assert!(said.contains("name another") || said.contains("name a new folder"), "{said}");
    let left = recording::open(&folder).unwrap();
    assert!(left.meta.sealed, "the refused one has not touched the other's recording");
}
