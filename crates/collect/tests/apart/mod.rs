// SPDX-License-Identifier: Apache-2.0
//! A network namespace of a test's own. Needs root and `ip`.

use std::fs::read_link;
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, ensure};

/// Runs `ip` in this thread's network namespace.
pub fn ip(arguments: &str) -> Result<()> {
    let done = Command::new("ip").args(arguments.split(' ')).output().context("no ip")?;
    ensure!(done.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}

/// Does something in a thread that has a network namespace of its own, in which the loopback is up.
pub fn apart<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let alone = move || {
        // SAFETY: no pointers; this thread alone leaves the network namespace of the others.
        let left = unsafe { libc::unshare(libc::CLONE_NEWNET) };
        ensure!(left == 0, "no network namespace of its own: {}", std::io::Error::last_os_error());
        ip("link set lo up")?;
        work()
    };
    thread::spawn(alone).join().unwrap()
}

/// The number of this thread's network namespace.
pub fn network() -> u32 {
    let name = read_link("/proc/thread-self/ns/net").unwrap();
    name.to_string_lossy().chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap()
}
