// SPDX-License-Identifier: Apache-2.0
//! Control groups, both versions: where they are mounted, which ones a process is in, and how much
//! CPU they allow.
//!
//! Version 1 has one tree per controller (or set of controllers), version 2 one for all; many hosts run
//! both, so each controller is looked up on its own. A process in a container may see only a part of a
//! tree: what lies above is invisible to us too, and simply missing from the levels.

use std::fs;
use std::path::{Path, PathBuf};

use procfs::process::MountInfo;

use crate::proc::{Proc, cpu_list, text};

/// One mounted tree of cgroups.
#[derive(Clone, Debug)]
struct Tree {
    /// Controllers of a version 1 tree, or its `name=…`; empty for version 2.
    controllers: Vec<String>,
    /// Where it is mounted, below the root directory in use.
    mount: PathBuf,
    /// Which cgroup is mounted there; `/` outside of containers.
    top: PathBuf,
}

/// All mounted trees.
#[derive(Clone, Debug, Default)]
pub struct Trees {
    trees: Vec<Tree>,
}

/// One cgroup on the way from a process to the root of its tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// Path as `/proc/PID/cgroup` gives it.
    pub path: String,
    /// Its folder.
    pub dir: PathBuf,
    /// Whether the tree is of version 2.
    pub v2: bool,
}

/// The cgroups of a process: lines of `/proc/PID/cgroup` as (controllers, path).
#[derive(Clone, Debug, Default)]
pub struct Membership {
    lines: Vec<(Vec<String>, String)>,
}

impl Membership {
    /// Cgroups of a process; empty for one that has gone.
    pub fn of(proc: &Proc, pid: u32) -> Self {
        Self::parse(&proc.text(pid, "cgroup").unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let line = |line: &str| {
            let mut parts = line.splitn(3, ':').skip(1);
            let controllers = parts.next()?.split(',').filter(|c| !c.is_empty()).map(str::to_string).collect();
            Some((controllers, parts.next()?.to_string()))
        };
        Self { lines: text.lines().filter_map(line).collect() }
    }

    /// Path in the version 1 tree of a controller.
    fn v1(&self, controller: &str) -> Option<&str> {
        let line = self.lines.iter().find(|(controllers, _)| controllers.iter().any(|c| c == controller))?;
        Some(&line.1)
    }

    /// Path in the version 2 tree.
    fn v2(&self) -> Option<&str> {
        let line = self.lines.iter().find(|(controllers, _)| controllers.is_empty())?;
        Some(&line.1)
    }

    /// The path that says most about the process: where its CPU is accounted, unless that is the
    /// root and another tree (v2, or the service manager's own) knows better.
    pub fn name(&self) -> String {
        let candidates = [self.v1("cpu"), self.v2(), self.v1("name=systemd")];
        let best = candidates.iter().flatten().find(|path| **path != "/").or(candidates.iter().flatten().next());
        best.map(ToString::to_string).unwrap_or_default()
    }
}

impl Trees {
    /// Reads the mounts of our own mount namespace.
    pub fn read(root: &Path) -> Self {
        let mounts = text(&root.join("proc/self/mountinfo")).unwrap_or_default();
        let mut trees: Vec<Tree> = Vec::new();
        for tree in mounts.lines().filter_map(|line| tree(root, line)) {
            // The same tree may be mounted again elsewhere, for instance a part of it for a container.
            match trees.iter_mut().find(|known| known.controllers == tree.controllers) {
                Some(known) if known.top != Path::new("/") && tree.top == Path::new("/") => *known = tree,
                Some(_) => {}
                None => trees.push(tree),
            }
        }
        Self { trees }
    }

    /// From a process's cgroup of this controller up to the root of its tree; folders that we can see.
    pub fn levels(&self, membership: &Membership, controller: &str) -> Vec<Level> {
        let v1 = self.trees.iter().find(|tree| tree.controllers.iter().any(|c| c == controller));
        let v2 = self.trees.iter().find(|tree| tree.controllers.is_empty());
        match (membership.v1(controller).zip(v1), membership.v2().zip(v2)) {
            (Some((path, tree)), _) => climb(tree, path),
            (None, Some((path, tree))) => climb(tree, path),
            (None, None) => Vec::new(),
        }
    }

    /// The cgroups that may be frozen with a process in them: its own of version 1, and its own of version 2. One that is
    /// frozen from further up says so itself.
    pub fn freezers(&self, membership: &Membership) -> Vec<Level> {
        let tree = |wanted: &dyn Fn(&Tree) -> bool| self.trees.iter().find(|tree| wanted(tree));
        let v1 = membership.v1("freezer").zip(tree(&|tree| tree.controllers.iter().any(|c| c == "freezer")));
        let v2 = membership.v2().zip(tree(&|tree| tree.controllers.is_empty()));
        [v1, v2].into_iter().flatten().filter_map(|(path, tree)| climb(tree, path).into_iter().next()).collect()
    }

    /// Folders of the cgroup called `path`, in every tree that has it. `path` is either a folder or
    /// as `/proc/PID/cgroup` writes it.
    pub fn folders(&self, path: &Path) -> Vec<PathBuf> {
        let relative = path.strip_prefix("/").unwrap_or(path);
        let root = self.trees.iter().find(|tree| path.starts_with(&tree.mount));
        if root.is_some() {
            return if path.is_dir() { vec![path.to_path_buf()] } else { Vec::new() };
        }
        self.trees.iter().map(|tree| tree.mount.join(relative)).filter(|dir| dir.is_dir()).collect()
    }

    /// Folders anywhere in any tree for which `wanted` holds, by name.
    pub fn find(&self, wanted: &dyn Fn(&str) -> bool) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for tree in &self.trees {
            walk(&tree.mount, &mut |dir| {
                if dir.file_name().and_then(|name| name.to_str()).is_some_and(wanted) {
                    found.push(dir.to_path_buf());
                }
            });
        }
        found
    }

    /// Path of a folder within its tree, as `/proc/PID/cgroup` would write it.
    pub fn path_of(&self, dir: &Path) -> String {
        let relative = self.trees.iter().find_map(|tree| dir.strip_prefix(&tree.mount).ok()).unwrap_or(dir);
        format!("/{}", relative.display())
    }
}

/// Every process in a cgroup and in those below it, ascending.
pub fn processes_below(proc: &Proc, dir: &Path) -> Vec<u32> {
    let mut pids = Vec::new();
    walk(dir, &mut |dir| pids.extend(members(proc, dir)));
    // A process of another pid namespace that we cannot see is written as 0.
    pids.retain(|pid| *pid != 0);
    pids.sort_unstable();
    pids.dedup();
    pids
}

/// Processes of one cgroup. A threaded cgroup (v2) refuses to list processes and lists threads.
fn members(proc: &Proc, dir: &Path) -> Vec<u32> {
    let numbers = |text: &str| text.lines().filter_map(|line| line.parse().ok()).collect::<Vec<u32>>();
    match fs::read_to_string(dir.join("cgroup.procs")) {
        Ok(text) => numbers(&text),
        Err(_) => {
            let threads = text(&dir.join("cgroup.threads")).unwrap_or_default();
            numbers(&threads).into_iter().filter_map(|tid| proc.status(tid, "Tgid")?.parse().ok()).collect()
        }
    }
}

/// CPU quota of a level as (quota, period) in microseconds; none = unlimited.
pub fn quota_us(level: &Level) -> Option<(u64, u64)> {
    let read = |name: &str| text(&level.dir.join(name));
    if level.v2 {
        let line = read("cpu.max")?;
        let (quota, period) = line.trim().split_once(' ')?;
        return Some((quota.parse().ok()?, period.parse().ok()?)); // `max` is no number
    }
    let quota: i64 = read("cpu.cfs_quota_us")?.trim().parse().ok()?;
    let period = read("cpu.cfs_period_us")?.trim().parse().ok()?;
    Some((u64::try_from(quota).ok()?, period)) // -1 = unlimited
}

/// The level that allows least CPU, with its quota in CPUs.
pub fn tightest(levels: &[Level]) -> Option<(f64, &Level)> {
    let cpus = |level: &Level| quota_us(level).filter(|(_, period)| *period > 0).map(|(q, p)| q as f64 / p as f64);
    let limits = levels.iter().filter_map(|level| Some((cpus(level)?, level)));
    limits.min_by(|a, b| a.0.total_cmp(&b.0))
}

/// CPUs that the innermost cpuset leaves; none = no cpuset is in force or visible.
pub fn cpuset(levels: &[Level]) -> Option<Vec<u32>> {
    let names = ["cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"];
    let first = levels.first()?;
    let list = names.iter().find_map(|name| text(&first.dir.join(name)))?;
    Some(cpu_list(&list)).filter(|cpus| !cpus.is_empty())
}

/// A cgroup mount of a line of `/proc/self/mountinfo`.
fn tree(root: &Path, line: &str) -> Option<Tree> {
    let mount = MountInfo::from_line(line).ok()?;
    let controllers = match mount.fs_type.as_str() {
        "cgroup2" => Vec::new(),
        "cgroup" => mount.super_options.iter().map(controller).collect(),
        _ => return None,
    };
    let relative = mount.mount_point.strip_prefix("/").ok()?;
    Some(Tree { controllers, mount: root.join(relative), top: PathBuf::from(mount.root) })
}

/// `cpu`, or `name=systemd`.
fn controller((key, value): (&String, &Option<String>)) -> String {
    value.as_ref().map_or_else(|| key.clone(), |value| format!("{key}={value}"))
}

/// Levels from `path` to the top of what is mounted.
fn climb(tree: &Tree, path: &str) -> Vec<Level> {
    let Ok(below) = Path::new(path).strip_prefix(&tree.top) else { return Vec::new() };
    let level = |relative: &Path| {
        let path = tree.top.join(relative).to_string_lossy().trim_end_matches('/').to_string();
        Level {
            path: if path.is_empty() { "/".to_string() } else { path },
            dir: tree.mount.join(relative),
            v2: tree.controllers.is_empty(),
        }
    };
    below.ancestors().map(level).filter(|level| level.dir.is_dir()).collect()
}

/// Visits a folder and all below it. Links are not followed, so there are no rings.
fn walk(dir: &Path, visit: &mut dyn FnMut(&Path)) {
    visit(dir);
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk(&entry.path(), visit);
        }
    }
}

#[cfg(test)]
mod tests;
