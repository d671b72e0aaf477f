// SPDX-License-Identifier: Apache-2.0
//! A network namespace of the cell's own, so that no port of a scenario meets one of the host.
//!
//! A namespace belongs to a thread; the runner steps in for the moment in which it starts a program
//! or asks for readiness, and out again, so that wakewalk is started where a user would start it.

use std::fs::File;
use std::process::Command;

use anyhow::{Context, Result, bail};
use nix::sched::{CloneFlags, setns, unshare};

const THIS_THREAD: &str = "/proc/thread-self/ns/net";

/// The host's namespace and the cell's; the cell's ends with its last process and this handle.
pub struct Net {
    host: File,
    cell: File,
}

impl Net {
    /// Makes a namespace with a loopback interface that is up.
    ///
    /// # Errors
    /// Not root, or `ip` is missing.
    pub fn create() -> Result<Self> {
        let open = || File::open(THIS_THREAD).context("failed to open the network namespace");
        let host = open()?;
        unshare(CloneFlags::CLONE_NEWNET).context("failed to make a network namespace (the lab needs root)")?;
        let cell = open();
        let up = Command::new("ip").args(["link", "set", "lo", "up"]).status();
        setns(&host, CloneFlags::CLONE_NEWNET).context("failed to go back to the host's network namespace")?;
        if !up.context("failed to run `ip` (Debian package iproute2)")?.success() {
            bail!("failed to bring the loopback interface up");
        }
        Ok(Self { host, cell: cell? })
    }

    /// Runs `f` inside.
    ///
    /// # Errors
    /// Those of `f`, or the way in or out was refused.
    pub fn inside<T>(&self, f: impl FnOnce() -> Result<T>) -> Result<T> {
        setns(&self.cell, CloneFlags::CLONE_NEWNET).context("failed to enter the cell's network namespace")?;
        let result = f();
        setns(&self.host, CloneFlags::CLONE_NEWNET).context("failed to leave the cell's network namespace")?;
        result
    }
}
