// SPDX-License-Identifier: Apache-2.0
//! Stacked bars, distributions, and tables that the script lets a reader sort. All of them say what they say without it.

use crate::numbers;
use crate::printable::html;
use crate::section::pictures::{Cell, Distribution, Hue, Piece, Sortable, Stacked, StackedBar};

use super::charts::{figure, ratio};

/// The style's name of a hue.
pub fn hue_class(hue: Hue) -> &'static str {
    match hue {
        Hue::Work => "work",
        Hue::Queue => "queue",
        Hue::Door => "door",
        Hue::Peer => "peer",
        Hue::Held => "held",
        Hue::Wire => "wire",
        Hue::Sleep => "sleep",
        Hue::Unseen => "unseen",
    }
}

/// A key to the hues of a picture.
pub fn keys<'k>(keys: impl Iterator<Item = (Hue, &'k str)>) -> String {
    let key = |(hue, words): (Hue, &str)| {
        format!(r#"<li><span class="key hue {}"></span>{}</li>"#, hue_class(hue), html(words))
    };
    format!(r#"<ul class="kinds">{}</ul>"#, keys.map(key).collect::<String>())
}

pub fn stacked(stacked: &Stacked) -> String {
    let whole = |bar: &StackedBar| bar.parts.iter().map(|part| part.value).sum::<f64>();
    let longest = stacked.bars.iter().map(whole).fold(0.0, f64::max);
    let rows: Vec<String> = stacked
        .bars
        .iter()
        .map(|bar| {
            let parts: Vec<String> = bar.parts.iter().map(|part| part_words(part, &stacked.unit)).collect();
            format!(
                r#"<tr><th scope="row">{}</th><td class="bar"><svg aria-hidden="true">{}</svg><ul class="parts">{}</ul></td><td class="number"><data value="{}">{}</data></td></tr>"#,
                html(&bar.label),
                rects(&bar.parts, longest, &stacked.unit),
                parts.concat(),
                whole(bar),
                html(&numbers::quantity(whole(bar), &stacked.unit)),
            )
        })
        .collect();
    figure("stacked", &stacked.title, &format!("<table>\n{}\n</table>", rows.join("\n")))
}

fn part_words(part: &Piece, unit: &str) -> String {
    format!(
        r#"<li><span class="key hue {}"></span>{} <data value="{}">{}</data></li>"#,
        hue_class(part.hue),
        html(&part.label),
        part.value,
        html(&numbers::quantity(part.value, unit))
    )
}

fn rects(parts: &[Piece], longest: f64, unit: &str) -> String {
    let mut from = 0.0;
    let mut rects = r#"<rect class="track" width="100%" height="100%"/>"#.to_owned();
    for part in parts.iter().filter(|part| part.value > 0.0) {
        rects += &format!(
            r#"<rect class="hue {}" x="{:.3}%" width="{:.3}%" height="100%"><title>{}: {}</title></rect>"#,
            hue_class(part.hue),
            ratio(from, longest) * 100.0,
            ratio(part.value, longest) * 100.0,
            html(&part.label),
            html(&numbers::quantity(part.value, unit)),
        );
        from += part.value;
    }
    rects
}

/// Shares in the table under a distribution.
const QUANTILES: [(&str, f64); 5] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("longest", 1.0)];

pub fn distribution(at: &str, distribution: &Distribution) -> String {
    let heads: String =
        QUANTILES.iter().map(|(name, _)| format!(r#"<th scope="col" class="number">{name}</th>"#)).collect();
    let rows: Vec<String> = distribution
        .curves
        .iter()
        .map(|curve| {
            let cell = |(_, part): &(&str, f64)| {
                if !curve.knows(*part) {
                    return r#"<td class="number">-</td>"#.to_owned();
                }
                let seconds = curve.quantile(*part);
                let shown = html(&numbers::seconds(seconds));
                format!(r#"<td class="number"><data value="{seconds}">{shown}</data></td>"#)
            };
            let cells: String = QUANTILES.iter().map(cell).collect();
            format!(r#"<tr><th scope="row">{}</th>{cells}</tr>"#, html(&curve.label))
        })
        .collect();
    let content = format!(
        r#"<div class="chart" data-kind="distribution" data-at="{at}"></div>
<div class="wide"><table><thead><tr><th scope="col">of all, at most</th>{heads}</tr></thead><tbody>
{}
</tbody></table></div>"#,
        rows.join("\n")
    );
    figure("distribution", &distribution.title, &content)
}

pub fn sortable(at: &str, table: &Sortable) -> String {
    let class =
        |i: usize| if table.columns.get(i).is_some_and(|column| column.right) { " class=\"number\"" } else { "" };
    let head = |(i, column): (usize, &crate::section::Column)| {
        format!("<th scope=\"col\"{}>{}</th>", class(i), html(&column.title))
    };
    let heads: String = table.columns.iter().enumerate().map(head).collect();
    let cell = |(i, cell): (usize, &Cell)| {
        let (tag, scope) = if i == 0 { ("th", " scope=\"row\"") } else { ("td", "") };
        let value = cell.value.map_or_else(|| html(&cell.text), |value| value.to_string());
        format!("<{tag}{scope}{} data-value=\"{value}\">{}</{tag}>", class(i), html(&cell.text))
    };
    let row = |cells: &Vec<Cell>| format!("<tr>{}</tr>", cells.iter().enumerate().map(cell).collect::<String>());
    let rows: Vec<String> = table.rows.iter().map(row).collect();
    let caption =
        if table.title.is_empty() { String::new() } else { format!("<caption>{}</caption>", html(&table.title)) };
    format!(
        "<div class=\"wide sortable\" data-kind=\"sortable\" data-at=\"{at}\"><table>{caption}<thead><tr>{heads}</tr></thead><tbody>\n{}\n</tbody></table></div>",
        rows.join("\n")
    )
}
