// SPDX-License-Identifier: Apache-2.0
//! The steps of one request in words, with stacks.

use diagnose::facts::stacks::Code;
use diagnose::walk::chains::{Chain, Link};
use diagnose::walk::paths::{Exemplar, Part, Step, What};
use recording::tables::Sample;

use crate::numbers;
use crate::section::pictures::TimelineStep;

use super::{Teller, hue};

/// Steps of a request that are told one by one, the longest; the others are added up.
const MOST_STEPS: usize = 20;

/// Of its time: shorter ones are added up too.
const LEAST_STEP: f64 = 0.01;

/// Parts of a step that are told: what is less than this share of it is not.
const LEAST_PART: f64 = 0.1;

/// Stacks of a step.
const MOST_STACKS: usize = 3;

/// Functions of a stack, from the innermost.
const MOST_FRAMES: usize = 12;

impl Teller<'_, '_> {
    /// From the arrival to the answer.
    pub(super) fn steps(&self, one: &Exemplar, acknowledged: Option<String>) -> Vec<TimelineStep> {
        let mut told: Vec<&Step> = one.steps.iter().collect();
        told.sort_by(|a, b| b.ns().total_cmp(&a.ns()));
        let long = told.partition_point(|step| step.ns() >= one.answered_ns * LEAST_STEP).min(MOST_STEPS);
        let short = told.split_off(long);
        let rest: f64 = short.iter().map(|step| step.ns()).sum();
        told.sort_by(|a, b| a.from_ns.total_cmp(&b.from_ns).then(b.until_ns.total_cmp(&a.until_ns)));
        let mut rows = vec![moment("0 s".to_owned(), "it arrives".to_owned())];
        let read = after(one.read_ns);
        let reads = moment(read, format!("{} reads it", self.name(one, one.began_tid)));
        let (before, since): (Vec<&Step>, Vec<&Step>) = told.into_iter().partition(|step| step.from_ns < one.read_ns);
        rows.extend(before.into_iter().map(|step| self.step(step, one)));
        rows.push(reads);
        rows.extend(since.into_iter().map(|step| self.step(step, one)));
        if !short.is_empty() {
            let (length, what) = (numbers::seconds(rest / 1e9), format!("shorter steps in between: {}", short.len()));
            rows.push(TimelineStep { length, what, ..TimelineStep::default() });
        }
        rows.push(moment(after(one.answered_ns), format!("{} writes the answer", self.name(one, one.ended_tid))));
        let sent = "it is sent and acknowledged: single answers are not followed there";
        rows.extend(acknowledged.map(|words| moment("then".to_owned(), format!("{sent}; on average {words}"))));
        rows
    }

    /// A thread of the request's by its name, as its steps have it.
    fn name(&self, one: &Exemplar, tid: u32) -> String {
        let mut parts = one.steps.iter().filter(|step| step.tid == tid).flat_map(|step| &step.parts);
        let name = parts.next().map(Part::who);
        name.map_or_else(|| format!("thread {tid}"), |name| format!("{name} (thread {tid})"))
    }

    fn step(&self, step: &Step, one: &Exemplar) -> TimelineStep {
        let whole = step.ns();
        let told: Vec<&Part> = step.parts.iter().filter(|part| part.ns >= whole * LEAST_PART).collect();
        let one_part = step.parts.len() == 1;
        let words = |part: &&Part| match one_part {
            true => part.words(),
            false => format!("{} ({})", part.words(), numbers::seconds(part.ns / 1e9)),
        };
        let what: Vec<String> = told.iter().map(words).collect();
        let mut stacks: Vec<(String, Vec<String>)> = Vec::new();
        for stack in told.iter().flat_map(|part| self.stacks(part, step, one)) {
            if !stacks.contains(&stack) && stacks.len() < MOST_STACKS {
                stacks.push(stack);
            }
        }
        TimelineStep {
            at: after(step.from_ns),
            length: numbers::seconds(whole / 1e9),
            what: what.join("; "),
            hue: step.parts.first().map(hue),
            stacks,
        }
    }

    fn stacks(&self, part: &Part, step: &Step, one: &Exemplar) -> Vec<(String, Vec<String>)> {
        match &part.what {
            What::Waits(chain) => self.of_chain(chain),
            What::Awake { .. } => self.sampled(step, one).into_iter().collect(),
            What::Inside { .. } | What::Asking { .. } => Vec::new(),
        }
    }

    /// Where each on the way waits, and what the last one did.
    fn of_chain(&self, chain: &Chain) -> Vec<(String, Vec<String>)> {
        let of_link = |link: &Link| {
            let kernel = self.stacks.frames(link.stack).filter(|code| code.is_kernel());
            let frames = frames(kernel.chain(self.stacks.user(link.code)));
            (format!("{} in {}", link.who.name(), link.who.call_words()), frames)
        };
        let last = &chain.links[chain.links.len() - 1].who;
        let whose = if chain.end.name().is_empty() { last.name() } else { chain.end.name() };
        let answers = (format!("{whose}, with its answer"), frames(self.stacks.user(chain.answer)));
        let all = chain.links.iter().map(of_link).chain([answers]);
        all.filter(|(_, frames)| !frames.is_empty()).collect()
    }

    /// The sample that fell into it, of several the last.
    fn sampled(&self, step: &Step, one: &Exemplar) -> Option<(String, Vec<String>)> {
        let (from, until) = (one.began_ns + step.from_ns, one.began_ns + step.until_ns);
        let within = |row: &&Sample| row.tid == step.tid && (row.t_ns as f64) >= from && (row.t_ns as f64) <= until;
        let sample = self.case.recording.rows::<Sample>().iter().rev().find(within)?;
        let frames = frames(self.stacks.frames(sample.stack));
        let at = after(sample.t_ns as f64 - one.began_ns);
        (!frames.is_empty()).then(|| (format!("on a CPU at {at}"), frames))
    }
}

fn moment(at: String, what: String) -> TimelineStep {
    TimelineStep { at, what, ..TimelineStep::default() }
}

fn after(ns: f64) -> String {
    numbers::seconds(ns.max(0.0) / 1e9)
}

/// The innermost functions of a stack, and how many more there are.
fn frames<'c>(codes: impl Iterator<Item = &'c Code>) -> Vec<String> {
    let mut labels: Vec<String> = codes.map(Code::label).collect();
    let more = labels.len().saturating_sub(MOST_FRAMES);
    labels.truncate(MOST_FRAMES);
    labels.extend((more > 0).then(|| format!("and {more} more")));
    labels
}
