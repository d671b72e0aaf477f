// SPDX-License-Identifier: Apache-2.0
//! Where time was spent blocked: a flame graph of the waits, thread by thread, by kernel stack. Waits that were too
//! short or too many to take a stack of are frames named by their system call.

use diagnose::facts::stacks::{Code, Stacks};
use recording::tables::Wait;

use crate::flame::{Frame, LEGEND};
use crate::section::{Block, FlameNode, Section, Terminal};

use super::Material;
use super::thread_names::ThreadNames;

/// The waits; the page only, as most of a healthy service's waits are idleness.
pub fn view(material: &Material<'_>) -> Option<Section> {
    let rows = material.case.recording.rows::<Wait>();
    let stacks = material.case.fact::<Stacks>().ok()?;
    let names = ThreadNames::of(material.case);
    let mut root = FlameNode::root("all blocked time");
    for row in rows.iter().filter(|row| row.total_ns > 0) {
        let thread = Frame { name: names.comm(row.pid, row.tid), kind: "thread", module: "" };
        let call = material.case.syscall(row.syscall);
        insert(&mut root, thread, &call, stacks.frames(row.stack).collect(), row.total_ns as f64 / 1e6);
    }
    if root.children.is_empty() {
        return None;
    }
    let graph = Block::Flame {
        title: "Blocked time of all threads".to_owned(),
        unit: "ms".to_owned(),
        legend: format!(
            "{LEGEND} The lowest frames are threads by name, those above them system calls, then the kernel\u{2019}s \
             functions down to where it gave the CPU away. Waiting is no fault in itself: an idle thread waits too."
        ),
        root: root.finish(),
    };
    let title = "Where time was spent blocked".to_owned();
    Some(Section::new("waits", title, vec![graph], Terminal::Nothing))
}

fn insert(root: &mut FlameNode, thread: Frame<'_>, call: &str, mut codes: Vec<&Code>, ms: f64) {
    codes.reverse();
    let call = if call == "none" { "(no system call)" } else { call };
    let labels: Vec<String> = codes.iter().map(|code| code.label()).collect();
    let mut path = vec![thread, Frame { name: call, kind: "native", module: "system call" }];
    path.extend(codes.iter().zip(&labels).map(|(code, name)| Frame {
        name,
        kind: super::profile::kind(code),
        module: &code.module,
    }));
    root.insert(path, ms);
}

#[cfg(test)]
mod tests {
    use super::super::tests::section;
    use super::*;

    #[test]
    fn by_thread_call_and_kernel_stack() {
        let waits = "meta host.arch=x86_64
            frame id=1 symbol=schedule module=kernel kind=kernel
            frame id=2 symbol=futex_wait module=kernel kind=kernel
            stack id=1 frames=[1,2]
            thread pid=1 tid=2 comm=worker wall_ns=10e6 blocked_ns=10e6
            wait pid=1 tid=2 syscall=202 stack=1 total_ns=7e6
            wait pid=1 tid=2 syscall=232 total_ns=2e6
            wait syscall=-1 total_ns=1e6";
        let section = section(view, waits).unwrap();
        let Block::Flame { root, unit, .. } = &section.blocks[0] else { panic!("no flame graph") };
        assert_eq!((root.value, unit.as_str()), (10.0, "ms"));
        let [worker, short] = &root.children[..] else { panic!("{root:?}") };
        assert_eq!((worker.name.as_str(), worker.value, short.name.as_str()), ("worker", 9.0, "short-lived threads"));
        let futex = &worker.children[0];
        assert_eq!((futex.name.as_str(), futex.children[0].name.as_str()), ("futex", "futex_wait"));
        assert_eq!(futex.children[0].children[0].name, "schedule");
        assert_eq!((worker.children[1].name.as_str(), worker.children[1].value), ("epoll_wait", 2.0));
    }

    #[test]
    fn nothing_blocked_no_section() {
        assert!(section(view, "wait pid=1 tid=1 syscall=1").is_none());
    }
}
