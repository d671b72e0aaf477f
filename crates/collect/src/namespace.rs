// SPDX-License-Identifier: Apache-2.0
//! Work inside another network namespace.
//!
//! Some files (`/proc/sys/net`) and sockets belong to the namespace of whoever opens them. A thread of its own
//! enters the namespace, opens what is wanted and ends; nobody else is moved, and what it opened stays usable.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Runs `work` inside the network namespace that `link` (`/proc/PID/ns/net`) refers to.
///
/// # Errors
/// The namespace has gone or may not be entered (needs CAP_SYS_ADMIN), or what `work` says.
pub fn inside<T: Send>(link: &Path, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let namespace = File::open(link)?;
    let thread = || {
        enter(&namespace)?;
        work()
    };
    std::thread::scope(|scope| {
        // Not `scope.spawn`, which panics where there is no thread to be had.
        let inside = std::thread::Builder::new().spawn_scoped(scope, thread)?;
        inside.join().unwrap_or_else(|_| Err(io::Error::other("the thread that entered the namespace ended early")))
    })
}

#[allow(unsafe_code, reason = "the standard library cannot change namespaces")]
fn enter(namespace: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open through the call; setns moves only the calling thread, which does
    // nothing but the work that was asked for.
    match unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
