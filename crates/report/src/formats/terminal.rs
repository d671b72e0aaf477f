// SPDX-License-Identifier: Apache-2.0
//! The report for a terminal, made for 80 columns and for reading at three in the morning.
//!
//! The first three paragraphs answer: what, how much of the time, what to do. Everything below is for who
//! doubts it. Styles are always written; the caller's writer drops them where they are not wanted.

mod brief;
mod charts;
mod pen;
mod pictures;
mod table;

use std::io::{self, Write};

use crate::head::Head;
use crate::section::{Block, Section};

use pen::{BOLD, DIM, Pen, tone_style};

/// Narrower than this nothing is readable; the text is then laid out for this many columns.
pub const NARROWEST: usize = 40;

/// Draws a report, no line wider than `width` columns.
///
/// # Errors
/// When `out` cannot be written.
pub fn report(head: &Head, sections: &[Section], width: usize, out: &mut impl Write) -> io::Result<()> {
    draw_all(&mut Pen::new(out, width.max(NARROWEST)), head, sections)
}

/// Draws the short form of a report, no line wider than `width` columns, and says what it leaves out.
///
/// # Errors
/// When `out` cannot be written.
pub fn brief(head: &Head, sections: &[Section], width: usize, out: &mut impl Write) -> io::Result<()> {
    let mut pen = Pen::new(out, width.max(NARROWEST));
    let (kept, rest) = brief::brief(sections);
    draw_all(&mut pen, head, &kept)?;
    if rest.is_empty() {
        return Ok(());
    }
    pen.blank()?;
    let more = format!("More with --full, or on a page with --html FILE: {}.", rest.join(" · "));
    pen.text(&more, DIM, "", "")
}

fn draw_all(pen: &mut Pen<'_, impl Write>, head: &Head, sections: &[Section]) -> io::Result<()> {
    draw_head(pen, head)?;
    for section in sections.iter().filter(|section| shown(section).next().is_some()) {
        pen.blank()?;
        draw_section(pen, section)?;
    }
    Ok(())
}

/// Draws sections without a head, no line wider than `width` columns.
///
/// # Errors
/// When `out` cannot be written.
pub fn sections(sections: &[Section], width: usize, out: &mut impl Write) -> io::Result<()> {
    let mut pen = Pen::new(out, width.max(NARROWEST));
    for (i, section) in sections.iter().filter(|section| shown(section).next().is_some()).enumerate() {
        if i > 0 {
            pen.blank()?;
        }
        draw_section(&mut pen, section)?;
    }
    Ok(())
}

/// Texts under titles of their own below a first line, no line wider than `width` columns.
#[must_use]
pub fn titled(first: &str, parts: &[(&str, &str)], width: usize) -> String {
    in_memory(width, |pen| {
        pen.text(first, BOLD, "", "")?;
        for (title, text) in parts {
            pen.blank()?;
            pen.rule(title)?;
            for (at, paragraph) in text.split("\n\n").enumerate() {
                if at > 0 {
                    pen.blank()?;
                }
                pen.text(paragraph, pen::PLAIN, "  ", "  ")?;
            }
        }
        Ok(())
    })
}

/// Terms and what each means, no line wider than `width` columns.
#[must_use]
pub fn terms(terms: &[(&str, &str)], width: usize) -> String {
    in_memory(width, |pen| {
        for (term, means) in terms {
            pen.text(term, BOLD, "", "")?;
            pen.text(means, pen::PLAIN, "    ", "    ")?;
        }
        Ok(())
    })
}

fn in_memory(width: usize, draw: impl FnOnce(&mut Pen<'_, Vec<u8>>) -> io::Result<()>) -> String {
    let mut drawn = Vec::new();
    // Writing to memory cannot fail.
    let _ = draw(&mut Pen::new(&mut drawn, width.max(NARROWEST)));
    String::from_utf8_lossy(&drawn).into_owned()
}

/// The blocks of a section that a terminal shows.
fn shown(section: &Section) -> impl Iterator<Item = &Block> {
    let shown = section.blocks.iter().take(section.terminal.count(section.blocks.len()));
    shown.filter(|block| !matches!(block, Block::Folded { .. }))
}

fn draw_head(pen: &mut Pen<'_, impl Write>, head: &Head) -> io::Result<()> {
    let cause = format!("{}: ", head.cause);
    let [first, second, third] = head.labels.terminal;
    pen.labelled(first, (&cause, tone_style(head.tone).bold()), &head.what)?;
    pen.labelled(second, ("", BOLD), &head.how_much)?;
    pen.labelled(third, ("", BOLD), &head.to_do)?;
    pen.blank()?;
    let mut context = head.context.join(" · ");
    if !head.confidence.is_empty() {
        context = format!("{} · {context}", head.confidence);
    }
    pen.text(&context, DIM, "", "")
}

fn draw_section(pen: &mut Pen<'_, impl Write>, section: &Section) -> io::Result<()> {
    let section = section.clone().printable();
    pen.rule(&section.title)?;
    let mut previous: Option<&Block> = None;
    for block in shown(&section) {
        if previous.is_some_and(|previous| apart(previous, block)) {
            pen.blank()?;
        }
        draw_block(pen, block)?;
        previous = Some(block);
    }
    Ok(())
}

/// Whether a blank line belongs between two blocks: lines of text, and commands under their text, stay together.
fn apart(above: &Block, below: &Block) -> bool {
    let line = |block: &Block| matches!(block, Block::Text { .. } | Block::Command { .. } | Block::List { .. });
    !(line(above) && matches!(below, Block::Command { .. } | Block::List { .. }))
}

fn draw_block(pen: &mut Pen<'_, impl Write>, block: &Block) -> io::Result<()> {
    match block {
        Block::Text { text, tone } => pen.text(text, tone_style(*tone), "  ", "  "),
        Block::List { items } => items.iter().try_for_each(|item| pen.text(item, pen::PLAIN, "  • ", "    ")),
        Block::Command { text } => pen.command(text),
        Block::Table { title, columns, rows } => table::draw(pen, title, columns, rows),
        Block::Folded { .. } => Ok(()),
        Block::Bars { title, unit, total, parts } => charts::bars(pen, title, unit, *total, parts),
        Block::Flame { title, unit, root, .. } => charts::flame(pen, title, unit, root),
        Block::Series { title, unit, lines, .. } => charts::series(pen, title, unit, lines),
        Block::Histogram { title, unit, buckets } => charts::histogram(pen, title, unit, buckets),
        Block::Stacked(bars) => pictures::stacked(pen, bars),
        Block::Distribution(distribution) => pictures::distribution(pen, distribution),
        Block::Sortable(table) => table::draw(pen, &table.title, &table.columns, &table.texts()),
        Block::Timeline(timeline) => pictures::timeline(pen, timeline),
        Block::Plot(plot) => pictures::plot(pen, plot),
    }
}
