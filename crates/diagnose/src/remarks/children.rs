// SPDX-License-Identifier: Apache-2.0
//! A target that starts processes all the time: starting and ending them is a cost that no function shows.

use super::Remark;
use crate::case::Case;
use crate::facts::children::Children;
use crate::wording::{count, percent};

/// A second: fewer are the odd helper (a cron job, a shell command).
const MANY: f64 = 10.0;

/// Likewise, where they are a good part of the CPU time: one for each request of a service that is hardly asked.
const SOME: f64 = 5.0;

/// Of the target's CPU time: less is not where the time goes.
const WORTH: f64 = 0.05;

/// From a quarter of the CPU time on, fewer children are the first thing to try.
const MOST: f64 = 0.25;

/// What there is to say about short-lived children.
pub(crate) fn remark(case: &Case) -> Option<Remark> {
    let c = case.fact::<Children>().ok()?;
    let least = if c.cpu_share >= MOST { SOME } else { MANY };
    if c.per_second < least || c.cpu_share < WORTH {
        return None;
    }
    let names = c.names.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    Some(Remark {
        headline: format!(
            "it starts {} processes a second, {} of its CPU time",
            count(c.per_second),
            percent(c.cpu_share)
        ),
        advice: (c.cpu_share >= MOST)
            .then(|| "start fewer processes: keep workers alive, or do their work inside".to_string()),
        detail: format!(
            "{} short-lived processes ({names}) came and went, {} a second, and took {} of its CPU time; starting them \
             costs their parent besides.",
            count(c.count as f64),
            count(c.per_second),
            percent(c.cpu_share)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    fn of(children: u32, cpu_ns: f64) -> Option<Remark> {
        let text = format!(
            "meta length_ns=10e9\nthread t_ns=10e9 pid=1 tid=1 comm=sh wall_ns=10e9 cpu_ns=1e9 blocked_ns=9e9
             thread t_ns=10e9 comm=date instances={children} wall_ns=10e9 cpu_ns={cpu_ns} blocked_ns=0
             process comm=date instances={children}"
        );
        remark(&Case::new(&parse(&text).unwrap()))
    }

    #[test]
    fn many_children_are_called_by_their_name() {
        let r = of(4800, 3e9).unwrap();
        assert_eq!(r.headline, "it starts 480 processes a second, 75 % of its CPU time");
        assert!(r.advice.is_some() && r.detail.contains("4800 short-lived processes (date)"), "{}", r.detail);
        assert!(of(4800, 2e8).unwrap().advice.is_none(), "a sixth of its time: worth a word, no advice");
    }

    #[test]
    fn few_or_cheap_ones_are_not() {
        assert!(of(20, 3e9).is_none() && of(80, 2e8).is_none() && of(4800, 1e7).is_none());
        assert!(of(80, 3e9).unwrap().headline.starts_with("it starts 8 processes a second"));
    }
}
