// SPDX-License-Identifier: Apache-2.0
//! Blocks with more in them than a table: stacked bars, distributions, tables that a reader may sort, single requests over time.

use serde::Serialize;

use super::{Column, make_printable};

/// Bars of several parts each, all on one scale.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Stacked {
    /// Caption.
    pub title: String,
    /// Unit of the values, `s`.
    pub unit: String,
    /// Them, in the order to show.
    pub bars: Vec<StackedBar>,
}

/// One of them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct StackedBar {
    /// Its name.
    pub label: String,
    /// Its parts, in their order.
    pub parts: Vec<Piece>,
}

/// A part of a bar.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Piece {
    /// Its name.
    pub label: String,
    /// Its value in the block's unit.
    pub value: f64,
    /// What it is of, the same in all bars: a format has a colour for each.
    pub hue: Hue,
}

/// What a piece of a bar is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hue {
    /// At work, or in service.
    #[default]
    Work,
    /// Ready, but not at work: unread, or without a CPU.
    Queue,
    /// Before that: not even accepted.
    Door,
    /// Somebody else's: a peer that was asked.
    Peer,
    /// Kept back: a lock, a window.
    Held,
    /// On the way.
    Wire,
    /// Letting time pass.
    Sleep,
    /// Not seen.
    Unseen,
}

/// Shares of all that are not longer, by length.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Distribution {
    /// Caption.
    pub title: String,
    /// One or more of them.
    pub curves: Vec<Curve>,
    /// Whether they are of one thing from less to more of it: then their colours go from one to the other.
    pub graded: bool,
}

/// One of them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Curve {
    /// Its name.
    pub label: String,
    /// Lengths, ascending, s, each with the share of all that are not longer.
    pub points: Vec<[f64; 2]>,
    /// The share up to which a length of it is more than chance; none = all. The longest is known in any case.
    pub known: Option<f64>,
}

impl Curve {
    /// The length that a share of all are not longer than, s.
    #[must_use]
    pub fn quantile(&self, part: f64) -> f64 {
        let last = self.points.last().map_or(0.0, |point| point[0]);
        self.points.iter().find(|point| point[1] >= part).map_or(last, |point| point[0])
    }

    /// Whether that length is more than chance.
    #[must_use]
    pub fn knows(&self, part: f64) -> bool {
        part >= 1.0 || self.known.is_none_or(|known| part <= known)
    }
}

/// A table whose rows a page sorts by any column.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sortable {
    /// Caption.
    pub title: String,
    /// Column heads.
    pub columns: Vec<Column>,
    /// Rows.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Cell {
    /// As it is shown, with its unit; empty = unknown.
    pub text: String,
    /// What it is sorted by; none = its words.
    pub value: Option<f64>,
}

impl Cell {
    /// Words.
    #[must_use]
    pub fn words(text: &str) -> Self {
        Self { text: text.to_owned(), value: None }
    }

    /// A number, as it is shown; an unknown one stays blank.
    #[must_use]
    pub fn number(value: Option<f64>, show: impl Fn(f64) -> String) -> Self {
        Self { text: value.map(show).unwrap_or_default(), value }
    }
}

/// Single things over time, each of which opens into its steps.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Timeline {
    /// Caption.
    pub title: String,
    /// How to read it.
    pub legend: String,
    /// What the hues mean here, in the order to show.
    pub keys: Vec<(Hue, String)>,
    /// Them, in the order to show.
    pub rows: Vec<TimelineRow>,
}

/// One of them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TimelineRow {
    /// Its name.
    pub title: String,
    /// More about it.
    pub note: String,
    /// Its length, s.
    pub seconds: f64,
    /// What its time went to; later ones cover earlier ones.
    pub spans: Vec<Span>,
    /// Moments worth a line, s from its beginning.
    pub marks: Vec<(f64, String)>,
    /// The same in words, in the order of time.
    pub steps: Vec<TimelineStep>,
}

/// A part of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Span {
    /// Seconds from its beginning.
    pub from: f64,
    /// Likewise.
    pub until: f64,
    /// What it is of.
    pub hue: Hue,
    /// What it is, for the tooltip.
    pub label: String,
}

/// A step of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TimelineStep {
    /// When it began, in words.
    pub at: String,
    /// How long it took, in words; empty = a moment.
    pub length: String,
    /// What it was.
    pub what: String,
    /// Its hue; none = a moment.
    pub hue: Option<Hue>,
    /// Functions that waited or ran, innermost first, under what each stack is of.
    pub stacks: Vec<(String, Vec<String>)>,
}

impl Stacked {
    pub(super) fn make_printable(&mut self) {
        [&mut self.title, &mut self.unit].into_iter().for_each(make_printable);
        for bar in &mut self.bars {
            make_printable(&mut bar.label);
            bar.parts.iter_mut().for_each(|part| make_printable(&mut part.label));
        }
    }
}

impl Distribution {
    pub(super) fn make_printable(&mut self) {
        make_printable(&mut self.title);
        self.curves.iter_mut().for_each(|curve| make_printable(&mut curve.label));
    }
}

impl Sortable {
    pub(super) fn make_printable(&mut self) {
        make_printable(&mut self.title);
        self.columns.iter_mut().for_each(|column| make_printable(&mut column.title));
        self.rows.iter_mut().flatten().for_each(|cell| make_printable(&mut cell.text));
    }

    /// The same table without what it is sorted by.
    #[must_use]
    pub fn texts(&self) -> Vec<Vec<String>> {
        self.rows.iter().map(|row| row.iter().map(|cell| cell.text.clone()).collect()).collect()
    }
}

impl Timeline {
    pub(super) fn make_printable(&mut self) {
        [&mut self.title, &mut self.legend].into_iter().for_each(make_printable);
        self.keys.iter_mut().for_each(|(_, words)| make_printable(words));
        for row in &mut self.rows {
            [&mut row.title, &mut row.note].into_iter().for_each(make_printable);
            row.spans.iter_mut().for_each(|span| make_printable(&mut span.label));
            row.marks.iter_mut().for_each(|(_, words)| make_printable(words));
            for step in &mut row.steps {
                [&mut step.at, &mut step.length, &mut step.what].into_iter().for_each(make_printable);
                for (head, stack) in &mut step.stacks {
                    std::iter::once(head).chain(stack).for_each(make_printable);
                }
            }
        }
    }
}
