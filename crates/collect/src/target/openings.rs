// SPDX-License-Identifier: Apache-2.0
//! Sockets that a target begins to listen on while it is captured: that of a command which the capture itself has started, or of
//! a service that was told to read its settings again.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::listening;
use crate::proc::Proc;
use crate::seldom::Seldom;
use crate::sockets::Source;

/// Network namespaces that are looked into at once: each takes a socket, by which the kernel keeps it.
const SPACES: usize = 64;

/// What was there so far.
#[derive(Default)]
pub struct Openings {
    /// By network namespace.
    spaces: HashMap<String, Space>,
    /// The one that each process was met in.
    homes: HashMap<u32, String>,
    /// Sockets that each process listens on, as it was told last.
    told: HashMap<u32, Vec<String>>,
    /// Where the kernel answers no question, its list has all connections too; and whose a new socket is takes a walk over all
    /// descriptors of the target.
    looks: Seldom,
}

/// Listeners of a network namespace.
struct Space {
    source: Source,
    inodes: HashSet<u64>,
}

impl Space {
    /// Whether one is there that was not there before. Where the kernel does not answer, none is.
    fn has_more(&mut self) -> bool {
        let tcp = self.source.tcp().unwrap_or_default();
        let now: HashSet<u64> = tcp.into_iter().chain(self.source.udp().unwrap_or_default()).map(|l| l.inode).collect();
        let has_more = !now.is_subset(&self.inodes);
        self.inodes = now;
        has_more
    }
}

impl Openings {
    /// Takes note of what is there, in the network namespaces of these processes, before these are told for the first time.
    pub fn meet(&mut self, root: &Path, pids: impl IntoIterator<Item = u32>) {
        let proc = Proc::new(root);
        for pid in pids {
            let name = &pid.to_string();
            let Some(home) = proc.namespace(name, "net") else { continue };
            if !self.spaces.contains_key(&home) && self.spaces.len() < SPACES {
                let mut space = Space { source: Source::of(&proc, name), inodes: HashSet::new() };
                space.has_more();
                self.spaces.insert(home.clone(), space);
            }
            self.homes.insert(pid, home);
        }
    }

    /// Forgets all but these processes, and the network namespaces that none of them is in.
    fn keep(&mut self, known: &HashSet<u32>) {
        self.told.retain(|pid, _| known.contains(pid));
        let before = self.homes.len();
        self.homes.retain(|pid, _| known.contains(pid));
        if self.homes.len() < before {
            let lived_in: HashSet<&String> = self.homes.values().collect();
            self.spaces.retain(|name, _| lived_in.contains(name));
        }
    }

    /// What a process listens on was told.
    pub fn told(&mut self, pid: u32, listen: &[String]) {
        self.told.insert(pid, listen.to_vec());
    }

    /// Those of these processes that listen on something which was not told. All others are forgotten.
    pub fn since(&mut self, root: &Path, pids: &[u32]) -> Vec<u32> {
        self.keep(&pids.iter().copied().collect());
        let Some(began) = self.looks.begin() else { return Vec::new() };
        let mut has_more = false;
        self.spaces.values_mut().for_each(|space| has_more |= space.has_more());
        let now = if has_more { listening(&Proc::new(root), pids) } else { HashMap::new() };
        self.looks.end(began);
        let is_told = |pid: &u32, names: &[String]| {
            self.told.get(pid).is_some_and(|told| names.iter().all(|name| told.contains(name)))
        };
        now.into_iter().filter(|(pid, names)| !names.is_empty() && !is_told(pid, names)).map(|(pid, _)| pid).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::OwnedFd;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::fake_root::FakeRoot;

    /// A process that has a listener, or none; what other tests of this process open meanwhile, it has not.
    struct Holder(Child);

    impl Holder {
        fn of(listener: Option<&TcpListener>) -> Self {
            let stdin = listener.map_or_else(Stdio::null, |l| Stdio::from(OwnedFd::from(l.try_clone().unwrap())));
            Self(Command::new("sleep").arg("60").stdin(stdin).spawn().unwrap())
        }

        fn pid(&self) -> u32 {
            self.0.id()
        }
    }

    impl Drop for Holder {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    #[test]
    fn what_was_opened_meanwhile_is_told_once() {
        let (root, mut openings, before) = (Path::new("/"), Openings::default(), Holder::of(None));
        openings.meet(root, [before.pid()]);
        assert_eq!(openings.since(root, &[before.pid()]), [0; 0]);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let after = Holder::of(Some(&listener));
        openings.looks = Seldom::default();
        let pids = [before.pid(), after.pid()];
        assert_eq!(openings.since(root, &pids), [after.pid()]);
        let listen = listening(&Proc::new(root), &pids).remove(&after.pid()).unwrap();
        assert_eq!(listen, [format!("tcp {}", listener.local_addr().unwrap())]);
        openings.told(after.pid(), &listen);
        openings.looks = Seldom::default();
        let _another = TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(openings.since(root, &pids), [0; 0]);
    }

    #[test]
    fn looking_whose_it_is_waits_its_turn() {
        let (root, mut openings, before) = (Path::new("/"), Openings::default(), Holder::of(None));
        openings.meet(root, [before.pid()]);
        openings.looks.end(Instant::now().checked_sub(Duration::from_secs(36)).unwrap());
        let after = Holder::of(Some(&TcpListener::bind("127.0.0.1:0").unwrap()));
        let pids = [before.pid(), after.pid()];
        assert_eq!(openings.since(root, &pids), [0; 0]);
        openings.looks = Seldom::default();
        assert_eq!(openings.since(root, &pids), [after.pid()], "late, but not forgotten");
    }

    #[test]
    fn a_namespace_is_kept_no_longer_than_somebody_is_in_it() {
        let (root, mut openings) = (FakeRoot::new(), Openings::default());
        for pid in 1..=70 {
            root.link(&format!("proc/{pid}/ns/net"), &pid.to_string());
        }
        openings.meet(root.path(), 1..=71);
        assert_eq!((openings.spaces.len(), openings.homes.len()), (SPACES, 70), "as many as are looked into");
        openings.since(root.path(), &[3, 71]);
        assert_eq!(openings.spaces.into_keys().collect::<Vec<_>>(), ["3"]);
    }
}
