// SPDX-License-Identifier: Apache-2.0
//! Two versions of wakewalk on the same load in the same rounds: whether this one costs the service more than the other did.
//!
//! Each side of a round is a whole diagnosis with the service alone before and after it; what is compared is what each version
//! adds to its own surroundings, so that a host that changes between the two sides changes neither.

use anyhow::Result;

use super::{SECONDS, nginx, redis, response_time};
use crate::bench::row::{Goal, Row};
use crate::bench::service::{Beside, Service};
use crate::bench::{Bench, Experiment, rounds};
use crate::cell::Cell;

/// A version is no dearer than the one before if the bad end of the interval is below this.
const NO_DEARER: Goal = Goal::AtMost(1.02);

/// The experiment.
pub static EXPERIMENT: Experiment = Experiment {
    name: "versions",
    about: "two versions of wakewalk in the same rounds; wants --against with the other one",
    builds: &[],
    run,
};

/// A service under load.
struct Subject {
    what: &'static str,
    start: fn(&mut Cell) -> Result<Service>,
    press: fn(&mut Cell) -> Result<()>,
}

const SUBJECTS: &[Subject] = &[
    Subject { what: "nginx at saturation", start: nginx::start, press: |cell| nginx::press(cell, &[]) },
    Subject { what: "Redis at saturation", start: redis::start, press: redis::load },
];

/// What one version cost.
struct Cost {
    /// CPU time of the service for each request, with it over without.
    cpu: f64,
    /// Requests a second, likewise.
    rate: f64,
    own_cpu_s: f64,
    took_s: f64,
    peak_bytes: f64,
}

fn run(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let Some(other) = &bench.against else {
        eprintln!("  no other version was named (--against): nothing to compare");
        return Ok(Vec::new());
    };
    let paths = bench.paths.with_wakewalk(other.clone());
    let other = Bench { paths: &paths, against: None, ..*bench };
    let versions = [&other, bench];
    let mut rows = Vec::new();
    for subject in SUBJECTS {
        rows.extend(costs(bench, &versions, subject)?);
    }
    rows.extend(felt(bench, &versions)?);
    Ok(rows)
}

/// Lines about CPU time and memory; the other version is what stands in the column `without`.
fn costs(bench: &Bench<'_>, versions: &[&Bench<'_>], subject: &Subject) -> Result<Vec<Row>> {
    let mut cell = Cell::open("bench-versions", bench.paths, bench.stop)?;
    let service = (subject.start)(&mut cell)?;
    (subject.press)(&mut cell)?;
    let one = |cell: &mut Cell, version: &Bench<'_>| cost(version, cell, &service);
    // Twice the pairs of other comparisons: a version's difference is a few percent of what is a few percent.
    let done = rounds::measure((bench.pairs * 2, bench.stop), &mut cell, versions, one)?;
    let row = |what: &str, of: &str, number: fn(&Cost) -> f64| {
        Row::ratio(format!("{}, this version over the other: {what}", subject.what), of, &done.pairs(0, 1, number))
    };
    let rows = [
        row("CPU per request, with over without", "", |c| c.cpu).goal(NO_DEARER),
        row("requests a second, with over without", "", |c| c.rate),
        row("CPU time of wakewalk's process", "s", |c| c.own_cpu_s),
        row("from its start to its end", "s", |c| c.took_s),
        row("peak RSS", "MB", |c| c.peak_bytes / 1e6),
    ];
    Ok(rows.into_iter().map(|row| done.sign(row)).collect())
}

fn cost(version: &Bench<'_>, cell: &Cell, service: &Service) -> Result<Cost> {
    let (Beside { alone, with }, ended) = service.beside(version, cell, SECONDS)?;
    Ok(Cost {
        cpu: with.us_per_request / alone.us_per_request,
        rate: with.per_second / alone.per_second,
        own_cpu_s: ended.cpu_s(),
        took_s: ended.took_s(),
        peak_bytes: ended.peak_bytes() as f64,
    })
}

/// Lines about what requests felt at 70 % load without a CPU to spare.
fn felt(bench: &Bench<'_>, versions: &[&Bench<'_>]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (name, done) in response_time::versions(bench, versions)? {
        let what = format!("{name} at 70 % load, this version over the other");
        let of = |number: fn(&response_time::Felt) -> f64| done.pairs(0, 1, number);
        let more = |number| of(number).iter().map(|(other, this)| this - other).collect::<Vec<f64>>();
        let told = [
            // Not a ratio: in some runs there is none.
            Row::value(
                format!("{what}: more requests slower than 99 % were without"),
                "points",
                &more(|felt| felt.slow_pct),
            ),
            Row::value(
                format!("{what}: more 50 ms with three times the usual median"),
                "of them",
                &more(|felt| felt.bins),
            ),
        ];
        rows.extend(told.into_iter().map(|row| done.sign(row)));
    }
    Ok(rows)
}
