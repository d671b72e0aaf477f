// SPDX-License-Identifier: Apache-2.0
//! What is said of one load after another.

mod clients;
mod curves;
mod distribution;
mod found;
pub mod head;
mod loads;

use load::Step;

use crate::section::Section;

use super::SweepAnswer;

/// A part: a section, or none where there is nothing to say.
type Part = fn(&SweepAnswer) -> Option<Section>;

/// All parts, in the order of the page.
const PARTS: &[Part] = &[found::part, curves::part, distribution::part, loads::part, clients::part];

/// What a page shows.
pub fn sections(answer: &SweepAnswer) -> Vec<Section> {
    PARTS.iter().filter_map(|part| part(answer)).collect()
}

/// What a terminal shows.
pub fn told(answer: &SweepAnswer, full: bool) -> Vec<Section> {
    let clients = if full { clients::part(answer) } else { None };
    [found::told(answer), loads::told(answer)].into_iter().chain(clients).collect()
}

/// The loads, from the lowest rate up; those of one rate in the order in which they were tried.
fn by_rate(answer: &SweepAnswer) -> Vec<&Step> {
    let mut steps: Vec<&Step> = answer.sweep.steps.iter().collect();
    steps.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    steps
}
