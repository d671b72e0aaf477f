// SPDX-License-Identifier: Apache-2.0
//! Before and after: two recordings, or two parts of one, and what differs between them. A pure function.
//!
//! **What an interval says.** Each difference has one, by a bootstrap over time slices (`resample`). Slices
//! that follow each other are alike, so they are drawn in blocks as long as the recording's own
//! autocorrelation reaches. Two runs of the same thing differ by more than their slices show (memory lies
//! elsewhere, connections meet other threads), and one run a side cannot tell by how much: a floor is added
//! that was measured on many runs of one service (`floor`). It is printed, and it is left away for two parts of one run.
//!
//! **The machine.** On shared hardware the same work costs more at some times than at others, in bursts and for
//! minutes, and neither load nor steal shows it. So each capture probes the machine with a fixed piece of
//! work. CPU time *as measured* gets an interval that allows for the probe's change; CPU time *at equal machine speed*
//! takes the quiet quarter of the slices and corrects for the probe. Each is a question of its own.
//!
//! **Why simultaneous intervals.** Dozens of numbers are compared at once, and one of them always stands out.
//! The intervals of a family are widened until *all* of them hold at once with the promised chance, by
//! the quantile of the largest standardised deviation among the replicates. Unlike Holm's procedure this
//! gives intervals, not only decisions; unlike Bonferroni's it does not pay twice for numbers that move
//! together, as CPU time and its user part do. The error is shared out over three families, so that a
//! hundred functions do not hide the one number that was asked for: CPU time alone, the other headline numbers, the many
//! that explain them.
//!
//! **Equal load.** Costs are per operation where one is known (`operations`), and the load itself is one of
//! the headline numbers: where it changed, it is said.

mod answer;
mod floor;
mod functions;
mod inventory;
mod measures;
mod noise;
mod operations;
mod resample;
mod slices;

use recording::Recording;

use self::floor::{BETWEEN_RUNS, Floors, within_a_run};
use self::functions::Names;
use self::measures::{Asked, Columns};
use self::resample::{Answer, FEWEST_SLICES, Question, Series};
use self::result::{Difference, Function, Measure, Side, Statistics};
use self::slices::Slices;
use crate::answer::{Gap, Host, SCHEMA, TOOL, Target, Unseen, WORTH_A_WORD, Window};
use crate::case::Case;
use crate::facts::quality::Quality;
use crate::statistics::ratio;

pub use crate::answer::comparison as result;
pub use operations::Per;
pub use result::{Comparison, Refused};

/// Chance that the interval of CPU time misses the truth. The three together are 5 %.
const ALPHA_CPU: f64 = 0.03;
/// Chance that any interval of the other headline numbers does.
const ALPHA_HEADLINE: f64 = 0.008;
/// Chance that any of the many does.
const ALPHA_DETAILS: f64 = 0.012;
/// Smaller changes of the machine's speed are not worth a word.
const SPEED_WORTH_A_WORD: f64 = 0.02;
/// Nine of ten: how often a difference of the size that is called detectable is found.
const POWER_ERRORS: f64 = 1.28;

/// One side: a recording and how it is called.
pub struct Named<'r> {
    /// The recording, or a part of one.
    pub recording: &'r Recording,
    /// For people, `before/` or `run/ 0s..5s`.
    pub label: String,
}

/// Compares `a`, the side before, with `b`, the side after.
///
/// # Errors
/// A side has no ledger of a service's threads, or is too short.
pub fn compare(a: &Named<'_>, b: &Named<'_>, per: Per) -> Result<Comparison, Refused> {
    let cases = [Case::new(a.recording), Case::new(b.recording)];
    let names = Names::of([&cases[0], &cases[1]]).map_err(|gap| Refused(gap.why))?;
    let sides = [slices(a, &cases[0], &names)?, slices(b, &cases[1], &names)?];
    let chosen = operations::choose(per, &sides[0], &sides[1]);
    let one_run = is_one_run(a.recording, b.recording);
    let columns = Columns::of(&sides[0], &sides[1], chosen.column.as_deref(), &chosen.operation.name);
    let numbers = numbers(&columns, &sides, if one_run { within_a_run() } else { BETWEEN_RUNS }, &names);
    let mut comparison = Comparison {
        schema: SCHEMA,
        tool: TOOL.to_string(),
        a: side(a, &sides[0]),
        b: side(b, &sides[1]),
        operation: chosen.operation,
        measures: numbers.measures,
        functions: numbers.functions,
        statistics: numbers.statistics,
        inventory: inventory::differences(a.recording, b.recording),
        gaps: gaps(a, b, &cases),
        ..Comparison::default()
    };
    comparison.warnings = warnings(&comparison, &cases, one_run);
    comparison.verdict = answer::verdict(&comparison).into();
    comparison.load = answer::load(&comparison);
    comparison.besides = answer::besides(&comparison);
    comparison.headline = answer::headline(&comparison);
    Ok(comparison)
}

/// Compares a recording with the one that it is to be judged against.
///
/// # Errors
/// As [`compare`].
pub fn against(baseline: &Named<'_>, recording: &Recording, per: Per) -> Result<Comparison, Refused> {
    compare(baseline, &Named { recording, label: "this recording".into() }, per)
}

/// Slices of one side over those of the other, at most, if they are alike.
const ALIKE: f64 = 1.5;

/// What the slices say.
struct Numbers {
    measures: Vec<Measure>,
    functions: Vec<Function>,
    statistics: Statistics,
}

fn numbers(columns: &Columns<'_>, sides: &[Slices; 2], floors: Floors, names: &Names) -> Numbers {
    let rows = [sides[0].rows(&columns.names), sides[1].rows(&columns.names)];
    let (apart, usual) = speeds(columns, &rows);
    let between_runs = floors.equal_speed;
    let floors = floors.at_speeds_apart(apart);
    // A quantile of slices says nothing of slices of another length.
    let grain = |side: &Slices| ratio(side.sum("seconds").unwrap_or(0.0), side.count as f64);
    let [a, b] = [grain(&sides[0]), grain(&sides[1])];
    let are_alike = a.max(b) <= ALIKE * a.min(b);
    let (first, cpu_questions) = parted(measures::cpu(columns, &floors, usual, are_alike));
    let (few, questions) = parted(measures::headline(columns, &floors));
    let blocks = [0, 1].map(|side| block(&rows[side], &cpu_questions));
    let series = |side: usize| Series { slices: &rows[side], block: blocks[side] };
    let ask = |questions: &[Question], alpha| resample::ask(&series(0), &series(1), questions, alpha);
    let (cpu, headline) = (ask(&cpu_questions, ALPHA_CPU), ask(&questions, ALPHA_HEADLINE));
    let (many, mut questions) = parted(measures::details(columns, &floors, [&sides[0], &sides[1]]));
    questions.extend(measures::functions(columns, &floors, names));
    let details = ask(&questions, ALPHA_DETAILS);
    let mut measures = filled(first, &cpu.answers);
    measures.extend(filled(few, &headline.answers));
    let functions = functions_of(names, &details.answers[many.len()..]);
    measures.extend(filled(many, &details.answers));
    let statistics = Statistics {
        confidence: 1.0 - ALPHA_CPU - ALPHA_HEADLINE - ALPHA_DETAILS,
        blocks,
        critical_cpu: cpu.critical,
        critical_headline: headline.critical,
        critical_details: details.critical,
        between_runs,
        machine_slower: apart.exp_m1(),
    };
    Numbers { measures, functions, statistics }
}

/// How far apart the machine's speeds were (the logarithm of the ratio of the probe's times), and the time between both.
fn speeds(columns: &Columns<'_>, rows: &[Vec<Vec<f64>>; 2]) -> (f64, f64) {
    let speed = |side: usize| measures::speed(columns).and_then(|speed| speed(&resample::total(&rows[side])));
    match (speed(0), speed(1)) {
        (Some(a), Some(b)) if a > 0.0 && b > 0.0 => ((b / a).ln(), (a * b).sqrt()),
        _ => (0.0, 1.0),
    }
}

fn slices(side: &Named<'_>, case: &Case<'_>, names: &Names) -> Result<Slices, Refused> {
    let label = &side.label;
    if side.recording.meta.kind == "host" {
        return Err(Refused(format!(
            "`{label}` is a look at a whole host, not at a service; record both sides with `wakewalk diagnose … --save`"
        )));
    }
    let slices = Slices::of(case, names).map_err(|gap| Refused(format!("`{label}`: {}", gap.why)))?;
    if slices.sum("cpu").is_none() {
        return Err(Refused(format!(
            "`{label}` has no thread ledger, without which there is nothing to compare; record it anew"
        )));
    }
    if slices.count < FEWEST_SLICES {
        return Err(Refused(format!(
            "`{label}` has {} time slices, and fewer than {FEWEST_SLICES} show no variance; compare {FEWEST_SLICES} s or more, better 20 s",
            slices.count
        )));
    }
    Ok(slices)
}

/// Two parts of one recording are of one run: nothing was started anew between them.
fn is_one_run(a: &Recording, b: &Recording) -> bool {
    a.meta.start_ns == b.meta.start_ns
        && a.meta.host.boot_id == b.meta.host.boot_id
        && a.meta.target.pids == b.meta.target.pids
}

/// Slices in a block, by the headline numbers of each slice.
fn block(rows: &[Vec<f64>], questions: &[Question]) -> usize {
    let series = |q: &Question| rows.iter().map(|row| (q.value)(row)).collect::<Option<Vec<f64>>>();
    let series: Vec<Vec<f64>> = questions.iter().filter_map(series).collect();
    resample::block_length(&series, rows.len())
}

fn parted(asked: Vec<Asked>) -> (Vec<Measure>, Vec<Question>) {
    asked.into_iter().map(|a| (a.measure, a.question)).unzip()
}

/// Measures with their values; what neither side has is left out.
fn filled(measures: Vec<Measure>, answers: &[Option<Answer>]) -> Vec<Measure> {
    let fill = |(mut measure, answer): (Measure, &Option<Answer>)| {
        measure.difference = difference(answer.as_ref()?);
        (measure.difference.a != 0.0 || measure.difference.b != 0.0).then_some(measure)
    };
    measures.into_iter().zip(answers).filter_map(fill).collect()
}

/// From the scale of the comparison to that of the values.
fn difference(answer: &Answer) -> Difference {
    let to_values = |on_scale: f64| if answer.by_ratio { answer.a * on_scale.exp_m1() } else { on_scale };
    let changed = answer.half.is_some_and(|half| answer.difference.abs() > half);
    Difference {
        a: answer.a,
        b: answer.b,
        change: (answer.a > 0.0).then(|| answer.b / answer.a - 1.0),
        // No cost, count or share is below nothing.
        low: answer.half.map(|half| to_values(answer.difference - half).max(-answer.a)),
        high: answer.half.map(|half| to_values(answer.difference + half)),
        changed,
        detectable: answer.half.map(|half| to_values(half + POWER_ERRORS * answer.error)),
    }
}

/// Functions by how much they changed, those that certainly did first.
fn functions_of(names: &Names, answers: &[Option<Answer>]) -> Vec<Function> {
    let both = |((key, _), pair): ((&functions::Key, usize), &[Option<Answer>])| {
        let [own, inclusive] = [0, 1].map(|i| pair[i].as_ref().map(difference).unwrap_or_default());
        Function { name: key.name.clone(), module: key.module.clone(), own, inclusive }
    };
    let mut all: Vec<Function> = names.all().zip(answers.chunks_exact(2)).map(both).collect();
    let size = |f: &Function| (f.own.b - f.own.a).abs();
    all.sort_by(|x, y| (y.own.changed.cmp(&x.own.changed)).then(size(y).total_cmp(&size(x))).then(x.name.cmp(&y.name)));
    all
}

fn side(side: &Named<'_>, slices: &Slices) -> Side {
    let sum = |name| slices.sum(name).unwrap_or(0.0);
    Side {
        label: side.label.clone(),
        host: Host::of(side.recording),
        target: Target::of(side.recording),
        window: Window::of(side.recording),
        slices: slices.count,
        cores: ratio(sum("cpu"), sum("seconds")),
    }
}

fn gaps(a: &Named<'_>, b: &Named<'_>, cases: &[Case<'_>; 2]) -> Vec<Gap> {
    let mut gaps = inventory::gaps(a.recording, b.recording);
    for (name, case) in ["A", "B"].iter().zip(cases) {
        if case.recording.rows::<recording::tables::Sample>().is_empty() {
            gaps.push(Gap::not_recorded(
                "profile",
                format!("side {name} has no on-CPU samples: user and kernel time and functions are not compared"),
            ));
        }
        if case.recording.rows::<recording::tables::CallWindow>().is_empty() {
            gaps.push(Gap::not_recorded(
                "calls",
                format!("side {name} counted no system calls: polls per useful event are not known; record with --calls always"),
            ));
        }
        let quality = case.fact::<Quality>().ok();
        gaps.extend(quality.filter(|q| q.worst_loss > WORTH_A_WORD).map(|q| {
            let why = format!("side {name} lost {} of {}", crate::wording::percent(q.worst_loss), q.worst_loss_of);
            Gap::new("loss", Unseen::Lost, why).of_share(q.worst_loss)
        }));
    }
    gaps
}

fn warnings(c: &Comparison, cases: &[Case<'_>; 2], one_run: bool) -> Vec<String> {
    let mut all = Vec::new();
    let changed = |id: &str| c.measures.iter().any(|m| m.id == id && m.difference.changed);
    if c.inventory.iter().filter(|s| s.counts).count() > 1 {
        all.push(
            "more than one thing was changed between the sides: change one at a time to know which of them did it"
                .into(),
        );
    }
    if changed("operations") {
        all.push(
            "the load changed: part of a cost is there at any load, so costs per operation fall as the load rises"
                .into(),
        );
    }
    if changed("cpus_others") || changed("cpus_stolen") {
        all.push(
            "others used the CPUs more on one side than on the other, which makes the same work cost more or less"
                .into(),
        );
    }
    if c.statistics.machine_slower.abs() > SPEED_WORTH_A_WORD {
        let slower = c.statistics.machine_slower;
        all.push(format!(
            "the machine itself was {:.1} % {} on side B, by a fixed piece of work: intervals allow for it",
            slower.abs() * 100.0,
            if slower > 0.0 { "slower" } else { "faster" }
        ));
    }
    if cases.iter().any(|case| case.seconds() < 10.0) {
        all.push("a side is shorter than 10 s: only large differences show; record 20 s a side".into());
    }
    all.push(match one_run {
        true => "both sides are parts of one run: a difference to another run of the same thing is not included".into(),
        false => format!(
            "one run a side: intervals assume that two runs of the same thing differ by {:.1} % (standard deviation) \
             beyond what their slices show, as measured on real services by `make bench-diff`",
            c.statistics.between_runs * 100.0
        ),
    });
    all
}

#[cfg(test)]
#[path = "comparison/tests.rs"]
mod tests;
