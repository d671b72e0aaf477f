// SPDX-License-Identifier: Apache-2.0
//! Values, changes and intervals as cells of tables.

use diagnose::comparison::result::{Difference, Measure};

use crate::numbers;

/// A value in a measure's unit.
pub fn value(measure: &Measure, value: f64) -> String {
    match measure.unit.as_str() {
        "share" => numbers::share(value),
        "s" => numbers::seconds(value),
        "cores" => format!("{value:.3} cores"),
        "bytes" => numbers::bytes(value),
        _ => numbers::number(round(value)),
    }
}

/// Whole where the digits behind the point say nothing.
fn round(value: f64) -> f64 {
    if value.abs() >= 100.0 { value.round() } else { value }
}

/// The name of a measure with what it is counted per.
pub fn name(measure: &Measure) -> String {
    match (measure.per.as_str(), measure.group.as_str()) {
        ("", _) => measure.label.clone(),
        (_, "headline") if measure.id == "polls_per_useful_event" => measure.label.clone(),
        ("second", "headline") => format!("{}, {} a second", measure.label, measure.unit),
        _ => measure.label.clone(),
    }
}

/// The change in words: per cent, factors, `new`, `gone`.
pub fn change(d: &Difference) -> String {
    match d.change {
        _ if d.a == 0.0 && d.b == 0.0 => "0 %".to_owned(),
        _ if d.b == 0.0 => "gone".to_owned(),
        None => "new".to_owned(),
        Some(change) => relative(change),
    }
}

/// The interval in the same words.
pub fn interval(d: &Difference) -> String {
    let Some((low, high)) = d.low.zip(d.high) else { return "too little data".to_owned() };
    match d.relative(low).zip(d.relative(high)) {
        // Several times the value: that nothing can be said is all that there is to say.
        Some((low, high)) if low < -10.0 || high > 1e4 => "any".to_owned(),
        Some((low, high)) => format!("{} to {}", relative(low), relative(high)),
        None => String::new(),
    }
}

/// A mark for what certainly changed.
pub fn mark(d: &Difference) -> String {
    if d.changed { "yes".to_owned() } else { String::new() }
}

fn relative(change: f64) -> String {
    match change {
        c if c > 4.0 => format!("x{}", numbers::number(round_factor(c + 1.0))),
        c if c.abs() < 0.0005 => "0.0 %".to_owned(),
        c if c < -0.99 && c > -1.0 => format!("{:+.2} %", c * 100.0),
        c => format!("{:+.1} %", c * 100.0),
    }
}

fn round_factor(factor: f64) -> f64 {
    if factor >= 10.0 { factor.round() } else { (factor * 10.0).round() / 10.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(a: f64, b: f64, half: f64) -> Difference {
        let change = (a > 0.0).then(|| b / a - 1.0);
        Difference { a, b, change, low: Some(b - a - half), high: Some(b - a + half), ..Difference::default() }
    }

    #[test]
    fn changes_in_the_words_that_suit_them() {
        let words = |a, b, half| {
            let d = difference(a, b, half);
            (change(&d), interval(&d))
        };
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(words(100.0, 110.0, 5.0), pair("+10.0 %", "+5.0 % to +15.0 %"));
        assert_eq!(words(1.0, 120.0, 3.0), pair("x120", "x117 to x123"));
        assert_eq!(words(1000.0, 1.0, 0.5), pair("-99.90 %", "-99.95 % to -99.85 %"));
        assert_eq!(words(0.0, 5.0, 1.0), pair("new", ""));
        assert_eq!(words(5.0, 0.0, 100.0), pair("gone", "any"));
    }
}
