// SPDX-License-Identifier: Apache-2.0
//! The USE table: how full each resource was, how much work waited for it, how much failed.

use diagnose::facts::resources::{Resources, UseRow};
use diagnose::phrases::resources::{errors, name, note, saturation};

use crate::numbers;
use crate::section::{Block, Column, Section, Terminal};

use super::Material;

/// Less than this is hardly anything: a share in use, a share of time stalled, a mean number waiting.
const HARDLY: f64 = 0.01;

/// The table, in two parts: what is in use or in trouble, and the rest.
pub fn view(material: &Material<'_>) -> Option<Section> {
    let resources = material.case.fact::<Resources>().ok()?;
    let (busy, quiet): (Vec<&UseRow>, Vec<&UseRow>) = resources.rows.iter().partition(|row| worth_a_line(row));
    let mut blocks = Vec::new();
    blocks.extend((!busy.is_empty()).then(|| table("", &busy, false)));
    let terminal = Terminal::First(blocks.len());
    let noted = busy.iter().map(|row| (name(&row.resource), note(row))).filter(|(_, note)| !note.is_empty());
    let items: Vec<String> = noted.map(|(name, note)| format!("{name}: {note}")).collect();
    blocks.extend((!items.is_empty()).then_some(Block::List { items }));
    blocks.extend((!quiet.is_empty()).then(|| table("Hardly used, nothing waited, nothing failed", &quiet, true)));
    let title = "Utilization, saturation, errors".to_owned();
    (!blocks.is_empty()).then(|| Section::new("use", title, blocks, terminal))
}

/// Whether the resource was used, waited for, or failed; or is a limit that somebody set.
pub fn worth_a_line(row: &UseRow) -> bool {
    let some = |cell: Option<f64>| cell.is_some_and(|value| value >= HARDLY);
    some(row.utilization) || some(row.saturation) || some(row.errors) || row.is_quota()
}

/// The rows as a table; a column with nothing in it is left out.
pub fn table(title: &str, rows: &[&UseRow], notes: bool) -> Block {
    let used = |row: &UseRow| row.utilization.map_or(String::new(), numbers::share);
    let cells = |row: &&UseRow| {
        let note = if notes { note(row) } else { String::new() };
        let (waiting, failed) = (words(row.saturation, saturation(row)), words(row.errors, errors(row)));
        vec![name(&row.resource), used(row), waiting, failed, note]
    };
    let mut rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let mut columns = vec![Column::left("resource"), Column::right("used")];
    columns.extend(["waiting", "errors", "besides"].map(Column::left));
    for at in (1..columns.len()).rev() {
        if rows.iter().all(|cells| cells[at].is_empty()) {
            columns.remove(at);
            rows.iter_mut().for_each(|cells| drop(cells.remove(at)));
        }
    }
    Block::Table { title: title.to_owned(), columns, rows }
}

/// What waited or failed: nothing needs no words, and what was not read stays blank.
fn words(value: Option<f64>, meaning: Option<String>) -> String {
    if value.is_some_and(|value| value <= 0.0) { "0".to_owned() } else { meaning.unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{section, tables};

    #[test]
    fn what_is_in_use_comes_first() {
        let section = section(
            super::view,
            "meta host.cpus=1 length_ns=10e9
             counter t_ns=0 source=proc/stat entity=cpu0 name=user_ns value=0
             counter t_ns=0 source=proc/stat entity=cpu0 name=idle_ns value=0
             counter t_ns=10e9 source=proc/stat entity=cpu0 name=user_ns value=9e9
             counter t_ns=10e9 source=proc/stat entity=cpu0 name=idle_ns value=1e9
             counter t_ns=0 source=proc/diskstats entity=sda name=io_ns value=0
             counter t_ns=0 source=proc/diskstats entity=sda name=weighted_io_ns value=0",
        )
        .unwrap();
        let tables = tables(&section);
        assert_eq!(tables[0][1][..2], ["CPUs (1)", "90.0 %"]);
        assert_eq!(tables[1][1][..2], ["disk sda", "0 %"]);
    }

    #[test]
    fn a_quota_is_always_worth_a_line() {
        let text = "meta length_ns=1e9
            thread t_ns=1e9 pid=1 tid=1 wall_ns=1e9 cpu_ns=2e6 blocked_ns=998e6
            counter source=cgroup/cpu entity=/svc name=quota_ns value=2e8
            counter source=cgroup/cpu entity=/svc name=period_ns value=1e8";
        assert_eq!(tables(&section(super::view, text).unwrap())[0][1][..2], ["CPU quota of /svc", "0.1 %"]);
    }

    #[test]
    fn without_counters_no_section() {
        assert!(section(super::view, "").is_none());
    }
}
