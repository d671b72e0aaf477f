// SPDX-License-Identifier: Apache-2.0
//! `--port`: whoever listens there, in our network namespace or else in any other.
//!
//! A listener is often held by several processes (a master and its workers): the target is the
//! topmost of them with its descendants.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use anyhow::{Result, bail};

use super::Chosen;
use super::tree::Tree;
use crate::privileges;
use crate::proc::Proc;
use crate::sockets::{self, Listener};

/// How many listeners an error lists.
const LISTED: usize = 30;

pub fn find(proc: &Proc, port: u16) -> Result<Chosen> {
    let everywhere = sockets::listeners_by_namespace(proc);
    let tree = Tree::read(proc);
    let wanted: BTreeMap<&str, Vec<u64>> =
        everywhere.iter().map(|(namespace, listeners)| (namespace.as_str(), on_port(listeners, port))).collect();
    let held = holders(proc, &tree, &wanted.values().flatten().copied().collect());
    let mut found: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    let mut unheld = false;
    for (namespace, inodes) in wanted {
        let holders: BTreeSet<u32> = inodes.iter().filter_map(|inode| held.get(inode)).flatten().copied().collect();
        let tops = tops(proc, &tree, &holders);
        unheld |= tops.is_empty() && !inodes.is_empty();
        if !tops.is_empty() {
            found.insert(namespace, tops);
        }
    }
    if found.is_empty() && unheld {
        bail!(
            "port {port} is listened on, but by no process that we may look into (the kernel itself, or one of \
             another user): run wakewalk as root, outside of containers{}",
            lacking()
        );
    }
    choose(proc, port, &tree, &found, &everywhere)
}

/// One namespace's holders: our own namespace's, or those of the only one that has any.
fn choose(
    proc: &Proc,
    port: u16,
    tree: &Tree,
    found: &BTreeMap<&str, Vec<u32>>,
    everywhere: &BTreeMap<String, Vec<Listener>>,
) -> Result<Chosen> {
    let ours = proc.namespace("self", "net").unwrap_or_default();
    let name = |pid: &u32| format!("pid {pid} ({})", tree.nodes().get(pid).map_or("", |node| node.comm.as_str()));
    let names = |pids: &Vec<u32>| pids.iter().map(name).collect::<Vec<_>>().join(", ");
    let Some(main) = found.get(ours.as_str()).or_else(|| found.values().next()) else {
        bail!("nobody listens on port {port}; {}{}", listed(everywhere), lacking());
    };
    let others: Vec<String> = found.values().filter(|pids| *pids != main).map(names).collect();
    if !others.is_empty() && !found.contains_key(ours.as_str()) {
        bail!(
            "port {port} is listened on in several network namespaces, by {}, {}; name one with --pid",
            names(main),
            others.join(", ")
        );
    }
    let notes = others.iter().map(|who| {
        format!("port {port} is listened on in another network namespace too, by {who}; to observe that one use --pid")
    });
    let notes = notes.collect();
    Ok(Chosen { notes, main: main.clone(), pids: tree.with_descendants(main), ..Chosen::default() })
}

/// What keeps us from seeing other users' sockets and network namespaces, if anything does.
fn lacking() -> String {
    match &privileges::missing(&privileges::OTHERS)[..] {
        [] => String::new(),
        missing => format!(" (this user lacks {}: other users' processes are hidden)", privileges::names(missing)),
    }
}

/// Inodes of the sockets on a port: of TCP listeners, or of UDP sockets where there are none.
fn on_port(listeners: &[Listener], port: u16) -> Vec<u64> {
    let on = |protocol: &str| {
        let wanted = |l: &&Listener| l.address.port() == port && l.protocol == protocol;
        listeners.iter().filter(wanted).map(|l| l.inode).collect::<Vec<_>>()
    };
    let tcp = on("tcp");
    if tcp.is_empty() { on("udp") } else { tcp }
}

/// Processes that hold these sockets, by inode: found in one walk over all descriptors of the host, of which there may be
/// millions.
fn holders(proc: &Proc, tree: &Tree, inodes: &HashSet<u64>) -> HashMap<u64, Vec<u32>> {
    let mut found: HashMap<u64, Vec<u32>> = HashMap::new();
    if inodes.is_empty() {
        return found;
    }
    for pid in tree.nodes().keys() {
        let held = proc.socket_inodes(*pid);
        inodes.intersection(&held).for_each(|inode| found.entry(*inode).or_default().push(*pid));
    }
    found
}

/// The topmost holders. With socket activation the service manager, process 1, holds the listeners of its
/// services; it is the service itself only where no other executable holds one of them.
fn tops(proc: &Proc, tree: &Tree, holders: &BTreeSet<u32>) -> Vec<u32> {
    let init = proc.exe(1);
    let activated = holders.contains(&1) && holders.iter().any(|pid| *pid != 1 && proc.exe(*pid) != init);
    let holders: Vec<u32> = holders.iter().copied().filter(|pid| !(activated && *pid == 1)).collect();
    tree.tops(&holders)
}

/// What is listened on instead.
fn listed(everywhere: &BTreeMap<String, Vec<Listener>>) -> String {
    let mut names: Vec<String> = everywhere.values().flatten().map(ToString::to_string).collect();
    names.sort();
    names.dedup();
    if names.is_empty() {
        return "nor is any other port listened on; is the service running?".to_string();
    }
    let more = names.len().saturating_sub(LISTED);
    names.truncate(LISTED);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("listened on are: {}{rest}", names.join(", "))
}
