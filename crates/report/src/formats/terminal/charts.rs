// SPDX-License-Identifier: Apache-2.0
//! Charts out of block characters. A terminal has no room for a flame graph: it gets its hottest functions.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use textwrap::core::display_width;

use crate::numbers;
use crate::section::{Bar, FlameNode, Line, Tone};

use super::pen::{DIM, Pen, clip, pad, paint, tone_style};

/// A block filled by none to eight eighths, from the left and from the bottom.
const EIGHTHS: [&str; 9] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];
const LEVELS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// Longest name in front of a bar.
const LONGEST_LABEL: usize = 30;

/// Columns that a bar has at least; names give way.
const SHORTEST_BAR: usize = 8;

/// Functions shown for a flame graph.
const HOTTEST: usize = 10;

/// A bar of `share` of `width` columns; what is not nothing is at least an eighth of a column.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn bar(share: f64, width: usize) -> String {
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    EIGHTHS[8].repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

/// Columns for the names and for the bars of a chart whose numbers take `numbers` columns.
pub(super) fn share_out(page: usize, longest_label: usize, numbers: usize) -> (usize, usize) {
    let room = page.saturating_sub(2 + 2 + 2 + numbers);
    let label = longest_label.min(LONGEST_LABEL).min(room.saturating_sub(SHORTEST_BAR));
    (label, room - label)
}

/// A row of a chart before its bar is drawn.
struct Row<'a> {
    label: &'a str,
    /// Right-aligned columns behind the bar.
    numbers: [String; 2],
    /// 0 to 1.
    share: f64,
    style: Style,
    note: &'a str,
}

fn rows(pen: &mut Pen<'_, impl Write>, rows: &[Row<'_>], label_right: bool) -> io::Result<()> {
    let widest = |width: fn(&Row<'_>) -> usize| rows.iter().map(width).max().unwrap_or_default();
    let numbers = [widest(|row| display_width(&row.numbers[0])), widest(|row| display_width(&row.numbers[1]))];
    let (label, space) = share_out(pen.width, widest(|row| display_width(row.label)), numbers[0] + 2 + numbers[1]);
    for row in rows {
        let name = pad(&clip(row.label, label), label, label_right);
        let drawn = bar(row.share, space);
        let fill = " ".repeat(space - display_width(&drawn));
        let [first, second] = [0, 1].map(|i| pad(&row.numbers[i], numbers[i], true));
        pen.line(&format!("  {name}  {}{fill}  {first}  {}", paint(row.style, &drawn), paint(DIM, &second)))?;
        if !row.note.is_empty() {
            let indent = " ".repeat(label + 4);
            pen.text(row.note, DIM, &indent, &indent)?;
        }
    }
    Ok(())
}

pub fn bars(pen: &mut Pen<'_, impl Write>, title: &str, unit: &str, total: f64, parts: &[Bar]) -> io::Result<()> {
    pen.caption(title)?;
    let chart: Vec<Row<'_>> = parts
        .iter()
        .map(|part| Row {
            label: &part.label,
            numbers: [numbers::part(part.value, unit, total), numbers::share(part.value / total)],
            share: part.value / total,
            style: if part.tone == Tone::Plain { AnsiColor::Blue.on_default() } else { tone_style(part.tone) },
            note: &part.note,
        })
        .collect();
    rows(pen, &chart, false)
}

pub fn histogram(pen: &mut Pen<'_, impl Write>, title: &str, unit: &str, buckets: &[(String, f64)]) -> io::Result<()> {
    pen.caption(title)?;
    let total: f64 = buckets.iter().map(|bucket| bucket.1).sum();
    let highest = buckets.iter().map(|bucket| bucket.1).fold(0.0, f64::max);
    let chart: Vec<Row<'_>> = buckets
        .iter()
        .map(|(label, count)| Row {
            label,
            numbers: [numbers::quantity(*count, unit), numbers::share(ratio(*count, total))],
            share: ratio(*count, highest),
            style: AnsiColor::Blue.on_default(),
            note: "",
        })
        .collect();
    rows(pen, &chart, true)
}

/// The functions with most own work.
pub fn flame(pen: &mut Pen<'_, impl Write>, title: &str, unit: &str, root: &FlameNode) -> io::Result<()> {
    let whole = numbers::quantity(root.value, unit);
    pen.caption(&format!("{title}: functions by their own work, of {whole}"))?;
    let hot = root.hottest(HOTTEST);
    let head = format!("  {:>7}  {:>12}  function", "own", "with callees");
    pen.line(&paint(DIM, &head))?;
    for function in hot {
        let [own, total] = [function.own, function.total].map(|value| numbers::share(ratio(value, root.value)));
        let room = pen.width - 2 - 7 - 2 - 12 - 2;
        let name = clip(&function.name, room);
        let module =
            clip(&place(&function.kind, &function.module), room.saturating_sub(display_width(&name) + 1).max(1));
        let module = if display_width(&name) + 5 < room { paint(DIM, &format!(" {module}")) } else { String::new() };
        pen.line(&format!("  {own:>7}  {total:>12}  {name}{module}"))?;
    }
    Ok(())
}

/// Where a function lives, in a word or two.
fn place(kind: &str, module: &str) -> String {
    match (kind, module) {
        ("kernel", _) => "[kernel]".to_owned(),
        (_, "") => format!("[{kind}]"),
        (_, module) => module.rsplit('/').next().unwrap_or(module).to_owned(),
    }
}

/// One row of little columns a line; each column is the mean of its part of the time.
pub fn series(pen: &mut Pen<'_, impl Write>, title: &str, unit: &str, lines: &[Line]) -> io::Result<()> {
    pen.caption(&format!("{title}, {unit}"))?;
    let label = lines.iter().map(|line| display_width(&line.label)).max().unwrap_or_default();
    let highest = lines.iter().map(|line| most(&line.values)).fold(0.0, f64::max);
    let (label, space) = share_out(pen.width, label, "mean 1234567  max 1234567".len());
    for line in lines {
        let name = pad(&clip(&line.label, label), label, false);
        let drawn = pad(&sparkline(&line.values, highest, space), space, false);
        let mean = ratio(line.values.iter().sum(), lossy(line.values.len()));
        let [mean, most] = [mean, most(&line.values)].map(|value| clip(&numbers::number(value), 7));
        let drawn = paint(AnsiColor::Blue.on_default(), &drawn);
        pen.line(&format!("  {name}  {drawn}  mean {mean:>7}  {}", paint(DIM, &format!("max {most:>7}"))))?;
    }
    Ok(())
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn sparkline(values: &[f64], highest: f64, width: usize) -> String {
    let columns = values.len().min(width);
    let level = |column: usize| {
        let part = &values[column * values.len() / columns..(column + 1) * values.len() / columns];
        let mean = ratio(part.iter().sum(), lossy(part.len()));
        LEVELS[(ratio(mean, highest).clamp(0.0, 1.0) * 7.0).round() as usize]
    };
    (0..columns).map(level).collect()
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[allow(clippy::cast_precision_loss)]
fn lossy(count: usize) -> f64 {
    count as f64
}
