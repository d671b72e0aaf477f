// SPDX-License-Identifier: Apache-2.0
//! Programs that a service starts again and again, as for each request: what their processes did is added up by program.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use recording::tables::{Process, Wakeup};

use super::{AGAIN, End, Node, Who, kind_of_thread};
use crate::case::{Case, SLICE_NS};

/// The programs of the target that were seen to start again and again.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    names: BTreeSet<String>,
    /// Processes that were there from the start, and others of such a name that are none of the target's.
    lasting: BTreeSet<u32>,
}

impl Programs {
    /// Reads them off the processes of a recording.
    pub fn new(case: &Case) -> Self {
        let processes = || case.recording.rows::<Process>().iter();
        let again = processes().filter(|process| process.pid == 0 && process.instances > 1);
        let names: BTreeSet<String> = again.map(|process| kind_of_thread(&process.comm)).collect();
        let mut lasting: BTreeSet<u32> =
            processes().filter(|p| p.pid != 0 && p.started_ns == 0).map(|p| p.pid).collect();
        if !names.is_empty() {
            let own: BTreeSet<u32> = processes().map(|process| process.pid).collect();
            lasting.extend(outlast_a_slice(case, &names).filter(|pid| !own.contains(pid)));
        }
        Self { names, lasting }
    }

    /// Waits of the target, where those that they lead to are added up by program. Who waits first stays who it is.
    pub fn added_up<'n>(&self, nodes: &'n BTreeMap<Who, Node>) -> Cow<'n, BTreeMap<Who, Node>> {
        if self.names.is_empty() {
            return Cow::Borrowed(nodes);
        }
        Cow::Owned(nodes.iter().map(|(who, node)| (who.clone(), self.below(node))).collect())
    }

    /// The same where it does not matter either which of them waits first.
    pub fn by_program(&self, nodes: BTreeMap<Who, Node>) -> BTreeMap<Who, Node> {
        if self.names.is_empty() {
            return nodes;
        }
        let mut sums: BTreeMap<Who, Node> = BTreeMap::new();
        for (who, node) in nodes {
            let pid = self.pid(who.pid, &who.comm);
            sums.entry(Who { pid, ..who }).or_default().add(node);
        }
        sums
    }

    fn below(&self, node: &Node) -> Node {
        let mut sum = Node { children: BTreeMap::new(), ends: BTreeMap::new(), ..node.clone() };
        for (end, ns) in &node.ends {
            let pid = self.pid(end.pid, &end.comm);
            *sum.ends.entry(End { pid, ..end.clone() }).or_default() += ns;
        }
        for (who, child) in &node.children {
            let pid = self.pid(who.pid, &who.comm);
            sum.children.entry(Who { pid, ..who.clone() }).or_default().add(self.below(child));
        }
        sum
    }

    /// The process id, or [`AGAIN`].
    pub fn pid(&self, pid: u32, comm: &str) -> u32 {
        let again = !self.lasting.contains(&pid) && self.names.contains(&kind_of_thread(comm));
        if again { AGAIN } else { pid }
    }
}

/// Processes with these names that waited or woke somebody for longer than a slice. One of the target's has a row of its own then.
fn outlast_a_slice(case: &Case, names: &BTreeSet<String>) -> impl Iterator<Item = u32> + use<> {
    let mut seen: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for row in case.recording.rows::<Wakeup>() {
        for (pid, comm) in [(row.pid, &row.comm), (row.waker_pid, &row.waker_comm)] {
            if pid != 0 && names.contains(&kind_of_thread(comm)) {
                let (first, last) = seen.entry(pid).or_insert((row.t_ns, row.t_ns));
                (*first, *last) = ((*first).min(row.t_ns), (*last).max(row.t_ns));
            }
        }
    }
    seen.into_iter().filter(|(_, (first, last))| last - first > SLICE_NS).map(|(pid, _)| pid)
}

impl Node {
    fn add(&mut self, other: Node) {
        self.ns += other.ns;
        self.waits += other.waits;
        self.number += other.number;
        let sum = |sums: &mut BTreeMap<u32, f64>, others: BTreeMap<u32, f64>| {
            others.into_iter().for_each(|(id, ns)| *sums.entry(id).or_default() += ns);
        };
        sum(&mut self.kernel_stacks, other.kernel_stacks);
        sum(&mut self.user_stacks, other.user_stacks);
        other.ends.into_iter().for_each(|(end, ns)| *self.ends.entry(end).or_default() += ns);
        other.children.into_iter().for_each(|(who, node)| self.children.entry(who).or_default().add(node));
    }
}
