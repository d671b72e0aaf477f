// SPDX-License-Identifier: Apache-2.0
//! A row for each load: what was asked, what came of it, and what the service did.

use load::{Step, Word, rounded};

use crate::load::{SweepAnswer, dim, percentile, section};
use crate::numbers;
use crate::section::{Block, Column, Section};

use super::by_rate;

/// A column: its head, and a cell of it.
type Cells = (Column, fn(&Step) -> String);

/// The table as a page has room for it.
pub fn part(answer: &SweepAnswer) -> Option<Section> {
    Some(table(answer, true))
}

/// The table within 80 columns: of the service only the word, of failures only what breaks the promise if there is one.
pub fn told(answer: &SweepAnswer) -> Section {
    table(answer, false)
}

fn table(answer: &SweepAnswer, is_wide: bool) -> Section {
    let steps = by_rate(answer);
    let columns = columns(&steps, is_wide);
    let row = |step: &Step| columns.iter().map(|(_, cell)| cell(step)).collect();
    let rows = steps.iter().map(|step| row(step)).collect();
    let columns = columns.iter().map(|(column, _)| column.clone()).collect();
    let table = Block::Table { title: String::new(), columns, rows };
    section("loads", "Loads".into(), vec![table, dim(&legend(&steps))])
}

fn columns(steps: &[&Step], is_wide: bool) -> Vec<Cells> {
    let any = |of: fn(&Step) -> bool| steps.iter().any(|step| of(step));
    let (diagnosed, promised) = (any(|step| step.service.is_some()), any(|step| step.verdict.slo.is_some()));
    let failed = any(|step| failures(step) > 0) && (is_wide || !promised);
    let mut columns: Vec<Cells> = vec![
        (Column::right("asked/s"), |step| rounded(step.rate)),
        (Column::right("answered/s"), |step| rounded(step.verdict.rate)),
        (Column::right("p50"), |step| percentile(step.verdict.corrected.p50)),
        (Column::right("p99"), |step| percentile(step.verdict.corrected.p99)),
    ];
    if failed {
        columns.push((Column::right("failed"), |step| failures(step).to_string()));
    }
    if promised {
        columns.push((Column::right("over SLO"), |step| {
            step.verdict.slo.map_or(String::new(), |slo| numbers::share(slo.broken))
        }));
    }
    columns.push((Column::right(""), note));
    if diagnosed {
        columns.push((Column::right("CPUs"), |step| {
            step.service.as_ref().map_or(String::new(), |service| format!("{:.2}", service.cpus))
        }));
        columns.push((Column::left("the service"), if is_wide { headline } else { word }));
    }
    columns
}

fn failures(step: &Step) -> u64 {
    step.verdict.errors.values().sum()
}

fn word(step: &Step) -> String {
    step.service.as_ref().map_or(String::new(), |service| service.verdict.clone())
}

fn headline(step: &Step) -> String {
    step.service.as_ref().map_or(String::new(), |service| format!("{}: {}", service.verdict, service.headline))
}

fn note(step: &Step) -> String {
    let note = match step.sustained {
        true if step.verdict.verdict == Word::ClientLimited => "late",
        true => "",
        // One that is late only finds the limit all the same.
        false if step.is_of_client() => "client",
        false => "over",
    };
    note.into()
}

fn legend(steps: &[&Step]) -> String {
    let lags = steps.iter().filter_map(|step| step.verdict.client.lag.p99.or(step.verdict.client.lag.p90));
    let slo = steps.iter().find_map(|step| step.verdict.slo).map_or(String::new(), |slo| {
        format!(" Over SLO: took longer than {} or have no answer.", numbers::seconds(slo.seconds))
    });
    let cpus = if steps.iter().any(|step| step.service.is_some()) { " CPUs: the service's." } else { "" };
    format!(
        "From when requests were due; - where fewer than ten answers lie beyond. Sustained: 97 % of what was due is answered while \
         it is asked, and at most 1 % fails; else `over`, or `client` and `late` where the generator was.{slo}{cpus} The \
         generator was up to {} late (p99, of few requests p90).",
        numbers::seconds(lags.fold(0.0, f64::max))
    )
}
