// SPDX-License-Identifier: Apache-2.0
//! Charts. Bars are drawn here, as SVG in a table: they print, and they need no script. Flame graphs and
//! series are drawn by the script; what stands here is the same in a table, for whoever has no script,
//! and the place where the script draws.

use crate::flame::Hot;
use crate::numbers;
use crate::printable::html;
use crate::section::{Bar, FlameNode, Line};

use super::tone_class;

/// Functions in the table under a flame graph.
const HOTTEST: usize = 10;

/// Kinds of frames in the order of the legend.
const KINDS: &[(&str, &str)] = &[
    ("kernel", "kernel"),
    ("native", "native code"),
    ("jit", "run-time compiled"),
    ("unknown", "unknown"),
    ("thread", "thread"),
    ("small", "too narrow to draw"),
];

/// One row of bars: label, value, share, note.
struct Row<'a> {
    label: &'a str,
    value: f64,
    shown: String,
    share: f64,
    /// Length of the bar, 0 to 1.
    length: f64,
    class: &'static str,
    note: &'a str,
}

pub fn bars(title: &str, unit: &str, total: f64, parts: &[Bar]) -> String {
    let rows: Vec<Row<'_>> = parts
        .iter()
        .map(|part| Row {
            label: &part.label,
            value: part.value,
            shown: numbers::part(part.value, unit, total),
            share: ratio(part.value, total),
            length: ratio(part.value, total),
            class: tone_class(part.tone),
            note: &part.note,
        })
        .collect();
    figure("bars", title, &format!("{}{}", whole(&rows), table(&rows)))
}

pub fn histogram(title: &str, unit: &str, buckets: &[(String, f64)]) -> String {
    let total: f64 = buckets.iter().map(|bucket| bucket.1).sum();
    let highest = buckets.iter().map(|bucket| bucket.1).fold(0.0, f64::max);
    let rows: Vec<Row<'_>> = buckets
        .iter()
        .map(|(label, count)| Row {
            label,
            value: *count,
            shown: numbers::quantity(*count, unit),
            share: ratio(*count, total),
            length: ratio(*count, highest),
            class: "plain",
            note: "",
        })
        .collect();
    figure("histogram", title, &table(&rows))
}

pub(super) fn figure(class: &str, title: &str, content: &str) -> String {
    format!("<figure class=\"{class}\"><figcaption>{}</figcaption>\n{content}\n</figure>", html(title))
}

/// All parts side by side in one bar.
fn whole(rows: &[Row<'_>]) -> String {
    let mut from = 0.0;
    let mut rects = String::new();
    for row in rows {
        let (x, width) = (from * 100.0, row.share * 100.0);
        rects += &format!(
            r#"<rect class="{}" x="{x:.3}%" width="{width:.3}%" height="100%"><title>{}: {}</title></rect>"#,
            row.class,
            html(row.label),
            html(&row.shown)
        );
        from += row.share;
    }
    format!(r#"<svg class="whole" aria-hidden="true">{rects}</svg>"#)
}

fn table(rows: &[Row<'_>]) -> String {
    let rows: Vec<String> = rows
        .iter()
        .map(|row| {
            format!(
                r#"<tr><th scope="row">{label}{note}</th><td class="bar"><svg aria-hidden="true"><rect class="track" width="100%" height="100%"/><rect class="{class}" width="{length:.3}%" height="100%"/></svg></td><td class="number"><data value="{value}">{shown}</data></td><td class="number share">{share}</td></tr>"#,
                label = html(row.label),
                class = row.class,
                length = visible(row.length) * 100.0,
                value = row.value,
                shown = html(&row.shown),
                share = html(&numbers::share(row.share)),
                note = note(row.note),
            )
        })
        .collect();
    format!("<table>\n{}\n</table>", rows.join("\n"))
}

/// What is not nothing shows.
fn visible(length: f64) -> f64 {
    if length > 0.0 { length.max(0.004) } else { 0.0 }
}

fn note(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("<small>{}</small>", html(text)) }
}

pub fn flame(at: &str, title: &str, unit: &str, legend: &str, root: &FlameNode) -> String {
    if root.sides.is_some() {
        return differences(at, title, unit, legend);
    }
    let used = |kind: &str| uses(root, kind);
    let kinds: Vec<String> = KINDS
        .iter()
        .filter(|(kind, _)| used(kind))
        .map(|(kind, words)| format!(r#"<li><span class="key {kind}"></span>{words}</li>"#))
        .collect();
    let rows: Vec<String> = root.hottest(HOTTEST).iter().map(|hot| hot_row(hot, root.value)).collect();
    let whole = html(&numbers::quantity(root.value, unit));
    let content = format!(
        r#"<div class="chart" data-kind="flame" data-at="{at}"></div>
<p class="legend">{legend}</p><ul class="kinds">{kinds}</ul>
<details open><summary>Functions by their own work</summary><div class="wide"><table><thead><tr><th scope="col" class="number">own</th><th scope="col" class="number">with callees</th><th scope="col">function</th><th scope="col">where</th></tr></thead><tbody>
{rows}
</tbody></table></div></details>"#,
        legend = html(legend),
        kinds = kinds.concat(),
        rows = rows.join("\n"),
    );
    figure("flame", &format!("{title} ({whole})"), &content)
}

/// A graph of differences: the colour says how a frame changed, not where it is. The table of functions that
/// stands above it says the same without a script.
fn differences(at: &str, title: &str, unit: &str, legend: &str) -> String {
    let kinds = [("grew", "grew"), ("same", "about the same"), ("shrank", "shrank")];
    let kinds = kinds.map(|(kind, words)| format!(r#"<li><span class="key {kind}"></span>{words}</li>"#)).concat();
    let content = format!(
        r#"<div class="chart" data-kind="flame" data-at="{at}"></div>
<p class="legend">{}</p><ul class="kinds">{kinds}</ul>"#,
        html(legend),
    );
    figure("flame", &format!("{title} ({})", html(unit)), &content)
}

fn uses(node: &FlameNode, kind: &str) -> bool {
    node.kind == kind || node.children.iter().any(|child| uses(child, kind))
}

fn hot_row(hot: &Hot, whole: f64) -> String {
    let [own, total] = [hot.own, hot.total].map(|value| html(&numbers::share(ratio(value, whole))));
    let place = if hot.module.is_empty() { &hot.kind } else { &hot.module };
    format!(
        r#"<tr><td class="number"><data value="{}">{own}</data></td><td class="number">{total}</td><td class="function">{}</td><td class="dim">{}</td></tr>"#,
        hot.own,
        html(&hot.name),
        html(place)
    )
}

pub fn series(at: &str, title: &str, unit: &str, lines: &[Line]) -> String {
    let rows: Vec<String> = lines.iter().map(|line| series_row(line, unit)).collect();
    let content = format!(
        r#"<div class="chart" data-kind="series" data-at="{at}"></div>
<div class="wide"><table><thead><tr><th scope="col">line</th><th scope="col" class="number">least</th><th scope="col" class="number">mean</th><th scope="col" class="number">most</th></tr></thead><tbody>
{}
</tbody></table></div>"#,
        rows.join("\n")
    );
    figure("series", &format!("{title} ({unit})"), &content)
}

fn series_row(line: &Line, unit: &str) -> String {
    let values = &line.values;
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    #[allow(clippy::cast_precision_loss)]
    let mean = ratio(values.iter().sum(), values.len() as f64);
    let numbers = if values.is_empty() { [0.0; 3] } else { [least, mean, most] };
    let cells = numbers.map(|value| format!("<td class=\"number\">{}</td>", html(&numbers::quantity(value, unit))));
    format!("<tr><th scope=\"row\">{}</th>{}</tr>", html(&line.label), cells.concat())
}

pub(super) fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
