// SPDX-License-Identifier: Apache-2.0
//! The walk: whom the target waited for, and whom those waited for, down to where it ends. A chain on the terminal; on
//! the page all of them as a graph, and the stacks on both sides of each wakeup.

use std::collections::BTreeMap;

use diagnose::facts::stacks::{Code, Stacks};
use diagnose::facts::waiting::sum;
use diagnose::phrases::chain::links;
use diagnose::walk::chains::{Chain, Nature};
use diagnose::walk::{End, Kind, Node, Walk, Who};
use recording::tables::Wakeup;

use crate::flame::Frame;
use crate::numbers;
use crate::section::{Block, FlameNode, Section, Terminal, Tone};

use super::{Material, evidence};

/// Chains that explain less than this share of all waiting are not worth a table.
const LEAST_SHARE: f64 = 0.02;

/// The walk.
pub fn view(material: &Material<'_>) -> Option<Section> {
    let walk = material.case.fact::<Walk>().ok()?;
    let stacks = material.case.fact::<Stacks>().ok()?;
    let chains = &walk.chains;
    if chains.is_empty() {
        return None;
    }
    let of = |nature| sum(chains.iter().filter(|c| c.nature() == nature));
    let waiting = of(Nature::Waiting);
    let mut blocks = vec![summary(walk.walked_ns, of)];
    let first = chains.iter().find(|c| c.nature() == Nature::Waiting && c.ns >= waiting * LEAST_SHARE);
    // A finding that has a chain is shown with it.
    let first = first.filter(|_| material.verdict.findings.first().is_none_or(|f| f.chain.is_empty()));
    let title = |chain: &Chain| format!("The chain with most of the waiting ({})", numbers::share(chain.ns / waiting));
    blocks.extend(first.and_then(|chain| evidence::chain(&title(chain), &links(chain, &stacks))));
    blocks.push(graph(&walk, &stacks));
    blocks.push(both_stacks(material, &walk, &stacks));
    let terminal = Terminal::First(1 + usize::from(first.is_some()));
    Some(Section::new("walk", "Whom it waited for", blocks, terminal))
}

fn summary(walked: f64, of: impl Fn(Nature) -> f64) -> Block {
    let share = |nature| numbers::share(if walked > 0.0 { of(nature) / walked } else { 0.0 });
    let mut text = format!(
        "Of {} of blocked thread time, {} was waiting for somebody. {} was idleness: a client or an event loop\u{2019}s \
         own timer ended it. {} ended by another thread of its own, and counts there.",
        numbers::seconds(walked / 1e9),
        share(Nature::Waiting),
        share(Nature::Idle),
        share(Nature::HandOver),
    );
    if of(Nature::Untold) > walked * LEAST_SHARE {
        text += &format!(" {} could not be told apart.", share(Nature::Untold));
    }
    Block::Text { text, tone: Tone::Plain }
}

/// An end in words, with whose it is.
fn end_words(end: &End) -> String {
    let name = end.name();
    if name.is_empty() { end.words() } else { format!("{name}: {}", end.words()) }
}

/// All chains: the lowest frames are the target's waits, each stands on the one that it prolongs.
fn graph(walk: &Walk, stacks: &Stacks) -> Block {
    let mut root = FlameNode::root("waits of the target");
    for (who, node) in &walk.waits {
        insert(&mut root, (walk, stacks), (who, node), &mut Vec::new());
    }
    Block::Flame {
        title: "Who waited for whom".to_owned(),
        unit: "ms".to_owned(),
        legend: "Width is time. The lowest frames are waits of the target; on each stands what the one that ended it \
                 waited for meanwhile, then where that ends, and on top the code in which the last one then answered. \
                 Waits that another thread of the target ended are left out: they stand where that one waits."
            .to_owned(),
        root: root.finish(),
    }
}

fn insert(
    root: &mut FlameNode,
    (walk, stacks): (&Walk, &Stacks),
    (who, node): (&Who, &Node),
    path: &mut Vec<(String, &'static str)>,
) {
    path.push((format!("{} waits in {}", who.name(), who.call_words()), "native"));
    // What one thread handed to another stands at that other one.
    for (end, ns) in node.ends.iter().filter(|(end, _)| end.kind != Kind::HandOver) {
        let kind = if end.kind == Kind::Client { "unknown" } else { "kernel" };
        let depth = path.len();
        path.push((end_words(end), kind));
        path.extend(outermost_first(stacks.user(walk.answer(who, end))).map(|name| (name, "native")));
        root.insert(path.iter().map(|(name, kind)| Frame { name, kind, module: "" }), ns / 1e6);
        path.truncate(depth);
    }
    node.children.iter().for_each(|child| insert(root, (walk, stacks), child, path));
    path.pop();
}

/// Where the target waited, and on top of it the stack of whoever ended the wait.
fn both_stacks(material: &Material<'_>, walk: &Walk, stacks: &Stacks) -> Block {
    let mut sums: BTreeMap<(&str, &str, u32, u32, u32), u64> = BTreeMap::new();
    for row in material.case.recording.rows::<Wakeup>().iter().filter(|row| walk.target.contains(&row.pid)) {
        let waker = if row.context == "interrupt" { "" } else { row.waker_comm.as_str() };
        let code = if waker.is_empty() { 0 } else { walk.waking(row.waker_pid, waker) };
        *sums.entry((&row.comm, waker, row.stack, row.waker_stack, code)).or_default() +=
            row.blocked_ns.max(row.wait_ns);
    }
    let mut root = FlameNode::root("all waits of the target");
    for ((comm, waker, stack, waker_stack, code), ns) in sums {
        let mut path = vec![(comm.to_owned(), "thread")];
        path.extend(outermost_first(stacks.frames(stack)).map(|name| (name, "kernel")));
        let by = if waker.is_empty() { "woken by an interrupt".to_owned() } else { format!("woken by {waker}") };
        path.push((by, "thread"));
        // The waker's stack hangs upside down: its wakeup meets the sleeper, its beginning is on top.
        path.extend(stacks.frames(waker_stack).map(|code| (code.label(), "kernel")));
        path.extend(stacks.user(code).map(|code| (code.label(), "native")));
        root.insert(path.iter().map(|(name, kind)| Frame { name, kind, module: "" }), ns as f64 / 1e6);
    }
    Block::Flame {
        title: "Where it waited, and the code that woke it".to_owned(),
        unit: "ms".to_owned(),
        legend:
            "Width is time. From below: the sleeping thread, its kernel stack, who woke it, and the waker\u{2019}s \
                 stack upside down: its system call, and above that the program that made it."
                .to_owned(),
        root: root.finish(),
    }
}

/// Labels of a stack, which is kept from its innermost function on.
fn outermost_first<'s>(stack: impl Iterator<Item = &'s Code>) -> impl Iterator<Item = String> {
    let mut names: Vec<String> = stack.map(Code::label).collect();
    names.reverse();
    names.into_iter()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{section, tables};
    use super::*;

    const WAITS: &str = "meta host.arch=x86_64 length_ns=1e9 target.pids=[1]
        frame id=1 symbol=schedule module=kernel kind=kernel
        frame id=2 symbol=ep_poll module=kernel kind=kernel
        frame id=3 symbol=hrtimer_wakeup module=kernel kind=kernel
        stack id=1 frames=[1,2]
        stack id=2 frames=[3]
        process pid=1 listen=[\"tcp 0.0.0.0:80\"]
        wakeup t_ns=100e6 pid=1 tid=1 comm=proxy wait_ns=50e6 blocked_ns=50e6 syscall=232 stack=1 context=thread waker_pid=2 waker_tid=2 waker_comm=store waker_syscall=1 waker_local_port=90 waker_remote_port=555
        wakeup t_ns=99e6 pid=2 tid=2 comm=store wait_ns=60e6 blocked_ns=60e6 syscall=232 stack=1 context=interrupt waker_stack=2
        wakeup t_ns=200e6 pid=1 tid=1 comm=proxy wait_ns=50e6 blocked_ns=50e6 syscall=232 context=thread waker_pid=3 waker_tid=3 waker_comm=ab waker_syscall=1 waker_remote_port=80";

    #[test]
    fn a_chain_of_two_and_idleness() {
        let section = section(view, WAITS).unwrap();
        let Block::Text { text, .. } = &section.blocks[0] else { panic!("no words") };
        assert!(text.contains("50.0 % was waiting for somebody. 50.0 % was idleness"), "{text}");
        let tables = tables(&section);
        assert_eq!(tables[0][1], ["proxy/1", "50.0 ms", "epoll_wait", "ep_poll"]);
        assert_eq!(tables[0][2], ["store/2", "49.0 ms", "epoll_wait", "ep_poll"]);
        assert_eq!(tables[0][3][1..3], ["49.0 ms", "its own timer (hrtimer_wakeup)"]);
        let Block::Flame { root, .. } = &section.blocks[2] else { panic!("no graph") };
        assert_eq!(root.children[0].name, "proxy/1 waits in epoll_wait");
    }

    #[test]
    fn no_wakeups_no_section() {
        assert!(section(view, "wakeup").is_none() || section(view, "").is_none());
    }
}
