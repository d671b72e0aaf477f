// SPDX-License-Identifier: Apache-2.0
//! A small host below a folder of its own, of which one file holds what the fuzzer wants.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::{env, fs, process, thread};

use crate::samplers::{Samplers, Scope};
use crate::target::{Target, cgroup_of, processes};
use crate::{host, host_processes};

/// Files and what they hold else. Only ever appended to: inputs refer to them by number.
const FILES: &[(&str, &str)] = &[
    (
        "proc/7/stat",
        "7 (app) S 1 1 1 0 -1 0 11 0 12 0 30 20 0 0 20 0 1 0 500 4096 25 1000 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
    ),
    ("proc/7/status", "Name:\tapp\nTgid:\t7\nNStgid:\t7\t1\nNSpid:\t7\t1\nUid:\t0\t0\t0\t0\n"),
    ("proc/7/task/7/status", "Cpus_allowed_list:\t0-1\n"),
    (
        "proc/7/task/7/stat",
        "7 (app) S 1 1 1 0 -1 0 11 0 12 0 30 20 0 0 20 0 1 0 500 4096 25 1000 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
    ),
    ("proc/7/cgroup", "3:cpu,cpuacct:/a/b\n0::/app\n"),
    ("proc/7/cmdline", "app\0-x\0"),
    ("proc/7/limits", "Limit  Soft Limit  Hard Limit  Units\nMax open files  1024  4096  files\n"),
    ("proc/7/schedstat", "1 2 3\n"),
    ("proc/7/task/7/schedstat", "1 2 3\n"),
    ("proc/self/mountinfo", "26 23 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
    ("proc/7/net/tcp", "head\n0: 00000000:0050 00000000:0000 0A 0:00000004 00:0 0 0 0 77 1\n"),
    ("proc/7/net/udp6", "head\n"),
    ("proc/7/net/dev", "a\nb\n lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"),
    ("proc/7/net/snmp", "Tcp: A B\nTcp: 1 2\n"),
    ("proc/7/net/netstat", "TcpExt: A\nTcpExt: 1\n"),
    ("proc/7/net/sockstat", "TCP: inuse 1 orphan 0\n"),
    ("proc/7/net/softnet_stat", "0000000a 0 0\n"),
    ("proc/stat", "cpu 1 0 0 9 0 0 0 0\ncpu0 1 0 0 9 0 0 0 0\nctxt 5\nbtime 1\n"),
    ("proc/loadavg", "0.1 0.2 0.3 1/2 3\n"),
    ("proc/meminfo", "MemTotal: 100 kB\n"),
    ("proc/vmstat", "pgmajfault 3\n"),
    ("proc/diskstats", "8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n"),
    ("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n"),
    ("proc/sys/fs/file-nr", "1 0 100\n"),
    ("proc/sys/net/netfilter/nf_conntrack_count", "1\n"),
    ("proc/cpuinfo", "flags : fpu hypervisor\n"),
    ("sys/devices/system/cpu/online", "0-1\n"),
    ("sys/fs/cgroup/app/cpu.stat", "usage_usec 7\nnr_periods 3\nnr_throttled 2\nthrottled_usec 5\n"),
    ("sys/fs/cgroup/app/cpu.max", "20000 100000\n"),
    ("sys/fs/cgroup/app/cpuset.cpus.effective", "0-1\n"),
    ("sys/fs/cgroup/app/memory.events.local", "oom 1\n"),
    ("sys/fs/cgroup/app/memory.stat", "anon 1\n"),
    ("sys/fs/cgroup/app/memory.max", "max\n"),
    ("sys/fs/cgroup/app/pids.max", "100\n"),
    ("sys/fs/cgroup/app/cgroup.procs", "7\n"),
    ("sys/class/net/eth0/speed", "1000\n"),
    ("proc/7/net/sockstat6", "TCP6: inuse 1\n"),
];

/// Reads the whole host, its `choice`th file holding `content`.
pub fn read_with(choice: usize, content: &[u8]) {
    let root = root();
    let (path, usual) = FILES[choice % FILES.len()];
    if fs::write(root.join(path), content).is_ok() {
        read(&root);
    }
    let _ = fs::write(root.join(path), usual); // for the next input
}

/// Most of what is done with a target's host before and during a capture.
fn read(root: &Path) {
    let names = [Target::Comm("app".into()), Target::Port(80), Target::Unit("app".into())];
    for target in names.iter().chain([&Target::Cgroup("/app".into())]) {
        let _ = target.resolve(root); // not found, with a sentence
    }
    host::inventory(root);
    let before = host_processes::host_processes(root, None);
    host_processes::difference(&before, &host_processes::host_processes(root, Some(&before)));
    let Ok(found) = Target::Pid(7).resolve(root) else { return };
    processes(root, &found.pids);
    cgroup_of(root, 7);
    let mut samplers = Samplers::new(Scope::of(root, &found));
    samplers.sample(0);
    samplers.last(1);
}

/// Made on the first call, one for each thread.
fn root() -> PathBuf {
    let root = env::temp_dir().join(format!("wakewalk-fuzz-{}-{:?}", process::id(), thread::current().id()));
    if root.exists() {
        return root;
    }
    for (path, content) in FILES {
        let path = root.join(path);
        let _ = path.parent().map(fs::create_dir_all).transpose().and_then(|_| fs::write(&path, content).map(Some));
    }
    for (link, to) in [("proc/7/ns", "net:[1]"), ("proc/self/ns", "net:[1]"), ("proc/7/fd", "socket:[77]")] {
        let name = if to.starts_with("net") { "net" } else { "3" };
        let _ = fs::create_dir_all(root.join(link)).and_then(|()| symlink(to, root.join(link).join(name)));
    }
    root
}

/// Each file as this machine has it, else as above.
#[cfg(fuzzing)]
pub fn seeds() -> Vec<Vec<u8>> {
    let real =
        |path: &str| fs::read(format!("/{}", path.replace("proc/7/", "proc/self/").replace("task/7", "thread-self")));
    let usual = FILES.iter().map(|(_, content)| content.as_bytes().to_vec());
    let both = FILES.iter().map(|(path, _)| real(path).unwrap_or_default()).zip(usual);
    let numbered = (1_u8..).zip(both).flat_map(|(n, (real, usual))| [(n, real), (n, usual)]);
    numbered.map(|(n, content)| [vec![n], content.into_iter().take(8192).collect()].concat()).collect()
}
