// SPDX-License-Identifier: Apache-2.0
//! The report as one HTML file that needs nothing else: style, script and data are inside, and its
//! Content-Security-Policy forbids to fetch anything or to run any other script.
//!
//! All words, tables and bars are written here, so the page says everything without its script; the script
//! draws flame graphs and time series from the embedded JSON and adds what needs a hand on the mouse.

mod blocks;
mod charts;
mod data;
mod pictures;
mod plot;
mod scale;
mod timeline;

use serde::Serialize;

use crate::head::Head;
use crate::printable::html;
use crate::section::{Block, Section, Tone};

const SCRIPT: &str = include_str!(concat!(env!("OUT_DIR"), "/page.js"));
const SCRIPT_HASH: &str = include_str!(concat!(env!("OUT_DIR"), "/page.js.sha256"));
const STYLE: &str = include_str!(concat!(env!("OUT_DIR"), "/page.css"));
const STYLE_HASH: &str = include_str!(concat!(env!("OUT_DIR"), "/page.css.sha256"));

/// What a page shows.
pub struct Page<'a, A> {
    /// What the answer is called in the page's data.
    pub name: &'static str,
    /// The answer as programs read it, a part of that data.
    pub answer: &'a A,
    /// The answer as people read it.
    pub head: Head,
    /// Whom it is about.
    pub target: &'a str,
    /// Name and version of the program.
    pub tool: &'a str,
    /// All below the head.
    pub sections: &'a [Section],
}

/// Draws a page.
///
/// # Errors
/// When the data cannot be expressed as JSON.
pub fn page(page: &Page<'_, impl Serialize>) -> anyhow::Result<String> {
    let sections: Vec<Section> = page.sections.iter().cloned().map(Section::printable).collect();
    let data = data::json(page.name, page.answer, &sections)?;
    let target = html(page.target);
    let title = format!("{} · {target} · wakewalk", html(&page.head.cause));
    let parts: Vec<String> = sections.iter().enumerate().map(|(at, section)| draw_section(at, section)).collect();
    Ok(format!(
        r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-{SCRIPT_HASH}'; style-src 'sha256-{STYLE_HASH}'; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="{tool}">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{STYLE}</style>
</head>
<body>
<header class="top"><p class="brand">wakewalk</p><p class="watched">{target}</p></header>
<main>
{verdict}
{contents}
{parts}
</main>
<footer>Made by {tool}. This file is complete: it fetches nothing and sends nothing.</footer>
<script type="application/json" id="data">{data}</script>
<script>{SCRIPT}</script>
</body>
</html>
"#,
        tool = html(page.tool),
        verdict = draw_head(&page.head),
        contents = draw_contents(&sections),
        parts = parts.join("\n"),
    ))
}

fn draw_head(head: &Head) -> String {
    let figure = head
        .figure
        .as_ref()
        .map(|(number, what)| format!(r#"<p class="figure"><strong>{}</strong> {}</p>"#, html(number), html(what)));
    let context: Vec<String> = head.context.iter().map(|part| format!("<li>{}</li>", html(part))).collect();
    format!(
        r#"<section id="verdict" class="verdict {tone}" aria-labelledby="headline">
<div class="answer">
<p class="cause"><span class="badge">{cause}</span> <span class="confidence">{confidence}</span></p>
<h1 id="headline">{what}</h1>
<dl><dt>{second}</dt><dd>{how_much}</dd><dt>{third}</dt><dd>{to_do}</dd></dl>
<ul class="context">{context}</ul>
</div>
{figure}
</section>"#,
        tone = tone_class(head.tone),
        cause = html(&head.cause),
        confidence = html(&head.confidence),
        what = html(&head.what),
        second = head.labels.page[0],
        third = head.labels.page[1],
        how_much = html(&head.how_much),
        to_do = html(&head.to_do),
        context = context.concat(),
        figure = figure.unwrap_or_default(),
    )
}

fn draw_contents(sections: &[Section]) -> String {
    let link = |section: &Section| format!(r##"<li><a href="#{}">{}</a></li>"##, section.id, html(&section.title));
    let links: Vec<String> = sections.iter().map(link).collect();
    format!(r#"<nav class="contents" aria-label="Sections"><ul>{}</ul></nav>"#, links.concat())
}

fn draw_section(at: usize, section: &Section) -> String {
    let blocks: Vec<String> =
        section.blocks.iter().enumerate().map(|(i, block)| draw_block(&format!("{at}.{i}"), block)).collect();
    let (id, title) = (section.id, html(&section.title));
    format!(
        "<section id=\"{id}\" aria-labelledby=\"{id}-title\">\n<h2 id=\"{id}-title\">{title}</h2>\n\
         <div class=\"blocks\">\n{}\n</div>\n</section>",
        blocks.join("\n")
    )
}

/// Draws a block; `at` is where the script finds its data, `section.block`.
fn draw_block(at: &str, block: &Block) -> String {
    match block {
        Block::Text { text, tone } => blocks::text(text, *tone),
        Block::List { items } => blocks::list(items),
        Block::Command { text } => blocks::command(at, text),
        Block::Table { title, columns, rows } => blocks::table(title, columns, rows),
        Block::Folded { title, columns, rows } => blocks::folded(title, columns, rows),
        Block::Bars { title, unit, total, parts } => charts::bars(title, unit, *total, parts),
        Block::Flame { title, unit, legend, root } => charts::flame(at, title, unit, legend, root),
        Block::Series { title, unit, lines, .. } => charts::series(at, title, unit, lines),
        Block::Histogram { title, unit, buckets } => charts::histogram(title, unit, buckets),
        Block::Stacked(bars) => pictures::stacked(bars),
        Block::Distribution(distribution) => pictures::distribution(at, distribution),
        Block::Sortable(table) => pictures::sortable(at, table),
        Block::Timeline(timeline) => timeline::timeline(timeline),
        Block::Plot(plot) => plot::plot(plot),
    }
}

/// The style's name of a tone.
fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "plain",
        Tone::Good => "good",
        Tone::Warn => "warn",
        Tone::Bad => "bad",
        Tone::Dim => "dim",
    }
}
