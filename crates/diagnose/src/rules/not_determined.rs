// SPDX-License-Identifier: Apache-2.0
//! The evidence does not carry a verdict. Says what is missing, and what to run to get it.

use super::{Check, Explain, Rule, Statement};
use crate::case::Case;
use crate::facts::host::HostRank;
use crate::facts::quality::Quality;
use crate::ledger::threads::Threads;
use crate::verdict::Gap;
use crate::wording::{percent, plural, seconds};

pub(super) static RULE: Rule = Rule {
    cause: "not-determined",
    explain: Explain {
        means: "Too much of the evidence is missing to name a cause, and to say that there is none.",
        recognised_by: "The recording is very short, ledger lines cover less than 90 % of the threads' time, a tenth of \
                        some events was lost, or a cause could not be looked at.",
        what_to_do: "Read what is missing, run wakewalk doctor to see what this kernel allows, and record again for \
                     longer.",
        look_alikes: "healthy: there, everything was looked at and ruled out.",
    },
    check: Check::Neutral(check),
};

/// Below, a tenth of the threads' time is unaccounted for, and a cause could be all of it.
const MIN_COVERAGE: f64 = 0.9;

/// From a tenth of lost events on, what was lost need not look like what was kept.
const MAX_LOSS: f64 = 0.1;

/// A neutral verdict says that nothing is wrong: ten quota periods and a hundred samples are the least
/// that it may rest on.
const MIN_SECONDS: f64 = 0.9;

fn check(case: &Case, gaps: &[Gap]) -> Option<Statement> {
    if case.recording.meta.kind == "host" {
        return Some(whole_host(case));
    }
    if let Some(statement) = too_short(case) {
        return Some(statement);
    }
    let missing = missing(case, gaps);
    if let ([_], [gap]) = (&missing[..], gaps)
        && gap.what == "slow-dependency"
    {
        return Some(Statement {
            headline: "it waited, and whether for work or for an answer cannot be told".into(),
            advice: "if it takes its work from there, it was idle; else look at the other end".into(),
            detail: format!("{}.", gap.why),
        });
    }
    let first = missing.first()?;
    let rest = missing.len() - 1;
    let more = if rest == 0 { String::new() } else { format!(" (and {} more)", plural(rest, "reason")) };
    Some(Statement {
        headline: "the evidence does not carry a verdict".into(),
        advice: "run `sudo wakewalk doctor`, then diagnose again for 30s".into(),
        detail: format!(
            "What is missing: {first}{more}. `sudo wakewalk doctor` says what this kernel allows; then try `{}`.",
            again(case, "30s")
        ),
    })
}

/// The same look once more, for longer.
fn again(case: &Case, length: &str) -> String {
    let named = &case.recording.meta.target.named;
    // A command that is started takes all words behind it.
    match named.strip_prefix("-- ") {
        Some(_) => format!("sudo wakewalk diagnose --for {length} {named}"),
        None if named.is_empty() => format!("sudo wakewalk diagnose --pid PID --for {length}"),
        None => format!("sudo wakewalk diagnose {named} --for {length}"),
    }
}

/// A capture that was cut short lacks nothing but time: no doctor helps.
fn too_short(case: &Case) -> Option<Statement> {
    let length = case.seconds();
    if length >= MIN_SECONDS {
        return None;
    }
    let length = seconds(length);
    let (how, advice) = match case.recording.meta.ended.as_str() {
        "interrupted" => (format!("was interrupted after {length}"), "let it watch for ten seconds, or one at least"),
        "target exited" => {
            (format!("ended with its target after {length}"), "diagnose it while it runs, or start it: `-- COMMAND`")
        }
        // Its length is written at the end only, and the ledger once a second.
        "" => ("was killed in its first second".to_string(), "diagnose again; ten seconds are enough"),
        _ => (format!("lasted {length}"), "diagnose again for ten seconds"),
    };
    Some(Statement {
        headline: format!("the capture {how}, too short to tell"),
        advice: advice.into(),
        detail: format!(
            "A verdict needs a second at least: ten periods of a CPU quota and a hundred samples. The capture {how}; \
             what it saw is shown. Next: `{}`.",
            again(case, "10s")
        ),
    })
}

fn missing(case: &Case, gaps: &[Gap]) -> Vec<String> {
    let mut missing = Vec::new();
    match case.fact::<Threads>() {
        Err(gap) => missing.push(gap.why),
        Ok(t) if t.total.wall_ns <= 0.0 => missing.push("the target had no thread in the window".to_string()),
        Ok(t) if t.coverage < MIN_COVERAGE => {
            missing.push(format!("the ledger accounts for {} of the threads' time only", percent(t.coverage)));
        }
        Ok(_) => {}
    }
    if let Ok(q) = case.fact::<Quality>()
        && q.worst_loss >= MAX_LOSS
    {
        missing.push(format!("{} of the events of {} were lost", percent(q.worst_loss), q.worst_loss_of));
    }
    missing.extend(gaps.iter().map(|g| format!("{} could not be looked at: {}", g.what, g.why)));
    missing
}

fn whole_host(case: &Case) -> Statement {
    let rank = case.fact::<HostRank>().map(|r| r.processes.first().cloned()).ok().flatten();
    match rank {
        Some(p) => Statement {
            headline: format!("no target was named; {} (pid {}) loses most time", p.comm, p.pid),
            advice: format!("`{}`", p.command),
            detail: format!("It lost {} of {}.", seconds(p.lost_ns() / 1e9), seconds(case.seconds())),
        },
        None => Statement {
            headline: "no target was named, and no process lost time on this host".into(),
            advice: "name a target: `sudo wakewalk diagnose --pid PID`".into(),
            detail: String::new(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::asking::stated;
    use super::*;

    const FULL: &str = "meta length_ns=1e9 target.named=\"--port 80\"
        thread t_ns=1e9 pid=1 tid=1 wall_ns=1e9 cpu_ns=1e9\n";

    #[test]
    fn silent_on_good_evidence() {
        assert_eq!(stated(&RULE, FULL, &[]), None);
    }

    #[test]
    fn what_is_missing_is_named() {
        let detail = |text: &str, gaps: &[Gap]| stated(&RULE, text, gaps).unwrap().detail;
        assert!(detail("meta length_ns=1e9", &[]).contains("no thread ledger"));
        assert!(detail("meta length_ns=1e9\nthread pid=1 tid=1", &[]).contains("no thread in the window"));
        assert!(
            detail("meta length_ns=1e9\nthread pid=1 tid=1 wall_ns=1e9 cpu_ns=5e8", &[]).contains("accounts for 50 %")
        );
        assert!(
            detail(&format!("{FULL}loss what=ring count=20 kept=80"), &[])
                .contains("20 % of the events of ring were lost")
        );
        let gap = Gap { what: "busy-poll".into(), why: "no calls".into() };
        assert!(detail(FULL, &[gap]).contains("busy-poll could not be looked at: no calls"));
        let again = stated(&RULE, &format!("{FULL}loss what=r count=1 kept=1"), &[]).unwrap().detail;
        assert!(again.contains("diagnose --port 80 --for 30s"), "{again}");
    }

    #[test]
    fn a_capture_that_was_cut_short_says_how_short() {
        let said = |ended: &str, named: &str| {
            let text = format!(
                "meta length_ns=4e8 ended=\"{ended}\" target.named=\"{named}\"\nthread pid=1 tid=1 wall_ns=4e8 cpu_ns=4e8"
            );
            stated(&RULE, &text, &[]).unwrap()
        };
        let s = said("interrupted", "--port 80");
        assert!(s.headline.contains("interrupted after 400 ms, too short"), "{s:?}");
        assert!(s.detail.contains("`sudo wakewalk diagnose --port 80 --for 10s`"), "{s:?}");
        assert!(said("target exited", "-- sleep 0.4").detail.contains("diagnose --for 10s -- sleep 0.4"));
        assert!(said("", "--pid 1").headline.contains("killed in its first second"));
        assert!(said("time", "--pid 1").headline.contains("lasted 400 ms"));
    }

    #[test]
    fn a_host_recording_points_at_processes() {
        let text = "meta kind=host length_ns=5e9\nthread pid=7 tid=7 comm=redis wall_ns=5e9 cpu_ns=3e9 blocked_ns=2e9";
        let s = stated(&RULE, text, &[]).unwrap();
        assert!(s.headline.contains("redis (pid 7) loses most time") && s.detail.contains("3.0 s of 5.0 s"), "{s:?}");
        assert!(s.advice.contains("sudo wakewalk diagnose --pid 7"));
        assert!(stated(&RULE, "meta kind=host", &[]).unwrap().headline.contains("no process lost time"));
    }
}
