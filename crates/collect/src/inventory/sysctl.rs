// SPDX-License-Identifier: Apache-2.0
//! Sysctls that matter to a networked service. Those of `net` belong to the network namespace of whoever
//! opens them, so they are read inside the target's.

use std::path::Path;

use recording::tables::Setting;

use super::{line, row};
use crate::namespace;
use crate::proc::Proc;

/// Of the host.
const HOST: &[&str] = &[
    "fs.aio-max-nr",
    "fs.file-max",
    "fs.nr_open",
    "kernel.numa_balancing",
    "kernel.pid_max",
    "kernel.randomize_va_space",
    "kernel.sched_autogroup_enabled",
    "kernel.sched_cfs_bandwidth_slice_us",
    "kernel.sched_rt_runtime_us",
    "kernel.threads-max",
    "kernel.timer_migration",
    "kernel.watchdog",
    "vm.dirty_background_ratio",
    "vm.dirty_ratio",
    "vm.max_map_count",
    "vm.min_free_kbytes",
    "vm.nr_hugepages",
    "vm.overcommit_memory",
    "vm.swappiness",
    "vm.zone_reclaim_mode",
];

/// Of the network namespace; those that only the first namespace has are missing in others.
const NETWORK: &[&str] = &[
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.default_qdisc",
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.netdev_max_backlog",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_abort_on_overflow",
    "net.ipv4.tcp_autocorking",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_fastopen",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
    "net.ipv4.udp_mem",
    "net.netfilter.nf_conntrack_max",
    "net.netfilter.nf_conntrack_tcp_timeout_established",
];

/// The sysctls as process `pid` has them.
pub fn sysctls(root: &Path, pid: u32) -> Vec<Setting> {
    let proc = Proc::new(root);
    let mut rows = read(root, HOST);
    let foreign = proc.namespace(&pid.to_string(), "net") != proc.namespace("self", "net");
    rows.extend(match foreign && root == Path::new("/") {
        // A namespace that may not be entered has no rows, rather than ours.
        true => namespace::inside(&proc.of(pid, "ns/net"), || Ok(read(root, NETWORK))).unwrap_or_default(),
        false => read(root, NETWORK),
    });
    rows
}

fn read(root: &Path, names: &[&str]) -> Vec<Setting> {
    let value = |name: &&str| {
        let path = root.join("proc/sys").join(name.replace('.', "/"));
        Some(row("sysctl", "", name, line(&path)?))
    };
    names.iter().filter_map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_root::FakeRoot;

    #[test]
    fn several_numbers_are_one_value() {
        let root = FakeRoot::new();
        root.process(7, 1, "x")
            .file("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n")
            .file("proc/sys/vm/swappiness", "60\n");
        let rows = sysctls(root.path(), 7);
        let seen: Vec<(&str, &str)> = rows.iter().map(|r| (r.name.as_str(), r.value.as_str())).collect();
        assert_eq!(seen, [("vm.swappiness", "60"), ("net.ipv4.tcp_rmem", "4096 131072 6291456")]);
    }

    #[test]
    fn this_machine_has_some() {
        assert!(sysctls(Path::new("/"), std::process::id()).len() > 20);
    }
}
