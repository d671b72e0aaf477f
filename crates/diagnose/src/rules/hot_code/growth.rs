// SPDX-License-Identifier: Apache-2.0
//! One function's own work grew against the baseline: then it is the reason for the rise, whether or not
//! a resource is full of it.

use super::words::not_its_own;
use super::{MIN_SHARE, RULE};
use crate::answer::comparison::{Comparison, Difference, Function};
use crate::case::Case;
use crate::rules::{Statement, evidence};
use crate::runtimes::{self, Part};
use crate::statistics::share;
use crate::verdict::{Evidence, Explains, Finding, Subject};
use crate::wording::{percent, short};

/// A finding, or why there is none; nothing without a baseline.
pub(super) fn grown(case: &Case) -> Option<Result<(Finding, Statement), String>> {
    let comparison = case.comparison.as_ref()?;
    Some(judge(case, comparison))
}

fn judge(case: &Case, c: &Comparison) -> Result<(Finding, Statement), String> {
    let find = |id: &str| c.measures.iter().find(|m| m.id == id).map(|m| m.difference);
    let cpu = find("cpu").unwrap_or_default();
    let rose = |d: Difference| d.changed && d.b > d.a;
    let certain = rose(cpu) || find("cpu_at_equal_speed").is_some_and(rose);
    if !certain || cpu.b <= cpu.a {
        return Err(format!("CPU time per {} did not rise for certain", c.operation.name));
    }
    let rise = cpu.b - cpu.a;
    let grew = |f: &&Function| f.own.changed && f.own.b > f.own.a && f.module != "kernel";
    let most = c.functions.iter().filter(grew).max_by(|x, y| growth(&x.own).total_cmp(&growth(&y.own)));
    let Some(most) = most else { return Err("no function\u{2019}s own work rose for certain".into()) };
    let part = share(growth(&most.own), rise);
    if part < MIN_SHARE {
        return Err(format!("no function is 40 % of the rise; {} leads with {}", short(&most.name), percent(part)));
    }
    match not_its_own(runtimes::part(&most.name, &most.module)) {
        Some(why) => Err(format!("{} is {} of the rise, {why}", short(&most.name), percent(part))),
        None => Ok((finding(case, c, most, &cpu), statement(most, part))),
    }
}

fn growth(d: &Difference) -> f64 {
    d.b - d.a
}

fn statement(most: &Function, part: f64) -> Statement {
    let name = short(&most.name);
    Statement::short(
        format!("{name} grew: {} of the rise in CPU time is its own work", percent(part)),
        format!("look at what changed in {name}, or in who calls it"),
    )
}

fn finding(case: &Case, c: &Comparison, most: &Function, cpu: &Difference) -> Finding {
    let (rise, grew) = (growth(cpu), growth(&most.own));
    let of_all = share(grew, cpu.b);
    // The scheduler says that CPU time rose, the samples where; without a known operation the load may be the reason.
    let named = runtimes::part(&most.name, &most.module) == Part::Own;
    let sources = if named && c.operation.id != "second" { 2 } else { 1 };
    let per = &c.operation.name;
    Finding {
        summary: format!(
            "{} in {} takes {} more CPU time per {per} than in the baseline, which is {} of the rise",
            most.name,
            most.module,
            crate::wording::seconds(grew),
            percent(share(grew, rise))
        ),
        subject: Subject {
            pid: case.recording.meta.target.pids.first().copied(),
            function: Some(most.name.clone()),
            ..Subject::default()
        },
        explains: Explains { share: of_all, of: "on-CPU time".into(), seconds: of_all * c.b.cores * case.seconds() },
        evidence: rows(c, most, cpu),
        remedy: format!(
            "See what changed in {} between the two sides ({}). If the change is meant, this is its price; else take it back.",
            most.name, c.besides
        ),
        check: "After the change `wakewalk diff` against the same baseline shows no difference.".into(),
        ..RULE.finding(case, sources)
    }
}

fn rows(c: &Comparison, most: &Function, cpu: &Difference) -> Vec<Evidence> {
    let (per, name) = (&c.operation.name, &most.name);
    let alike = "as in the baseline";
    let by_hand = "perf diff (of two perf.data of the same load)";
    vec![
        evidence(&format!("CPU time per {per}, baseline"), cpu.a, "s", "", ""),
        evidence(&format!("CPU time per {per}, now"), cpu.b, "s", alike, ""),
        evidence(&format!("own time of {name} per {per}, baseline"), most.own.a, "s", "", ""),
        evidence(&format!("own time of {name} per {per}, now"), most.own.b, "s", alike, by_hand),
        evidence("of the rise", share(growth(&most.own), growth(cpu)) * 100.0, "%", "under 40", ""),
    ]
}
