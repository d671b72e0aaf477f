// SPDX-License-Identifier: Apache-2.0
//! What to keep in mind, what could not be compared, and how the intervals were made.

use diagnose::comparison::result::Comparison;

use crate::section::{Block, Section, Terminal, Tone};

use super::Compared;

/// The remarks.
pub fn part(compared: &Compared<'_>) -> Option<Section> {
    let c = compared.comparison;
    let mut items: Vec<String> = c.warnings.iter().map(|w| sentence(w)).collect();
    items.extend(c.gaps.iter().map(|gap| sentence(&format!("{}: {}", gap.what, gap.why))));
    let blocks = vec![Block::List { items }, Block::Text { text: method(c), tone: Tone::Dim }];
    Some(Section::new("compared-remarks", "How sure", blocks, Terminal::All).kept())
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    let stop = if text.ends_with('.') { "" } else { "." };
    format!("{first}{}{stop}", letters.as_str())
}

fn method(c: &Comparison) -> String {
    let s = &c.statistics;
    format!(
        "Intervals by a bootstrap over {} and {} time slices in blocks of {} and {}; all of them hold at once with a \
         chance of {:.0} %: CPU time must differ by {:.1} standard errors, another headline number by {:.1}, any other by \
         {:.1}.",
        c.a.slices,
        c.b.slices,
        s.blocks[0],
        s.blocks[1],
        s.confidence * 100.0,
        s.critical_cpu,
        s.critical_headline,
        s.critical_details
    )
}

/// Puts the three sentences of a comparison in front of a section.
pub fn put_answer(c: &Comparison, section: &mut Section) {
    let lines = [
        (
            format!("Against {}: {}", c.a.label, c.headline),
            if c.verdict == "changed" { Tone::Warn } else { Tone::Good },
        ),
        (format!("Load: {}", c.load), Tone::Plain),
        (format!("Else: {}", c.besides), Tone::Plain),
    ];
    section.blocks.splice(0..0, lines.map(|(text, tone)| Block::Text { text: sentence(&text), tone }));
    if let Terminal::First(count) = section.terminal {
        section.terminal = Terminal::First(count + 3);
    }
}
