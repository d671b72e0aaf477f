// SPDX-License-Identifier: Apache-2.0
//! The evidence does not carry a verdict. Says what is missing, and what to run to get it.

use super::{Check, Rule, Statement};

mod corked;
mod expects;
mod few;
mod handshakes;
mod held;
mod interpreter;
mod kept_open;
mod open_transaction;
mod scattered;
mod standing;
mod standstill;
mod stuck;
mod unread;
mod untold;

use crate::answer::Gap;
use crate::case::Case;
use crate::facts::host::HostRank;
use crate::facts::quality::Quality;
use crate::facts::waiting::Waiting;
use crate::judgement::{asked, errors, hanging, hung, standers, untaken};
use crate::ledger::threads::Threads;
use crate::phrases;
use crate::remarks::{hidden_queues, until_said};
use crate::wording::{percent, plural, seconds, sockets_to, word};

pub(super) static RULE: Rule =
    Rule { cause: "not-determined", explain: explain!("not-determined"), check: Check::Neutral(check) };

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
    // Whatever else is missing: nothing of it would have been there.
    if let Some(statement) = held::check(case) {
        return Some(statement);
    }
    let missing = missing(case, gaps);
    if missing.is_empty() {
        return unexplained(case);
    }
    if let ([_], [gap]) = (&missing[..], gaps) {
        match gap.what.as_str() {
            "slow-dependency" => return Some(until_said(case).unwrap_or_else(|| waited(case, gap))),
            "pool-exhausted" => return Some(not_taken(case, gap)),
            _ => {}
        }
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

/// What the time of requests went to is not seen, or not whether it was meant.
fn unexplained(case: &Case) -> Option<Statement> {
    let first = |asked: &[fn(&Case) -> Option<Statement>]| asked.iter().find_map(|check| check(case));
    failing(case).or_else(|| match until_said(case) {
        Some(said) => first(&[standstill::check, open_transaction::check, unread::check]).or(Some(said)),
        None => first(&[
            interpreter::check,
            hanging,
            expects::check,
            open_transaction::check,
            scattered::check,
            standstill::check,
            corked::check,
            handshakes::check,
            standing::check,
            few::check,
            untold::check,
        ]),
    })
}

/// Most of the time of requests passed until another client sent something: that is seen, and whether it is meant is not.
fn until_said(case: &Case) -> Option<Statement> {
    let said = until_said::remark(case)?;
    Some(Statement { headline: said.headline, advice: said.advice.unwrap_or_default(), detail: said.detail })
}

/// It waited for others, and for whom or what cannot be told.
fn waited(case: &Case, gap: &Gap) -> Statement {
    if let Some((who, peer)) = asked::unsent(case) {
        return Statement {
            headline: format!("waits for {who}, but part of its own questions stood unsent"),
            advice: format!(
                "send each question in one write, or set TCP_NODELAY; `{}` shows what is unsent",
                sockets_to("-tino", &peer)
            ),
            detail: format!("{}.", gap.why),
        };
    }
    let is_untold = case.fact::<Waiting>().is_ok_and(|waiting| asked::is_untold(case, &waiting));
    let unseen = asked::unseen(case).filter(|_| !is_untold);
    let (headline, advice) = match unseen {
        _ if is_untold => (
            "it waited, and whether for work or for an answer cannot be told".to_string(),
            "if it takes its work from where it waits, it was idle; else look at the other end".to_string(),
        ),
        Some((who, look)) => (format!("it waited for {who}, and what that one did meanwhile was not seen"), look),
        None => (
            "it waited for an answer, and who is to blame cannot be told".to_string(),
            "see below what speaks for the other end".to_string(),
        ),
    };
    Statement { headline, advice, detail: format!("{}.", gap.why) }
}

/// Clients stand before it, and nobody was seen to take them.
fn not_taken(case: &Case, gap: &Gap) -> Statement {
    if let Some(untaken) = untaken::look(case) {
        return Statement {
            headline: untaken.headline(),
            advice: untaken.advice(),
            detail: format!("{}.", untaken.detail()),
        };
    }
    let stand =
        hung::where_threads_stand(case).map(|said| format!("{said} {}", untaken_by(case)).trim_end().to_string());
    if let Some((thread, line)) = hung::one_that_stands(case) {
        let (who, stands) = (format!("{} (tid {})", thread.comm, thread.tid), stuck::stands(case, line, thread.pid));
        return Statement {
            headline: format!("connections stand in the accept queue, and thread {who} all the time {stands}"),
            advice: stuck::look_there(case, line, thread.pid),
            detail: format!(
                "{}. Where each worker has a listener of its own (SO_REUSEPORT), those in the queue of one that stands still are \
                 taken by nobody.{}",
                gap.why,
                stand.map_or_else(String::new, |said| format!(" {said}"))
            ),
        };
    }
    if let Some(statement) = kept_open::check(case, gap) {
        return statement;
    }
    let advice = match &stand {
        Some(_) => format!("look inside: {}", hidden_queues::look(case).look),
        None => "see below in what its threads are blocked: perhaps in connections of clients that say nothing".into(),
    };
    Statement {
        headline: match standers::most(case) {
            Some(most) => format!("connections stand in the accept queue, nobody takes them, and {most}"),
            None => {
                "connections stand in the accept queue, and what keeps whoever should take them was not seen".into()
            }
        },
        advice,
        detail: format!("{}.{}", gap.why, stand.map_or_else(String::new, |said| format!(" {said}"))),
    }
}

/// Where those stand who might take them, as a sentence.
fn untaken_by(case: &Case) -> String {
    hung::any(case).and_then(|hung| standers::sentence(case, &hung)).unwrap_or_default()
}

/// Errors that the kernel counted: whatever the time went to, such a service is not well.
fn failing(case: &Case) -> Option<Statement> {
    let errors = errors::above(case);
    let first = errors.first()?;
    let others = errors.iter().skip(1).map(|error| format!(" Besides: {}.", error.what));
    Some(Statement {
        headline: first.what.clone(),
        advice: first.advice.clone(),
        detail: format!(
            "Its time shows no cause, but the network stack or the calls of the target counted errors: {}.{} {}",
            first.what,
            others.collect::<String>(),
            first.about
        )
        .trim_end()
        .to_string(),
    })
}

/// Requests that hang: what little its threads did meanwhile says nothing of them.
fn hanging(case: &Case) -> Option<Statement> {
    hanging::unexplained(case).and_then(|_| standing::check(case))
}

/// The same look once more, for longer.
fn again(case: &Case, length: &str) -> String {
    let named = &case.recording.meta.target.named;
    // All behind the option is its value. A command is not repeated: the recording may be a stranger's.
    let target = match named.split_once(' ') {
        Some(("--", _)) => return format!("sudo wakewalk diagnose --for {length} -- COMMAND"),
        Some((option @ ("--pid" | "--port" | "--comm" | "--unit" | "--cgroup"), value)) => {
            format!("{option} {}", word(value))
        }
        _ => "--pid PID".to_string(),
    };
    format!("sudo wakewalk diagnose {target} --for {length}")
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
            advice: format!("`{}`", phrases::host::command(&p)),
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
        let gap = Gap::not_recorded("busy-poll", "no calls");
        assert!(detail(FULL, &[gap]).contains("busy-poll could not be looked at: no calls"));
        let again = stated(&RULE, &format!("{FULL}loss what=r count=1 kept=1"), &[]).unwrap().detail;
        assert!(again.contains("diagnose --port 80 --for 30s"), "{again}");
    }

    /// A service with one client, which waits for a database, and for a lock whose holder sleeps.
    fn waits(database_ns: u64, lock_ns: u64) -> String {
        format!(
            "meta host.arch=x86_64 length_ns=1e9 target.pids=[1]
             process pid=1 listen=[\"tcp 0.0.0.0:80\"]
             frame id=1 symbol=hrtimer_wakeup module=kernel kind=kernel
             frame id=2 symbol=net_rx_action module=kernel kind=kernel
             stack id=1 frames=[1]
             stack id=2 frames=[2]
             thread t_ns=1e9 pid=1 tid=1 comm=api wall_ns=1e9 cpu_ns=1e8 blocked_ns=9e8
             wakeup t_ns=100e6 pid=1 tid=1 comm=api wait_ns=9e6 blocked_ns=9e6 syscall=0 family=2 local_port=80 remote_port=5 peer=10.0.0.9 context=interrupt waker_stack=2
             wakeup t_ns=900e6 since_ns=100e6 pid=1 tid=1 comm=api wait_ns=20e6 blocked_ns={database_ns} syscall=0 family=2 local_port=7 remote_port=5432 peer=10.0.0.7 context=interrupt waker_stack=2
             wakeup t_ns=950e6 since_ns=100e6 pid=1 tid=3 comm=api wait_ns=20e6 blocked_ns={lock_ns} syscall=202 args=[64,128,2,0] context=thread waker_pid=1 waker_tid=2 waker_comm=api waker_syscall=202
             wakeup t_ns=949e6 since_ns=100e6 pid=1 tid=2 comm=api wait_ns=19e6 blocked_ns=19e6 syscall=230 context=interrupt waker_stack=1"
        )
    }

    #[test]
    fn several_causes_of_which_none_is_enough() {
        let s = stated(&RULE, &waits(500_000_000, 450_000_000), &[]).unwrap();
        assert!(s.headline.starts_with("waits 90 % of its active time, for several things"), "{s:?}");
        assert!(s.detail.contains("api/1 in read (10.0.0.7:5432) for 500 ms; api/1 in futex (lock) for"), "{s:?}");
        // Little of the time; and threads that sleep by themselves.
        assert_eq!(stated(&RULE, &waits(50_000_000, 50_000_000), &[]), None);
        let alone = waits(0, 0).replace("wait_ns=19e6 blocked_ns=19e6", "wait_ns=19e6 blocked_ns=800e6");
        assert_eq!(stated(&RULE, &alone, &[]), None);
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
        assert!(said("target exited", "-- sleep 0.4").detail.contains("diagnose --for 10s -- COMMAND`"));
        assert!(said("", "--comm 1; curl x | sh").detail.contains("--comm '1; curl x | sh' --for 10s`"));
        assert!(said("", "1; curl x | sh").detail.contains("diagnose --pid PID --for 10s`"));
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
