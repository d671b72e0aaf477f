// SPDX-License-Identifier: Apache-2.0
//! Nobody is answered at all, because the one thread that should read what clients ask computes, or sleeps, and does nothing else.

use super::super::{Outcome, Statement, evidence};
use super::place::{self, Place};
use super::{RULE, mostly_in};
use crate::case::Case;
use crate::judgement::hung::{Hung, Stuck, look, reader};
use crate::ledger::threads::ThreadLedger;
use crate::remarks::hidden_queues;
use crate::verdict::{Finding, Subject};
use crate::wording::{count, requests, seconds, short};

/// The finding, if the thread is known.
pub(super) fn check(case: &Case) -> Option<Outcome> {
    let hung = look(case)?;
    let (thread, stuck) = reader(case, &hung)?;
    let function = place::name(case, (thread.pid, thread.tid)).filter(|_| stuck == Stuck::Computes);
    // In an interpreter the function is always the same; its own means tell more.
    let inside = hidden_queues::by_its_runtime(case).map(|hidden| hidden.look);
    let (does, advice) = match (stuck, inside, &function) {
        (Stuck::Computes, Some(look), _) => {
            ("computes all the time", format!("find what it is that does not end: {look}"))
        }
        (Stuck::Computes, None, Some(place)) => {
            ("computes all the time", format!("find out why {} does not end", short(&place.whole)))
        }
        (Stuck::Computes, None, None) => ("computes all the time", "find out why what it computes does not end".into()),
        (_, Some(look), _) => {
            ("sleeps all the time", format!("take the sleep out of the thread that serves all: {look}"))
        }
        _ => ("sleeps all the time", "take the sleep out of the thread that serves all".into()),
    };
    let headline = format!(
        "{}, for {} so far: thread {} (tid {}), which should read them, {does}",
        requests(hung.requests, "hang"),
        seconds(hung.owed_ns / 1e9),
        thread.comm,
        thread.tid
    );
    let finding = finding(case, &hung, &thread, (does, function));
    Some(Outcome::Found(Box::new(finding), Statement::short(headline, advice)))
}

fn finding(case: &Case, hung: &Hung, thread: &ThreadLedger, (does, function): (&str, Option<Place>)) -> Finding {
    let mostly = function.as_ref().map_or(String::new(), mostly_in);
    let (pid, tid, comm) = (thread.pid, thread.tid, thread.comm.clone());
    let stuck_ns = thread.lines.demand_ns().max(thread.lines.blocked_ns.values().copied().fold(0.0, f64::max));
    let mut measured = hung.evidence();
    measured.push(evidence(
        "the thread, in that state",
        stuck_ns / 1e9,
        "s",
        "",
        format!("cat /proc/{pid}/task/{tid}/wchan"),
    ));
    Finding {
        summary: format!(
            "Nobody was answered for the whole {}, while {} requests waited, {} of them unread. Thread {comm} (tid {tid}) {does}; \
             no other one reads what clients ask.{mostly}",
            seconds(case.seconds()),
            count(hung.requests),
            count(hung.unread)
        ),
        subject: Subject { pid: Some(pid), tid: Some(tid), comm: Some(comm), ..Subject::default() },
        explains: hung.explains(case),
        evidence: measured,
        remedy: RULE.explained().what_to_do,
        check: "Requests are answered again, and none hangs.".into(),
        ..RULE.finding(case, 2)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::asking::{found, silent};
    use super::super::RULE;
    use crate::judgement::hung::tests::{EPOLL, FUTEX, SLEEP, text};

    #[test]
    fn a_loop_that_sleeps_or_never_ends_computing() {
        let sleeps = found(&RULE, &text(&[("loop", SLEEP)], "wakeup"));
        assert!(sleeps.summary.contains("Thread loop (tid 1) sleeps all the time"), "{}", sleeps.summary);
        let computes = found(&RULE, &text(&[("pool", FUTEX), ("loop", "cpu")], "wakeup"));
        assert_eq!(computes.subject.tid, Some(2));
        silent(&RULE, &text(&[("pool", FUTEX), ("loop", EPOLL)], "wakeup"));
    }
}
