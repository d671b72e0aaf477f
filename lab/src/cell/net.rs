// SPDX-License-Identifier: Apache-2.0
//! A network namespace of the cell's own, so that no port of a scenario meets one of the host.
//!
//! A namespace belongs to a thread; the runner steps in for the moment in which it starts a program
//! or asks for readiness, and out again, so that wakewalk is started where a user would start it.

use std::cell::OnceCell;
use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::process::{self, Command};

use anyhow::{Context, Result, bail};
use nix::sched::{CloneFlags, setns, unshare};

const THIS_THREAD: &str = "/proc/thread-self/ns/net";

/// Address of the far end of the second network of a cell.
pub const FAR: Ipv4Addr = Ipv4Addr::new(10, 203, 0, 2);

/// Address of its near end.
pub const NEAR: Ipv4Addr = Ipv4Addr::new(10, 203, 0, 1);

/// Address of the far end of a line over it, see `lab/delayline`.
pub const FAR_LINE: Ipv4Addr = Ipv4Addr::new(10, 204, 0, 2);

/// Likewise of the near end.
pub const NEAR_LINE: Ipv4Addr = Ipv4Addr::new(10, 204, 0, 1);

/// The host's namespace and the cell's; the cell's ends with its last process and this handle. A second namespace behind
/// a pair of virtual interfaces is made when it is first asked for.
pub struct Net {
    host: File,
    cell: File,
    far: OnceCell<File>,
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
        let up = ip("link set lo up");
        setns(&host, CloneFlags::CLONE_NEWNET).context("failed to go back to the host's network namespace")?;
        up?;
        Ok(Self { host, cell: cell?, far: OnceCell::new() })
    }

    /// Runs `f` at the far end of the second network.
    ///
    /// # Errors
    /// Those of `f`, or the network cannot be made.
    pub fn far<T>(&self, f: impl FnOnce() -> Result<T>) -> Result<T> {
        if self.far.get().is_none() {
            let _ = self.far.set(self.make_far()?);
        }
        let far = self.far.get().context("the second network is not there")?;
        setns(far, CloneFlags::CLONE_NEWNET).context("failed to enter the cell's second network namespace")?;
        let result = f();
        setns(&self.host, CloneFlags::CLONE_NEWNET).context("failed to leave the cell's second network namespace")?;
        result
    }

    fn make_far(&self) -> Result<File> {
        let far = self.inside(|| {
            unshare(CloneFlags::CLONE_NEWNET).context("failed to make a second network namespace")?;
            File::open(THIS_THREAD).context("failed to open the network namespace")
        })?;
        let prefix = 30;
        let handle = format!("/proc/{}/fd/{}", process::id(), far.as_raw_fd());
        let inside = |command: String| self.inside(|| ip(&command));
        inside(format!("link add near type veth peer name far netns {handle}"))?;
        inside(format!("addr add {NEAR}/{prefix} dev near"))?;
        inside("link set near up".to_string())?;
        setns(&far, CloneFlags::CLONE_NEWNET).context("failed to enter the second network namespace")?;
        let up = ip("link set lo up")
            .and_then(|()| ip(&format!("addr add {FAR}/{prefix} dev far")))
            .and_then(|()| ip("link set far up"));
        setns(&self.host, CloneFlags::CLONE_NEWNET).context("failed to go back to the host's network namespace")?;
        up.map(|()| far)
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

fn ip(command: &str) -> Result<()> {
    let status = Command::new("ip").args(command.split(' ')).status();
    if !status.context("failed to run `ip` (Debian package iproute2)")?.success() {
        bail!("failed to run `ip {command}`");
    }
    Ok(())
}
