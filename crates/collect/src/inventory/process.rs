// SPDX-License-Identifier: Apache-2.0
//! The target's processes: how they were started, with which limits, and which build of which file they run.

use std::path::Path;

use recording::tables::Setting;

use super::host::{limit, started, status};
use super::row;
use crate::proc::{Proc, text};

/// Processes looked at; of many workers the first ones tell.
const PROCESSES: usize = 16;

/// Lines of `/proc/PID/limits`.
const LIMITS: &[&str] =
    &["Max open files", "Max processes", "Max stack size", "Max locked memory", "Max address space"];

/// Environment variables that change how a runtime works; nothing else of the environment is read.
const ENVIRONMENT: &[&str] = &[
    "GODEBUG",
    "GOGC",
    "GOMAXPROCS",
    "GOMEMLIMIT",
    "JAVA_TOOL_OPTIONS",
    "LD_PRELOAD",
    "MALLOC_ARENA_MAX",
    "NODE_OPTIONS",
    "PYTHONMALLOC",
    "UV_THREADPOOL_SIZE",
];

/// Settings of these processes. Several of one command name share it: rows that are equal are one row.
pub fn processes(root: &Path, pids: &[u32]) -> Vec<Setting> {
    let proc = Proc::new(root);
    let mut rows: Vec<Setting> = Vec::new();
    for pid in pids.iter().take(PROCESSES) {
        for setting in process(&proc, *pid) {
            if !rows.contains(&setting) {
                rows.push(setting);
            }
        }
    }
    rows
}

fn process(proc: &Proc, pid: u32) -> Vec<Setting> {
    let Some(stat) = proc.stat(pid) else { return Vec::new() };
    let exe = proc.exe(pid);
    let mut rows = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        rows.extend(value.filter(|v| !v.is_empty()).map(|v| row("process", &stat.comm, name, v)));
    };
    add("executable", Some(exe.clone()));
    add("command_line", Some(proc.cmdline(pid)));
    add("started", started(proc.root(), stat.starttime));
    add("nice", Some(stat.nice.to_string()));
    add("scheduling_policy", stat.policy.map(|p| p.to_string()));
    let limits = proc.text(pid, "limits").unwrap_or_default();
    LIMITS.iter().for_each(|name| add(&name.replacen("Max", "limit", 1), limit(&limits, name)));
    let state = proc.text(pid, "status").unwrap_or_default();
    for (name, key) in [("user", "Uid"), ("seccomp", "Seccomp"), ("allowed_cpus", "Cpus_allowed_list")] {
        add(name, status(&state, key).and_then(|v| v.split_whitespace().next()).map(str::to_string));
    }
    add("security_label", text(&proc.of(pid, "attr/current")).map(|t| t.trim_matches(['\0', '\n']).to_string()));
    for (name, value) in environment(&proc.text(pid, "environ").unwrap_or_default()) {
        add(&format!("environment {name}"), Some(value));
    }
    // Another root is a test's: the process of that number is somebody else.
    if proc.root() == Path::new("/") {
        rows.extend(stacks::builds(pid).into_iter().map(|build| row("file", &build.file, "build_id", build.id)));
    }
    rows
}

fn environment(text: &str) -> Vec<(&str, String)> {
    let pairs = text.split('\0').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(name, _)| ENVIRONMENT.contains(name)).map(|(name, value)| (name, value.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_root::FakeRoot;

    #[test]
    fn limits_start_and_listed_environment_only() {
        let root = FakeRoot::new();
        root.process(7, 1, "svc")
            .process(8, 7, "svc")
            .file("proc/stat", "btime 1700000000\n")
            .file("proc/7/limits", "Limit  Soft  Hard\nMax open files            1024   4096   files\n")
            .file("proc/7/environ", "PASSWORD=x\0GOGC=50\0LD_PRELOAD=\0")
            .file("proc/7/cmdline", "svc\0-p\0");
        let rows = processes(root.path(), &[7, 8]);
        let value = |name: &str| rows.iter().filter(|r| r.name == name).map(|r| r.value.as_str()).collect::<Vec<_>>();
        assert_eq!((value("limit open files"), value("environment GOGC")), (vec!["1024"], vec!["50"]));
        assert_eq!((value("command_line"), value("nice")), (vec!["svc -p"], vec!["0"]));
        assert_eq!(value("started"), ["2023-11-14T22:13:25.000Z"], "500 ticks after the boot; equal rows are one");
        assert!(!rows.iter().any(|r| r.value.contains('x') && r.name.contains("environment")));
        assert!(rows.iter().all(|r| r.entity == "svc"));
    }

    #[test]
    fn this_process_runs_a_known_build() {
        let rows = processes(Path::new("/"), &[std::process::id(), u32::MAX]);
        assert!(rows.iter().any(|r| r.area == "file" && r.name == "build_id" && r.value.len() >= 16));
    }
}
