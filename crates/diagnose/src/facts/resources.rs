// SPDX-License-Identifier: Apache-2.0
//! The USE table: utilization, saturation and errors of every resource that was read.
//!
//! A cell that was not read is empty, which is not the same as zero.

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
use crate::wording::{count, cpu_list, percent};

/// A number and what it means, `(0.93, "busy")`.
pub type Cell = Option<(f64, String)>;

/// What the rows of CPU quotas begin with. Somebody set one, so it is worth a line however little is used.
pub const QUOTA: &str = "CPU quota";

/// One resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UseRow {
    /// The resource.
    pub resource: String,
    /// Share in use, 0 to 1.
    pub utilization: Cell,
    /// How much work waited.
    pub saturation: Cell,
    /// How much failed.
    pub errors: Cell,
    /// A sentence for people; may be empty.
    pub note: String,
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
        rows.extend([read.tcp(), read.udp(), read.packets(), read.host_files(), read.conntrack()]);
        rows.extend(counters.entities(pid::SOURCE).map(|e| read.process_files(e)));
        rows.extend(counters.entities(listeners::SOURCE).map(|e| read.listener(e)));
        rows.extend(cpus.quota_cpus(case).map(|limit| read.quota(&cpus, limit, &case.recording.meta.target.cgroup)));
        rows.extend(counters.entities(cgroup_memory::SOURCE).map(|e| read.cgroup_memory(e)));
        rows.extend(counters.entities(cgroup_pids::SOURCE).map(|e| read.cgroup_pids(e)));
        let read_something = |r: &UseRow| r.utilization.is_some() || r.saturation.is_some() || r.errors.is_some();
        rows.retain(|r| read_something(r) || r.resource.starts_with(QUOTA));
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

fn used(part: Option<f64>, whole: Option<f64>) -> Cell {
    let whole = whole.filter(|w| *w > 0.0)?;
    part.map(|p| (share(p, whole), percent(share(p, whole))))
}

fn number(value: Option<f64>, unit: &str) -> Cell {
    value.map(|v| (v, format!("{} {unit}", count(v))))
}

impl Reader<'_> {
    /// Share of the window in which somebody stalled, by pressure stall information.
    fn stalled(&self, resource: &str) -> Cell {
        let some = self.c.delta(pressure::SOME_NS, resource)?;
        let stalled = share(some, self.length_ns);
        Some((stalled, format!("{} of the time something stalled", percent(stalled))))
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
            resource: format!("CPUs ({})", cpus.online),
            utilization: all.map(|t| (t.utilization(), percent(t.utilization()))),
            saturation: self.stalled("cpu"),
            errors: None,
            note: all.map_or(String::new(), |t| {
                format!("{} stolen by the hypervisor", percent(share(t.steal_ns, t.total_ns())))
            }),
        }
    }

    fn allowed(&self, cpus: &Cpus) -> UseRow {
        let waiting = ratio(self.queued_ns, self.length_ns);
        UseRow {
            resource: format!("allowed {}", cpu_list(&cpus.allowed)),
            utilization: cpus.allowed_time.map(|t| (t.utilization(), percent(t.utilization()))),
            saturation: (waiting > 0.0).then(|| (waiting, format!("{waiting:.2} of its threads queued"))),
            errors: None,
            note: cpus
                .target_share_of_busy()
                .map_or(String::new(), |s| format!("the target used {} of it", percent(s))),
        }
    }

    fn memory(&self) -> UseRow {
        let total = self.c.last(meminfo::MEM_TOTAL, "");
        let free = self.c.last(meminfo::MEM_AVAILABLE, "");
        UseRow {
            resource: "memory".into(),
            utilization: used(total.zip(free).map(|(t, f)| t - f), total),
            saturation: self.stalled("memory"),
            errors: number(self.c.delta(vmstat::OOM_KILL, ""), "OOM kills"),
            note: self.c.delta(vmstat::PGMAJFAULT, "").map_or(String::new(), |n| format!("{} major faults", count(n))),
        }
    }

    fn swap(&self) -> UseRow {
        let total = self.c.last(meminfo::SWAP_TOTAL, "").filter(|t| *t > 0.0);
        let free = self.c.last(meminfo::SWAP_FREE, "");
        let moved = total.and_then(|_| self.c.delta_sum(&[vmstat::PSWPIN, vmstat::PSWPOUT], ""));
        UseRow {
            resource: "swap".into(),
            utilization: used(total.zip(free).map(|(t, f)| t - f), total),
            saturation: number(moved, "pages moved"),
            ..UseRow::default()
        }
    }

    fn disk(&self, disk: &str) -> UseRow {
        let read = |key| self.c.delta(key, disk);
        let queue = read(diskstats::WEIGHTED_IO_NS).map(|ns| ratio(ns, self.length_ns));
        let operations = read(diskstats::READS).unwrap_or(0.0) + read(diskstats::WRITES).unwrap_or(0.0);
        let each = ratio(read(diskstats::WEIGHTED_IO_NS).unwrap_or(0.0), operations);
        UseRow {
            resource: format!("disk {disk}"),
            utilization: used(read(diskstats::IO_NS), Some(self.length_ns)),
            saturation: queue.map(|q| (q, format!("{q:.2} requests queued on average"))),
            errors: None,
            note: format!("{} operations, {:.2} ms each", count(operations), each / 1e6),
        }
    }

    fn interface(&self, name: &str) -> UseRow {
        let read = |key| self.c.delta(key, name);
        let speed = self.c.last(link::SPEED, name);
        // A link is full in one direction first.
        let busier = read(net_dev::RX_BYTES).unwrap_or(0.0).max(read(net_dev::TX_BYTES).unwrap_or(0.0));
        let bits = ratio(busier * 8.0 * 1e9, self.length_ns);
        UseRow {
            resource: format!("interface {name}"),
            utilization: used(Some(bits), speed),
            saturation: number(self.c.delta_sum(&[net_dev::RX_DROPPED, net_dev::TX_DROPPED], name), "dropped"),
            errors: number(self.c.delta_sum(&[net_dev::RX_ERRORS, net_dev::TX_ERRORS], name), "errors"),
            note: format!("{:.1} Mbit/s in the busier direction", bits / 1e6),
        }
    }

    fn tcp(&self) -> UseRow {
        let ext = |keys: &[Key]| self.c.delta_sum(keys, "TcpExt");
        let retransmitted = self.c.delta(snmp::RETRANS_SEGS, "Tcp");
        UseRow {
            resource: "TCP".into(),
            utilization: None,
            saturation: number(
                ext(&[netstat::LISTEN_OVERFLOWS, netstat::LISTEN_DROPS]),
                "connections refused by full queues",
            ),
            errors: number(retransmitted, "segments retransmitted"),
            note: self.c.delta(snmp::OUT_SEGS, "Tcp").map_or(String::new(), |n| format!("{} segments sent", count(n))),
        }
    }

    fn udp(&self) -> UseRow {
        let read = |keys: &[Key]| self.c.delta_sum(keys, "Udp");
        UseRow {
            resource: "UDP".into(),
            utilization: None,
            saturation: number(read(&[snmp::RCVBUF_ERRORS, snmp::SNDBUF_ERRORS]), "datagrams without buffer"),
            errors: number(read(&[snmp::IN_ERRORS]), "receive errors"),
            note: String::new(),
        }
    }

    fn packets(&self) -> UseRow {
        let sum = |key: Key| {
            let cpus = self.c.entities(softnet_stat::SOURCE);
            cpus.filter_map(|cpu| self.c.delta(key, cpu)).reduce(|a, b| a + b)
        };
        UseRow {
            resource: "packet processing".into(),
            utilization: None,
            saturation: number(sum(softnet_stat::TIME_SQUEEZE), "rounds cut short"),
            errors: number(sum(softnet_stat::DROPPED), "packets dropped"),
            note: sum(softnet_stat::PROCESSED).map_or(String::new(), |n| format!("{} packets", count(n))),
        }
    }

    fn host_files(&self) -> UseRow {
        let last = |key| self.c.last(key, "");
        UseRow {
            resource: "open files, host".into(),
            utilization: used(last(file_nr::ALLOCATED), last(file_nr::MAX)),
            ..UseRow::default()
        }
    }

    fn process_files(&self, process: &str) -> UseRow {
        let read = |key| self.c.last(key, process);
        UseRow {
            resource: format!("open files, process {process}"),
            utilization: used(self.c.max(pid::OPEN_FILES, process), read(pid::OPEN_FILES_LIMIT)),
            note: read(pid::OPEN_FILES).map_or(String::new(), |n| format!("{} open", count(n))),
            ..UseRow::default()
        }
    }

    fn listener(&self, listener: &str) -> UseRow {
        UseRow {
            resource: format!("accept queue of {listener}"),
            saturation: number(self.c.max(listeners::ACCEPT_QUEUE, listener), "waiting at most"),
            ..UseRow::default()
        }
    }

    fn conntrack(&self) -> UseRow {
        let read = |key| self.c.last(key, "");
        UseRow {
            resource: "connection tracking".into(),
            utilization: used(read(conntrack::COUNT), read(conntrack::MAX)),
            ..UseRow::default()
        }
    }

    fn quota(&self, cpus: &Cpus, limit: f64, group: &str) -> UseRow {
        let quota = cpus.quota.as_ref();
        let throttled = quota.map(|q| share(q.throttled_periods, q.periods));
        UseRow {
            resource: format!("{QUOTA} of {}", quota.map_or(group, |q| &q.cgroup)),
            utilization: used(cpus.quota_used_ns(), Some(limit * self.length_ns)),
            saturation: throttled.map(|part| (part, format!("{} of periods throttled", percent(part)))),
            errors: None,
            note: format!("{limit:.2} CPUs"),
        }
    }

    fn cgroup_memory(&self, path: &str) -> UseRow {
        let read = |key| self.c.last(key, path);
        UseRow {
            resource: format!("memory of cgroup {path}"),
            utilization: used(read(cgroup_memory::USAGE_BYTES), read(cgroup_memory::LIMIT_BYTES)),
            saturation: number(self.c.delta(cgroup_memory::FAILCNT, path), "times at the limit"),
            errors: number(self.c.delta(cgroup_memory::OOM_KILL, path), "OOM kills"),
            note: String::new(),
        }
    }

    fn cgroup_pids(&self, path: &str) -> UseRow {
        let read = |key| self.c.last(key, path);
        UseRow {
            resource: format!("tasks of cgroup {path}"),
            utilization: used(read(cgroup_pids::CURRENT), read(cgroup_pids::MAX)),
            ..UseRow::default()
        }
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
        let row = |name: &str| found.iter().find(|r| r.resource == name).unwrap();
        let value = |cell: &Cell| cell.as_ref().map(|c| c.0);
        assert_eq!((value(&row("memory").utilization), value(&row("memory").saturation)), (Some(0.75), Some(0.1)));
        assert_eq!(
            (value(&row("interface eth0").utilization), value(&row("interface eth0").saturation)),
            (Some(0.8), Some(3.0))
        );
        assert_eq!(value(&row("interface eth0").errors), None, "not read is not zero");
        assert_eq!(value(&row("open files, process 42").utilization), Some(900.0 / 1024.0));
    }

    #[test]
    fn a_quota_has_a_row_however_light_the_load() {
        let quota = |text: &str| {
            let recording = parse(&format!("meta length_ns=1e9 target.cgroup=/svc\n{text}")).unwrap();
            let rows = Case::new(&recording).fact::<Resources>().unwrap().rows.clone();
            rows.into_iter().find(|r| r.resource == "CPU quota of /svc").map(|r| r.utilization.map(|u| u.0))
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
