// SPDX-License-Identifier: Apache-2.0
//! The USE table in words: which resource a row is of, and what its numbers count.

use crate::facts::resources::{Resource, UseRow};
use crate::wording::{count, cpu_list, percent};

/// The resource.
pub fn name(resource: &Resource) -> String {
    match resource {
        Resource::Cpus(online) => format!("CPUs ({online})"),
        Resource::Allowed(cpus) => format!("allowed {}", cpu_list(cpus)),
        Resource::Memory => "memory".into(),
        Resource::Swap => "swap".into(),
        Resource::Disk(disk) => format!("disk {disk}"),
        Resource::Interface(name) => format!("interface {name}"),
        Resource::Tcp => "TCP".into(),
        Resource::Udp => "UDP".into(),
        Resource::Packets => "packet processing".into(),
        Resource::HostFiles => "open files, host".into(),
        Resource::Tracking => "connection tracking".into(),
        Resource::ProcessFiles(process) => format!("open files, process {process}"),
        Resource::Listener(listener) => format!("accept queue of {listener}"),
        Resource::Quota(group) => format!("CPU quota of {group}"),
        Resource::CgroupMemory(path) => format!("memory of cgroup {path}"),
        Resource::CgroupTasks(path) => format!("tasks of cgroup {path}"),
    }
}

/// How full it was; none = not read.
pub fn utilization(row: &UseRow) -> Option<String> {
    row.utilization.map(percent)
}

/// How much work waited; none = not read.
pub fn saturation(row: &UseRow) -> Option<String> {
    let value = row.saturation?;
    let number = |unit: &str| format!("{} {unit}", count(value));
    Some(match row.resource {
        Resource::Cpus(_) | Resource::Memory => format!("{} of the time something stalled", percent(value)),
        Resource::Allowed(_) => format!("{value:.2} of its threads queued"),
        Resource::Disk(_) => format!("{value:.2} requests queued on average"),
        Resource::Quota(_) => format!("{} of periods throttled", percent(value)),
        Resource::Swap => number("pages moved"),
        Resource::Interface(_) => number("dropped"),
        Resource::Tcp => number("connections refused by full queues"),
        Resource::Udp => number("datagrams without buffer"),
        Resource::Packets => number("rounds cut short"),
        Resource::Listener(_) => number("waiting at most"),
        Resource::CgroupMemory(_) => number("times at the limit"),
        Resource::HostFiles | Resource::Tracking | Resource::ProcessFiles(_) | Resource::CgroupTasks(_) => return None,
    })
}

/// How much failed; none = not read.
pub fn errors(row: &UseRow) -> Option<String> {
    let unit = match row.resource {
        Resource::Memory | Resource::CgroupMemory(_) => "OOM kills",
        Resource::Interface(_) => "errors",
        Resource::Tcp => "segments retransmitted",
        Resource::Udp => "receive errors",
        Resource::Packets => "packets dropped",
        _ => return None,
    };
    row.errors.map(|value| format!("{} {unit}", count(value)))
}

/// What else is to be said of it; may be empty.
pub fn note(row: &UseRow) -> String {
    let Some(value) = row.besides else { return String::new() };
    match row.resource {
        Resource::Cpus(_) => format!("{} stolen by the hypervisor", percent(value)),
        Resource::Allowed(_) => format!("the target used {} of it", percent(value)),
        Resource::Memory => format!("{} major faults", count(value)),
        Resource::Disk(_) => format!("{} operations, {:.2} ms each", count(value), row.each_ns / 1e6),
        Resource::Interface(_) => format!("{:.1} Mbit/s in the busier direction", value / 1e6),
        Resource::Tcp => format!("{} segments sent", count(value)),
        Resource::Packets => format!("{} packets", count(value)),
        Resource::ProcessFiles(_) => format!("{} open", count(value)),
        Resource::Quota(_) => format!("{value:.2} CPUs"),
        _ => String::new(),
    }
}
