//! The USE table: how full each resource was, how much work waited for it, how much failed.

use diagnose::facts::resources::{Cell, Resources, UseRow};

use crate::numbers;
use crate::section::{Block, Column, Section};

use super::Material;

/// On a terminal a resource is worth a line if it is at least so full, or if something waited or failed.
const WORTH_A_LINE: f64 = 0.01;

/// How much of the table to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// Every row with its note.
    All,
    /// The rows that are in use or in trouble, without notes.
    Short,
}

/// The table.
pub fn view(material: &Material<'_>) -> Option<Section> {
    let resources = material.case.fact::<Resources>().ok()?;
    if resources.rows.is_empty() {
        return None;
    }
    let blocks = vec![table(&resources.rows, Show::All)];
    Some(Section { id: "use", title: "Utilization, saturation, errors".to_owned(), blocks, terminal: false })
}

/// The rows as a table.
pub fn table(rows: &[UseRow], show: Show) -> Block {
    let all = show == Show::All;
    let mut columns = vec![Column::left("resource"), Column::right("used")];
    columns.extend(["waiting", "errors"].map(Column::left));
    columns.extend(all.then(|| Column::left("note")));
    let rows = rows.iter().filter(|row| all || worth_a_line(row)).map(|row| {
        let used = row.utilization.as_ref().map_or(String::new(), |(share, _)| numbers::share(*share));
        let mut cells = vec![row.resource.clone(), used, words(&row.saturation, all), words(&row.errors, all)];
        cells.extend(all.then(|| row.note.clone()));
        cells
    });
    Block::Table { title: String::new(), columns, rows: rows.collect() }
}

fn worth_a_line(row: &UseRow) -> bool {
    let some = |cell: &Cell| cell.as_ref().is_some_and(|(value, _)| *value > 0.0);
    row.utilization.as_ref().is_some_and(|(used, _)| *used >= WORTH_A_LINE)
        || some(&row.saturation)
        || some(&row.errors)
}

/// In the short table a zero is blank: only what is there shows.
fn words(cell: &Cell, zeros: bool) -> String {
    cell.as_ref().filter(|(value, _)| zeros || *value > 0.0).map_or(String::new(), |(_, meaning)| meaning.clone())
}
