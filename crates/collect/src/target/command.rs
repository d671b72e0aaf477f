// SPDX-License-Identifier: Apache-2.0
//! `--comm`: every process of a command name, with their descendants.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use super::Chosen;
use super::tree::Tree;
use crate::proc::Proc;

/// The kernel keeps 15 bytes of a command name (TASK_COMM_LEN - 1).
const COMM_BYTES: usize = 15;

pub fn find(proc: &Proc, comm: &str) -> Result<Chosen> {
    let tree = Tree::read(proc);
    let wanted = truncated(comm);
    let of_name = |dead_or_kernel: bool| {
        let matching = tree.nodes().iter().filter(|(_, node)| node.comm == wanted);
        matching.filter(|(_, n)| (n.dead || n.kernel) == dead_or_kernel).map(|(pid, _)| *pid).collect::<Vec<_>>()
    };
    let found = of_name(false);
    if found.is_empty() {
        if of_name(true).first().is_some_and(|pid| tree.nodes()[pid].kernel) {
            bail!("`{comm}` is a kernel thread: it works for whoever gave the kernel work; name the service itself");
        }
        bail!("no process is called `{comm}`{}", suggestions(&tree, wanted));
    }
    let main = tree.tops(&found);
    let mut notes = Vec::new();
    if main.len() > 1 {
        notes.push(format!("{} processes are called `{comm}` and are observed together", main.len()));
    }
    Ok(Chosen { pids: tree.with_descendants(&main), main, notes, ..Chosen::default() })
}

/// What the kernel keeps of a name; never in the middle of a character.
fn truncated(comm: &str) -> &str {
    let end = (0..=COMM_BYTES.min(comm.len())).rev().find(|end| comm.is_char_boundary(*end)).unwrap_or(0);
    &comm[..end]
}

fn suggestions(tree: &Tree, comm: &str) -> String {
    let lower = comm.to_lowercase();
    let near = |name: &str| {
        let name = name.to_lowercase();
        name.contains(&lower) || (name.len() >= 3 && lower.contains(&name)) || distance(&name, &lower) <= 2
    };
    let alive = tree.nodes().values().filter(|node| !node.kernel && !node.dead);
    let names: BTreeSet<String> =
        alive.filter(|node| near(&node.comm)).map(|node| format!("`{}`", node.comm.escape_debug())).take(5).collect();
    if names.is_empty() {
        return "; `ps -eo comm` lists the names".to_string();
    }
    format!("; did you mean {}?", Vec::from_iter(names).join(", "))
}

/// Edits (insert, remove, replace) from one name to the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    #[test]
    fn edits() {
        assert_eq!(
            (super::distance("nginx", "ngnix"), super::distance("", "ab"), super::distance("a", "a")),
            (2, 2, 0)
        );
    }

    #[test]
    fn long_names_are_cut_as_the_kernel_does() {
        assert_eq!(super::truncated("a-very-long-name-indeed"), "a-very-long-nam");
        assert_eq!(super::truncated("fourteen-bytesé"), "fourteen-bytes");
    }
}
