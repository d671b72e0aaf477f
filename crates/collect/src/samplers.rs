// SPDX-License-Identifier: Apache-2.0
//! Samplers: files of `/proc`, `/sys` and the cgroup trees, read at the start, each second and at the end
//! of a capture, as rows of table `counter`.
//!
//! Values are kept as read, in ns and bytes; rates are derived by who reads the recording. A file that is
//! missing becomes one gap, never an error. To add a sampler: one file here, two lines below.

mod cgroup_cpu;
mod cgroup_freezer;
mod cgroup_memory;
mod cgroup_pids;
mod changes;
mod diskstats;
mod file_nr;
mod link;
mod listeners;
mod loadavg;
mod local_ports;
mod meminfo;
mod net_dev;
mod netstat;
mod nf_conntrack;
mod pid;
mod pressure;
mod qdisc;
mod reread;
mod scope;
mod shared_listeners;
mod snmp6;
mod sockstat;
mod softnet_stat;
mod stat;
mod text_file;
mod udp_sockets;
mod unix_listeners;
mod vmstat;

use std::collections::HashSet;

use recording::counters::{self, Key};
use recording::tables::counter::TOLD_AGAIN_NS;
use recording::tables::{Counter, Gap};

pub use scope::Scope;

/// One source of counters.
pub trait Sampler: Send {
    /// Column `source` of its rows.
    fn name(&self) -> &'static str;

    /// What it needs of the kernel, and what is unknown without it.
    fn needs(&self) -> &'static str;

    /// Reads once.
    ///
    /// # Errors
    /// Why nothing could be read, as words for a gap.
    fn sample(&mut self, scope: &Scope, out: &mut Readings) -> Result<(), String>;

    /// What of it was not looked at so far, because there is too much of it.
    fn left_out(&self) -> Option<Gap> {
        None
    }
}

/// Rows of one moment.
#[derive(Debug, Default)]
pub struct Readings {
    t_ns: u64,
    rows: Vec<Counter>,
}

impl Readings {
    /// Adds a reading.
    pub fn put(&mut self, key: Key, entity: &str, value: f64) {
        self.put_named(key.source, entity, key.name, value);
    }

    /// The same under a name that is the kernel's own, for a source that prints more than anybody asks for.
    pub fn put_named(&mut self, source: &str, entity: &str, name: &str, value: f64) {
        self.rows.push(Counter {
            t_ns: self.t_ns,
            source: source.to_string(),
            entity: entity.to_string(),
            name: name.to_string(),
            value,
        });
    }
}

/// Until its next reading, each seems to be as full as it was. Of one that has ended there is none.
const QUEUES: [Key; 2] = [counters::listeners::ACCEPT_QUEUE, counters::shared_listeners::ACCEPT_QUEUE];

fn empty(t_ns: u64, key: Key, entity: String) -> Counter {
    Counter { t_ns, source: key.source.into(), entity, name: key.name.into(), value: 0.0 }
}

/// Every sampler, at work for one target or for the host.
pub struct Samplers {
    scope: Scope,
    samplers: Vec<Box<dyn Sampler>>,
    changes: changes::Changes,
    /// When everything was told for the last time.
    told_ns: u64,
    missing: HashSet<&'static str>,
    gaps: Vec<Gap>,
    /// Processes that have ended since the last reading.
    ended: Vec<String>,
}

impl Samplers {
    /// Samplers for a scope; nothing is read yet.
    pub fn new(scope: Scope) -> Self {
        let samplers = all(&scope);
        let (changes, missing) = (changes::Changes::default(), HashSet::new());
        Self { scope, samplers, changes, told_ns: 0, missing, gaps: Vec::new(), ended: Vec::new() }
    }

    /// Reads all; returns what differs from the reading before, at first and once a minute everything.
    pub fn sample(&mut self, t_ns: u64) -> Vec<Counter> {
        let mut rows = self.read(t_ns);
        let mut gone: Vec<(Key, String)> = self.ended.drain(..).map(|pid| (counters::pid::OPEN_FILES, pid)).collect();
        for key in QUEUES {
            gone.extend(self.changes.gone(key, &rows).into_iter().map(|entity| (key, entity)));
        }
        rows.extend(gone.into_iter().map(|(key, entity)| empty(t_ns, key, entity)));
        if t_ns >= self.told_ns + TOLD_AGAIN_NS {
            self.told_ns = t_ns;
            self.changes = changes::Changes::default();
        }
        self.changes.keep(rows)
    }

    /// Reads all for the last time; returns everything, so that every counter has its final row.
    pub fn last(&mut self, t_ns: u64) -> Vec<Counter> {
        self.read(t_ns)
    }

    /// What could not be read since the last call, where each source is named once, and what was left out so far.
    pub fn gaps(&mut self) -> Vec<Gap> {
        let mut gaps = std::mem::take(&mut self.gaps);
        gaps.extend(self.samplers.iter().filter_map(|sampler| sampler.left_out()));
        gaps
    }

    /// Processes of the target as they are now, the main ones first. Where none is left, those before stay: no process at all
    /// means the host.
    pub fn follow(&mut self, pids: &[u32]) {
        if pids.is_empty() || pids == self.scope.pids {
            return;
        }
        let names: HashSet<String> = pids.iter().map(u32::to_string).collect();
        let had_files = self.changes.gone(counters::pid::OPEN_FILES, &[]);
        self.ended.extend(had_files.into_iter().filter(|pid| !names.contains(pid)));
        self.changes.forget(counters::pid::SOURCE, |pid| !names.contains(pid));
        self.scope.pids = pids.to_vec();
    }

    /// Sockets on which the target listens by now.
    pub fn listen<'s>(&mut self, sockets: impl IntoIterator<Item = &'s String>) {
        for socket in sockets {
            if !self.scope.listen.contains(socket) {
                self.scope.listen.push(socket.clone());
            }
        }
    }

    /// Each sampler's name and what it needs.
    pub fn needs(&self) -> Vec<(&'static str, &'static str)> {
        self.samplers.iter().map(|sampler| (sampler.name(), sampler.needs())).collect()
    }

    fn read(&mut self, t_ns: u64) -> Vec<Counter> {
        let mut readings = Readings { t_ns, rows: Vec::new() };
        for sampler in &mut self.samplers {
            let Err(why) = sampler.sample(&self.scope, &mut readings) else { continue };
            if self.missing.insert(sampler.name()) {
                let why = format!("{why}; needs {}", sampler.needs());
                self.gaps.push(Gap::refused(sampler.name(), why));
            }
        }
        readings.rows
    }
}

/// The list.
fn all(scope: &Scope) -> Vec<Box<dyn Sampler>> {
    vec![
        Box::new(stat::sampler(scope)),
        Box::new(loadavg::sampler(scope)),
        Box::new(meminfo::sampler(scope)),
        Box::new(vmstat::sampler(scope)),
        Box::new(pressure::sampler(scope)),
        Box::new(diskstats::sampler(scope)),
        Box::new(net_dev::sampler(scope)),
        Box::new(link::Link::default()),
        Box::new(qdisc::sampler(scope)),
        Box::new(netstat::snmp(scope)),
        Box::new(netstat::netstat(scope)),
        Box::new(snmp6::sampler(scope)),
        Box::new(sockstat::sampler(scope)),
        Box::new(softnet_stat::sampler(scope)),
        Box::new(listeners::sampler(scope)),
        Box::new(udp_sockets::sampler(scope)),
        Box::new(unix_listeners::sampler(scope)),
        Box::new(local_ports::sampler(scope)),
        Box::new(pid::sampler(scope)),
        Box::new(file_nr::sampler(scope)),
        Box::new(nf_conntrack::sampler(scope)),
        Box::new(cgroup_cpu::sampler(scope)),
        Box::new(cgroup_memory::sampler(scope)),
        Box::new(cgroup_pids::sampler(scope)),
        Box::new(cgroup_freezer::sampler(scope)),
    ]
}

/// For fuzzing: one answer of netlink.
#[cfg(any(test, fuzzing))]
pub(crate) fn decode(bytes: &[u8]) {
    qdisc::decode(bytes);
}

#[cfg(test)]
mod tests;
