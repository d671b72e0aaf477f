// SPDX-License-Identifier: Apache-2.0
//! Stacked bars, each part with a fill of its own: they are told apart without colours too. Of what only a page can draw, a
//! table.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use textwrap::core::display_width;

use crate::numbers;
use crate::section::Column;
use crate::section::pictures::{Distribution, Hue, Piece, Stacked, StackedBar, Timeline};
use crate::section::plot::{Look, Plot};

use super::charts::share_out;
use super::pen::{DIM, PLAIN, Pen, clip, pad, paint, wrap};
use super::table;

/// How a part is filled.
fn fill(hue: Hue) -> (&'static str, Style) {
    match hue {
        Hue::Work => ("█", AnsiColor::Blue.on_default()),
        Hue::Queue => ("░", AnsiColor::Yellow.on_default()),
        Hue::Door => ("▞", AnsiColor::Red.on_default()),
        Hue::Peer => ("▓", AnsiColor::Magenta.on_default()),
        Hue::Held => ("▒", AnsiColor::Red.on_default()),
        Hue::Wire => ("━", AnsiColor::Cyan.on_default()),
        Hue::Sleep => ("·", AnsiColor::Green.on_default()),
        Hue::Unseen => ("╌", DIM),
    }
}

/// Each bar on a line, and on the next what its parts are.
pub fn stacked(pen: &mut Pen<'_, impl Write>, stacked: &Stacked) -> io::Result<()> {
    pen.caption(&stacked.title)?;
    let whole = |bar: &StackedBar| bar.parts.iter().map(|part| part.value).sum::<f64>();
    let longest = stacked.bars.iter().map(whole).fold(0.0, f64::max);
    let sizes: Vec<String> = stacked.bars.iter().map(|bar| numbers::quantity(whole(bar), &stacked.unit)).collect();
    let widest = |texts: &mut dyn Iterator<Item = &String>| texts.map(|text| display_width(text)).max().unwrap_or(0);
    let number = widest(&mut sizes.iter());
    let (label, space) = share_out(pen.width, widest(&mut stacked.bars.iter().map(|bar| &bar.label)), number);
    for (bar, size) in stacked.bars.iter().zip(&sizes) {
        let columns = columns(&bar.parts, longest, space);
        let drawn: String = bar.parts.iter().zip(&columns).map(|(part, columns)| part_of_bar(part, *columns)).collect();
        let rest = " ".repeat(space - columns.iter().sum::<usize>());
        let name = pad(&clip(&bar.label, label), label, false);
        pen.line(&format!("  {name}  {drawn}{rest}  {}", pad(size, number, true)))?;
        draw_key(pen, bar, &stacked.unit, 4)?;
    }
    Ok(())
}

fn part_of_bar(part: &Piece, columns: usize) -> String {
    let (fill, style) = fill(part.hue);
    paint(style, &fill.repeat(columns))
}

/// Columns of each part; what is not nothing has one, and all together fit.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn columns(parts: &[Piece], longest: f64, space: usize) -> Vec<usize> {
    let scale = if longest > 0.0 { space as f64 / longest } else { 0.0 };
    let least = |part: &Piece| usize::from(part.value * scale >= LEAST_COLUMN);
    let wanted = |part: &Piece| ((part.value * scale).round() as usize).max(least(part));
    let mut columns: Vec<usize> = parts.iter().map(wanted).collect();
    while columns.iter().sum::<usize>() > space {
        match columns.iter_mut().max() {
            Some(widest) if *widest > 0 => *widest -= 1,
            _ => break,
        }
    }
    columns
}

/// Of a column: what is less is not drawn; its number is there.
const LEAST_COLUMN: f64 = 0.1;

/// The parts with their fills, as many on a line as fit.
fn draw_key(pen: &mut Pen<'_, impl Write>, bar: &StackedBar, unit: &str, indent: usize) -> io::Result<()> {
    // A part stays in one piece when lines are broken.
    let part = |part: &Piece| {
        let (fill, _) = fill(part.hue);
        format!("{fill} {} {}", part.label, numbers::quantity(part.value, unit)).replace(' ', "\u{a0}")
    };
    let parts: Vec<String> = bar.parts.iter().map(part).collect();
    for line in wrap(&parts.join("  "), pen.width.saturating_sub(indent)) {
        pen.line(&format!("{}{}", " ".repeat(indent), paint(DIM, &line)))?;
    }
    Ok(())
}

/// A few lengths of each curve.
pub fn distribution(pen: &mut Pen<'_, impl Write>, distribution: &Distribution) -> io::Result<()> {
    let columns = [Column::left(""), Column::right("p50"), Column::right("p90"), Column::right("p99")];
    let rows: Vec<Vec<String>> = distribution
        .curves
        .iter()
        .map(|curve| {
            let shown = |part| if curve.knows(part) { numbers::seconds(curve.quantile(part)) } else { "-".to_owned() };
            let at = [0.5, 0.9, 0.99].map(shown);
            std::iter::once(curve.label.clone()).chain(at).collect()
        })
        .collect();
    table::draw(pen, &distribution.title, &columns, &rows)
}

/// What was measured, point by point.
pub fn plot(pen: &mut Pen<'_, impl Write>, plot: &Plot) -> io::Result<()> {
    let columns = [Column::left(""), Column::right(&plot.x.title), Column::right(&plot.y.title)];
    let measured = plot.traces.iter().filter(|trace| trace.look != Look::Guide);
    let row = |label: &String, [x, y]: [f64; 2]| {
        vec![label.clone(), numbers::quantity(x, plot.x.unit), numbers::quantity(y, plot.y.unit)]
    };
    let rows: Vec<Vec<String>> =
        measured.flat_map(|trace| trace.points.iter().map(|point| row(&trace.label, *point))).collect();
    table::draw(pen, &plot.title, &columns, &rows)
}

/// Only how long each took.
pub fn timeline(pen: &mut Pen<'_, impl Write>, timeline: &Timeline) -> io::Result<()> {
    pen.caption(&timeline.title)?;
    for row in &timeline.rows {
        pen.text(&format!("{}, {}: {}", row.title, numbers::seconds(row.seconds), row.note), PLAIN, "  ", "    ")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(value: f64) -> Piece {
        Piece { value, ..Piece::default() }
    }

    #[test]
    fn parts_take_the_columns_of_their_bar_and_no_more() {
        assert_eq!(columns(&[piece(3.0), piece(1.0)], 4.0, 40), [30, 10]);
        assert_eq!(columns(&[piece(3.96), piece(0.04), piece(0.001)], 4.0, 40), [39, 1, 0]);
        assert_eq!(columns(&[piece(0.0)], 0.0, 40), [0]);
        let many: Vec<Piece> = (0..30).map(|_| piece(1.0)).collect();
        assert_eq!(columns(&many, 30.0, 8).iter().sum::<usize>(), 8);
    }
}
