// SPDX-License-Identifier: Apache-2.0
//! Points and lines over a number, as many as there were measurements.

use serde::Serialize;

use super::make_printable;

/// Points and lines over a number.
#[derive(Clone, Debug, Serialize)]
pub struct Plot {
    /// Caption.
    pub title: String,
    /// To the right.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// What is drawn, in the order of the key.
    pub traces: Vec<Trace>,
    /// Places to the right that are worth a line, and what they are.
    pub marks: Vec<(f64, String)>,
}

/// An axis.
#[derive(Clone, Debug, Serialize)]
pub struct Axis {
    /// What is on it.
    pub title: String,
    /// Unit of the values: `s`, `share`, or empty for a number.
    pub unit: &'static str,
    /// Whether equal steps are equal factors; else it begins at zero.
    pub logarithmic: bool,
}

/// What belongs together.
#[derive(Clone, Debug, Serialize)]
pub struct Trace {
    /// Its name.
    pub label: String,
    /// Its points, by what is to the right; one that is not a number is a gap.
    pub points: Vec<[f64; 2]>,
    /// How it is drawn.
    pub look: Look,
}

/// How a trace is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Look {
    /// A dot for each measurement; several at one place show their spread.
    Dots,
    /// The same, and a line through their middles.
    Joined,
    /// A line.
    Line,
    /// Something to compare with, which nobody measured.
    Guide,
}

impl Axis {
    /// An axis of values, logarithmic if they lie further apart than a factor of ten.
    #[must_use]
    pub fn of(title: &str, unit: &'static str, values: impl Iterator<Item = f64> + Clone) -> Self {
        let most = values.clone().fold(0.0, f64::max);
        let least = values.filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
        Self { title: title.to_owned(), unit, logarithmic: most > 10.0 * least }
    }
}

impl Plot {
    pub(super) fn make_printable(&mut self) {
        [&mut self.title, &mut self.x.title, &mut self.y.title].into_iter().for_each(make_printable);
        self.traces.iter_mut().for_each(|trace| make_printable(&mut trace.label));
        self.marks.iter_mut().for_each(|(_, words)| make_printable(words));
    }
}
