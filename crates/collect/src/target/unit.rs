// SPDX-License-Identifier: Apache-2.0
//! `--unit` and `--cgroup`: the members of a cgroup and of those below it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::Chosen;
use super::tree::Tree;
use crate::cgroup::{Trees, processes_below};
use crate::proc::Proc;

/// A unit is the cgroup that bears its name, whatever slice it is in.
pub fn find_unit(proc: &Proc, name: &str) -> Result<Chosen> {
    let trees = Trees::read(proc.root());
    let service = format!("{name}.service");
    let folders = trees.find(&|dir| dir == name || dir == service);
    if folders.is_empty() {
        bail!(
            "there is no cgroup of a unit `{name}`; `systemctl status UNIT` says whether one runs{}",
            near(&trees, name)
        );
    }
    // One unit has the same path in every tree; several paths are several units, for instance of users.
    let paths: BTreeSet<String> = folders.iter().map(|dir| trees.path_of(dir)).collect();
    if paths.len() > 1 {
        let all: Vec<String> = paths.into_iter().collect();
        bail!("unit `{name}` is there more than once: {}; name one with --cgroup", all.join(", "));
    }
    Ok(Chosen { comes_again: true, ..chosen(proc, folders, &format!("unit `{name}`"))? })
}

pub fn find_cgroup(proc: &Proc, path: &Path) -> Result<Chosen> {
    let folders = Trees::read(proc.root()).folders(path);
    if folders.is_empty() {
        bail!(
            "there is no cgroup `{}`; give its folder below /sys/fs/cgroup, or a path as in /proc/PID/cgroup",
            path.display()
        );
    }
    chosen(proc, folders, &format!("cgroup `{}`", path.display()))
}

fn chosen(proc: &Proc, folders: Vec<PathBuf>, what: &str) -> Result<Chosen> {
    let tree = Tree::read(proc);
    let pids = members(proc, &tree, &folders);
    if pids.is_empty() {
        bail!("{what} holds no running process; start the service, then ask again");
    }
    Ok(Chosen { main: tree.tops(&pids), pids, folders, ..Chosen::default() })
}

/// Processes that run in these folders of cgroups and in those below them, ascending.
pub fn members(proc: &Proc, tree: &Tree, folders: &[PathBuf]) -> Vec<u32> {
    let in_tree = |pid: &u32| tree.nodes().get(pid).is_some_and(|node| !node.dead && !node.kernel);
    let all: BTreeSet<u32> = folders.iter().flat_map(|dir| processes_below(proc, dir)).filter(in_tree).collect();
    all.into_iter().collect()
}

/// Units whose names hold what was typed.
fn near(trees: &Trees, name: &str) -> String {
    let stem = name.trim_end_matches(".service");
    let like = |dir: &str| dir.ends_with(".service") && dir.contains(stem);
    let found: BTreeSet<String> = trees
        .find(&like)
        .iter()
        .filter_map(|dir| dir.file_name().map(|n| format!("`{}`", n.to_string_lossy())))
        .take(5)
        .collect();
    if found.is_empty() { String::new() } else { format!("; did you mean {}?", Vec::from_iter(found).join(", ")) }
}
