// SPDX-License-Identifier: Apache-2.0
//! The neutral tree between views and formats: a view builds sections, a format draws them.
//! It holds finished numbers and words; a format decides on colour, width and shape only.

pub mod pictures;
pub mod plot;

use std::mem::take;

use serde::Serialize;

use crate::printable;
use pictures::{Distribution, Sortable, Stacked, Timeline};
use plot::Plot;

/// A part of the report with a heading.
#[derive(Clone, Debug, Serialize)]
pub struct Section {
    /// Stable id, for links and tests.
    pub id: &'static str,
    /// Heading.
    pub title: String,
    /// Content, top to bottom.
    pub blocks: Vec<Block>,
    /// What of it a terminal shows; the page shows all.
    pub terminal: Terminal,
    /// What of that the short form shows.
    #[serde(skip)]
    pub brief: Brief,
}

/// How much of a section the short form shows, which carries the verdict in about fifty lines.
#[derive(Clone, Debug, Default)]
pub enum Brief {
    /// Its title only, among those that there is more of.
    #[default]
    Title,
    /// As much as the long form on a terminal.
    Same,
    /// These blocks.
    Blocks(Vec<Block>),
}

/// How much of a section a terminal shows: there, what is long buries what matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Terminal {
    /// Every block.
    All,
    /// So many blocks from the top.
    First(usize),
    /// Not even the heading.
    Nothing,
}

impl Terminal {
    /// How many of `blocks` blocks it shows.
    #[must_use]
    pub fn count(self, blocks: usize) -> usize {
        match self {
            Terminal::All => blocks,
            Terminal::First(count) => count.min(blocks),
            Terminal::Nothing => 0,
        }
    }
}

/// What the reader should feel about a thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    /// No colour.
    Plain,
    /// Good news.
    Good,
    /// Look here.
    Warn,
    /// This is the fault.
    Bad,
    /// Less important.
    Dim,
}

/// One piece of content.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Block {
    /// A paragraph.
    Text {
        /// The words.
        text: String,
        /// Emphasis.
        tone: Tone,
    },
    /// Points, each a sentence or so.
    List {
        /// The points.
        items: Vec<String>,
    },
    /// A command to copy.
    Command {
        /// The command line.
        text: String,
    },
    /// A table.
    Table {
        /// Caption; empty = none.
        title: String,
        /// Column heads.
        columns: Vec<Column>,
        /// Cells, formatted, with units.
        rows: Vec<Vec<String>>,
    },
    /// A table of what matters less: folded on a page, left out on a terminal.
    Folded {
        /// Caption.
        title: String,
        /// Column heads.
        columns: Vec<Column>,
        /// Cells, formatted, with units.
        rows: Vec<Vec<String>>,
    },
    /// Horizontal bars that are parts of one whole.
    Bars {
        /// Caption.
        title: String,
        /// Unit of `total` and values, `s`.
        unit: String,
        /// The whole.
        total: f64,
        /// The parts, in the order to show.
        parts: Vec<Bar>,
    },
    /// A flame graph.
    Flame {
        /// Caption.
        title: String,
        /// Unit of the values, `samples` or `ms`.
        unit: String,
        /// How to read it.
        legend: String,
        /// The root.
        root: FlameNode,
    },
    /// Lines over time.
    Series {
        /// Caption.
        title: String,
        /// Unit of the values.
        unit: String,
        /// Seconds since the capture's start, ascending.
        x: Vec<f64>,
        /// One or more lines, each as long as `x`.
        lines: Vec<Line>,
        /// Draw as areas stacked on each other.
        stacked: bool,
    },
    /// A distribution.
    Histogram {
        /// Caption.
        title: String,
        /// Unit of the counts, `calls`.
        unit: String,
        /// Buckets in order: label and count.
        buckets: Vec<(String, f64)>,
    },
    /// Bars of several parts each.
    Stacked(Stacked),
    /// Shares of all, by length.
    Distribution(Distribution),
    /// A table that a page sorts.
    Sortable(Sortable),
    /// Single things over time.
    Timeline(Timeline),
    /// Points and lines over a number.
    Plot(Plot),
}

/// A column of a table.
#[derive(Clone, Debug, Serialize)]
pub struct Column {
    /// Head.
    pub title: String,
    /// Numbers align right.
    pub right: bool,
}

/// One bar.
#[derive(Clone, Debug, Serialize)]
pub struct Bar {
    /// Name of the line.
    pub label: String,
    /// Value in the block's unit.
    pub value: f64,
    /// Words beside it; may be empty.
    pub note: String,
    /// Emphasis.
    pub tone: Tone,
}

/// A node of a flame graph.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FlameNode {
    /// Function.
    pub name: String,
    /// `kernel`, `native`, `jit`, `unknown`, `thread`, or `small` (what was too narrow to draw).
    #[serde(rename = "type")]
    pub kind: String,
    /// Inclusive value.
    pub value: f64,
    /// Module, for the tooltip.
    pub module: String,
    /// Callees, by value descending.
    pub children: Vec<FlameNode>,
    /// In a graph of differences: the inclusive value before and after. `value` is then the width of both together.
    pub sides: Option<[f64; 2]>,
}

/// A line of a series.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// Name.
    pub label: String,
    /// Values.
    pub values: Vec<f64>,
}

impl Column {
    /// A column of words.
    #[must_use]
    pub fn left(title: &str) -> Self {
        Self { title: title.to_owned(), right: false }
    }

    /// A column of numbers.
    #[must_use]
    pub fn right(title: &str) -> Self {
        Self { title: title.to_owned(), right: true }
    }
}

impl Section {
    /// A section that the short form leaves out.
    pub fn new(id: &'static str, title: impl Into<String>, blocks: Vec<Block>, terminal: Terminal) -> Self {
        Self { id, title: title.into(), blocks, terminal, brief: Brief::Title }
    }

    /// The same, of which the short form shows as much as the long one.
    #[must_use]
    pub fn kept(self) -> Self {
        Self { brief: Brief::Same, ..self }
    }

    /// The same, of which the short form shows `blocks`.
    #[must_use]
    pub fn kept_as(self, blocks: Vec<Block>) -> Self {
        Self { brief: Brief::Blocks(blocks), ..self }
    }

    /// The section with every string made harmless to show, whoever chose it.
    #[must_use]
    pub fn printable(mut self) -> Self {
        make_printable(&mut self.title);
        self.blocks.iter_mut().for_each(Block::make_printable);
        if let Brief::Blocks(blocks) = &mut self.brief {
            blocks.iter_mut().for_each(Block::make_printable);
        }
        self
    }
}

impl Block {
    /// The same table, folded.
    #[must_use]
    pub fn folded(self) -> Self {
        match self {
            Self::Table { title, columns, rows } => Self::Folded { title, columns, rows },
            other => other,
        }
    }

    fn make_printable(&mut self) {
        match self {
            Block::Text { text, .. } | Block::Command { text } => make_printable(text),
            Block::List { items } => items.iter_mut().for_each(make_printable),
            Block::Table { title, columns, rows } | Block::Folded { title, columns, rows } => {
                make_printable(title);
                columns.iter_mut().for_each(|column| make_printable(&mut column.title));
                rows.iter_mut().flatten().for_each(make_printable);
            }
            Block::Bars { title, unit, parts, .. } => {
                [title, unit].into_iter().for_each(make_printable);
                parts.iter_mut().for_each(|bar| [&mut bar.label, &mut bar.note].into_iter().for_each(make_printable));
            }
            Block::Flame { title, unit, legend, root } => {
                [title, unit, legend].into_iter().for_each(make_printable);
                root.make_printable();
            }
            Block::Series { title, unit, lines, .. } => {
                [title, unit].into_iter().for_each(make_printable);
                lines.iter_mut().for_each(|line| make_printable(&mut line.label));
            }
            Block::Histogram { title, unit, buckets } => {
                [title, unit].into_iter().for_each(make_printable);
                buckets.iter_mut().for_each(|(label, _)| make_printable(label));
            }
            Block::Stacked(bars) => bars.make_printable(),
            Block::Distribution(distribution) => distribution.make_printable(),
            Block::Sortable(table) => table.make_printable(),
            Block::Timeline(timeline) => timeline.make_printable(),
            Block::Plot(plot) => plot.make_printable(),
        }
    }
}

impl FlameNode {
    fn make_printable(&mut self) {
        [&mut self.name, &mut self.kind, &mut self.module].into_iter().for_each(make_printable);
        self.children.iter_mut().for_each(FlameNode::make_printable);
    }
}

fn make_printable(text: &mut String) {
    *text = printable::text(&take(text)).into_owned();
}
