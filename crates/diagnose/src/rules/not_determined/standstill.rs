// SPDX-License-Identifier: Apache-2.0
//! A service that stood still for a while: too short for a share of the window, and everybody waited.

use recording::Part;
use recording::tables::Request;

use super::super::Statement;
use crate::case::Case;
use crate::judgement::standstill::{Standstill, look};
use crate::ledger::threads::{Lines, Threads};
use crate::remarks::hidden_queues;
use crate::statistics::ratio;
use crate::wording::{count, seconds};

/// The statement about it.
pub(super) fn check(case: &Case) -> Option<Statement> {
    let seen = look(case)?;
    let (some, about) = if seen.is_followed { ("", "") } else { ("some ", "about ") };
    let length = format!("{some}{}", seconds(seen.ns / 1e9));
    let slices = seen.slices();
    let (from, until) = (slices.from_ns as f64 / 1e9, slices.to_ns as f64 / 1e9);
    Some(Statement {
        headline: format!(
            "for {length} nobody got an answer, while {about}{} requests waited{}; why is not determined",
            count(seen.requests as f64),
            asked_meanwhile(case, &seen).unwrap_or_default()
        ),
        advice: advice(case, (from, until)),
        detail: format!(
            "Between {from:.0} s and {until:.0} s of the capture nobody was answered at {} for {length}, where {} answers were due{}.{}{}",
            seen.endpoint,
            count(seen.due.round()),
            told_by(&seen),
            if seen.ns < case.length_ns() * SMALL { HARDLY_SHOWN } else { "" },
            meanwhile(case, slices).unwrap_or_default(),
        ),
    })
}

/// Of the window.
const SMALL: f64 = 0.25;
const HARDLY_SHOWN: &str = " That is a small part of the window, so that its averages show little of it.";

/// What to do next: ask for that part alone, unless this was it.
fn advice(case: &Case, (from, until): (f64, f64)) -> String {
    if until - from >= case.seconds() {
        return format!("look while it stands still: {}", hidden_queues::look(case).look);
    }
    format!(
        "keep a recording with such a time in it (--save DIR), and ask for that part alone: \
         `wakewalk diagnose --from DIR --at {from:.0}s..{until:.0}s`"
    )
}

/// By what it was told.
fn told_by(seen: &Standstill) -> String {
    match seen.is_followed {
        true => format!("; {} requests that stood then were answered after it", count(seen.requests as f64)),
        false => ", as the looks at its connections tell: exchanges were not followed then".to_string(),
    }
}

/// Of its length: a question that took as long is hardly beside it by accident.
const AS_LONG: f64 = 0.2;

/// Whom the target asked then, by one question that took about as long: whoever asked may have held what all others waited for.
fn asked_meanwhile(case: &Case, seen: &Standstill) -> Option<String> {
    let slice = (seen.until_ns - seen.ns - 1e9, seen.until_ns);
    let length = |row: &Request| row.t_ns.saturating_sub(row.began_ns) as f64;
    let is_long = |row: &&Request| row.is_made() && !row.handshake && length(row) >= seen.ns / 2.0;
    let is_then = |row: &&Request| (slice.0..=slice.1).contains(&(row.t_ns as f64));
    let long: Vec<&Request> = case.recording.rows::<Request>().iter().filter(is_long).collect();
    let row = long.iter().find(|row| is_then(row) && (length(row) - seen.ns).abs() <= seen.ns * AS_LONG)?;
    // Who always waits so long for a peer waits for what there is to do.
    let others = long.iter().any(|other| other.peer == row.peer && !is_then(other));
    (!others && !row.peer.is_empty())
        .then(|| format!(", and one question to {} took {}", row.peer, seconds(length(row) / 1e9)))
}

/// Of a second: less is chance.
const WORTH_A_WORD: f64 = 0.1;

/// Whoever stands there keeps nobody.
const FREE: &str = "blocked_accept";

/// What its threads did then, and otherwise do not: the line of the ledger that grew most.
fn meanwhile(case: &Case, slices: Part) -> Option<String> {
    let part = case.part(slices)?;
    let (then, whole) = (part.fact::<Threads>().ok()?, case.fact::<Threads>().ok()?);
    let of =
        |lines: &Lines, line: &str| lines.named().iter().find(|(name, _)| *name == line).map_or(0.0, |(_, ns)| *ns);
    let otherwise_ns = case.length_ns() - part.length_ns();
    let grew = |(line, ns): (&'static str, f64)| {
        let otherwise = ratio(of(&whole.total, line) - ns, otherwise_ns);
        (line, ns, ns - otherwise * part.length_ns())
    };
    let lines = then.total.named().into_iter().filter(|(line, _)| *line != FREE);
    let (line, ns, grown) = lines.map(grew).max_by(|a, b| a.2.total_cmp(&b.2))?;
    let line = line.replacen("blocked_", "blocked: ", 1).replace('_', " ");
    (grown >= WORTH_A_WORD * 1e9).then(|| {
        let (ns, usual) = (seconds(ns / 1e9), seconds((ns - grown).max(0.0) / 1e9));
        format!(" Of the thread time then, {ns} was on the line \"{line}\"; in as long otherwise, {usual}.")
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::asking::stated;
    use super::super::RULE;
    use crate::judgement::standstill::tests::text;

    #[test]
    fn a_second_in_which_nobody_got_an_answer() {
        let said = stated(&RULE, &text(2400, 2, 920, 4), &[]).unwrap();
        assert!(said.headline.starts_with("for 920 ms nobody got an answer, while 4 requests waited"), "{said:?}");
        assert!(said.advice.ends_with("--at 2s..4s`"), "{said:?}");
        assert!(said.detail.contains("for 920 ms, where 554 answers were due; 4 requests"), "{said:?}");
        assert!(stated(&RULE, &text(2400, 2, 90, 4), &[]).is_none());
        let asked = |ms: u32| {
            format!(
                "\nrequest t_ns=38e8 role=made peer=10.0.0.9:5432 pid=1 began_ns={}e6 began_tid=1 read_ns=38e8 ended_tid=1",
                3800 - ms
            )
        };
        let headline = |ms| stated(&RULE, &(text(2400, 2, 920, 4) + &asked(ms)), &[]).unwrap().headline;
        assert!(headline(900).contains("4 requests waited, and one question to 10.0.0.9:5432 took 900 ms;"));
        assert!(headline(90).contains("4 requests waited; why"));
    }
}
