// SPDX-License-Identifier: Apache-2.0
//! What to do about a hot function. Spreading work over threads is good advice for work, and bad for what spins: for a
//! lock, a retry, or a loop that looks whether something is there, each further thread takes time from the one that is
//! waited for.

use std::collections::BTreeMap;

use crate::case::Case;
use crate::facts::limits::Limits;
use crate::facts::profile::{Function, Place, Profile};
use crate::facts::stacks::{Code, Stacks};
use crate::judgement::full::Full;
use crate::runtimes::{Part, hints, is_glue, spins};
use crate::statistics::share;
use crate::wording::{percent, short};

/// Of the function's samples, with a function on top that only looks: a loop around it, not a glance now and then.
const MOSTLY_LOOKS: f64 = 0.1;

/// Of the function's samples, in code of so many bytes: one small loop.
const TIGHT: f64 = 0.9;
const LOOP_BYTES: u64 = 64;

/// Of the function's samples, with one caller: whose work it is.
const MOSTLY_CALLS: f64 = 0.8;
const ALWAYS: f64 = 0.99;

/// Use of the allowed CPUs up to which there is room to spread work.
const ROOM: f64 = 0.9;

const CHEAPER: &str = "cheaper or call it less (algorithm, cache, work done once instead of for each request)";

/// What is said about a hot function besides its share.
pub(super) struct Advice {
    /// What its share of the CPU time is.
    pub is: &'static str,
    /// The next step, one line.
    pub briefly: String,
    /// What to do with it, behind `Make` and its name, or `Let` where it is to block.
    pub fully: String,
    /// What is known about it, a sentence; empty = nothing.
    pub known: String,
}

/// What to do about `top`, which fills `full`.
pub(super) fn advice(case: &Case, full: &Full, top: &Function) -> Advice {
    let name = short(&top.name);
    let shape = case.fact::<Profile>().ok().zip(case.fact::<Stacks>().ok()).map(|(p, s)| Shape::of(full, top, &p, &s));
    let shape = shape.unwrap_or_default();
    let hint = hints::named(&top.name, &top.module)
        .map_or(String::new(), |hint| format!(". {name} is {}; to see or to try: {}", hint.what, hint.look));
    let called = match &shape.caller {
        Some((caller, part)) if *part >= ALWAYS => format!("; {name} is called from {}", short(caller)),
        Some((caller, part)) => format!("; {name} is called from {} for {} of that", short(caller), percent(*part)),
        None => String::new(),
    };
    let known = format!("{called}{hint}");
    if let Some((is, briefly, fully)) = spins(top, &shape, &name) {
        return Advice { is, briefly, fully: fully.into(), known };
    }
    let room = case.fact::<Limits>().is_ok_and(|l| l.allowed_cpus.is_some_and(|used| used < ROOM));
    let (briefly, fully) = if let Some(interpreter) = full.interpreter(case) {
        (
            "make it cheaper, or call it less".into(),
            format!("{CHEAPER}, or spread its work over {}", interpreter.spread),
        )
    } else if shape.tight >= TIGHT {
        let worse = format!(
            "{CHEAPER}. {} of it is in one loop of under {LOOP_BYTES} bytes: if that waits for another thread (a spin lock, a \
             retry), let it block instead; more threads would make it worse",
            percent(shape.tight)
        );
        (format!("make {name} cheaper; if it waits for a thread, let it block"), worse)
    } else if full.thread().is_some() && room && !full.does_not_serve(case) {
        (
            format!("make {name} cheaper, call it less, or spread it"),
            format!("{CHEAPER}, or spread its work over more threads"),
        )
    } else {
        (format!("make {name} cheaper, or call it less"), CHEAPER.into())
    };
    Advice { is: "its own work", briefly, fully, known }
}

/// What it is, and what to do with it, in one line and in full, if it waits for another thread without giving its CPU away.
fn spins(top: &Function, shape: &Shape, name: &str) -> Option<(&'static str, String, &'static str)> {
    if top.part == Part::Lock {
        return Some((
            "spinning before a lock",
            "hold that lock for less time, or let threads block before it".into(),
            "block before the lock instead of spinning (a mutex, a futex), hold it for less time, or have fewer threads want it: \
             while its holder waits for a CPU the others burn theirs, and more threads or CPUs make that worse",
        ));
    }
    (shape.looks >= MOSTLY_LOOKS).then(|| {
        (
            "a loop that looks and never waits",
            format!("let {name} block until there is something to do"),
            "block until there is something, instead of looking again and again (a channel's receive, a condition variable, a \
             futex): it spins, and more threads or CPUs make that worse",
        )
    })
}

/// How the samples of a function lie.
#[derive(Default)]
struct Shape {
    /// Share with a function that only looks.
    looks: f64,
    /// Share in one small loop.
    tight: f64,
    /// The named function that calls it, and in what share of its samples, if that is most of them.
    caller: Option<(String, f64)>,
}

impl Shape {
    fn of(full: &Full, top: &Function, profile: &Profile, stacks: &Stacks) -> Self {
        let inside = |p: &Place| full.threads.is_empty() || full.threads.contains(&(p.pid, p.tid));
        let (mut all, mut looks, mut offsets, mut callers) = (0, 0, Vec::new(), BTreeMap::new());
        for (place, &weight) in profile.places.iter().filter(|(p, _)| !p.kernel && inside(p)) {
            let Some((code, _)) = stacks.credited(place.stack) else { continue };
            if profile.name(code) != top.name || code.file() != top.module {
                continue;
            }
            all += weight;
            let mut inner = stacks.user(place.stack).take_while(|c| *c != code);
            looks += if spins::looks(&code.symbol) || inner.any(|c| spins::looks(&c.symbol)) { weight } else { 0 };
            caller(stacks, place.stack, code).into_iter().for_each(|name| *callers.entry(name).or_default() += weight);
            offsets.extend(stacks.user(place.stack).next().filter(|c| c.offset > 0).map(|c| (c.offset, weight)));
        }
        offsets.sort_unstable();
        let part = |weight: u64| share(weight as f64, all as f64);
        let most = callers.into_iter().max_by_key(|(_, weight)| *weight);
        Self {
            looks: part(looks),
            tight: part(heaviest(&offsets)),
            caller: most
                .map(|(name, weight)| (name.to_string(), part(weight)))
                .filter(|(_, part)| *part >= MOSTLY_CALLS),
        }
    }
}

/// The next function of the program's own up the stack, if it has a name. The machine that runs compiled code is none.
fn caller<'s>(stacks: &'s Stacks, stack: u32, of: &Code) -> Option<&'s str> {
    let above = stacks.user(stack).skip_while(|code| *code != of);
    let own = |code: &&Code| code.part == Part::Own && (&code.symbol, &code.module) != (&of.symbol, &of.module);
    let next = above.skip(1).find(own).filter(|code| code.is_jit() || !of.is_jit());
    next.map(|code| code.symbol.as_str()).filter(|name| !name.is_empty() && !is_glue(name))
}

/// The most samples in any stretch of [`LOOP_BYTES`] bytes.
fn heaviest(offsets: &[(u64, u64)]) -> u64 {
    let (mut first, mut sum, mut most) = (0, 0, 0);
    for &(offset, weight) in offsets {
        sum += weight;
        while offset - offsets[first].0 >= LOOP_BYTES {
            sum -= offsets[first].1;
            first += 1;
        }
        most = most.max(sum);
    }
    most
}
