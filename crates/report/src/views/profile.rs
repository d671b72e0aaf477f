// SPDX-License-Identifier: Apache-2.0
//! Where CPU time was spent: a flame graph of the samples, thread by thread, with kernel frames on top of the user
//! frames that called into the kernel.

use diagnose::facts::profile::{Place, Profile};
use diagnose::facts::stacks::{Code, Stacks};
use diagnose::ledger::threads::Threads;

use crate::flame::{Frame, LEGEND};
use crate::numbers;
use crate::section::{Block, FlameNode, Section, Terminal, Tone};

use super::Material;
use super::thread_names::ThreadNames;

/// Above this share, stacks that broke off or have no names are worth a line on the terminal.
const TOO_MANY: f64 = 0.05;

/// The profile.
pub fn view(material: &Material<'_>) -> Option<Section> {
    let (profile, stacks) = (material.case.fact::<Profile>().ok()?, material.case.fact::<Stacks>().ok()?);
    let names = ThreadNames::of(material.case);
    let mut root = FlameNode::root("all on-CPU samples");
    for (place, &samples) in &profile.places {
        let labels = path(names.comm(place.pid, place.tid), place, (&profile, &stacks));
        root.insert(labels.iter().map(Label::frame), samples as f64);
    }
    let lowered = if profile.weights.effective() < profile.total.samples as f64 { "up to " } else { "" };
    let rate = if profile.hz > 0 { format!(", {lowered}{} samples a second", profile.hz) } else { String::new() };
    let graph = Block::Flame {
        title: format!("All threads{rate}"),
        unit: "samples".to_owned(),
        legend: legend(profile.broken > 0),
        root: root.finish(),
    };
    let worst = profile.broken.max(profile.unnamed) as f64;
    let many = worst > TOO_MANY * profile.total.samples as f64;
    let terminal = Terminal::First(if many { 2 } else { 1 });
    let blocks = vec![graph, quality(&profile, &children(material, &profile, &stacks), many)];
    Some(Section::new("profile", "Where CPU time was spent", blocks, terminal))
}

fn legend(broken: bool) -> String {
    let broken = if broken {
        " (broken off) stands where a stack could not be followed to its thread\u{2019}s start."
    } else {
        ""
    };
    format!(
        "{LEGEND} The lowest frames are threads by name. Kernel frames stand on the user frames that called into the \
         kernel.{broken}"
    )
}

/// How many of the stacks that broke off are short-lived processes\u{2019}, and why those do; empty where it is not most.
fn children(material: &Material<'_>, profile: &Profile, stacks: &Stacks) -> String {
    let Ok(threads) = material.case.fact::<Threads>() else { return String::new() };
    let brief = |place: &Place| threads.thread(place.pid, place.tid).is_none();
    let broken = profile.places.iter().filter(|(place, _)| !stacks.is_complete(place.stack));
    let brief: u64 = broken.filter(|(place, _)| brief(place)).map(|(_, samples)| samples).sum();
    if brief * 2 <= profile.broken {
        return String::new();
    }
    format!(
        " Most of these ({}) are of short-lived processes and threads: they had ended before their memory and files could \
         be read.",
        numbers::number(brief as f64)
    )
}

/// A frame with a name of its own.
pub(crate) struct Label<'s> {
    name: String,
    kind: &'static str,
    module: &'s str,
}

impl Label<'_> {
    /// As flame graphs take it.
    pub(crate) fn frame(&self) -> Frame<'_> {
        Frame { name: &self.name, kind: self.kind, module: self.module }
    }
}

/// The frames of a place, root first: its thread, then its stack, with what is unknown of it said.
pub(crate) fn path<'s>(thread: &str, place: &Place, (profile, stacks): (&Profile, &'s Stacks)) -> Vec<Label<'s>> {
    let bare = |name: &str, kind| Label { name: name.to_owned(), kind, module: "" };
    let codes: Vec<&Code> = stacks.frames(place.stack).collect();
    let mut path = vec![bare(thread, "thread")];
    if codes.is_empty() {
        path.push(bare("(no stack)", "unknown"));
    } else if !stacks.is_complete(place.stack) {
        path.push(bare("(broken off)", "unknown"));
    }
    path.extend(codes.iter().rev().map(|code| Label {
        name: label(profile, code),
        kind: kind(code),
        module: &code.module,
    }));
    path
}

/// A function's name; where it has none, what tells it from others.
fn label(profile: &Profile, code: &Code) -> String {
    if code.symbol.is_empty() && code.module.is_empty() { "(unknown)".to_owned() } else { profile.name(code) }
}

/// The kind of a frame, as [`FlameNode::kind`].
pub(super) fn kind(code: &Code) -> &'static str {
    match code.kind.as_str() {
        _ if code.is_kernel() => "kernel",
        "jit" => "jit",
        _ if code.symbol.is_empty() => "unknown",
        _ => "native",
    }
}

fn quality(profile: &Profile, children: &str, many: bool) -> Block {
    let of = |count: u64| numbers::share(count as f64 / profile.total.samples.max(1) as f64);
    let text = format!(
        "{} samples, {} in the kernel. Stacks that broke off before the thread\u{2019}s first function: {}.{children} Stacks \
         without one named function: {}.",
        numbers::number(profile.total.samples as f64),
        of(profile.total.kernel),
        of(profile.broken),
        of(profile.unnamed),
    );
    Block::Text { text, tone: if many { Tone::Warn } else { Tone::Dim } }
}

#[cfg(test)]
mod tests {
    use super::super::tests::section;
    use super::*;

    const PROFILE: &str = "meta host.arch=x86_64 target.sample_hz=99
        frame id=1 symbol=ep_poll module=kernel kind=kernel
        frame id=2 symbol=loop module=/usr/lib/libsp.so kind=native
        frame id=3 module=/opt/stripped offset=64 kind=unknown
        stack id=1 frames=[1,2] complete=true
        stack id=2 frames=[3]
        sample pid=1 tid=2 comm=reactor kernel=true syscall=232 stack=1 weight=6
        sample pid=1 tid=3 comm=other stack=2 weight=3
        sample pid=1 tid=3 comm=other stack=0";

    fn folded(node: &FlameNode) -> String {
        let children: Vec<_> = node.children.iter().map(folded).collect();
        format!("{}:{}={}[{}]", node.kind, node.name, node.value, children.join(" "))
    }

    #[test]
    fn threads_below_user_below_kernel_and_what_is_unknown_shows() {
        let section = section(view, PROFILE).unwrap();
        let Block::Flame { root, .. } = &section.blocks[0] else { panic!("no flame graph") };
        assert_eq!(
            folded(root),
            "thread:all on-CPU samples=10[thread:reactor=6[native:loop=6[kernel:ep_poll=6[]]] \
             thread:other=4[unknown:(broken off)=3[unknown:unnamed code in stripped (+0x40, 1 bytes)=3[]] unknown:(no stack)=1[]]]"
        );
        let Block::Text { text, tone } = &section.blocks[1] else { panic!("no words") };
        assert!(text.contains("first function: 40.0 %") && text.contains("named function: 40.0 %"), "{text}");
        assert_eq!((*tone, section.terminal), (Tone::Warn, Terminal::First(2)));
    }

    #[test]
    fn stacks_of_short_lived_children_are_explained() {
        let words = |ledger: &str| {
            let section = section(view, &format!("{PROFILE}\n{ledger}")).unwrap();
            let (Block::Text { text, .. }, Block::Flame { legend, .. }) = (&section.blocks[1], &section.blocks[0])
            else {
                panic!("no words")
            };
            assert!(legend.contains("(broken off) stands where"), "{legend}");
            text.clone()
        };
        let gone =
            words("thread t_ns=1 pid=1 tid=2 comm=reactor wall_ns=1\nthread t_ns=1 comm=other instances=4 wall_ns=1");
        assert!(gone.contains("Most of these (4) are of short-lived processes"), "{gone}");
        let there = words("thread t_ns=1 pid=1 tid=3 comm=other wall_ns=1");
        assert!(!there.contains("short-lived"), "{there}");
    }

    #[test]
    fn no_samples_no_section() {
        assert!(section(view, "meta host.arch=x86_64").is_none());
    }
}
