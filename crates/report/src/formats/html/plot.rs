// SPDX-License-Identifier: Apache-2.0
//! Points and lines over a number. All places are per cent of the picture, so that it fits any width without a script, and
//! each point says its numbers under the pointer.

use std::fmt::Write;

use crate::numbers;
use crate::printable::html;
use crate::section::plot::{Axis, Look, Plot, Trace};

use super::charts::figure;
use super::scale::Scale;

/// Lines have so many colours.
const COLOURS: usize = 6;
/// Room above the highest point of an axis that begins at zero.
const HEADROOM: f64 = 1.05;

/// Both scales of a picture.
struct Frame<'p> {
    plot: &'p Plot,
    x: Scale,
    y: Scale,
}

pub fn plot(plot: &Plot) -> String {
    let of = |nth: usize| plot.traces.iter().flat_map(|trace| &trace.points).map(move |point| point[nth]);
    let scales = Scale::of(of(0), plot.x.logarithmic, 1.0).zip(Scale::of(of(1), plot.y.logarithmic, HEADROOM));
    let Some((x, y)) = scales else { return String::new() };
    let frame = Frame { plot, x, y };
    let traces: String = plot.traces.iter().enumerate().map(|(nth, trace)| frame.trace(nth, trace)).collect();
    let keys: String = plot.traces.iter().enumerate().map(key).collect();
    let content = format!(
        r#"<div class="plot"><svg role="img" aria-label="{title}">{axes}{marks}{traces}</svg></div>
<ul class="kinds">{keys}</ul>"#,
        title = html(&plot.title),
        axes = frame.axes(),
        marks = frame.marks(),
    );
    figure("plotted", &plot.title, &content)
}

fn class(nth: usize, look: Look) -> String {
    if look == Look::Guide { "guide".to_owned() } else { format!("trace line-{}", nth % COLOURS) }
}

fn key((nth, trace): (usize, &Trace)) -> String {
    format!(r#"<li><span class="key {}"></span>{}</li>"#, class(nth, trace.look), html(&trace.label))
}

/// A value at a tick, which is round.
fn tick(value: f64, axis: &Axis) -> String {
    let text = numbers::quantity(value, axis.unit);
    let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
    let number = if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{number} {unit}").trim_end().to_owned()
}

/// Values at one place, from the least to the most.
fn at_one_place(points: &[[f64; 2]]) -> Vec<(f64, Vec<f64>)> {
    let mut places: Vec<(f64, Vec<f64>)> = Vec::new();
    for [x, y] in points.iter().filter(|point| point[1].is_finite()) {
        match places.iter_mut().find(|(place, _)| place == x) {
            Some((_, values)) => values.push(*y),
            None => places.push((*x, vec![*y])),
        }
    }
    places.sort_by(|a, b| a.0.total_cmp(&b.0));
    places.iter_mut().for_each(|(_, values)| values.sort_by(f64::total_cmp));
    places
}

impl Frame<'_> {
    /// A point in per cent from the left and from the top; none where a logarithmic axis has no place for it.
    fn place(&self, [x, y]: [f64; 2]) -> Option<[f64; 2]> {
        Some([self.x.at(x)? * 100.0, (1.0 - self.y.at(y)?) * 100.0])
    }

    fn axes(&self) -> String {
        let mut drawn = String::new();
        for value in self.y.ticks() {
            let y = (1.0 - self.y.at(value).unwrap_or_default()) * 100.0;
            let words = html(&tick(value, &self.plot.y));
            let _ = write!(
                drawn,
                r#"<line class="grid" x1="0" x2="100%" y1="{y:.2}%" y2="{y:.2}%"/><text class="tick" x="-8" y="{y:.2}%" dy="0.35em" text-anchor="end">{words}</text>"#
            );
        }
        for value in self.x.ticks() {
            let x = self.x.at(value).unwrap_or_default() * 100.0;
            let words = html(&tick(value, &self.plot.x));
            let _ = write!(
                drawn,
                r#"<line class="grid" x1="{x:.2}%" x2="{x:.2}%" y1="0" y2="100%"/><text class="tick" x="{x:.2}%" y="100%" dy="1.5em" text-anchor="middle">{words}</text>"#
            );
        }
        let [x, y] = [&self.plot.x.title, &self.plot.y.title].map(|title| html(title));
        let _ = write!(
            drawn,
            r#"<text class="tick" x="-56" y="0" dy="-1em">{y}</text><text class="tick" x="100%" y="100%" dy="3em" text-anchor="end">{x}</text>"#
        );
        drawn
    }

    fn marks(&self) -> String {
        let mark = |(value, words): &(f64, String)| {
            let x = self.x.at(*value)? * 100.0;
            let (anchor, dx) = if x > 50.0 { ("end", -6) } else { ("start", 6) };
            let words = html(words);
            Some(format!(
                r#"<line class="mark" x1="{x:.2}%" x2="{x:.2}%" y1="0" y2="100%"/><text class="mark" x="{x:.2}%" y="0" dx="{dx}" dy="1em" text-anchor="{anchor}">{words}</text>"#
            ))
        };
        self.plot.marks.iter().filter_map(mark).collect()
    }

    fn trace(&self, nth: usize, trace: &Trace) -> String {
        let drawn = match trace.look {
            Look::Line | Look::Guide => self.line(&trace.points),
            Look::Dots => self.dots(trace),
            Look::Joined => {
                let middle = |values: &[f64]| (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0;
                let places = at_one_place(&trace.points);
                let middles: Vec<[f64; 2]> = places.iter().map(|(x, values)| [*x, middle(values)]).collect();
                self.line(&middles) + &self.dots(trace)
            }
        };
        format!(r#"<g class="{}">{drawn}</g>"#, class(nth, trace.look))
    }

    /// From point to point; what is no number is a gap.
    fn line(&self, points: &[[f64; 2]]) -> String {
        let step = |pair: &[[f64; 2]]| {
            let [[x1, y1], [x2, y2]] = [self.place(pair[0])?, self.place(pair[1])?];
            Some(format!(r#"<line x1="{x1:.2}%" y1="{y1:.2}%" x2="{x2:.2}%" y2="{y2:.2}%"/>"#))
        };
        points.windows(2).filter_map(step).collect()
    }

    /// A dot for each measurement, and a bar over several at one place.
    fn dots(&self, trace: &Trace) -> String {
        let mut drawn = String::new();
        for (x, values) in at_one_place(&trace.points) {
            let ends = values.first().zip(values.last()).filter(|_| values.len() > 1);
            if let Some(ends) = ends {
                drawn += &self.line(&[[x, *ends.0], [x, *ends.1]]);
            }
            for value in values {
                let Some([left, top]) = self.place([x, value]) else { continue };
                let words = [(x, &self.plot.x), (value, &self.plot.y)];
                let words = words.map(|(value, axis)| html(&numbers::quantity(value, axis.unit)));
                let label = html(&trace.label);
                let _ = write!(
                    drawn,
                    r#"<circle cx="{left:.2}%" cy="{top:.2}%" r="3.5"><title>{label}: {} at {}</title></circle>"#,
                    words[1], words[0]
                );
            }
        }
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(points: Vec<[f64; 2]>, look: Look, logarithmic: bool) -> String {
        let axis = |title: &str, unit| Axis { title: title.into(), unit, logarithmic };
        plot(&Plot {
            title: "<b>".into(),
            x: axis("asked", ""),
            y: axis("p50", "s"),
            traces: vec![Trace { label: "a&b".into(), points, look }],
            marks: vec![(100.0, "limit".into())],
        })
    }

    #[test]
    fn several_at_one_place_show_their_spread() {
        let picture = drawn(vec![[10.0, 0.01], [100.0, 0.1], [100.0, 0.02], [1000.0, 1.0]], Look::Joined, true);
        assert_eq!(picture.matches("<circle").count(), 4);
        assert!(picture.contains(r#"cx="0.00%" cy="100.00%""#) && picture.contains(r#"cx="100.00%" cy="0.00%""#));
        // The bar, and two steps from middle to middle.
        assert_eq!(picture.split(r#"<g class="trace"#).nth(1).unwrap().matches("<line").count(), 3);
        assert!(picture.contains("<title>a&amp;b: 20.0 ms at 100</title>") && picture.contains("&lt;b&gt;"));
        assert!(picture.contains(">1,000</text>") && picture.contains(">100 ms</text>") && picture.contains(">limit<"));
    }

    #[test]
    fn what_has_no_place_is_left_out() {
        let picture = drawn(vec![[10.0, 0.0], [100.0, 0.1]], Look::Dots, true);
        assert_eq!(picture.matches("<circle").count(), 1, "a logarithmic axis has no zero");
        let gap = drawn(vec![[0.0, 1.0], [1.0, f64::NAN], [2.0, 1.0], [3.0, 1.0]], Look::Line, false);
        assert_eq!(gap.split(r#"<g class="trace"#).nth(1).unwrap().matches("<line").count(), 1);
        assert!(drawn(Vec::new(), Look::Line, false).is_empty() && !gap.contains("NaN"));
    }
}
