// SPDX-License-Identifier: Apache-2.0
//! A cell's cgroup: what belongs to the scenario, its CPU quota, and the way to end all of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::mount::{MsFlags, mount};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::mounts::mounts;

/// Length of a quota period; the kernel's own default.
const PERIOD_US: u64 = 100_000;
/// How long killed processes may take to vanish.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// Which kind of hierarchy gives CPU limits on this host.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Version {
    One,
    Two,
}

/// A cgroup of ours in the hierarchy that controls CPU.
#[derive(Clone, Debug)]
pub struct Group {
    version: Version,
    path: PathBuf,
}

impl Group {
    /// Makes `name` at the top of the CPU hierarchy; mounts that under `spare` where the host has
    /// not mounted it.
    ///
    /// # Errors
    /// No hierarchy controls CPU, or we may not use it.
    pub fn create(name: &str, spare: &Path) -> Result<Self> {
        let table = fs::read_to_string("/proc/self/mountinfo").context("failed to read the mounts")?;
        let (version, root) = match find(&table, controls_cpu) {
            Some(found) => found,
            None => (Version::One, mount_cpu(spare)?),
        };
        if version == Version::Two {
            fs::write(root.join("cgroup.subtree_control"), "+cpu")
                .with_context(|| format!("failed to pass the cpu controller on below `{}`", root.display()))?;
            let _ = fs::write(root.join("cgroup.subtree_control"), "+memory"); // where it is missing, limits will say so
        }
        let group = Self { version, path: root.join(name) };
        fs::create_dir(&group.path)
            .with_context(|| format!("failed to make cgroup `{}` (the lab needs root)", group.path.display()))?;
        if version == Version::Two {
            fs::write(group.path.join("cgroup.subtree_control"), "+cpu")?;
            let _ = fs::write(group.path.join("cgroup.subtree_control"), "+memory");
        }
        Ok(group)
    }

    /// A cgroup below this one.
    ///
    /// # Errors
    /// It could not be made.
    pub fn child(&self, name: &str) -> Result<Self> {
        let path = self.path.join(name);
        if !path.is_dir() {
            fs::create_dir(&path).with_context(|| format!("failed to make cgroup `{}`", path.display()))?;
        }
        Ok(Self { version: self.version, path })
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it far more weight than what else runs on the host, so that a build next door does not
    /// become part of the scenario.
    ///
    /// # Errors
    /// The kernel has no CPU weights.
    pub fn prefer(&self) -> Result<()> {
        let (file, weight) = match self.version {
            Version::One => ("cpu.shares", "65536"), // the default is 1024
            Version::Two => ("cpu.weight", "6400"),  // the default is 100
        };
        fs::write(self.path.join(file), weight)
            .with_context(|| format!("failed to set the CPU weight of `{}`", self.path.display()))
    }

    /// Limits it to `percent` of one CPU.
    ///
    /// # Errors
    /// The kernel has no CPU quota.
    pub fn set_quota(&self, percent: u64) -> Result<()> {
        let quota_us = PERIOD_US * percent / 100;
        let written = match self.version {
            Version::One => fs::write(self.path.join("cpu.cfs_period_us"), PERIOD_US.to_string())
                .and_then(|()| fs::write(self.path.join("cpu.cfs_quota_us"), quota_us.to_string())),
            Version::Two => fs::write(self.path.join("cpu.max"), format!("{quota_us} {PERIOD_US}")),
        };
        written.with_context(|| format!("failed to set a CPU quota on `{}`", self.path.display()))
    }

    /// Processes in it and below it.
    pub fn pids(&self) -> Vec<u32> {
        pids_below(&self.path)
    }
}

/// Ends every process in the cgroup at `path` and below, then removes it. Nothing to do where it
/// is not there.
///
/// # Errors
/// Something survived SIGKILL for ten seconds.
pub fn remove(path: &Path) -> Result<()> {
    let end = Instant::now() + KILL_LIMIT;
    while path.exists() {
        for pid in pids_below(path) {
            // It may be gone by now, which is what we want.
            let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
        }
        remove_folders(path);
        if Instant::now() > end {
            bail!("cgroup `{}` could not be emptied: {:?} are left", path.display(), pids_below(path));
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn pids_below(path: &Path) -> Vec<u32> {
    let own = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    let mut pids: Vec<u32> = own.lines().filter_map(|l| l.parse().ok()).filter(|&pid| pid > 0).collect();
    for child in folders(path) {
        pids.extend(pids_below(&child));
    }
    pids
}

fn remove_folders(path: &Path) {
    for child in folders(path) {
        remove_folders(&child);
    }
    let _ = fs::remove_dir(path); // refused while a process is still leaving; the caller looks again
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path()).collect()
}

/// Mount point of the hierarchy that controls CPU, from a mountinfo table.
fn find(mountinfo: &str, controls_cpu: impl Fn(&Path) -> bool) -> Option<(Version, PathBuf)> {
    mounts(mountinfo).find_map(|mount| match mount.kind {
        _ if mount.controls("cpu") => Some((Version::One, mount.at)),
        "cgroup2" if controls_cpu(&mount.at) => Some((Version::Two, mount.at)),
        _ => None,
    })
}

fn controls_cpu(root: &Path) -> bool {
    let controllers = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
    controllers.split_whitespace().any(|c| c == "cpu")
}

fn mount_cpu(at: &Path) -> Result<PathBuf> {
    fs::create_dir_all(at).with_context(|| format!("failed to make `{}`", at.display()))?;
    mount(Some("cgroup"), at, Some("cgroup"), MsFlags::empty(), Some("cpu"))
        .context("no cgroup hierarchy on this host controls CPU, and mounting one was refused (the lab needs root)")?;
    Ok(at.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
        33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct\n\
        32 31 0:29 / /sys/fs/cgroup/cpu,x rw,relatime shared:4 - cgroup cgroup rw,cpu,x\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";

    #[test]
    fn the_v1_hierarchy_with_cpu_is_found_and_cpuacct_is_not_it() {
        assert_eq!(find(V1, |_| false), Some((Version::One, "/sys/fs/cgroup/cpu,x".into())));
    }

    #[test]
    fn v2_counts_only_with_the_cpu_controller() {
        let table = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate";
        assert_eq!(find(table, |_| true), Some((Version::Two, "/sys/fs/cgroup".into())));
        assert_eq!(find(table, |_| false), None);
    }
}
