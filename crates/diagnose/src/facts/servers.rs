// SPDX-License-Identifier: Apache-2.0
//! Which processes of the target can take what clients ask: those that run the program of one that listens. A program that was
//! started for a request is waited for, and serves nobody.

use std::collections::BTreeSet;

use recording::tables::Process;

use crate::answer::Gap;
use crate::case::{Case, Fact};

/// Them; none = no process of the target listens, and any may be asked in another way.
pub struct Servers(Option<BTreeSet<u32>>);

impl Fact for Servers {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let processes = case.recording.rows::<Process>();
        let listen: BTreeSet<&str> =
            processes.iter().filter(|row| !row.listen.is_empty()).map(|row| row.exe.as_str()).collect();
        let serve = processes.iter().filter(|row| listen.contains(row.exe.as_str())).map(|row| row.pid);
        Ok(Self((!listen.is_empty()).then(|| serve.collect())))
    }
}

impl Servers {
    /// Whether a process may serve.
    pub fn has(&self, pid: u32) -> bool {
        self.0.as_ref().is_none_or(|pids| pids.contains(&pid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_do_and_what_they_start_does_not() {
        let text = "process pid=1 exe=/usr/bin/svc listen=[\"tcp 0.0.0.0:80\"]
            process pid=2 ppid=1 exe=/usr/bin/svc
            process pid=3 ppid=2 exe=/usr/bin/convert";
        let serve = |text: &str| {
            let recording = recording::text::parse(text).unwrap();
            let servers = Case::new(&recording).fact::<Servers>().unwrap();
            [1, 2, 3].map(|pid| servers.has(pid))
        };
        assert_eq!(serve(text), [true, true, false]);
        assert_eq!(serve("process pid=3 exe=/usr/bin/convert"), [true; 3], "a service that is asked in another way");
    }
}
