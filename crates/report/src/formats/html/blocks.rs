// SPDX-License-Identifier: Apache-2.0
//! Words and tables.

use crate::printable::html;
use crate::section::{Column, Tone};

use super::tone_class;

pub fn text(text: &str, tone: Tone) -> String {
    format!(r#"<p class="{}">{}</p>"#, tone_class(tone), html(text))
}

pub fn list(items: &[String]) -> String {
    let items: Vec<String> = items.iter().map(|item| format!("<li>{}</li>", html(item))).collect();
    format!("<ul>{}</ul>", items.concat())
}

pub fn command(at: &str, text: &str) -> String {
    format!(r#"<div class="command" data-kind="command" data-at="{at}"><code>{}</code></div>"#, html(text))
}

pub fn table(title: &str, columns: &[Column], rows: &[Vec<String>]) -> String {
    let class = |i: usize| if columns.get(i).is_some_and(|column| column.right) { " class=\"number\"" } else { "" };
    let heads: Vec<String> = columns
        .iter()
        .enumerate()
        .map(|(i, column)| format!("<th scope=\"col\"{}>{}</th>", class(i), html(&column.title)))
        .collect();
    let rows: Vec<String> = rows.iter().map(|cells| row(cells, class)).collect();
    let caption = if title.is_empty() { String::new() } else { format!("<caption>{}</caption>", html(title)) };
    let named = columns.iter().any(|column| !column.title.is_empty());
    let head = if named { format!("<thead><tr>{}</tr></thead>", heads.concat()) } else { String::new() };
    format!("<div class=\"wide\"><table>{caption}{head}<tbody>\n{}\n</tbody></table></div>", rows.join("\n"))
}

/// A table that opens at a click, under how many rows it has.
pub fn folded(title: &str, columns: &[Column], rows: &[Vec<String>]) -> String {
    let (title, table) = (html(title), table("", columns, rows));
    format!("<details><summary>{title} ({} rows)</summary>{table}</details>", rows.len())
}

fn row(cells: &[String], class: impl Fn(usize) -> &'static str) -> String {
    let cell = |(i, cell): (usize, &String)| {
        let (tag, scope) = if i == 0 { ("th", " scope=\"row\"") } else { ("td", "") };
        format!("<{tag}{scope}{}>{}</{tag}>", class(i), html(cell))
    };
    format!("<tr>{}</tr>", cells.iter().enumerate().map(cell).collect::<String>())
}
