// SPDX-License-Identifier: Apache-2.0
//! What a thread is called in a report: its command name and its id, `mio-reactor/27118`.

use std::collections::BTreeMap;

use diagnose::Case;
use diagnose::facts::profile::Profile;
use diagnose::ledger::threads::Threads;

/// The names of all threads that the recording tells of.
pub struct ThreadNames(BTreeMap<(u32, u32), String>);

impl ThreadNames {
    /// Reads the names: the ledger knows the last one that a thread had, samples fill in.
    pub fn of(case: &Case<'_>) -> Self {
        let mut names = BTreeMap::new();
        if let Ok(profile) = case.fact::<Profile>() {
            names.extend(profile.threads.iter().map(|(&id, thread)| (id, thread.comm.clone())));
        }
        if let Ok(threads) = case.fact::<Threads>() {
            names.extend(threads.threads.iter().map(|t| ((t.pid, t.tid), t.comm.clone())));
        }
        Self(names)
    }

    /// Command name alone; short-lived threads have none of their own.
    pub fn comm(&self, pid: u32, tid: u32) -> &str {
        match tid {
            0 => "short-lived threads",
            _ => self.0.get(&(pid, tid)).map_or("unknown thread", String::as_str),
        }
    }

    /// Command name and id.
    pub fn full(&self, pid: u32, tid: u32) -> String {
        if tid == 0 { self.comm(pid, tid).to_owned() } else { format!("{}/{tid}", self.comm(pid, tid)) }
    }
}
