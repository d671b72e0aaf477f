// SPDX-License-Identifier: Apache-2.0
//! What a line of the ledger was, as after "was": for some lines facts tell more than their names do.

use std::collections::BTreeMap;

use crate::case::Case;
use crate::facts::file_locks::FileLocks;
use crate::facts::file_systems::FileSystems;
use crate::facts::kernel_locks::KernelLocks;
use crate::facts::stacks::Stacks;
use crate::facts::stopped::{How, Stopped};
use crate::facts::waiting::Waiting;
use crate::ledger::file_system::{FileSystem, Holds};
use crate::ledger::largest::line_of;
use crate::statistics::share;
use crate::walk::DNS;
use crate::walk::chains::Chain;
use crate::wording::percent;

/// Functions that are named at most.
const NAMED: usize = 2;

/// A line in words, by what is known of it or by its name: `standing before a lock of the process's memory map (mmap_lock), wanted in
/// vm_mmap_pgoff`.
pub(crate) fn words(case: &Case, line: &str) -> String {
    told(case, line).unwrap_or_else(|| plain(line).to_string())
}

/// What is known of a line; none = no more than its name says.
pub fn told(case: &Case, line: &str) -> Option<String> {
    match line {
        "blocked_kernel_lock" => kernel_locks(&*case.fact().ok()?),
        "blocked_file_system" => file_systems(&*case.fact().ok()?),
        "blocked_file_lock" => file_locks(&*case.fact().ok()?),
        "stopped" => stopped(&*case.fact().ok()?),
        "blocked_poll" | "blocked_socket_read" => asked(case, line),
        _ => None,
    }
}

/// Of the waiting on a line, for whom most of it is: nearly all.
const NEARLY_ALL: f64 = 0.8;

/// For whose answer it was; none = for several, or nobody's.
fn asked(case: &Case, line: &str) -> Option<String> {
    let (waiting, stacks) = (case.fact::<Waiting>().ok()?, case.fact::<Stacks>().ok()?);
    let mut by_name: BTreeMap<String, f64> = BTreeMap::new();
    for chain in waiting.chains.iter().filter(|chain| line_of(chain, &stacks) == line) {
        let who = &chain.links[0].who;
        let name = match (who.fd_kind.as_str(), who.peer.as_str()) {
            (DNS, "") => "a DNS server".to_string(),
            (DNS, peer) => format!("the DNS server {peer}"),
            (_, peer) => peer.to_string(),
        };
        *by_name.entry(name).or_default() += chain.ns;
    }
    let all: f64 = by_name.values().sum();
    let (name, ns) = by_name.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (!name.is_empty() && ns >= all * NEARLY_ALL).then(|| format!("waiting for the answer of {name}"))
}

/// Before which lock threads stood most; none = before none.
pub(crate) fn kernel_locks(locks: &KernelLocks) -> Option<String> {
    let most = locks.waits.first()?;
    let names: Vec<&str> =
        most.wanted_in.iter().map(|(name, _)| name.as_str()).filter(|name| !name.is_empty()).collect();
    let wanted = match names[..names.len().min(NAMED)].join(" and ") {
        none if none.is_empty() => String::new(),
        some => format!(", wanted in {some}"),
    };
    Some(format!("standing before a lock of {}{wanted}", most.guards.words()))
}

/// For which file system they waited most; none = for none.
fn file_systems(systems: &FileSystems) -> Option<String> {
    let most = systems.served.first()?;
    let by = systems.programs.first().map_or(String::new(), |(name, _)| format!(" ({name} answered)"));
    let file = systems.files.first().map_or(String::new(), |(path, _)| format!(", mostly for {path}"));
    Some(format!("waiting for {}{by}{file}", served(most.system)))
}

/// A file system, and who serves it.
fn served(system: FileSystem) -> String {
    match system.holds {
        Holds::Program => format!("{}, which a program in user space serves", system.name),
        Holds::Host => format!("{}, which another host serves", system.name),
        Holds::Disk | Holds::Nothing => system.name.to_string(),
    }
}

/// Before which file's lock they stood most; none = before none.
fn file_locks(locks: &FileLocks) -> Option<String> {
    let most = locks.files.first().filter(|_| locks.ns > 0.0)?;
    let file = if most.path.is_empty() { "a file" } else { &most.path };
    let holder = match (most.holders.first(), &most.chain) {
        (Some((name, ns)), None) => format!(", held by {name} for {} of that", percent(share(*ns, most.ns))),
        (Some((name, _)), Some(chain)) => format!(", whose holder ({name}) {}", holder_does(chain)),
        (None, _) => String::new(),
    };
    Some(format!("standing before a lock on {file} ({}){holder}", most.call))
}

/// What the holder of a lock did while others stood before it.
fn holder_does(chain: &Chain) -> String {
    match chain.links.get(1) {
        Some(link) => format!("waits in {}", link.who.call_words()),
        None => format!("is at {}", chain.end.kind.words()),
    }
}

/// How the target was held and by whom; none = it was not.
pub(crate) fn stopped(stopped: &Stopped) -> Option<String> {
    let most = stopped.ns.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(how, _)| *how);
    let how = most.or_else(|| stopped.frozen.as_ref().map(|_| How::Frozen))?;
    let by = match (how, &stopped.frozen, stopped.continued_by.first(), stopped.tracers.first()) {
        (How::Frozen, Some((group, _)), ..) => format!(" ({group})"),
        (How::Traced, _, _, Some(who)) => format!(" ({who})"),
        (How::Stopped | How::Traced, _, Some((who, _)), _) => format!(" (and let go on by {who})"),
        _ => String::new(),
    };
    Some(format!("being {}{by}", how_held(how)))
}

fn how_held(how: How) -> &'static str {
    match how {
        How::Stopped => "stopped by a signal",
        How::Traced => "stopped by whoever traces it (ptrace)",
        How::Frozen => "frozen with its cgroup",
    }
}

/// A line by its name.
fn plain(line: &str) -> &str {
    match line {
        "user" => "its own code on a CPU",
        "kernel" => "the kernel's code on a CPU, at work for it",
        "kernel_in_wait_calls" => "the kernel's code on a CPU, in calls that wait",
        "cpu_unsplit" => "on a CPU",
        "run_queue" => "waiting for a CPU after a wakeup",
        "preempted" => "waiting for a CPU that another thread had taken",
        "throttled" => "being held by a CPU quota",
        "interrupted" => "on a CPU that interrupts or the hypervisor used",
        "blocked_socket_read" => "waiting for somebody's answer",
        "blocked_poll" => "waiting in a poll until somebody was ready",
        "blocked_accept" => "waiting for connections",
        "blocked_connect" => "making connections",
        "blocked_socket_send" => "writing to sockets that took no more",
        "blocked_futex" => "waiting for other threads (futex)",
        "blocked_file_lock" => "standing before a lock on a file",
        "blocked_semaphore" => "standing before a semaphore",
        "blocked_kernel_lock" => "standing before a lock of the kernel",
        "blocked_disk" => "waiting for a disk",
        "blocked_file_system" => "waiting for a file system that somebody else serves",
        "blocked_page_fault" => "waiting for pages of memory",
        "blocked_memory" => "waiting until memory was freed",
        "blocked_sleep" => "sleeping",
        "blocked_pipe" => "waiting at pipes",
        "blocked_tty" => "waiting at a terminal",
        "blocked_child" => "waiting for child processes",
        "stopped" => "being stopped, traced or frozen",
        _ => "blocked in other calls",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    fn of(line: &str, text: &str) -> Option<String> {
        let recording = parse(&format!("meta host.arch=x86_64 length_ns=1e9 target.pids=[1]\n{text}")).unwrap();
        told(&Case::new(&recording), line)
    }

    #[test]
    fn who_let_it_go_on() {
        let text = "thread pid=1 tid=1 wall_ns=1e9 blocked_ns=9e8
            wait pid=1 tid=1 syscall=232 fd_kind=anon state=4 count=3 total_ns=6e8
            wait pid=1 tid=1 syscall=232 fd_kind=anon state=1 count=3 total_ns=3e8
            wakeup t_ns=900e6 pid=1 tid=1 wait_ns=2e8 blocked_ns=6e8 syscall=232 state=4 context=thread waker_pid=7 waker_tid=7 waker_comm=cron";
        assert_eq!(of("stopped", text).unwrap(), "being stopped by a signal (and let go on by cron/7)");
    }

    #[test]
    fn a_frozen_group_whose_threads_slept_already() {
        let text = "thread pid=1 tid=1 wall_ns=1e9 blocked_ns=9e8
            wait pid=1 tid=1 syscall=232 fd_kind=anon state=1 count=3 total_ns=9e8
            counter source=cgroup/freezer entity=/web name=frozen_ns value=0
            counter t_ns=1e9 source=cgroup/freezer entity=/web name=frozen_ns value=4e8";
        assert_eq!(of("stopped", text).unwrap(), "being frozen with its cgroup (/web)");
    }

    #[test]
    fn whose_answer_it_was() {
        let text = |other: &str| {
            format!(
                "frame id=1 symbol=hrtimer_wakeup module=kernel kind=kernel
                 stack id=1 frames=[1]
                 thread pid=1 tid=1 wall_ns=1e9 cpu_ns=1e8 blocked_ns=9e8
                 wakeup t_ns=500e6 pid=1 tid=1 comm=api wait_ns=4e8 blocked_ns=4e8 syscall=7 fd_kind=socket family=2 remote_port=53 peer=10.0.0.2 context=interrupt waker_stack=1
                 wakeup t_ns=950e6 pid=1 tid=1 comm=api wait_ns=4e8 blocked_ns=4e8 syscall=7 fd_kind=socket family=2 remote_port=53 peer={other} context=interrupt waker_stack=1"
            )
        };
        assert_eq!(
            of("blocked_poll", &text("10.0.0.2")).unwrap(),
            "waiting for the answer of the DNS server 10.0.0.2:53"
        );
        assert_eq!(of("blocked_poll", &text("10.0.0.3")), None);
    }

    #[test]
    fn one_that_sleeps_is_not_held() {
        assert_eq!(of("stopped", "wait pid=1 tid=1 syscall=232 fd_kind=anon state=1 total_ns=9e8"), None);
    }

    #[test]
    fn the_program_that_serves_is_named() {
        let text = "thread pid=1 tid=1 wall_ns=1e9 cpu_ns=1e8 blocked_ns=9e8
            wait pid=1 tid=1 syscall=17 fd_kind=file file_system=1702057286 state=1 count=9 total_ns=9e8
            wakeup t_ns=900e6 pid=1 tid=1 wait_ns=1e8 blocked_ns=9e8 syscall=17 fd_kind=file file_system=1702057286 state=1 path=/mnt/a context=thread waker_pid=7 waker_tid=7 waker_comm=sshfs";
        assert_eq!(
            of("blocked_file_system", text).unwrap(),
            "waiting for fuse, which a program in user space serves (sshfs/7 answered), mostly for /mnt/a"
        );
        let none = "wait pid=1 tid=1 syscall=17 fd_kind=file file_system=61267 state=2 io_wait=true";
        assert_eq!(of("blocked_file_system", none), None);
    }

    #[test]
    fn the_file_its_holder_and_what_that_did() {
        let text = "frame id=1 symbol=hrtimer_wakeup module=kernel kind=kernel
            stack id=1 frames=[1]
            thread pid=1 tid=1 comm=php wall_ns=1e9 cpu_ns=1e8 blocked_ns=9e8
            thread pid=2 tid=2 comm=php wall_ns=1e9 cpu_ns=1e8 blocked_ns=9e8
            process pid=2 comm=php
            wait pid=1 tid=1 syscall=73 fd_kind=file file_system=61267 state=1 count=9 total_ns=8e8
            wait pid=2 tid=2 syscall=230 state=1 count=9 total_ns=9e8
            wakeup t_ns=900e6 pid=1 tid=1 comm=php wait_ns=20e6 blocked_ns=800e6 syscall=73 fd_kind=file state=1 path=/tmp/sess context=thread waker_pid=2 waker_tid=2 waker_comm=php waker_syscall=3
            wakeup t_ns=899e6 pid=2 tid=2 comm=php wait_ns=19e6 blocked_ns=800e6 syscall=230 state=1 context=interrupt waker_stack=1";
        assert_eq!(
            of("blocked_file_lock", text).unwrap(),
            "standing before a lock on /tmp/sess (flock), whose holder (php/2) waits in clock_nanosleep"
        );
        assert_eq!(of("blocked_file_lock", "thread pid=1 tid=1 wall_ns=1e9 blocked_ns=1e9"), None);
    }
}
