// SPDX-License-Identifier: Apache-2.0
//! Requests hang, all or some, because somebody whom the service asked does not answer it: no wait for that has ended yet.

use std::net::SocketAddr;

use super::super::{Outcome, Statement, evidence};
use super::RULE;
use crate::case::Case;
use crate::facts::silent::{Silent, SilentPeer};
use crate::judgement::hung::{Hung, look};
use crate::judgement::silent::most;
use crate::verdict::{Finding, Subject};
use crate::wording::{count, requests, seconds, sockets_to};

/// The finding, if there is such a one.
pub(super) fn check(case: &Case) -> Option<Outcome> {
    let hung = look(case)?;
    let silent = case.fact::<Silent>().ok()?;
    let peer = most(&silent)?;
    let (name, late, owed) = (&peer.name, count(peer.held.late), seconds(peer.held.late_ns / 1e9));
    let headline =
        format!("{}: {name} has answered none of {late} questions, for {owed} so far", requests(hung.requests, "hang"));
    let advice = format!("find out why it is silent ({}), and limit how long it is waited for", look_there(name));
    let finding = finding(case, &hung, peer);
    Some(Outcome::Found(Box::new(finding), Statement::short(headline, advice)))
}

/// How to look at whoever was asked.
fn look_there(name: &str) -> String {
    match name.parse::<SocketAddr>() {
        Ok(address) if address.ip().is_loopback() => format!("`sudo wakewalk diagnose --port {}`", address.port()),
        _ => "look at the other end".into(),
    }
}

fn finding(case: &Case, hung: &Hung, SilentPeer { name, held }: &SilentPeer) -> Finding {
    let others = hung.others.words();
    let stands = match held.awaited {
        none if none < 0.5 => String::new(),
        awaited => format!(" In {} of these connections a thread stands in a read.", count(awaited)),
    };
    let see = sockets_to("-tnoi", name);
    let asked = vec![
        evidence(&format!("questions to {name} without one"), held.late, "at a time", "0", see),
        evidence("for how long these", held.late_ns / 1e9, "s", "as long as an answer takes", ""),
        evidence("of these, with a thread in their read", held.awaited, "at a time", "", ""),
    ];
    Finding {
        summary: format!(
            "{others} {} requests wait, for {} so far; for {} {name} has owed the answer to {} questions, and gave none.{stands} \
             Long polls that are passed on look the same.",
            count(hung.requests),
            seconds(hung.owed_ns / 1e9),
            seconds(held.late_ns / 1e9),
            count(held.late)
        ),
        subject: Subject { socket: Some(name.to_string()), ..Subject::default() },
        explains: hung.explains(case),
        evidence: [hung.evidence(), asked].concat(),
        remedy: format!(
            "See why {name} is silent: {}. Set a limit of time to the reads there, so that one that is silent holds nobody for good.",
            look_there(name)
        ),
        check: "Requests are answered again, and none hangs.".into(),
        // Long polls that are passed on look the same, and by their number alone connections on which something was ordered for each request.
        ..RULE.finding(case, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::asking::found;
    use super::*;
    use crate::judgement::hung::tests::{READ, text};

    #[test]
    fn whoever_was_asked_is_silent() {
        let text = text(
            &[("worker", READ)],
            "connection t_ns=4e9 role=made peer=127.0.0.1:81 looks=40 open=800 late=800 late_ns=440e10 awaited=800\nwakeup",
        );
        let finding = found(&RULE, &text);
        assert_eq!(finding.subject.socket.as_deref(), Some("127.0.0.1:81"));
        assert!(finding.summary.contains("In 20 of these connections a thread stands"), "{}", finding.summary);
        let Some(Outcome::Found(_, said)) = check(&Case::new(&recording::text::parse(&text).unwrap())) else {
            panic!("not found")
        };
        assert!(said.headline.contains("127.0.0.1:81 has answered none of 20 questions, for 5.5 s so far"), "{said:?}");
        assert!(said.advice.contains("diagnose --port 81"), "{said:?}");
    }
}
