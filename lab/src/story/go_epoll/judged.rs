// SPDX-License-Identifier: Apache-2.0
//! The fixes judged by `wakewalk diff`: CPU, polls per useful event, and that the service rate is unhurt.

use std::path::Path;

use anyhow::{Context, Result};
use diagnose::comparison::result::{Comparison, Difference};

use super::{FIXES, fixed};
use crate::paths::Paths;
use crate::probe;
use crate::score::aligned;
use crate::story::Teller;

/// Compares the service before with each fix; the last one in full.
pub fn tell(teller: &mut Teller, before: &Path, paths: &Paths) -> Result<()> {
    let mut rows = vec![["-poll", "CPU", "polls per useful event", "service rate"].map(String::from)];
    for poll in FIXES {
        let json = probe::diff(paths, before, &fixed(paths, poll), &["--json"])?;
        let comparison: Comparison = serde_json::from_str(&json).context("wakewalk printed no comparison")?;
        rows.push(row(poll, &comparison));
    }
    teller.say(aligned(&rows));
    let best = fixed(paths, FIXES[FIXES.len() - 1]);
    teller.say(probe::diff(paths, before, &best, &[])?);
    Ok(())
}

fn row(poll: &str, c: &Comparison) -> [String; 4] {
    let of = |id: &str| c.measures.iter().find(|m| m.id == id).map(|m| m.difference);
    let words = |id: &str| of(id).map_or("not known".into(), |d| moved(&d));
    [
        poll.into(),
        words("cpu"),
        words("polls_per_useful_event"),
        of("operations").map_or("not known".into(), |d| rate(&d)),
    ]
}

/// `fell 98.7 % (98.5 to 98.9)`.
fn moved(d: &Difference) -> String {
    let (Some(change), Some((low, high))) = (d.change, ends(d)) else { return format!("{:.3} -> {:.3}", d.a, d.b) };
    let percent = change * 100.0;
    match (d.changed, change < 0.0) {
        (false, _) => format!("no change shown: {percent:+.1} % ({low:+.1} to {high:+.1})"),
        (true, true) => format!("fell {:.2} % ({:.2} to {:.2})", -percent, -high, -low),
        (true, false) => format!("ROSE {percent:.2} % ({low:.2} to {high:.2})"),
    }
}

/// Unhurt unless it certainly fell, with the loss that cannot be excluded.
fn rate(d: &Difference) -> String {
    let worst = ends(d).map_or(0.0, |(low, _)| low.min(0.0));
    match (d.changed, d.b < d.a) {
        (true, true) => moved(d),
        _ => format!("unhurt: {:+.1} %, at worst {worst:.1} %", d.change.unwrap_or(0.0) * 100.0),
    }
}

/// Ends of the interval, in per cent.
fn ends(d: &Difference) -> Option<(f64, f64)> {
    Some((d.relative(d.low?)? * 100.0, d.relative(d.high?)? * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(b: f64, half: f64) -> Difference {
        let (low, high) = (Some(b - 100.0 - half), Some(b - 100.0 + half));
        let changed = (b - 100.0).abs() > half;
        Difference { a: 100.0, b, change: Some(b / 100.0 - 1.0), low, high, changed, detectable: None }
    }

    #[test]
    fn words_of_the_judgement() {
        assert_eq!(moved(&difference(2.0, 1.0)), "fell 98.00 % (97.00 to 99.00)");
        assert_eq!(moved(&difference(130.0, 1.0)), "ROSE 30.00 % (29.00 to 31.00)");
        assert_eq!(moved(&difference(101.0, 3.0)), "no change shown: +1.0 % (-2.0 to +4.0)");
        assert_eq!(rate(&difference(99.0, 3.0)), "unhurt: -1.0 %, at worst -4.0 %");
        assert_eq!(rate(&difference(90.0, 3.0)), "fell 10.00 % (7.00 to 13.00)");
    }
}
