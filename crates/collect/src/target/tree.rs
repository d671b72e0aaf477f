// SPDX-License-Identifier: Apache-2.0
//! The tree of processes: who is whose child.

use std::collections::{BTreeMap, BTreeSet};

use crate::proc::{Proc, is_dead, is_kernel_thread};

/// What the tree knows of a process.
#[derive(Clone, Debug)]
pub struct Node {
    /// Parent.
    pub ppid: u32,
    /// Command name.
    pub comm: String,
    /// A thread of the kernel.
    pub kernel: bool,
    /// A zombie.
    pub dead: bool,
}

/// All processes of a moment.
#[derive(Debug)]
pub struct Tree {
    nodes: BTreeMap<u32, Node>,
}

impl Tree {
    /// Reads all processes; those that vanish meanwhile are not in it.
    pub fn read(proc: &Proc) -> Self {
        let node = |pid: u32| {
            let stat = proc.stat(pid)?;
            let (kernel, dead) = (is_kernel_thread(&stat), is_dead(&stat));
            Some((pid, Node { ppid: u32::try_from(stat.ppid).unwrap_or(0), comm: stat.comm, kernel, dead }))
        };
        Self { nodes: proc.pids().into_iter().filter_map(node).collect() }
    }

    /// All processes, ascending.
    pub fn nodes(&self) -> &BTreeMap<u32, Node> {
        &self.nodes
    }

    /// These processes and all that descend from them, without zombies, ascending.
    pub fn with_descendants(&self, tops: &[u32]) -> Vec<u32> {
        let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (pid, node) in &self.nodes {
            children.entry(node.ppid).or_default().push(*pid);
        }
        let mut found = BTreeSet::new();
        let mut open: Vec<u32> = tops.to_vec();
        while let Some(pid) = open.pop() {
            // A pid that was reused while we read can make a ring; each process is visited once.
            if found.insert(pid) {
                open.extend(children.get(&pid).into_iter().flatten());
            }
        }
        found.into_iter().filter(|pid| self.nodes.get(pid).is_some_and(|node| !node.dead)).collect()
    }

    /// Those of `pids` that descend from no other of them, ascending.
    pub fn tops(&self, pids: &[u32]) -> Vec<u32> {
        let set: BTreeSet<u32> = pids.iter().copied().collect();
        set.iter().copied().filter(|pid| !self.ancestors(*pid).iter().any(|a| a != pid && set.contains(a))).collect()
    }

    fn ancestors(&self, pid: u32) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        let mut at = pid;
        while let Some(node) = self.nodes.get(&at) {
            if node.ppid == 0 || !found.insert(node.ppid) {
                break;
            }
            at = node.ppid;
        }
        found
    }
}
