// SPDX-License-Identifier: Apache-2.0
//! Whether requests hang that nothing explains; and whether what threads waited for could be why.

use crate::case::Case;
use crate::facts::hanging::{AllHanging, Hanging, IN_VAIN_NS};
use crate::facts::requests::{Endpoint, LATE_NS, Requests};
use crate::facts::unexplained::Unexplained;
use crate::judgement::standing::{MIN_REST, matters};
use crate::verdict::Finding;
use crate::wording::{count, seconds};

/// Of the time of requests that hang: what takes less is not why.
const MIN_SHARE: f64 = 0.25;

/// What no thread waits for without somebody who wants it. With one there for a good part of the time, others queue for the thread, as
/// callbacks do that need one of a loop's few helpers.
const NEVER_FOR_NOTHING: [&str; 1] = ["slow-dns"];

/// Of the window. It is more: but a wait that goes on at the end is not known yet, and resolvers wait for five seconds.
const GOOD_PART: f64 = 0.33;

/// Of those that are late: with less, they may be the answers that were seen.
const MOST_OF_LATE: f64 = 0.5;

/// Whether so many hang at a port for so long that response times do not tell how its clients fare.
pub(crate) fn are_many(at: &Hanging) -> bool {
    at.connections >= MIN_REST && at.connections >= at.late * MOST_OF_LATE && at.owed_ns >= IN_VAIN_NS
}

/// At all such ports together: how many at a time, and for how long on average, ns.
pub(crate) fn told(hanging: &AllHanging) -> Option<(f64, f64)> {
    Some(hanging.together(are_many)).filter(|(connections, _)| *connections > 0.0)
}

/// How many hang at a time, and for how long on average, ns, if that is not explained.
pub(crate) fn unexplained(case: &Case) -> Option<(f64, f64)> {
    let hanging = told(&*case.fact::<AllHanging>().ok()?)?;
    case.fact::<Unexplained>().is_ok_and(|all| matters(&all)).then_some(hanging)
}

/// That a cause for which threads waited is none for the clients: those who get answers get them quickly, and the others wait
/// for many times longer than threads waited for it.
pub(crate) fn not_for(case: &Case, finding: &Finding) -> Option<String> {
    let (connections, owed_ns, p99_ns) = in_vain(case, finding)?;
    let answered = match p99_ns {
        0.0 => "no answer was seen".to_string(),
        ns => format!("99 % of the answers that came took {} or less", seconds(ns / 1e9)),
    };
    Some(format!(
        "threads waited for it for {} in all, but {} requests at a time got no answer for {} so far, and {answered}",
        seconds(finding.explains.seconds),
        count(connections),
        seconds(owed_ns / 1e9),
    ))
}

/// How many hang at a time, and for how long on average, ns, while others are answered at once: what was found is of those.
pub(crate) fn besides(case: &Case, finding: &Finding) -> Option<(f64, f64)> {
    in_vain(case, finding).filter(|(.., p99_ns)| *p99_ns > 0.0).map(|(connections, owed_ns, _)| (connections, owed_ns))
}

/// How many hang for many times longer than what was found explains, for how long on average, ns, and the slowest p99 of those that
/// are answered, ns; 0 = none is.
fn in_vain(case: &Case, finding: &Finding) -> Option<(f64, f64, f64)> {
    let (connections, owed_ns) = unexplained(case)?;
    let waited = connections * case.seconds();
    let p99_ns = slowest_p99_ns(case);
    let queue_for_it =
        NEVER_FOR_NOTHING.contains(&finding.cause.as_str()) && finding.explains.seconds >= case.seconds() * GOOD_PART;
    let is_why = finding.explains.seconds >= waited * MIN_SHARE || p99_ns >= LATE_NS || queue_for_it;
    (!is_why).then_some((connections, owed_ns, p99_ns))
}

/// The longest of 99 in a hundred answers to clients, at the port where they are slowest, ns.
fn slowest_p99_ns(case: &Case) -> f64 {
    let Ok(requests) = case.fact::<Requests>() else { return 0.0 };
    let p99 = |endpoint: &Endpoint| endpoint.response.quantile_ns(0.99);
    requests.endpoints.iter().filter(|endpoint| endpoint.accepted).map(p99).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Explains;

    /// A thread that waited for a timer of its own for 300 ms, beside connections that owe an answer for two seconds.
    #[test]
    fn what_threads_waited_for_a_little_is_not_why_requests_hang() {
        let why = |connections: u64, p99_ms: u64, cause: &str, waited: f64| {
            let text = format!(
                "meta host.arch=x86_64 length_ns=4e9 target.pids=[1]
                 thread t_ns=4e9 pid=1 tid=1 wall_ns=4e9 cpu_ns=1e7 blocked_ns=399e7
                 exchange_window t_ns=4e9 length_ns=4e9
                 exchange role=accepted port=80 stage=response count=90 sum_ns=1 length_ns=[{p99_ms}000000] counts=[90]
                 connection t_ns=4e9 role=accepted port=80 looks=40 open=640 late={} late_ns={}",
                connections * 40,
                connections * 80_000_000_000
            );
            let recording = recording::text::parse(&text).unwrap();
            let explains = Explains { seconds: waited, ..Explains::default() };
            let finding = Finding { cause: cause.into(), explains, ..Finding::default() };
            not_for(&Case::new(&recording), &finding)
        };
        let why_not = |connections, p99_ms| why(connections, p99_ms, "slow-dependency", 0.3);
        let said = why_not(8, 3).unwrap();
        assert!(
            said.contains("8 requests at a time got no answer for 2.0 s so far, and 99 % of the answers"),
            "{said}"
        );
        assert_eq!((why_not(8, 40), why_not(0, 3)), (None, None), "answers are slow too; nothing hangs");
        assert!(why(8, 3, "slow-dependency", 6.0).is_some(), "somebody who waits for news does so all the time");
        assert!(why(8, 3, "slow-dns", 1.4).is_none() && why(8, 3, "slow-dns", 0.3).is_some(), "a name is wanted now");
    }

    #[test]
    fn for_long_and_not_among_the_answers() {
        let are_many = |late, connections, owed_ns| are_many(&Hanging { late, connections, owed_ns });
        assert!(are_many(8.0, 8.0, 2e9));
        assert!(!are_many(8.0, 8.0, 2e8), "slow, not in vain");
        assert!(!are_many(8.0, 2.0, 2e9) && !are_many(0.3, 0.3, 9e9));
    }
}
