// SPDX-License-Identifier: Apache-2.0
//! Requests wait until a connection is made to somebody who does not answer: where a loop or a runtime waits for that, no thread is
//! seen to. A name with several addresses is tried one after the other, and one that nobody reaches holds up each request.

use super::super::{Outcome, Statement, evidence};
use super::RULE;
use crate::case::Case;
use crate::facts::connections::{Connections, Held};
use crate::facts::own_ends::OTHERS;
use crate::facts::unexplained::Unexplained;
use crate::judgement::standing::matters;
use crate::statistics::{ratio, share};
use crate::verdict::{Explains, Finding, Subject};
use crate::wording::sockets_to;

/// Of the requests that nothing else explains, connections that are being made: with fewer, requests wait for something else.
const MOST: f64 = 0.6;

/// Of the same, at most: with more, they are made for something else.
const ABOUT_AS_MANY: f64 = 1.5;

/// At a time: one that is tried for ever beside one long poll is as many as that.
const SEVERAL: f64 = 2.0;

/// The finding, if there is such a one.
pub(super) fn check(case: &Case) -> Option<Outcome> {
    let (connections, standing) = (case.fact::<Connections>().ok()?, case.fact::<Unexplained>().ok()?);
    let (name, held) = connections.peers.iter().max_by(|a, b| a.1.opening.total_cmp(&b.1.opening))?;
    let is_it = held.opening >= SEVERAL && (MOST..=ABOUT_AS_MANY).contains(&ratio(held.opening, standing.rest()));
    if !matters(&standing) || !is_it || name == OTHERS {
        return None;
    }
    let headline =
        format!("requests wait for {name} to take a connection: {:.1} at a time are asked for in vain", held.opening);
    let advice = "see why nobody answers there (`ss -tno state syn-sent`), or leave that address out".to_string();
    Some(Outcome::Found(Box::new(finding(case, name, held, &standing)), Statement::short(headline, advice)))
}

fn finding(case: &Case, name: &str, held: &Held, standing: &Unexplained) -> Finding {
    let never = if held.open < 0.01 { " None was seen to be made." } else { "" };
    Finding {
        summary: format!(
            "{:.1} requests at a time had waited for 10 ms or longer, and for {:.1} of them nothing else is known; {:.1} connections \
             to {name} at a time were asked for without an answer, about as many.{never}",
            standing.late,
            standing.rest(),
            held.opening
        ),
        subject: Subject { socket: Some(name.to_string()), ..Subject::default() },
        explains: Explains {
            share: share(held.opening, standing.late),
            of: "response time of requests".into(),
            seconds: held.opening * case.seconds(),
        },
        evidence: vec![
            evidence(
                "connections that nobody has answered",
                held.opening,
                "at a time",
                "0",
                sockets_to("-tno state syn-sent", name),
            ),
            evidence("requests that wait for 10 ms or longer", standing.late, "at a time", "", ""),
            evidence("of these, with nothing else to wait for", standing.rest(), "at a time", "0", ""),
        ],
        remedy: format!(
            "Find out why nobody answers at {name}: the host is down or not reached from here, a packet filter drops what is sent, or \
             the listener's accept queue is full. Where a name has an address of each family, a client tries one first and the \
             other after a quarter of a second: leave out the one that is not reached, or mend its route. Keep connections, and \
             limit how long one is waited for."
        ),
        check: "No connection stands in SYN-SENT, and the response time falls by this part.".into(),
        // By their number alone.
        ..RULE.finding(case, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::asking::{found, silent};
    use super::super::RULE;

    /// Requests that stand for 300 ms, and connections that are asked for.
    fn service(late: u32, opening: u32, thread: &str) -> String {
        format!(
            "meta host.arch=x86_64 length_ns=4e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
             process pid=1 listen=[\"tcp 0.0.0.0:80\"]
             thread t_ns=4e9 pid=1 tid=1 comm=loop wall_ns=4e9 {thread}
             connection t_ns=4e9 role=accepted port=80 looks=40 open=800 unanswered={late} late={late} late_ns={}
             connection t_ns=4e9 role=made peer=[fd00::9]:443 looks=40 opening={opening}
             wakeup",
            u64::from(late) * 150_000_000
        )
    }

    const IDLE: &str = "cpu_ns=1e8 blocked_ns=39e8";

    #[test]
    fn connections_that_nobody_answers() {
        let finding = found(&RULE, &service(120, 108, IDLE));
        assert_eq!(finding.subject.socket.as_deref(), Some("[fd00::9]:443"));
        assert!((finding.explains.share - 0.9).abs() < 0.01, "{:?}", finding.explains);
        assert!(finding.summary.contains("2.7 connections to [fd00::9]:443"), "{}", finding.summary);
    }

    #[test]
    fn one_that_is_tried_again_and_again_or_many_for_something_else() {
        silent(&RULE, &service(400, 40, IDLE));
        silent(&RULE, &service(40, 400, IDLE));
        silent(&RULE, &service(120, 108, "cpu_ns=39e8 blocked_ns=1e8"));
        silent(&RULE, &service(0, 40, IDLE));
        silent(&RULE, &service(40, 40, IDLE));
    }
}
