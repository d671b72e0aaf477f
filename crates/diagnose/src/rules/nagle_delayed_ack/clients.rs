// SPDX-License-Identifier: Apache-2.0
//! The same at the other end: clients hold the rest of what they ask until the target's kernel has acknowledged the beginning.

use super::super::{Checked, evidence, found};
use super::{AGREE, RULE};
use crate::case::Case;
use crate::judgement::in_parts::InParts;
use crate::verdict::{Evidence, Explains, Finding, Subject};
use crate::wording::{count, percent, seconds};

/// Clients whose questions wait for an acknowledgement of this host.
pub(super) fn accuse(case: &Case, asked: &InParts) -> Checked {
    let each = seconds(asked.endpoint.rest.quantile_ns(0.5) / 1e9);
    let headline =
        format!("its clients hold the rest of each question back for {each}: Nagle's algorithm at their end");
    found(
        finding(case, asked, &each),
        headline,
        "in the clients, send each question in one write, or set TCP_NODELAY; this service waits for them",
    )
}

fn finding(case: &Case, asked: &InParts, each: &str) -> Finding {
    let target = &case.recording.meta.target;
    let at = asked.endpoint.name.trim_start_matches("tcp ");
    let agree = asked.delayed_acks.is_some_and(|acks| acks <= asked.count * AGREE);
    Finding {
        summary: format!(
            "Clients at {at} send what they ask in parts: {} waited {each} for the rest of it, {} of the response time. It came \
             each time once this host's kernel had acknowledged the first part, which it puts off for 40 ms",
            target.comm,
            percent(asked.part),
        ),
        subject: Subject {
            pid: target.pids.first().copied(),
            comm: Some(target.comm.clone()),
            socket: Some(asked.endpoint.name.clone()),
            clients: true,
            ..Subject::default()
        },
        explains: Explains {
            share: asked.part,
            of: format!("the response time at {at}"),
            seconds: asked.seconds,
        },
        evidence: rows(asked),
        remedy: "The clients hold it, and they can cure it alone: one write for each question (writev, or a buffer that is flushed \
                 once at its end), or TCP_NODELAY. Nothing that this service computes shortens it."
            .into(),
        check: "At the same load, questions come whole, and answers sooner by as much as the rest took.".into(),
        ..RULE.finding(case, 1 + usize::from(agree))
    }
}

fn rows(asked: &InParts) -> Vec<Evidence> {
    let rest = &asked.endpoint.rest;
    let acks = asked.delayed_acks.unwrap_or_default();
    let port = asked.endpoint.port;
    vec![
        evidence("questions that came in parts", asked.count, "questions", "0", ""),
        evidence("of all questions there", rest.count / asked.endpoint.response.count.max(1.0) * 100.0, "%", "0", ""),
        evidence(
            "until the rest came, half of them",
            rest.quantile_ns(0.5) / 1e9,
            "s",
            "under a round trip",
            format!("tcpdump -ttt -i any 'tcp dst port {port}'"),
        ),
        evidence("came as late as a timer of this kernel acknowledges", asked.after_timer * 100.0, "%", "", ""),
        evidence(
            "came in step with the ticks of this kernel's timers",
            asked.in_step.unwrap_or_default() * 100.0,
            "%",
            "clients that pause by themselves come at any time between two ticks",
            "",
        ),
        evidence(
            "acknowledgements that this timer sent",
            acks,
            "",
            &format!("{}, one for each", count(asked.count)),
            "nstat -az TcpExtDelayedACKs",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::super::asking::{found, silent};
    use super::RULE;
    use crate::judgement::in_parts::tests::text;

    #[test]
    fn clients_that_wait_for_an_acknowledgement() {
        let finding = found(&RULE, &text(41, 104, ""));
        assert!(finding.summary.contains("shop waited 41 ms for the rest of it, 98 %"), "{}", finding.summary);
        assert_eq!((finding.confidence.as_str(), finding.subject.socket.as_deref()), ("high", Some("tcp 0.0.0.0:80")));
        // So many acknowledgements are others' too.
        assert_eq!(found(&RULE, &text(41, 1000, "")).confidence, "medium");
    }

    #[test]
    fn clients_that_are_slow_by_themselves() {
        assert!(silent(&RULE, &text(41, 3, "")).contains("no connection"));
        assert!(silent(&RULE, &text(20, 104, "")).contains("no connection"));
    }
}
