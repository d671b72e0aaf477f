// SPDX-License-Identifier: Apache-2.0
//! The target: from how the user named a service to the processes to watch and the limits they have.
//!
//! Every way of naming ends in a set of processes. A pid, a port or a command name means a process and all
//! its descendants; a cgroup or a unit means its members, also those that come later, with what they start. What
//! cannot be found is answered by a sentence that says what to try instead.

mod command;
mod limits;
mod openings;
mod pid;
mod port;
mod processes;
mod tree;
mod unit;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use anyhow::{Result, bail};
use recording::meta;
use recording::tables::Process;

use crate::cgroup::{Membership, Trees, processes_below};
use crate::proc::Proc;
use crate::sockets;
pub use limits::{Cgroups, Limits};
pub(crate) use openings::Openings;
pub use processes::processes;

/// How the user names a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A process, with its descendants.
    Pid(u32),
    /// Whoever listens on a port, in any network namespace.
    Port(u16),
    /// A unit of the service manager, with or without `.service`.
    Unit(String),
    /// A cgroup: a folder, or a path as in `/proc/PID/cgroup`.
    Cgroup(PathBuf),
    /// Processes of exactly this command name.
    Comm(String),
}

/// `--pid 42`, as it was typed.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pid(pid) => write!(f, "--pid {pid}"),
            Self::Port(port) => write!(f, "--port {port}"),
            Self::Unit(unit) => write!(f, "--unit {unit}"),
            Self::Cgroup(path) => write!(f, "--cgroup {}", path.display()),
            Self::Comm(comm) => write!(f, "--comm {comm}"),
        }
    }
}

/// Processes that a name stands for.
#[derive(Debug, Default)]
struct Chosen {
    /// The processes that were named; the first is the main one.
    main: Vec<u32>,
    /// These and the rest of the target, ascending.
    pids: Vec<u32>,
    /// Folders of the cgroup that was named; none = it was named otherwise.
    folders: Vec<PathBuf>,
    /// These folders go when its last process ends, and come again with it.
    comes_again: bool,
    /// What the user should know about the choice.
    notes: Vec<String>,
}

/// A target that was found.
#[derive(Clone, Debug, Default)]
pub struct Resolved {
    /// How it was named, `--pid 42`.
    pub named: String,
    /// The processes that were named, the main one first.
    pub main: Vec<u32>,
    /// All processes at this moment: the named ones first, then the rest, ascending.
    pub pids: Vec<u32>,
    /// Command name of the main process.
    pub comm: String,
    /// Sockets that it listens on, `tcp 0.0.0.0:8080`, in its own network namespace.
    pub listen: Vec<String>,
    /// TCP ports that anybody listens on in its network namespaces, ascending.
    pub ports: Vec<u32>,
    /// Affinity, cpuset and quota.
    pub limits: Limits,
    /// Cgroups of its processes, from their own up to the root.
    pub cgroups: Cgroups,
    /// Folders of the cgroup whose members it is; none = it is processes with their descendants.
    folders: Vec<PathBuf>,
    /// These folders go when its last process ends, and come again with it.
    comes_again: bool,
    /// What the user should know about the choice.
    pub notes: Vec<String>,
}

impl Target {
    /// Finds the target below `root`, which is `/` outside of tests.
    ///
    /// # Errors
    /// There is no such process, port, unit, cgroup or command, or it cannot be observed; the sentence
    /// says what to try.
    pub fn resolve(&self, root: &Path) -> Result<Resolved> {
        let proc = Proc::new(root);
        let mut chosen = match self {
            Self::Pid(pid) => pid::find(&proc, *pid)?,
            Self::Port(port) => port::find(&proc, *port)?,
            Self::Unit(name) => unit::find_unit(&proc, name)?,
            Self::Cgroup(path) => unit::find_cgroup(&proc, path)?,
            Self::Comm(comm) => command::find(&proc, comm)?,
        };
        if let Some(own) = proc.own_pid() {
            self.leave_out(own, &mut chosen)?;
        }
        Ok(describe(&proc, self.to_string(), chosen))
    }

    /// Takes wakewalk's own process out of what was found, unless it is the very one that was named: what it does itself would
    /// count as the service's work, and its hooks would watch each other.
    fn leave_out(&self, own: u32, chosen: &mut Chosen) -> Result<()> {
        let is_named = matches!(self, Self::Pid(_) | Self::Port(_)) && chosen.main.contains(&own);
        if is_named || !chosen.pids.contains(&own) {
            return Ok(());
        }
        chosen.pids.retain(|pid| *pid != own);
        chosen.main.retain(|pid| *pid != own);
        let Some(first) = chosen.pids.first() else {
            bail!("`{self}` names no process but wakewalk itself; name the service");
        };
        if chosen.main.is_empty() {
            chosen.main.push(*first);
        }
        chosen.notes.push(format!("process {own} is wakewalk itself and is left out of the target"));
        Ok(())
    }
}

impl Resolved {
    /// All its processes as they are now, ascending: it may have started some since it was found.
    pub fn now(&self, root: &Path) -> Vec<u32> {
        let proc = Proc::new(root);
        let tree = tree::Tree::read(&proc);
        let mut pids = match &self.folders[..] {
            [] => tree.with_descendants(&self.pids),
            folders => unit::members(&proc, &tree, folders),
        };
        let left_out = self.left_out(&proc);
        pids.retain(|pid| Some(*pid) != left_out);
        pids
    }

    /// Whether members may come although none is there: its cgroup is, or systemd makes that anew, as it does each time it starts
    /// a unit. A service that is started again comes back to it.
    pub fn is_awaited(&self) -> bool {
        self.comes_again || self.folders.iter().any(|dir| dir.is_dir())
    }

    /// wakewalk's own process, unless it is the very one that was named.
    fn left_out(&self, proc: &Proc) -> Option<u32> {
        proc.own_pid().filter(|own| !self.pids.contains(own))
    }

    /// Those that are in its cgroup and are not known, as a program that somebody runs in a container, whose parent is none of it;
    /// none where it was named otherwise.
    pub fn joined(&self, root: &Path, is_known: impl Fn(u32) -> bool) -> Vec<u32> {
        let proc = Proc::new(root);
        let all: BTreeSet<u32> = self.folders.iter().flat_map(|dir| processes_below(&proc, dir)).collect();
        // Neither threads of the kernel, which are in the root, nor those that have ended have a program.
        let has_program = |pid: &u32| fs::read_link(root.join(format!("proc/{pid}/exe"))).is_ok();
        let left_out = self.left_out(&proc);
        let is_new = |pid: &u32| !is_known(*pid) && Some(*pid) != left_out;
        all.into_iter().filter(is_new).filter(has_program).collect()
    }

    /// The same as the recording keeps it.
    pub fn meta(&self) -> meta::Target {
        meta::Target {
            named: self.named.clone(),
            pids: self.pids.clone(),
            comm: self.comm.clone(),
            listen: self.listen.clone(),
            ports: self.ports.clone(),
            allowed_cpus: self.limits.allowed_cpus.clone(),
            quota_cpus: self.limits.quota_cpus,
            cgroup: self.limits.cgroup.clone(),
            ..meta::Target::default()
        }
    }
}

fn describe(proc: &Proc, named: String, chosen: Chosen) -> Resolved {
    let mut pids = chosen.main.clone();
    pids.extend(chosen.pids.iter().filter(|pid| !chosen.main.contains(pid)));
    let trees = Trees::read(proc.root());
    let memberships: Vec<Membership> = pids.iter().map(|pid| Membership::of(proc, *pid)).collect();
    let mut namespaces = Namespaces::default();
    let mut listen: Vec<String> = listening_in(proc, &pids, &mut namespaces).into_values().flatten().collect();
    listen.sort();
    listen.dedup();
    let cgroups = Cgroups::of(&trees, &memberships);
    let mut notes = chosen.notes;
    if cgroups.left_out > 0 {
        notes.push(format!("{} cgroups of the target are too many to follow and are not sampled", cgroups.left_out));
    }
    Resolved {
        named,
        comm: pids.first().and_then(|pid| Some(proc.stat(*pid)?.comm)).unwrap_or_default(),
        listen,
        ports: tcp_ports(&namespaces),
        limits: Limits::of(proc, &trees, &pids, &memberships),
        cgroups,
        folders: chosen.folders,
        comes_again: chosen.comes_again,
        main: chosen.main,
        pids,
        notes,
    }
}

/// The cgroup of a process; empty = it has gone.
pub fn cgroup_of(root: &Path, pid: u32) -> String {
    Membership::of(&Proc::new(root), pid).name()
}

/// TCP ports at which processes listen.
pub(crate) fn tcp_ports_of(processes: &[Process]) -> impl Iterator<Item = u16> {
    let tcp = processes.iter().flat_map(|process| &process.listen).filter_map(|socket| socket.strip_prefix("tcp "));
    tcp.filter_map(|address| address.rsplit(':').next()?.parse().ok())
}

/// Listeners by network namespace and inode.
type Namespaces = HashMap<String, HashMap<u64, sockets::Listener>>;

/// Sockets that each of these processes listens on, in its own network namespace.
pub(crate) fn listening(proc: &Proc, pids: &[u32]) -> HashMap<u32, Vec<String>> {
    listening_in(proc, pids, &mut Namespaces::default())
}

fn tcp_ports(namespaces: &Namespaces) -> Vec<u32> {
    let all = namespaces.values().flat_map(HashMap::values).filter(|listener| listener.protocol == "tcp");
    let mut ports: Vec<u32> = all.map(|listener| listener.address.port().into()).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

fn listening_in(proc: &Proc, pids: &[u32], namespaces: &mut Namespaces) -> HashMap<u32, Vec<String>> {
    let mut found = HashMap::new();
    for pid in pids {
        let name = proc.namespace(&pid.to_string(), "net").unwrap_or_default();
        let all = namespaces
            .entry(name)
            .or_insert_with(|| sockets::listeners(proc, &pid.to_string()).into_iter().map(|l| (l.inode, l)).collect());
        if all.is_empty() {
            continue; // spares the walk over the descriptors
        }
        let held: HashSet<u64> = proc.socket_inodes(*pid);
        let mut names: Vec<String> = held.iter().filter_map(|inode| all.get(inode).map(ToString::to_string)).collect();
        names.sort();
        names.dedup();
        found.insert(*pid, names);
    }
    found
}

#[cfg(test)]
mod tests;
