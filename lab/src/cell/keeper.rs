// SPDX-License-Identifier: Apache-2.0
//! The keeper outlives the runner by a moment: a small process that waits at a pipe whose other end
//! the runner holds. When the runner is gone, SIGKILL and panic included, the pipe closes and the
//! keeper ends what the cell had started, sets back what it had changed on the host, and removes its cgroup and folder.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

use super::group;

/// The runner's handle on its keeper.
pub struct Keeper(Child);

impl Keeper {
    /// Starts a keeper for cgroups and a folder.
    ///
    /// # Errors
    /// It could not be started.
    pub fn start(groups: &[&Path], dir: &Path) -> Result<Self> {
        let exe = env::current_exe().context("failed to find the lab's own binary")?;
        // A process group of its own: Ctrl-C at the terminal must not reach it.
        let mut command = Command::new(exe);
        command.arg("keep").arg(dir).args(groups.iter().filter(|group| !group.as_os_str().is_empty()));
        let child = command.stdin(Stdio::piped()).process_group(0).spawn();
        Ok(Self(child.context("failed to start the keeper")?))
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Lets it do its work and waits for its end.
    ///
    /// # Errors
    /// Something of the cell is left.
    pub fn release(&mut self) -> Result<()> {
        drop(self.0.stdin.take());
        let status = self.0.wait().context("failed to wait for the keeper")?;
        anyhow::ensure!(status.success(), "the keeper could not clean up: {status}");
        Ok(())
    }
}

/// In the cell's folder: files of the host and what they said before, a line each.
const BEFORE: &str = "before";

/// Notes what a file of the host says, to be set back by the keeper.
///
/// # Errors
/// The disk is full.
pub fn remember(dir: &Path, file: &str, value: &str) -> Result<()> {
    let mut notes =
        OpenOptions::new().create(true).append(true).open(dir.join(BEFORE)).context("failed to take a note")?;
    writeln!(notes, "{file} {value}").context("failed to take a note")
}

/// The last change is taken back first.
fn set_back(dir: &Path) -> Result<()> {
    let notes = fs::read_to_string(dir.join(BEFORE)).unwrap_or_default();
    for (file, value) in notes.lines().rev().filter_map(|line| line.split_once(' ')) {
        fs::write(file, value).with_context(|| format!("failed to set `{file}` back to {value}"))?;
    }
    Ok(())
}

/// The keeper's own life: wait for the runner to go, then clean up.
///
/// # Errors
/// Something of the cell is left.
pub fn keep(dir: &Path, groups: &[PathBuf]) -> Result<()> {
    let _ = io::stdin().read_to_end(&mut Vec::new()); // ends when the runner does
    let back = set_back(dir);
    groups.iter().try_for_each(|group| group::remove(group))?;
    back?;
    if dir.exists() {
        fs::remove_dir_all(dir).with_context(|| format!("failed to remove `{}`", dir.display()))?;
    }
    Ok(())
}
