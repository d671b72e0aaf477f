// SPDX-License-Identifier: Apache-2.0
//! A chain of the walk, as a verdict has it: who waits in what, called from where, and what stands at the end.

use crate::facts::stacks::Stacks;
use crate::runtimes::code::Code;
use crate::runtimes::timers;
use crate::verdict;
use crate::walk::chains::{Chain, Link};
use crate::walk::{End, Kind, Walk, Who};
use crate::wording::short;

/// A chain as the verdict has it: its waits, and what it ends at.
pub fn links(chain: &Chain, stacks: &Stacks) -> Vec<verdict::Link> {
    let mut links: Vec<verdict::Link> = chain.links.iter().map(|link| wait(link, stacks)).collect();
    let (who, mut waits_on) = (chain.end.name(), chain.end.words());
    if let Some(timer) = timer(chain, stacks) {
        waits_on += &format!(": {timer}");
    }
    links.push(verdict::Link { who, waits_on, seconds: chain.ns / 1e9, stack: answer(chain, stacks) });
    links
}

/// Who has to read what the link at `at` of a chain writes, by name; `None` = it does not write, or nobody knows.
pub fn reader(chain: &Chain, at: usize) -> Option<String> {
    let writer = Some(&chain.links.get(at)?.who).filter(|who| who.writes())?;
    match chain.links.get(at + 1) {
        Some(link) => Some(link.who.name()),
        None => Some(&chain.end).filter(|end| !end.name().is_empty() && end.pid != writer.pid).map(End::process),
    }
}

/// What the program calls the timer at the end of a chain, where its event loop is known.
pub fn timer(chain: &Chain, stacks: &Stacks) -> Option<&'static str> {
    let answer: Vec<&Code> = stacks.user(chain.answer).collect();
    timers::of(&answer).filter(|_| chain.end.kind == Kind::Timer).map(|(_, name)| name)
}

/// The code in which the last one of a chain answered: from the program's own function, where a runtime stands between
/// that and the call.
fn answer(chain: &Chain, stacks: &Stacks) -> Vec<String> {
    let own: Vec<&Code> = callers(chain.answer, stacks).collect();
    let script = own.iter().position(|code| code.is_jit() && !code.symbol.is_empty());
    let from = script.or_else(|| timers::of(&own).map(|(at, _)| at)).unwrap_or(0);
    own[from..].iter().map(|code| code.label()).collect()
}

/// Functions of the kernel that every wait ends in, every wait in futex goes through, or every call begins with: they say nothing
/// about where.
const EVERYWHERE: &[&str] = &[
    "__schedule",
    "schedule",
    "schedule_timeout",
    "io_schedule",
    "futex_do_wait",
    "futex_wait_queue",
    "futex_wait_queue_me",
    "__futex_wait",
    "futex_wait",
    "do_futex",
    "__x64_sys_futex",
    "x64_sys_call",
    "do_syscall_64",
    "entry_SYSCALL_64_after_hwframe",
];

/// The program's own functions of a stack, without those that take a lock: everybody knows that.
pub fn callers(stack: u32, stacks: &Stacks) -> impl Iterator<Item = &Code> {
    stacks.callers_of_locks(stack)
}

/// Where a link waits: its program's own functions, innermost first, or the kernel's where those are not known.
fn places(link: &Link, stacks: &Stacks) -> Vec<String> {
    let own: Vec<String> = callers(link.code, stacks).map(Code::label).collect();
    if !own.is_empty() {
        return own;
    }
    let kernel = stacks.frames(link.stack).map(Code::label);
    kernel.filter(|name| !EVERYWHERE.contains(&name.as_str())).collect()
}

/// The program's own functions with which somebody usually waits, as words; empty = unknown.
pub fn called_from(walk: &Walk, who: &Who, stacks: &Stacks) -> String {
    from(callers(walk.code(who), stacks).map(Code::label))
}

/// Functions, innermost first, as words: `, called from debit <- transfer`; empty = there are none.
pub fn from(functions: impl IntoIterator<Item = String>) -> String {
    let own: Vec<String> = functions.into_iter().take(3).map(|name| short(&name)).collect();
    if own.is_empty() { String::new() } else { format!(", called from {}", own.join(" <- ")) }
}

/// One wait of a chain.
pub fn wait(link: &Link, stacks: &Stacks) -> verdict::Link {
    verdict::Link {
        who: link.who.name(),
        waits_on: link.who.call_words(),
        seconds: link.ns / 1e9,
        stack: places(link, stacks),
    }
}
