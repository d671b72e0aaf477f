// SPDX-License-Identifier: Apache-2.0
//! Single things over time: a bar each, which opens into its steps and their stacks. It needs no script.

use crate::numbers;
use crate::printable::html;
use crate::section::pictures::{Span, Timeline, TimelineRow, TimelineStep};

use super::charts::{figure, ratio};
use super::pictures::{hue_class, keys};

pub fn timeline(timeline: &Timeline) -> String {
    let rows: Vec<String> = timeline.rows.iter().map(row).collect();
    let content = format!(
        "<p class=\"legend\">{}</p>{}\n{}",
        html(&timeline.legend),
        keys(timeline.keys.iter().map(|(hue, words)| (*hue, words.as_str()))),
        rows.join("\n")
    );
    figure("timeline", &timeline.title, &content)
}

fn row(row: &TimelineRow) -> String {
    let steps: Vec<String> = row.steps.iter().map(step).collect();
    format!(
        r#"<details class="exemplar"><summary><span class="name">{}</span> <span class="number"><data value="{}">{}</data></span> <svg class="whole" aria-hidden="true">{}{}</svg> <span class="note">{}</span></summary>
<div class="wide"><table><thead><tr><th scope="col" class="number">after</th><th scope="col" class="number">for</th><th scope="col">what</th></tr></thead><tbody>
{}
</tbody></table></div></details>"#,
        html(&row.title),
        row.seconds,
        html(&numbers::seconds(row.seconds)),
        row.spans.iter().map(|span| rect(span, row.seconds)).collect::<String>(),
        row.marks.iter().map(|mark| line(mark, row.seconds)).collect::<String>(),
        html(&row.note),
        steps.join("\n"),
    )
}

fn rect(span: &Span, whole: f64) -> String {
    format!(
        r#"<rect class="hue {}" x="{:.3}%" width="{:.3}%" height="100%"><title>{}</title></rect>"#,
        hue_class(span.hue),
        ratio(span.from, whole) * 100.0,
        ratio(span.until - span.from, whole) * 100.0,
        html(&span.label)
    )
}

fn line((at, words): &(f64, String), whole: f64) -> String {
    let x = ratio(*at, whole) * 100.0;
    format!(r#"<line class="mark" x1="{x:.3}%" x2="{x:.3}%" y1="0" y2="100%"><title>{}</title></line>"#, html(words))
}

fn step(step: &TimelineStep) -> String {
    let key = step.hue.map(|hue| format!(r#"<span class="key hue {}"></span>"#, hue_class(hue))).unwrap_or_default();
    let stacks: Vec<String> = step.stacks.iter().map(stack).collect();
    format!(
        r#"<tr{}><td class="number">{}</td><td class="number">{}</td><td>{key}{}{}</td></tr>"#,
        if step.hue.is_none() { " class=\"moment\"" } else { "" },
        html(&step.at),
        html(&step.length),
        html(&step.what),
        stacks.concat()
    )
}

/// A stack under its innermost function.
fn stack((head, frames): &(String, Vec<String>)) -> String {
    let items: String = frames.iter().map(|frame| format!("<li>{}</li>", html(frame))).collect();
    format!(r#"<details class="stack"><summary>{}</summary><ol class="function">{items}</ol></details>"#, html(head))
}
