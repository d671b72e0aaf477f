// SPDX-License-Identifier: Apache-2.0
//! The USE table: utilization, saturation and errors of every resource that was read.
//!
//! A cell that was not read is empty, which is not the same as zero. What its numbers mean in words, `phrases/resources` says.

use recording::counters::{
    Key, cgroup_memory, cgroup_pids, conntrack, diskstats, file_nr, link, listeners, meminfo, net_dev, netstat, pid,
    pressure, snmp, softnet_stat, vmstat,
};

use super::counters::Counters;
use super::cpus::Cpus;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::ledger::threads::Threads;
use crate::statistics::{ratio, share};

/// What can be full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resource {
    /// All CPUs that are online, so many.
    Cpus(u32),
    /// Those that the target may use.
    Allowed(Vec<u32>),
    /// Memory of the host.
    Memory,
    /// Its swap.
    Swap,
    /// A disk, by its name.
    Disk(String),
    /// An interface, by its name.
    Interface(String),
    /// TCP, in the target's network namespace.
    Tcp,
    /// UDP, there.
    Udp,
    /// The kernel's work on packets.
    Packets,
    /// Files that the host may open.
    HostFiles,
    /// Connections that the host may track.
    Tracking,
    /// Files that a process may open, by its id.
    ProcessFiles(String),
    /// The accept queue of a listener, by its name.
    Listener(String),
    /// The CPU quota of a cgroup, by its path.
    Quota(String),
    /// The memory of a cgroup.
    CgroupMemory(String),
    /// The tasks of a cgroup.
    CgroupTasks(String),
}

/// One resource.
#[derive(Clone, Debug, PartialEq)]
pub struct UseRow {
    /// The resource.
    pub resource: Resource,
    /// Share in use, 0 to 1.
    pub utilization: Option<f64>,
    /// How much work waited: what is counted, the resource says.
    pub saturation: Option<f64>,
    /// How much failed.
    pub errors: Option<f64>,
    /// One more number of it, such as the operations of a disk.
    pub besides: Option<f64>,
    /// How long each operation of a disk took, ns.
    pub each_ns: f64,
}

impl UseRow {
    fn of(resource: Resource) -> Self {
        let (utilization, saturation, errors, besides) = (None, None, None, None);
        Self { resource, utilization, saturation, errors, besides, each_ns: 0.0 }
    }

    /// Whether it is a CPU quota. Somebody set one, so it is worth a line however little is used.
    pub fn is_quota(&self) -> bool {
        matches!(self.resource, Resource::Quota(_))
    }
}

/// The USE table.
pub struct Resources {
    /// Its rows.
    pub rows: Vec<UseRow>,
}

impl Fact for Resources {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let counters = case.fact::<Counters>()?;
        let cpus = case.fact::<Cpus>()?;
        let queued_ns = case.fact::<Threads>().map_or(0.0, |t| t.total.waiting_for_cpu_ns());
        let read = Reader { c: &counters, length_ns: case.length_ns(), queued_ns };
        let mut rows = vec![read.cpus(&cpus), read.allowed(&cpus), read.memory(), read.swap()];
        rows.extend(counters.entities(diskstats::SOURCE).map(|e| read.disk(e)));
        rows.extend(counters.entities(net_dev::SOURCE).map(|e| read.interface(e)));
        rows.extend([read.tcp(), read.udp(), read.packets(), read.host_files(), read.tracking()]);
        rows.extend(counters.entities(pid::SOURCE).map(|e| read.process_files(e)));
        rows.extend(counters.entities(listeners::SOURCE).map(|e| read.listener(e)));
        rows.extend(cpus.quota_cpus(case).map(|limit| read.quota(&cpus, limit, &case.recording.meta.target.cgroup)));
        rows.extend(counters.entities(cgroup_memory::SOURCE).map(|e| read.cgroup_memory(e)));
        rows.extend(counters.entities(cgroup_pids::SOURCE).map(|e| read.cgroup_tasks(e)));
        let read_something = |r: &UseRow| r.utilization.is_some() || r.saturation.is_some() || r.errors.is_some();
        rows.retain(|r| read_something(r) || r.is_quota());
        Ok(Resources { rows })
    }
}

/// Reads counters into cells.
struct Reader<'a> {
    c: &'a Counters,
    length_ns: f64,
    /// Time that the target's threads stood in a CPU's queue.
    queued_ns: f64,
}

fn used(part: Option<f64>, whole: Option<f64>) -> Option<f64> {
    let whole = whole.filter(|w| *w > 0.0)?;
    part.map(|p| share(p, whole))
}

impl Reader<'_> {
    /// Share of the window in which somebody stalled, by pressure stall information.
    fn stalled(&self, resource: &str) -> Option<f64> {
        Some(share(self.c.delta(pressure::SOME_NS, resource)?, self.length_ns))
    }

    fn cpus(&self, cpus: &Cpus) -> UseRow {
        let mut all = cpus.allowed_time;
        if let (Some(a), Some(b)) = (cpus.allowed_time, cpus.other_time) {
            all = Some(super::cpus::CpuTime {
                user_ns: a.user_ns + b.user_ns,
                system_ns: a.system_ns + b.system_ns,
                interrupt_ns: a.interrupt_ns + b.interrupt_ns,
                steal_ns: a.steal_ns + b.steal_ns,
                idle_ns: a.idle_ns + b.idle_ns,
            });
        }
        UseRow {
            utilization: all.map(|t| t.utilization()),
            saturation: self.stalled("cpu"),
            // Stolen by the hypervisor.
            besides: all.map(|t| share(t.steal_ns, t.total_ns())),
            ..UseRow::of(Resource::Cpus(cpus.online))
        }
    }

    fn allowed(&self, cpus: &Cpus) -> UseRow {
        let waiting = ratio(self.queued_ns, self.length_ns);
        UseRow {
            utilization: cpus.allowed_time.map(|t| t.utilization()),
            saturation: (waiting > 0.0).then_some(waiting),
            // The target's part of it.
            besides: cpus.target_share_of_busy(),
            ..UseRow::of(Resource::Allowed(cpus.allowed.clone()))
        }
    }

    fn memory(&self) -> UseRow {
        let total = self.c.last(meminfo::MEM_TOTAL, "");
        let free = self.c.last(meminfo::MEM_AVAILABLE, "");
        UseRow {
            utilization: used(total.zip(free).map(|(t, f)| t - f), total),
            saturation: self.stalled("memory"),
            errors: self.c.delta(vmstat::OOM_KILL, ""),
            besides: self.c.delta(vmstat::PGMAJFAULT, ""),
            ..UseRow::of(Resource::Memory)
        }
    }

    fn swap(&self) -> UseRow {
        let total = self.c.last(meminfo::SWAP_TOTAL, "").filter(|t| *t > 0.0);
        let free = self.c.last(meminfo::SWAP_FREE, "");
        UseRow {
            utilization: used(total.zip(free).map(|(t, f)| t - f), total),
            saturation: total.and_then(|_| self.c.delta_sum(&[vmstat::PSWPIN, vmstat::PSWPOUT], "")),
            ..UseRow::of(Resource::Swap)
        }
    }

    fn disk(&self, disk: &str) -> UseRow {
        let read = |key| self.c.delta(key, disk);
        let operations = read(diskstats::READS).unwrap_or(0.0) + read(diskstats::WRITES).unwrap_or(0.0);
        UseRow {
            utilization: used(read(diskstats::IO_NS), Some(self.length_ns)),
            saturation: read(diskstats::WEIGHTED_IO_NS).map(|ns| ratio(ns, self.length_ns)),
            besides: Some(operations),
            each_ns: ratio(read(diskstats::WEIGHTED_IO_NS).unwrap_or(0.0), operations),
            ..UseRow::of(Resource::Disk(disk.to_string()))
        }
    }

    fn interface(&self, name: &str) -> UseRow {
        let read = |key| self.c.delta(key, name);
        let speed = self.c.last(link::SPEED, name);
        // A link is full in one direction first.
        let busier = read(net_dev::RX_BYTES).unwrap_or(0.0).max(read(net_dev::TX_BYTES).unwrap_or(0.0));
        let bits = ratio(busier * 8.0 * 1e9, self.length_ns);
        UseRow {
            utilization: used(Some(bits), speed),
            saturation: self.c.delta_sum(&[net_dev::RX_DROPPED, net_dev::TX_DROPPED], name),
            errors: self.c.delta_sum(&[net_dev::RX_ERRORS, net_dev::TX_ERRORS], name),
            besides: Some(bits),
            ..UseRow::of(Resource::Interface(name.to_string()))
        }
    }

    fn tcp(&self) -> UseRow {
        UseRow {
            saturation: self.c.grew_together(&[netstat::LISTEN_OVERFLOWS, netstat::LISTEN_DROPS]),
            errors: self.c.grew(snmp::RETRANS_SEGS),
            besides: self.c.grew(snmp::OUT_SEGS),
            ..UseRow::of(Resource::Tcp)
        }
    }

    fn udp(&self) -> UseRow {
        UseRow {
            saturation: self.c.grew_together(&[snmp::RCVBUF_ERRORS, snmp::SNDBUF_ERRORS]),
            errors: self.c.grew(snmp::IN_ERRORS),
            ..UseRow::of(Resource::Udp)
        }
    }

    fn packets(&self) -> UseRow {
        let sum = |key: Key| {
            let cpus = self.c.entities(softnet_stat::SOURCE);
            cpus.filter_map(|cpu| self.c.delta(key, cpu)).reduce(|a, b| a + b)
        };
        UseRow {
            saturation: sum(softnet_stat::TIME_SQUEEZE),
            errors: sum(softnet_stat::DROPPED),
            besides: sum(softnet_stat::PROCESSED),
            ..UseRow::of(Resource::Packets)
        }
    }

    fn host_files(&self) -> UseRow {
        let last = |key| self.c.last(key, "");
        let utilization = used(last(file_nr::ALLOCATED), last(file_nr::MAX));
        UseRow { utilization, ..UseRow::of(Resource::HostFiles) }
    }

    fn tracking(&self) -> UseRow {
        let last = |key| self.c.last(key, "");
        let utilization = used(last(conntrack::COUNT), last(conntrack::MAX));
        UseRow { utilization, ..UseRow::of(Resource::Tracking) }
    }

    fn process_files(&self, process: &str) -> UseRow {
        let read = |key| self.c.last(key, process);
        UseRow {
            utilization: used(self.c.max(pid::OPEN_FILES, process), read(pid::OPEN_FILES_LIMIT)),
            besides: read(pid::OPEN_FILES),
            ..UseRow::of(Resource::ProcessFiles(process.to_string()))
        }
    }

    fn listener(&self, listener: &str) -> UseRow {
        let saturation = self.c.max(listeners::ACCEPT_QUEUE, listener);
        UseRow { saturation, ..UseRow::of(Resource::Listener(listener.to_string())) }
    }

    fn quota(&self, cpus: &Cpus, limit: f64, group: &str) -> UseRow {
        let quota = cpus.quota.as_ref();
        UseRow {
            utilization: used(cpus.quota_used_ns(), Some(limit * self.length_ns)),
            saturation: quota.map(|q| share(q.throttled_periods, q.periods)),
            besides: Some(limit),
            ..UseRow::of(Resource::Quota(quota.map_or(group, |q| &q.cgroup).to_string()))
        }
    }

    fn cgroup_memory(&self, path: &str) -> UseRow {
        let read = |key| self.c.last(key, path);
        UseRow {
            utilization: used(read(cgroup_memory::USAGE_BYTES), read(cgroup_memory::LIMIT_BYTES)),
            saturation: self.c.delta(cgroup_memory::FAILCNT, path),
            errors: self.c.delta(cgroup_memory::OOM_KILL, path),
            ..UseRow::of(Resource::CgroupMemory(path.to_string()))
        }
    }

    fn cgroup_tasks(&self, path: &str) -> UseRow {
        let read = |key| self.c.last(key, path);
        let utilization = used(read(cgroup_pids::CURRENT), read(cgroup_pids::MAX));
        UseRow { utilization, ..UseRow::of(Resource::CgroupTasks(path.to_string())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    fn rows(readings: &[(&str, &str, &str, f64, f64)]) -> Vec<UseRow> {
        let mut text = "meta length_ns=1e9 target.allowed_cpus=[0]\n".to_string();
        for (source, entity, name, first, last) in readings {
            text += &format!("counter source={source} entity=\"{entity}\" name={name} value={first}\n");
            text += &format!("counter t_ns=9 source={source} entity=\"{entity}\" name={name} value={last}\n");
        }
        let recording = parse(&text).unwrap();
        Case::new(&recording).fact::<Resources>().unwrap().rows.clone()
    }

    #[test]
    fn differences_rates_and_gauges() {
        let found = rows(&[
            ("proc/meminfo", "", "MemTotal_bytes", 100.0, 100.0),
            ("proc/meminfo", "", "MemAvailable_bytes", 90.0, 25.0),
            ("proc/pressure", "memory", "some_ns", 5.0, 1e8 + 5.0),
            ("proc/net/dev", "eth0", "rx_bytes", 0.0, 100e6),
            ("proc/net/dev", "eth0", "tx_dropped", 1.0, 4.0),
            ("sys/class/net", "eth0", "speed_bits_per_s", 1e9, 1e9),
            ("proc/pid", "42", "open_files", 900.0, 512.0),
            ("proc/pid", "42", "open_files_limit", 1024.0, 1024.0),
        ]);
        let row = |resource| found.iter().find(|r| r.resource == resource).unwrap();
        let (memory, eth0) = (row(Resource::Memory), row(Resource::Interface("eth0".into())));
        assert_eq!((memory.utilization, memory.saturation), (Some(0.75), Some(0.1)));
        assert_eq!((eth0.utilization, eth0.saturation), (Some(0.8), Some(3.0)));
        assert_eq!(eth0.errors, None, "not read is not zero");
        assert_eq!(row(Resource::ProcessFiles("42".into())).utilization, Some(900.0 / 1024.0));
    }

    #[test]
    fn a_quota_has_a_row_however_light_the_load() {
        let quota = |text: &str| {
            let recording = parse(&format!("meta length_ns=1e9 target.cgroup=/svc\n{text}")).unwrap();
            let rows = Case::new(&recording).fact::<Resources>().unwrap().rows.clone();
            rows.into_iter().find(|r| r.resource == Resource::Quota("/svc".into())).map(|r| r.utilization)
        };
        let counters = "counter source=cgroup/cpu entity=/svc name=quota_ns value=2e8
            counter source=cgroup/cpu entity=/svc name=period_ns value=1e8\n";
        let thread = "thread t_ns=1e9 pid=1 tid=1 wall_ns=1e9 cpu_ns=2e6 blocked_ns=998e6\n";
        assert_eq!(quota(&format!("{counters}{thread}")), Some(Some(0.001)), "the group's own use was not counted");
        assert_eq!(quota(counters), Some(None), "who used what is not known");
        let others = "counter source=proc/meminfo name=MemTotal_bytes value=1\n";
        assert_eq!(
            quota(&format!("meta target.quota_cpus=2\n{others}{thread}")),
            Some(Some(0.001)),
            "no counters of the group"
        );
        assert_eq!(quota(&format!("{others}{thread}")), None);
    }

    #[test]
    fn what_was_not_read_has_no_row() {
        let found = rows(&[
            ("proc/meminfo", "", "MemTotal_bytes", 100.0, 100.0),
            ("proc/meminfo", "", "SwapTotal_bytes", 0.0, 0.0),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }
}
