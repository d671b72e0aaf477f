// SPDX-License-Identifier: Apache-2.0
//! The differential flame graph: both profiles in one tree, red where it grew, blue where it shrank.

use diagnose::Case;
use diagnose::comparison::result::Comparison;
use diagnose::facts::profile::Profile;
use diagnose::facts::stacks::Stacks;

use crate::section::{Block, FlameNode, Section, Terminal};
use crate::views::profile::path;
use crate::views::thread_names::ThreadNames;

use super::Compared;

const LEGEND: &str = "Red grew, blue shrank, and the stronger the more of the whole that is. Width is the larger of \
    both sides, so that what has gone is still there to be seen; left-to-right order means nothing. Threads of one name \
    are one frame.";

/// The graph.
pub fn part(compared: &Compared<'_>) -> Option<Section> {
    let mut root = FlameNode::root("all on-CPU time");
    for (side, case) in compared.cases.iter().enumerate() {
        insert(&mut root, side, case, microseconds(compared.comparison, side))?;
    }
    let operation = &compared.comparison.operation.name;
    let unit = format!("µs of CPU time per {operation}");
    let graph =
        Block::Flame { title: "Differences".to_owned(), unit, legend: LEGEND.to_owned(), root: root.finish_sides() };
    let title = "Where CPU time changed".to_owned();
    Some(Section::new("compared-flame", title, vec![graph], Terminal::Nothing))
}

/// CPU time of one side for each operation, µs.
fn microseconds(comparison: &Comparison, side: usize) -> f64 {
    let cpu = comparison.measures.iter().find(|m| m.id == "cpu").map(|m| m.difference).unwrap_or_default();
    [cpu.a, cpu.b][side] * 1e6
}

/// Adds a side's samples so that together they are `whole`.
fn insert(root: &mut FlameNode, side: usize, case: &Case<'_>, whole: f64) -> Option<()> {
    let (profile, stacks) = (case.fact::<Profile>().ok()?, case.fact::<Stacks>().ok()?);
    let names = ThreadNames::of(case);
    let each = whole / profile.total.samples.max(1) as f64;
    for (place, &samples) in &profile.places {
        let labels = path(names.comm(place.pid, place.tid), place, (&profile, &stacks));
        root.insert_side(labels.iter().map(crate::views::profile::Label::frame), side, samples as f64 * each);
    }
    Some(())
}
