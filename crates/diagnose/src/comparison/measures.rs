// SPDX-License-Identifier: Apache-2.0
//! What is compared: a few headline numbers that the answer rests on, and many that explain it.
//!
//! Costs are per operation where one is known, else per second. Headline numbers are compared by their
//! ratio; the others by their difference, for many of them are 0 on a side.

use std::collections::BTreeMap;

use recording::counters::{Key, cgroup_cpu, pid};

use super::floor::{FOLLOWS_SPEED, Floors};
use super::functions::Names;
use super::resample::{Formula, Quantile, Question};
use super::result::Measure;
use super::slices::{COUNTERS, RESPONSE_TIME, RESPONSES, Slices, column};

/// System calls compared at most.
const CALLS: usize = 12;

/// A number to compare: how it is shown, and how it is asked.
pub(super) struct Asked {
    /// Without its values yet.
    pub measure: Measure,
    /// The question.
    pub question: Question,
}

/// Columns by name, for formulas.
pub(super) struct Columns<'n> {
    /// Names in the order of the columns.
    pub names: Vec<&'n str>,
    index: BTreeMap<&'n str, usize>,
    /// Column of operations, or of seconds.
    operation: usize,
    /// What costs are per, in words.
    per: String,
}

impl<'n> Columns<'n> {
    /// All columns of both sides.
    pub fn of(a: &'n Slices, b: &'n Slices, operation: Option<&str>, per: &str) -> Self {
        let mut names: Vec<&str> = a.names().chain(b.names()).collect();
        names.sort_unstable();
        names.dedup();
        let index: BTreeMap<&str, usize> = names.iter().enumerate().map(|(i, name)| (*name, i)).collect();
        let operation = operation.and_then(|o| index.get(o)).or(index.get("seconds")).copied().unwrap_or(0);
        Self { names, index, operation, per: per.to_string() }
    }

    /// Whether costs are per operation, not per second.
    pub fn has_operation(&self) -> bool {
        self.index.get("seconds") != Some(&self.operation)
    }

    fn at(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }

    /// `name` for each operation.
    fn each(&self, name: &str, scale: f64) -> Option<Formula> {
        Some(ratio(self.at(name)?, self.operation, scale))
    }
}

fn ratio(part: usize, whole: usize, scale: f64) -> Formula {
    Box::new(move |s| (s[whole] > 0.0).then(|| s[part] * scale / s[whole]))
}

/// How a number is shown.
fn measure(id: &str, label: &str, group: &str, unit: &str, per: &str) -> Measure {
    let [id, label, group, unit, per] = [id, label, group, unit, per].map(str::to_string);
    Measure { id, label, group, unit, per, ..Measure::default() }
}

/// CPU time, as measured and, where slices of both sides are as long, at equal speed of the machine.
pub(super) fn cpu(c: &Columns<'_>, floors: &Floors, usual_speed: f64, are_alike: bool) -> Vec<Asked> {
    let (unit, per) = if c.has_operation() { ("s", c.per.as_str()) } else { ("cores", "") };
    let question = |floor, quantile| {
        let value = c.each("cpu", 1.0)?;
        Some(Question { value, by_ratio: true, floor, least: 0.0, one_event: None, quantile })
    };
    let asked = |id: &str, label: &str, question: Option<Question>| {
        Some(Asked { measure: measure(id, label, "headline", unit, per), question: question? })
    };
    let measured = asked("cpu", "CPU time", question(floors.cpu, None));
    let equal = speed(c).filter(|_| are_alike).map(|speed| Quantile {
        at: QUIET,
        by: Box::new(move |s| speed(s).map(|speed| (speed / usual_speed).powf(FOLLOWS_SPEED))),
    });
    let label = "CPU time at equal machine speed";
    let equal = equal.and_then(|q| asked("cpu_at_equal_speed", label, question(floors.equal_speed, Some(q))));
    measured.into_iter().chain(equal).collect()
}

/// Slices up to this quantile are taken for undisturbed: what neighbours on the machine do to a service comes in
/// bursts and makes it dearer, never cheaper.
const QUIET: f64 = 0.25;

/// Time of the fixed piece of work that the machine is probed with, ns.
pub(super) fn speed(c: &Columns<'_>) -> Option<Formula> {
    Some(ratio(c.at("speed work_ns")?, c.at("speed works")?, 1.0))
}

/// The other few.
pub(super) fn headline(c: &Columns<'_>, floors: &Floors) -> Vec<Asked> {
    let (per, per_operation) = (c.per.as_str(), c.has_operation());
    let by_ratio = |measure, value: Option<Formula>, floor, one_event| {
        let question = Question { value: value?, by_ratio: true, floor, least: 0.0, one_event, quantile: None };
        Some(Asked { measure, question })
    };
    let unit = if per_operation { "s" } else { "cores" };
    let shown_per = if per_operation { per } else { "" };
    let mut all = vec![
        by_ratio(
            measure("user_cpu", "of it in user mode", "headline", unit, shown_per),
            split(c, "user samples"),
            floors.cpu,
            one_sample(c),
        ),
        by_ratio(
            measure("kernel_cpu", "of it in the kernel", "headline", unit, shown_per),
            split(c, "kernel samples"),
            floors.cpu,
            one_sample(c),
        ),
    ];
    if let (true, Some(seconds)) = (per_operation, c.at("seconds")) {
        let name = format!("{}s", c.per);
        let rate = Some(ratio(c.operation, seconds, 1.0));
        all.push(by_ratio(measure("operations", "load", "headline", &name, "second"), rate, floors.load, None));
    }
    if let (Some(time), Some(answers)) = (c.at(RESPONSE_TIME), c.at(RESPONSES)) {
        let shown = measure("response_time", "response time", "headline", "s", "");
        all.push(by_ratio(shown, Some(ratio(time, answers, 1.0)), floors.response, None));
    }
    if let (Some(polls), Some(useful)) = (c.at("polls"), c.at("useful calls")) {
        let shown = measure("polls_per_useful_event", "polls per useful event", "headline", "polls", "useful event");
        all.push(by_ratio(shown, Some(ratio(polls, useful, 1.0)), floors.calls, None));
    }
    all.into_iter().flatten().collect()
}

/// CPU time by mode: the exact total, split as the samples are.
fn split(c: &Columns<'_>, mode: &str) -> Option<Formula> {
    let (cpu, mode, all, operation) = (c.at("cpu")?, c.at(mode)?, c.at("samples")?, c.operation);
    Some(Box::new(move |s| (s[all] > 0.0 && s[operation] > 0.0).then(|| s[cpu] * s[mode] / s[all] / s[operation])))
}

/// What one sample stands for.
fn one_sample(c: &Columns<'_>) -> Option<Formula> {
    let (cpu, all, operation) = (c.at("cpu")?, c.at("samples")?, c.operation);
    Some(Box::new(move |s| (s[all] > 0.0 && s[operation] > 0.0).then(|| s[cpu] / s[all] / s[operation])))
}

/// The many, without functions.
pub(super) fn details(c: &Columns<'_>, floors: &Floors, sides: [&Slices; 2]) -> Vec<Asked> {
    let mut all = ledger(c, floors);
    all.extend(calls(c, floors, sides));
    all.extend(counters(c, floors, sides));
    all.extend(machine(c, floors));
    all
}

fn ledger(c: &Columns<'_>, floors: &Floors) -> Vec<Asked> {
    let lines = [
        ("run_queue", "runnable after a wakeup, no CPU"),
        ("preempted", "runnable after a preemption, no CPU"),
        ("throttled", "held by a quota"),
        ("blocked", "blocked, all threads"),
        ("interrupted", "interrupted"),
    ];
    let switches = [
        ("voluntary_switches", "switches because it blocked"),
        ("involuntary_switches", "switches because another ran"),
    ];
    let line = |(name, label): (&str, &str), unit: &str, floor: f64, least: f64| {
        let one_event = (unit != "s").then(|| one(c.operation, 1.0));
        let question = Question { value: c.each(name, 1.0)?, by_ratio: false, floor, least, one_event, quantile: None };
        Some(Asked { measure: measure(name, label, "ledger", unit, &c.per), question })
    };
    let lines = lines.into_iter().map(|l| line(l, "s", floors.waiting, 0.0));
    let switches = switches.into_iter().map(|l| line(l, "switches", floors.switches, 0.0));
    lines.chain(switches).flatten().collect()
}

/// What one event more adds to a number for each operation.
fn one(operation: usize, scale: f64) -> Formula {
    Box::new(move |s| (s[operation] > 0.0).then(|| scale / s[operation]))
}

/// System calls that windows counted on both sides, the most frequent ones.
fn calls(c: &Columns<'_>, floors: &Floors, sides: [&Slices; 2]) -> Vec<Asked> {
    let (Some(window), Some(seconds)) = (c.at("window seconds"), c.at("seconds")) else { return Vec::new() };
    if sides.iter().any(|s| s.sum("window seconds").unwrap_or(0.0) <= 0.0) {
        return Vec::new();
    }
    let most = |name: &str| sides.iter().map(|s| s.sum(name).unwrap_or(0.0)).fold(0.0, f64::max);
    let mut names: Vec<&str> = c.names.iter().copied().filter(|n| n.starts_with("call ")).collect();
    names.sort_by(|a, b| most(b).total_cmp(&most(a)).then(a.cmp(b)));
    names.truncate(CALLS);
    let call = |name: &str| {
        let (at, operation) = (c.at(name)?, c.operation);
        // Rates inside the windows over the rate of operations.
        let each = move |s: &[f64], count: f64| {
            (s[window] > 0.0 && s[operation] > 0.0).then(|| count / s[window] * s[seconds] / s[operation])
        };
        let question = Question {
            value: Box::new(move |s| each(s, s[at])),
            by_ratio: false,
            floor: floors.calls,
            least: 0.0,
            one_event: Some(Box::new(move |s| each(s, 1.0))),
            quantile: None,
        };
        let bare = name.trim_start_matches("call ");
        Some(Asked { measure: measure(&format!("calls_{bare}"), bare, "calls", "calls", &c.per), question })
    };
    names.into_iter().filter_map(call).collect()
}

/// Counters that both sides have: of one that a side could not read, nothing can be said.
fn counters(c: &Columns<'_>, floors: &Floors, sides: [&Slices; 2]) -> Vec<Asked> {
    let counter = |&(key, entity): &(Key, &str)| {
        let column = column(key, entity);
        let at = c.at(&column).filter(|_| sides.iter().all(|side| side.sum(&column).is_some()))?;
        // The operation itself is in the headline.
        if at == c.operation {
            return None;
        }
        let (unit, scale) = match key.name.rsplit_once('_') {
            Some((_, "ns")) => ("s", 1e-9),
            Some((_, "bytes")) => ("bytes", 1.0),
            _ => ("events", 1.0),
        };
        let one_event = (unit == "events").then(|| one(c.operation, scale));
        // A page, a segment: the grain in which bytes come.
        let one_event = if unit == "bytes" { Some(one(c.operation, 4096.0)) } else { one_event };
        let question = Question {
            value: ratio(at, c.operation, scale),
            by_ratio: false,
            floor: floors.counters,
            least: 0.0,
            one_event,
            quantile: None,
        };
        let label = column.trim_start_matches("proc/").trim_end_matches("_ns").replace('_', " ");
        // Those of the host, or of a network namespace, are of whoever else is there too.
        let group = if [pid::SOURCE, cgroup_cpu::SOURCE].contains(&key.source) { "counters" } else { "host" };
        Some(Asked { measure: measure(&column.replace([' ', '/'], "_"), &label, group, unit, &c.per), question })
    };
    COUNTERS.iter().filter_map(counter).collect()
}

/// The CPUs that the target may use, and who else used them.
fn machine(c: &Columns<'_>, floors: &Floors) -> Vec<Asked> {
    let (Some(all), Some(busy), Some(cpu)) = (c.at("machine all"), c.at("machine busy"), c.at("cpu")) else {
        return Vec::new();
    };
    let stolen = c.at("machine stolen").unwrap_or(all);
    let shares: [(&str, &str, Formula); 3] = [
        ("cpus_used", "the allowed CPUs, used", ratio(busy, all, 1.0)),
        (
            "cpus_others",
            "the allowed CPUs, used by others",
            Box::new(move |s| (s[all] > 0.0).then(|| (s[busy] - s[cpu] * 1e9).max(0.0) / s[all])),
        ),
        ("cpus_stolen", "the allowed CPUs, stolen", ratio(stolen, all, 1.0)),
    ];
    let asked = |(id, label, value): (&str, &str, Formula)| Asked {
        measure: measure(id, label, "machine", "share", ""),
        question: Question {
            value,
            by_ratio: false,
            floor: floors.cpu,
            least: floors.machine,
            one_event: None,
            quantile: None,
        },
    };
    let mut all: Vec<Asked> = shares.into_iter().map(asked).collect();
    all.extend(speed(c).map(|value| Asked {
        measure: measure("machine_probe", "a fixed piece of work", "machine", "s", ""),
        question: Question {
            value: Box::new(move |s| value(s).map(|ns| ns / 1e9)),
            by_ratio: true,
            floor: floors.load,
            least: 0.0,
            one_event: None,
            quantile: None,
        },
    }));
    all
}

/// Two questions for each function: its own work, then with all that it called.
pub(super) fn functions(c: &Columns<'_>, floors: &Floors, names: &Names) -> Vec<Question> {
    let ask = |column: String| {
        let value: Formula = match c.at(&column) {
            Some(_) => split(c, &column).unwrap_or_else(|| Box::new(|_| None)),
            None => Box::new(|_| Some(0.0)),
        };
        Question {
            value,
            by_ratio: false,
            floor: floors.function,
            least: 0.0,
            one_event: one_sample(c),
            quantile: None,
        }
    };
    names.all().flat_map(|(_, i)| [format!("self {i}"), format!("inclusive {i}")]).map(ask).collect()
}
