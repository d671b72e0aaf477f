// SPDX-License-Identifier: Apache-2.0
//! Whose waits are added up.

use crate::syscall::{Family, family, waits_for_bytes};

/// Threads of one kind in one process, in one system call for one thing.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Who {
    /// Process id; [`AGAIN`] = those of a program that is started again and again.
    pub pid: u32,
    /// Threads' command name; a star stands for their numbers.
    pub comm: String,
    /// System call; `none` outside one.
    pub call: String,
    /// Kind of the file that is waited for; [`LOCK`], [`HAND_OFF`], [`INTERPRETER`], [`DNS`], [`SLEEP`] or [`TIMED`]
    /// where it is one of those.
    pub fd_kind: String,
    /// Whom the target asked through that file: the other end of a connection that it made itself; empty = nobody, or a
    /// thread outside the target, of which that is not known.
    pub peer: String,
    /// The file's name, where it has one.
    pub path: String,
}

/// What stands for the kind of file where a lock is waited for.
pub const LOCK: &str = "lock";
/// Likewise for a wait in futex that ends after a time at the latest.
pub const TIMED: &str = "timed";
/// Likewise for something that another thread hands on when it is done with it.
pub const HAND_OFF: &str = "turn";
/// Likewise for the lock of an interpreter, which lets one thread of a process run at a time.
pub const INTERPRETER: &str = "interpreter";
/// Likewise where a name is looked up.
pub const DNS: &str = "dns";
/// Likewise where a language runtime lets time pass in a call that is made for something else.
pub const SLEEP: &str = "sleep";
/// Likewise where an event loop waits for the next of its timers.
pub const LOOP: &str = "loop";
/// Likewise where a runtime keeps a thread that has no work.
pub const PARKED: &str = "parked";

/// Likewise where a thread that takes what clients ask waits without looking at them: in a loop inside its loop.
pub const INNER: &str = "inner";

/// Stands for the process ids of a program that is started again and again.
pub const AGAIN: u32 = 0;

impl Who {
    /// What it waits in, in words.
    pub fn call_words(&self) -> String {
        let call = if self.call == "none" { "a page fault" } else { &self.call };
        if self.asks_meanwhile() {
            return format!("a question to {}", self.peer);
        }
        match (self.fd_kind.as_str(), self.peer.as_str(), self.path.as_str()) {
            ("" | "anon", "", "") => call.to_string(),
            (HAND_OFF, ..) => format!("{call} (its turn)"),
            (INTERPRETER, ..) => format!("{call} (the interpreter's lock)"),
            (TIMED, ..) => format!("{call} (with a timeout)"),
            (SLEEP, ..) => format!("a sleep ({call})"),
            (LOOP, ..) => format!("{call} (a timer of its loop)"),
            (INNER, "", _) => format!("{call} (without its clients)"),
            (PARKED, ..) => format!("{call} (a worker without work)"),
            (DNS, "", _) => format!("{call} (a DNS server)"),
            (DNS, peer, _) => format!("{call} (DNS server {peer})"),
            (kind, "", "") => format!("{call} ({kind})"),
            (_, "", path) => format!("{call} ({path})"),
            (_, peer, _) => format!("{call} ({peer})"),
        }
    }

    /// Whether it had asked a peer and was at something else when the answer came: no wait of its own tells of that time.
    fn asks_meanwhile(&self) -> bool {
        self.call == "none" && !self.peer.is_empty()
    }

    /// Whether it only lets time pass. A thread that its runtime keeps for work may do that in a sleep as well, and nobody waits for it.
    pub fn sleeps(&self) -> bool {
        self.fd_kind != PARKED && family(&self.call) == Family::Sleep || self.fd_kind == SLEEP
    }

    /// Whether it waits for files, of which any may be a client's.
    pub fn polls(&self) -> bool {
        let without_clients = [INNER, HAND_OFF].contains(&self.fd_kind.as_str());
        family(&self.call) == Family::Poll && !without_clients && !self.sleeps()
    }

    /// Whether it waits for the bytes of one connection or file.
    pub fn reads(&self) -> bool {
        self.fd_kind != PARKED && waits_for_bytes(&self.call)
    }

    /// Whether it waits until somebody has read what it writes.
    pub fn writes(&self) -> bool {
        family(&self.call) == Family::Send && matches!(self.fd_kind.as_str(), "pipe" | "tty" | "socket")
    }

    /// The same, of what is no connection.
    pub fn fills_a_pipe(&self) -> bool {
        self.writes() && self.fd_kind != "socket"
    }

    /// Name and process id, as `nginx/812`.
    pub fn name(&self) -> String {
        name(&self.comm, self.pid)
    }
}

/// The name of a process, as `nginx/812`; a star stands for the ids of a program that is started again and again.
pub fn name(comm: &str, pid: u32) -> String {
    if pid == AGAIN { format!("{comm}/*") } else { format!("{comm}/{pid}") }
}

/// The process to go to, if it is one.
pub fn lasting(pid: u32) -> Option<u32> {
    Some(pid).filter(|pid| *pid != AGAIN)
}

/// A thread's name without its number, by which threads of one pool differ.
pub fn kind_of_thread(comm: &str) -> String {
    let name = comm.trim_end_matches(|c: char| c.is_ascii_digit());
    let numbered = name.len() < comm.len() && name.ends_with(['-', '_', '#', ':', '/', ' ', '.']);
    if numbered { format!("{name}*") } else { comm.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_one_pool_have_one_name() {
        let names = ["pool-1-thread-12", "GC Thread#0", "redis-server", "http2", "12"].map(kind_of_thread);
        assert_eq!(names, ["pool-1-thread-*", "GC Thread#*", "redis-server", "http2", "12"]);
    }

    #[test]
    fn words() {
        let who = |fd_kind: &str, peer: &str, path: &str| {
            let (call, text) = ("poll".to_string(), str::to_string);
            Who { call, fd_kind: text(fd_kind), peer: text(peer), path: text(path), ..Who::default() }.call_words()
        };
        assert_eq!(who("", "", ""), "poll");
        let none = |peer: &str| Who { call: "none".into(), peer: peer.into(), ..Who::default() }.call_words();
        assert_eq!(
            (none("10.0.0.7:5432").as_str(), none("").as_str()),
            ("a question to 10.0.0.7:5432", "a page fault")
        );
        assert_eq!(who("socket", "10.0.0.7:5432", ""), "poll (10.0.0.7:5432)");
        assert_eq!(who("dns", "10.0.0.2:53", ""), "poll (DNS server 10.0.0.2:53)");
        assert_eq!(who("file", "", "/var/lib/journal"), "poll (/var/lib/journal)");
        assert_eq!(who("turn", "", ""), "poll (its turn)");
        assert_eq!(who("interpreter", "", ""), "poll (the interpreter's lock)");
    }
}
