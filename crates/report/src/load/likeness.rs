// SPDX-License-Identifier: Apache-2.0
//! Whether a load comes as clients do in production.

use diagnose::likeness::{Likeness, Trait, Unit};

use crate::numbers;
use crate::section::{Block, Column, Section, Tone};

use super::{Answer, dim, section};

/// The section; none where the service was not looked at, which alone shows how it is asked.
pub fn part(answer: &Answer) -> Option<Section> {
    answer.service.as_ref()?;
    let blocks = match &answer.production {
        None => {
            vec![dim("Whether it resembles production is not known: --like DIR, a recording made there, tells it.")]
        }
        Some(likeness) => compared(likeness),
    };
    Some(section("production", "Beside production".into(), blocks))
}

fn compared(likeness: &Likeness) -> Vec<Block> {
    let columns = vec![Column::left("what clients do"), Column::right("production"), Column::right("this load")];
    let columns = columns.into_iter().chain([Column::left("")]).collect();
    let row = |it: &Trait| {
        let unlike = if it.is_unlike { "unlike" } else { "" };
        vec![it.what.clone(), number(it.unit, it.production), number(it.unit, it.load), unlike.into()]
    };
    let rows: Vec<_> = likeness.traits.iter().map(row).collect();
    let missing = likeness.not_compared.iter().map(|why| dim(&format!("Not compared: {why}.")));
    let table = (!rows.is_empty()).then(|| [said(likeness), Block::Table { title: String::new(), columns, rows }]);
    table.into_iter().flatten().chain(missing).collect()
}

fn said(likeness: &Likeness) -> Block {
    let (unlike, all) = (likeness.unlike().count(), likeness.traits.len());
    if unlike == 0 {
        let text = format!("The load comes as clients do in production, in all that was compared ({all}).");
        return Block::Text { text, tone: Tone::Good };
    }
    let text = format!(
        "In {unlike} of {all} things that were compared this is another load than production: what it finds need not be true there."
    );
    Block::Text { text, tone: Tone::Warn }
}

fn number(unit: Unit, value: f64) -> String {
    match unit {
        Unit::PerSecond => format!("{}/s", load::rounded(value)),
        Unit::Number if value < 10.0 => format!("{value:.1}"),
        Unit::Number => numbers::number(value.round()),
        Unit::Share => numbers::share(value),
        Unit::Seconds => numbers::seconds(value),
    }
}
