//! The neutral tree between views and formats: a view builds sections, a format draws them.
//! It holds finished numbers and words; a format decides on colour, width and shape only.

use serde::Serialize;

/// A part of the report with a heading.
#[derive(Clone, Debug, Serialize)]
pub struct Section {
    /// Stable id, for links and tests.
    pub id: &'static str,
    /// Heading.
    pub title: String,
    /// Content, top to bottom.
    pub blocks: Vec<Block>,
    /// Whether the terminal shows it too; the page shows all.
    pub terminal: bool,
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
    /// `kernel`, `native`, `jit`, `unknown`, or `thread`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Inclusive value.
    pub value: f64,
    /// Module, for the tooltip.
    pub module: String,
    /// Callees, by value descending.
    pub children: Vec<FlameNode>,
}

/// A line of a series.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// Name.
    pub label: String,
    /// Values.
    pub values: Vec<f64>,
}
