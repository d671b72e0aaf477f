// SPDX-License-Identifier: Apache-2.0
//! The three sentences that come first: what changed by how much, whether the load did, what else did.

use super::result::{Comparison, Difference, Measure, Setting};
use crate::wording::{percent, short, signed_percent};

/// Things named in the sentence about the inventory; the list has all.
const NAMED: usize = 3;

/// `changed` or `no-difference`.
pub(super) fn verdict(c: &Comparison) -> &'static str {
    let functions = c.functions.iter().any(|f| f.own.changed || f.inclusive.changed);
    let measures = c.measures.iter().filter(|m| is_its_own(m)).any(|m| m.difference.changed);
    if functions || measures { "changed" } else { "no-difference" }
}

/// Whether it is the service's own, and not of all who are on the host or in its network.
fn is_its_own(m: &Measure) -> bool {
    !["machine", "host"].contains(&m.group.as_str())
}

/// What changed.
pub(super) fn headline(c: &Comparison) -> String {
    let changed = |id: &str| find(c, id).filter(|m| m.difference.changed);
    let Some(cpu) = find(c, "cpu") else { return "there is no CPU time to compare".into() };
    // The load has a line of its own; a mode's part is worth a word only where the whole does not tell.
    let parts: Vec<String> =
        ["response_time", "cpu", "polls_per_useful_event"].iter().filter_map(|id| changed(id)).map(sentence).collect();
    if !parts.is_empty() {
        return parts.join("; ");
    }
    let parts: Vec<String> = ["user_cpu", "kernel_cpu"].iter().filter_map(|id| changed(id)).map(sentence).collect();
    if !parts.is_empty() {
        return format!("CPU time {} in all, but {}", unclear(&cpu.difference), parts.join("; "));
    }
    if c.verdict == "changed" {
        return format!("CPU time {}, but {}", unclear(&cpu.difference), lesser(c));
    }
    let best = find(c, "cpu_at_equal_speed").unwrap_or(cpu);
    let seen = best.difference.detectable.and_then(|d| best.difference.relative(d));
    let seen = seen.map_or(String::new(), |d| format!("; a change of {} would have been seen", percent(d)));
    let response = find(c, "response_time").map(|m| format!("; response time {}", unclear(&m.difference)));
    let response = response.unwrap_or_default();
    format!("none that the data can show: CPU time {} {}{seen}{response}", per(cpu), unclear(&cpu.difference))
}

/// What changed among the many, the most certain first.
fn lesser(c: &Comparison) -> String {
    let certainty = |d: &Difference| {
        let half = d.high.zip(d.low).map_or(f64::MAX, |(high, low)| (high - low) / 2.0);
        if d.changed && half > 0.0 { (d.b - d.a).abs() / half } else { 0.0 }
    };
    let measures = c.measures.iter().filter(|m| is_its_own(m) && m.difference.changed);
    let mut all: Vec<(f64, String)> = measures.map(|m| (certainty(&m.difference), sentence(m))).collect();
    for f in &c.functions {
        let d = if f.own.changed { f.own } else { f.inclusive };
        all.push((certainty(&d), format!("CPU time in {} {}", short(&f.name), moved(&d))));
    }
    all.retain(|(certainty, _)| *certainty > 0.0);
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    all.into_iter().next().map_or("something small changed".into(), |(_, words)| words)
}

/// The load and what costs are counted per.
pub(super) fn load(c: &Comparison) -> String {
    if c.operation.id == "second" {
        let why = if c.operation.why.is_empty() { String::new() } else { format!(" ({})", c.operation.why) };
        return format!("not known: costs are per second, and hold only if the load was the same{why}");
    }
    let Some(load) = find(c, "operations") else { return String::new() };
    let rate = |value: f64| crate::wording::count(value);
    let d = &load.difference;
    match d.changed {
        true => format!(
            "{} a second {}: {} -> {}; costs are per {}, but a cost at another load is another cost",
            load.unit,
            moved(d),
            rate(d.a),
            rate(d.b),
            c.operation.name
        ),
        false => {
            format!(
                "the same, {} {} a second, {}; costs are per {}",
                rate(d.b),
                load.unit,
                unclear(d),
                c.operation.name
            )
        }
    }
}

/// What else changed.
pub(super) fn besides(c: &Comparison) -> String {
    let counting: Vec<&Setting> = c.inventory.iter().filter(|s| s.counts).collect();
    let names: Vec<&str> = counting.iter().take(NAMED).map(|s| s.what.as_str()).collect();
    let more = match counting.len().saturating_sub(NAMED) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let named = names.join(", ") + &more;
    match (counting.len(), c.gaps.iter().any(|g| g.what == "inventory")) {
        (0, true) => "nothing that both recordings know of; they do not know builds and sysctls".into(),
        (0, false) => "nothing that was recorded: same kernel, boot, build, options, limits and sysctls".into(),
        (1, _) => format!("one thing was changed: {named}"),
        (n, _) => format!("{n} things were changed, and any of them may be the reason: {named}"),
    }
}

fn find<'c>(c: &'c Comparison, id: &str) -> Option<&'c Measure> {
    c.measures.iter().find(|m| m.id == id)
}

fn sentence(m: &Measure) -> String {
    let label = m.label.replacen("of it", "CPU time", 1);
    format!("{label} {} {}", per(m), moved(&m.difference)).replace("  ", " ")
}

fn per(m: &Measure) -> String {
    if m.per.is_empty() || m.id == "polls_per_useful_event" { String::new() } else { format!("per {}", m.per) }
}

/// `fell by 97.9 % (97.5 to 98.2 %)`; factors where per cent would be many.
fn moved(d: &Difference) -> String {
    let Some(change) = d.change else { return format!("appeared (from 0 to {:.3e})", d.b) };
    let word = if change < 0.0 { "fell" } else { "rose" };
    let ends = d.low.zip(d.high).and_then(|(low, high)| d.relative(low).zip(d.relative(high)));
    if change > 1.0 {
        let factors = ends.map_or(String::new(), |(low, high)| format!(" ({:.1} to {:.1})", low + 1.0, high + 1.0));
        return format!("{word} {:.1} times{factors}", change + 1.0);
    }
    let ends = ends.map_or(String::new(), |(low, high)| {
        let (least, most) = if change < 0.0 { (-high, -low) } else { (low, high) };
        format!(" ({} to {} %)", digits(least), digits(most))
    });
    format!("{word} by {} %{ends}", digits(change.abs()))
}

/// Per cent with as many digits as tell: near all, the second behind the point.
fn digits(share: f64) -> String {
    let percent = share * 100.0;
    if (99.0..100.0).contains(&percent) { format!("{percent:.2}") } else { format!("{percent:.1}") }
}

/// `+0.4 % (-3.1 to +4.0 %)`.
fn unclear(d: &Difference) -> String {
    let Some(change) = d.change else { return "is 0 on a side".into() };
    let ends = d.low.zip(d.high).and_then(|(low, high)| d.relative(low).zip(d.relative(high)));
    let ends = ends.map_or(", too little data for an interval".into(), |(low, high)| {
        format!(" ({} to {} %)", signed_percent(low, 1), signed_percent(high, 1))
    });
    format!("{} %{ends}", signed_percent(change, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(a: f64, b: f64, half: f64) -> Difference {
        let d = b - a;
        Difference {
            a,
            b,
            change: (a > 0.0).then(|| b / a - 1.0),
            low: Some(d - half),
            high: Some(d + half),
            changed: d.abs() > half,
            detectable: Some(half * 1.4),
        }
    }

    fn comparison(measures: &[(&str, &str, Difference)]) -> Comparison {
        let measure = |(id, label, d): &(&str, &str, Difference)| Measure {
            id: (*id).into(),
            label: (*label).into(),
            group: "headline".into(),
            per: if *id == "operations" { "second".into() } else { "write call".into() },
            unit: "write calls".into(),
            difference: *d,
        };
        let mut c = Comparison { measures: measures.iter().map(measure).collect(), ..Comparison::default() };
        c.operation.id = "write-calls".into();
        c.operation.name = "write call".into();
        c.verdict = verdict(&c).into();
        c
    }

    #[test]
    fn what_changed_by_how_much() {
        let c = comparison(&[
            ("cpu", "CPU time", difference(5e-3, 1e-4, 2e-5)),
            ("polls_per_useful_event", "polls per useful event", difference(2.0, 9.0, 1.0)),
        ]);
        assert_eq!(
            headline(&c),
            "CPU time per write call fell by 98.0 % (97.6 to 98.4 %); polls per useful event rose 4.5 times (4.0 to 5.0)"
        );
    }

    #[test]
    fn nothing_that_can_be_shown_says_what_would_have_been_seen() {
        let c = comparison(&[("cpu", "CPU time", difference(100.0, 101.0, 5.0))]);
        assert_eq!(
            headline(&c),
            "none that the data can show: CPU time per write call +1.0 % (-4.0 to +6.0 %); a change of 7.0 % would \
             have been seen"
        );
        assert_eq!(c.verdict, "no-difference");
    }

    #[test]
    fn the_load_is_told_apart() {
        let same = comparison(&[("operations", "load", difference(2000.0, 2002.0, 20.0))]);
        assert!(
            load(&same).starts_with("the same, 2002 write calls a second, +0.1 % (-0.9 to +1.1 %);"),
            "{}",
            load(&same)
        );
        let nearly = comparison(&[("operations", "load", difference(2000.0, 1999.9, 20.0))]);
        assert!(load(&nearly).contains(" a second, 0.0 % (-1.0 to +1.0 %)"), "{}", load(&nearly));
        let more = comparison(&[("operations", "load", difference(2000.0, 2600.0, 20.0))]);
        assert!(load(&more).contains("rose by 30.0 % (29.0 to 31.0 %): 2000 -> 2600"), "{}", load(&more));
    }

    #[test]
    fn several_changes_at_once_are_warned_about() {
        let mut c = comparison(&[]);
        assert!(besides(&c).starts_with("nothing that was recorded"));
        let setting = |what: &str, counts| Setting { what: what.into(), counts, ..Setting::default() };
        c.inventory = vec![setting("boot", true), setting("kernel", true), setting("started", false)];
        assert_eq!(besides(&c), "2 things were changed, and any of them may be the reason: boot, kernel");
    }
}
