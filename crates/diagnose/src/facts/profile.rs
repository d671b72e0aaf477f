// SPDX-License-Identifier: Apache-2.0
//! The on-CPU profile: where the samples of the target's threads were, function by function.
//!
//! Three numbers a function: *own* samples (it was the leaf), *credited* ones (own, plus those of
//! helpers that worked for it, see [`super::stacks`]) and *inclusive* ones (it was on the stack).
//! Only user-mode samples count as own: time in the kernel belongs to the system call.
//! Unnamed code of a module is not one function: samples are grouped into stretches about the size of a
//! large function (see [`stretches`]), so that a stripped program with a thousand functions, or a
//! runtime that compiled as many, does not look like a program with one.

mod stretches;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use recording::tables;

use super::stacks::Stacks;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::runtimes::code::Code;
use crate::runtimes::{Part, is_glue};
use crate::statistics::{Weights, share};
use stretches::Stretches;

/// Samples of one thread with the same place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// In kernel mode.
    pub kernel: bool,
    /// System call, -1 = none.
    pub syscall: i32,
    /// Stack id.
    pub stack: u32,
}

impl Place {
    /// Where a sample was.
    pub fn of(row: &tables::Sample) -> Self {
        Place { pid: row.pid, tid: row.tid, kernel: row.kernel, syscall: row.syscall, stack: row.stack }
    }
}

/// Samples of one thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadSamples {
    /// Command name.
    pub comm: String,
    /// All samples.
    pub samples: u64,
    /// Of these in kernel mode.
    pub kernel: u64,
}

impl ThreadSamples {
    /// Share of user mode.
    pub fn user_share(&self) -> f64 {
        share((self.samples - self.kernel.min(self.samples)) as f64, self.samples as f64)
    }
}

/// A function, or a stretch of unnamed code.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Name for people.
    pub name: String,
    /// File name of the module.
    pub module: String,
    /// False for a stretch of unnamed code.
    pub named: bool,
    /// Compiled at run time.
    pub jit: bool,
    /// True for unnamed code of a binary that could not be put in a stretch: many functions.
    pub scattered: bool,
    /// What part it plays.
    pub part: Part,
    /// Samples in which it was the leaf, in user mode.
    pub own: u64,
    /// Own samples and those of helpers that worked for it.
    pub credited: u64,
    /// Samples in which it was anywhere on the stack.
    pub inclusive: u64,
    /// Samples in which no other function of the program's own had called it: a thread's first one, a loop.
    pub outermost: u64,
}

/// The profile of the target.
pub struct Profile {
    /// Samples a second for each CPU; 0 = unknown.
    pub hz: u32,
    /// All samples of the target.
    pub total: ThreadSamples,
    /// How much they tell: some rows stand for several samples.
    pub weights: Weights,
    /// Samples whose leaf function has no name.
    pub unnamed_leaf: u64,
    /// Samples whose stack has no named function at all.
    pub unnamed: u64,
    /// Samples whose user stack did not reach the thread's first function.
    pub broken: u64,
    /// User-mode samples credited to the program's own code without a name.
    pub unnamed_own: u64,
    /// Of these, to code that was compiled at run time.
    pub unnamed_jit: u64,
    /// By thread.
    pub threads: BTreeMap<(u32, u32), ThreadSamples>,
    /// Samples by place: what flame graphs and rules are made from.
    pub places: BTreeMap<Place, u64>,
    stretches: Stretches,
    /// Command name of the target.
    comm: String,
}

impl Fact for Profile {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let rows = case.recording.rows::<tables::Sample>();
        if rows.is_empty() {
            return Err(Gap::not_recorded(
                "sample",
                "the recording has no on-CPU samples: the sampler did not run, or nothing ran",
            ));
        }
        let stacks = case.fact::<Stacks>()?;
        let mut profile = Profile {
            hz: case.recording.meta.target.sample_hz,
            total: ThreadSamples::default(),
            weights: Weights::default(),
            unnamed_leaf: 0,
            unnamed: 0,
            broken: 0,
            unnamed_own: 0,
            unnamed_jit: 0,
            threads: BTreeMap::new(),
            places: BTreeMap::new(),
            stretches: Stretches::default(),
            comm: case.recording.meta.target.comm.clone(),
        };
        for row in rows {
            profile.add(row, &stacks);
        }
        profile.stretches = Stretches::of(&profile.places, &stacks);
        Ok(profile)
    }
}

impl Profile {
    fn add(&mut self, row: &tables::Sample, stacks: &Stacks) {
        let weight = u64::from(row.weight.max(1));
        self.weights.add(weight as f64);
        let thread = self.threads.entry((row.pid, row.tid)).or_default();
        thread.comm.clone_from(&row.comm);
        for counts in [thread, &mut self.total] {
            counts.samples += weight;
            counts.kernel += if row.kernel { weight } else { 0 };
        }
        let leaf = stacks.frames(row.stack).next();
        self.unnamed_leaf += if leaf.is_none_or(|l| l.symbol.is_empty()) { weight } else { 0 };
        self.unnamed += if stacks.frames(row.stack).all(|c| c.symbol.is_empty()) { weight } else { 0 };
        self.broken += if stacks.is_complete(row.stack) { 0 } else { weight };
        let own = |(code, part): (_, Part)| Some(code).filter(|c: &&Code| part == Part::Own && c.symbol.is_empty());
        // What has no module either is nobody's: a process that was gone.
        let own = stacks.credited(row.stack).and_then(own).filter(|c| !row.kernel && !c.module.is_empty());
        self.unnamed_own += if own.is_some() { weight } else { 0 };
        self.unnamed_jit += if own.is_some_and(Code::is_jit) { weight } else { 0 };
        *self.places.entry(Place::of(row)).or_default() += weight;
    }

    /// Functions of the places that `only` lets through, by credited samples, most first.
    pub fn functions(&self, stacks: &Stacks, only: impl Fn(&Place) -> bool) -> Vec<Function> {
        let places = self.places.iter().map(|(place, weight)| (place, *weight));
        self.functions_of(stacks, places.filter(|(place, _)| only(place)))
    }

    /// The same of places with so many samples each.
    pub fn functions_of<'a>(&self, stacks: &Stacks, places: impl Iterator<Item = (&'a Place, u64)>) -> Vec<Function> {
        let mut all = Functions { profile: self, at: HashMap::new(), by_name: BTreeMap::new(), out: Vec::new() };
        for (place, weight) in places {
            let (mut seen, mut outermost) = (BTreeSet::new(), None);
            for (depth, code) in stacks.user(place.stack).enumerate() {
                let at = all.of(code, code.part);
                all.out[at].own += if depth == 0 && !place.kernel { weight } else { 0 };
                all.out[at].inclusive += if seen.insert(at) { weight } else { 0 };
                if code.part == Part::Own && !is_glue(&code.symbol) {
                    outermost = Some(at);
                }
            }
            if let Some(at) = outermost.filter(|_| stacks.is_complete(place.stack)) {
                all.out[at].outermost += weight;
            }
            if let (false, Some((code, part))) = (place.kernel, stacks.credited(place.stack)) {
                let at = all.of(code, part);
                all.out[at].credited += weight;
            }
        }
        let mut out = all.out;
        out.sort_by(|a, b| {
            let by_samples = b.credited.cmp(&a.credited).then(b.inclusive.cmp(&a.inclusive));
            by_samples.then_with(|| (&a.name, &a.module).cmp(&(&b.name, &b.module)))
        });
        out
    }

    /// What to call the function of a frame: where it has no name, by the stretch that it is in.
    pub fn name(&self, code: &Code) -> String {
        match self.stretches.find(code) {
            Some((from, to)) if code.is_jit() => {
                let of = if self.comm.is_empty() { "the target" } else { &self.comm };
                format!("unnamed JIT-compiled function of {of} (at {from:#x}, {} bytes)", to - from + 1)
            }
            Some((from, to)) => format!("unnamed code in {} (+{from:#x}, {} bytes)", code.file(), to - from + 1),
            None => code.label(),
        }
    }

    /// Empty entry of a frame's function.
    fn function(&self, code: &Code, name: String, part: Part) -> Function {
        Function {
            name,
            module: code.file().to_string(),
            named: !code.symbol.is_empty(),
            jit: code.is_jit(),
            scattered: code.symbol.is_empty() && self.stretches.find(code).is_none(),
            part,
            own: 0,
            credited: 0,
            inclusive: 0,
            outermost: 0,
        }
    }
}

/// Functions as they are met. A frame is on many stacks, and its name is made once.
struct Functions<'p, 'c> {
    profile: &'p Profile,
    at: HashMap<*const Code, usize>,
    by_name: BTreeMap<(&'c str, String), usize>,
    out: Vec<Function>,
}

impl<'c> Functions<'_, 'c> {
    /// Where the function of a frame is in `out`.
    fn of(&mut self, code: &'c Code, part: Part) -> usize {
        if let Some(at) = self.at.get(&std::ptr::from_ref(code)) {
            return *at;
        }
        let name = self.profile.name(code);
        let at = *self.by_name.entry((&code.module, name.clone())).or_insert(self.out.len());
        if at == self.out.len() {
            self.out.push(self.profile.function(code, name, part));
        }
        self.at.insert(code, at);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    fn functions(text: &str) -> Vec<(String, u64, u64, u64)> {
        let recording = parse(text).unwrap();
        let case = Case::new(&recording);
        let stacks = case.fact::<Stacks>().unwrap();
        let profile = case.fact::<Profile>().unwrap();
        profile.functions(&stacks, |_| true).into_iter().map(|f| (f.name, f.own, f.credited, f.inclusive)).collect()
    }

    #[test]
    fn own_credited_inclusive() {
        let found = functions(
            "frame id=1 symbol=memmove module=libc.so.6 kind=native
             frame id=2 symbol=copy module=svc kind=native
             frame id=3 symbol=main module=svc kind=native
             frame id=4 symbol=tcp_sendmsg module=kernel kind=kernel
             stack id=1 frames=[1,2,3] complete=true
             stack id=2 frames=[4,3] complete=true
             stack id=3 frames=[3,3] complete=true
             sample pid=1 tid=1 stack=1 weight=6
             sample pid=1 tid=1 stack=2 weight=3 kernel=true syscall=44
             sample pid=1 tid=1 stack=3",
        );
        assert_eq!(found, [("copy".into(), 0, 6, 6), ("main".into(), 1, 1, 10), ("memmove".into(), 6, 0, 6)]);
    }

    #[test]
    fn unnamed_code_is_split_by_address() {
        let mut text = String::new();
        for i in 0..10 {
            // Half of the samples within 1 KiB, half spread over a megabyte.
            let offset = if i < 5 { 0x4000 + i * 200 } else { 0x10000 + i * 100_000 };
            text += &format!("frame id={i} module=nginx kind=native offset={offset}\nstack id={i} frames=[{i}]\n");
            text += &format!("sample pid=1 tid=1 stack={i}\n");
        }
        let found = functions(&text);
        assert_eq!((found[0].0.as_str(), found[0].2), ("unnamed code in nginx (+0x4000, 801 bytes)", 5));
        assert!(found[1..].iter().all(|f| f.2 == 1), "{found:?}");
    }

    #[test]
    fn unknown_offsets_are_never_one_function() {
        let recording =
            parse("frame id=1 module=nginx\nstack id=1 frames=[1]\nsample stack=1 weight=9\nsample stack=5").unwrap();
        let case = Case::new(&recording);
        let (stacks, profile) = (case.fact::<Stacks>().unwrap(), case.fact::<Profile>().unwrap());
        assert!(profile.functions(&stacks, |_| true)[0].scattered);
        assert_eq!((profile.unnamed, profile.unnamed_leaf, profile.broken), (10, 10, 10));
    }
}
