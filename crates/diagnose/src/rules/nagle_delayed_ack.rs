// SPDX-License-Identifier: Apache-2.0
//! Small writes without TCP_NODELAY stand in the target's send queue until an acknowledgement comes that the other end puts off.

mod clients;

use super::{Check, Checked, Rule, absent, evidence, explained, found, too_little, too_short};
use crate::answer::{Gap, Measured, Unit};
use crate::case::Case;
use crate::facts::waiting::Waiting;
use crate::judgement::in_parts;
use crate::judgement::nagle::{Held, Seen, look};
use crate::remarks::hidden_queues;
use crate::statistics::ratio;
use crate::verdict::{Evidence, Explains, Finding, Subject};
use crate::wording::{count, percent, port, seconds, sockets_to};

pub(super) static RULE: Rule =
    Rule { cause: "nagle-delayed-ack", explain: explain!("nagle-delayed-ack"), check: Check::Accuses(check) };

fn check(case: &Case) -> Checked {
    let seen = look(case);
    let asked = in_parts::look(case).filter(in_parts::InParts::waits_for_acknowledgement);
    if let (Some(asked), false) = (asked, matches!(seen, Seen::Cause(_))) {
        return clients::accuse(case, &asked);
    }
    match seen {
        Seen::Nothing => absent("no connection of the target was found with bytes that Nagle's algorithm held"),
        Seen::NotRecorded => Err(Gap::not_recorded(
            RULE.cause,
            "bytes stood unsent in connections of the target, and the recording does not say why: record again",
        )),
        Seen::TooLittle(held, seen) => {
            let why = format!("Nagle's algorithm held {} for {}", what(&held), told(&held));
            too_little(seen, why)
        }
        Seen::TooShort(held) => {
            let length = Measured::new(held.length_ns / 1e9, 0.02, Unit::Seconds);
            let why = format!(
                "Nagle's algorithm held {} for {}, {} at a time: the other end acknowledges without delay",
                what(&held),
                told(&held),
                seconds(held.length_ns / 1e9)
            );
            too_short(length, why)
        }
        Seen::Explained(held, why) => {
            explained(format!("Nagle's algorithm held {} for {}, but {why}", what(&held), told(&held)))
        }
        Seen::Cause(held) => accuse(case, &held),
    }
}

/// What stood in the queue.
fn what(held: &Held) -> String {
    match held.endpoint.accepted {
        true => "answers".to_string(),
        false => format!("questions to {}", held.endpoint.name),
    }
}

fn told(held: &Held) -> String {
    format!("{}, {} of the time that {} waits", seconds(held.ns / 1e9), percent(held.part), who_waits(held))
}

fn who_waits(held: &Held) -> &'static str {
    if held.endpoint.accepted { "whoever asks there" } else { "the target" }
}

fn accuse(case: &Case, held: &Held) -> Checked {
    let length = seconds(held.length_ns / 1e9);
    let headline = match held.endpoint.accepted {
        true => format!("Nagle's algorithm holds the rest of its answers back for some {length} each"),
        false => format!("Nagle's algorithm holds the rest of its questions back for some {length} each"),
    };
    let advice = match held.endpoint.accepted {
        true => "send each answer in one write, or set TCP_NODELAY on accepted connections".to_string(),
        false => format!("send each question to {} in one write, or set TCP_NODELAY", held.endpoint.name),
    };
    found(finding(case, held), headline, advice)
}

/// Counts within so many times of each other agree.
const AGREE: f64 = 3.0;

/// Who the other end is, where the walk met it.
fn other_end(case: &Case, held: &Held) -> String {
    if held.endpoint.accepted {
        return "its clients".to_string();
    }
    let waiting = case.fact::<Waiting>().ok();
    let chain = waiting.iter().flat_map(|w| &w.chains).find(|chain| chain.links[0].who.peer == held.endpoint.name);
    let name = chain.map(|chain| chain.links.get(1).map_or_else(|| chain.end.name(), |link| link.who.name()));
    match name.filter(|name| !name.is_empty()) {
        Some(name) => format!("{name} ({})", held.endpoint.name),
        None => held.endpoint.name.clone(),
    }
}

fn finding(case: &Case, held: &Held) -> Finding {
    let (target, other) = (&case.recording.meta.target, other_end(case, held));
    let endpoint = &held.endpoint;
    let holds = ratio(held.ns, held.length_ns);
    let agree = |n: Option<f64>| n.is_some_and(|n| n >= holds / AGREE && n <= holds * AGREE);
    let sources = 1 + usize::from(agree(held.writes)) + usize::from(agree(held.delayed_acks));
    let whole = match endpoint.accepted {
        true => format!("the time that clients wait at {}", endpoint.name.trim_start_matches("tcp ")),
        false => format!("the time that it waits for {}", endpoint.name),
    };
    Finding {
        summary: format!(
            "{} writes {} in pieces, without TCP_NODELAY: the later ones stood in its own send queue for {} in all, {} of \
             {whole}, some {} each, until {other} acknowledged the first one",
            target.comm,
            if endpoint.accepted { "its answers" } else { "its questions" },
            seconds(held.ns / 1e9),
            percent(held.part),
            seconds(held.length_ns / 1e9),
        ),
        subject: Subject {
            pid: target.pids.first().copied(),
            comm: Some(target.comm.clone()),
            socket: Some(endpoint.name.clone()).filter(|_| !endpoint.accepted),
            ..Subject::default()
        },
        explains: Explains { share: held.part, of: whole, seconds: held.ns / 1e9 },
        evidence: rows(case, held),
        remedy: format!(
            "The target holds it, and it can cure it alone: one write for each message (writev, or a buffer that is flushed \
             once at its end), or TCP_NODELAY. That {other} put off an acknowledgement for which there is no data to send \
             along, TCP allows."
        ),
        check: "At the same load, and at a low one too, the same diagnosis finds nothing held, and answers come sooner by as \
                much as a hold took."
            .into(),
        ..RULE.finding(case, sources)
    }
}

fn rows(case: &Case, held: &Held) -> Vec<Evidence> {
    let endpoint = &held.endpoint;
    let sockets = match (endpoint.accepted, port(&endpoint.name)) {
        (true, Some(port)) => format!("ss -tino sport = :{port}"),
        (true, None) => "ss -tino".to_string(),
        (false, _) => sockets_to("-tino", &endpoint.name),
    };
    let see = format!("{sockets}  # notsent, unacked");
    let mut rows = vec![
        evidence("connections with bytes that Nagle's algorithm held", endpoint.nagle_looks(), "looks", "0", see),
        evidence("held in all", held.ns / 1e9, "s", "0", ""),
        evidence("one hold, from how long ago data was sent last", held.length_ns / 1e9, "s", "under a round trip", ""),
        evidence("shortest round trip", endpoint.min_rtt_ns / 1e9, "s", "", "ss -tin  # minrtt"),
        evidence("of those connections, with TCP_NODELAY", endpoint.nodelay() * 100.0, "%", "100 %", ""),
        evidence("segments sent again", endpoint.retransmits, "segments", "", ""),
    ];
    if let Some(writes) = held.writes {
        let pid = hidden_queues::pid_of_who_answers(case);
        let strace = format!("strace -f -e trace=write,writev,sendto,sendmsg,setsockopt -p {pid}");
        rows.push(evidence("writes that had to wait for an acknowledgement", writes.round(), "writes", "0", strace));
    }
    if let Some(acks) = held.delayed_acks {
        let expected =
            format!("{} if the other end is in this network namespace", count(ratio(held.ns, held.length_ns)));
        rows.push(evidence(
            "acknowledgements that a timer sent here",
            acks,
            "",
            &expected,
            "nstat -az TcpExtDelayedACKs",
        ));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::super::asking::{found, gap, silent};
    use super::RULE;

    const TARGET: &str = "meta length_ns=4e9 target.pids=[7] target.comm=teller target.listen=[\"tcp 0.0.0.0:80\"]
        exchange_window t_ns=4e9 length_ns=4e9\n";

    /// A target that asks a store 80 times, and holds the rest of each question for 40 ms.
    fn asks(more: &str, exchanges: &str) -> String {
        format!(
            "{TARGET}
             connection t_ns=4e9 role=made peer=10.0.0.9:1 looks=40 open=40 unsent=32 nagle=32 nagle_ns=64e7 unanswered=32 min_rtt_ns=2e5 {more}
             exchange t_ns=4e9 role=made peer=10.0.0.9:1 stage=response count=80 sum_ns=33e8 {exchanges}"
        )
    }

    #[test]
    fn questions_in_two_writes() {
        let finding = found(&RULE, &asks("", "nagled=80"));
        assert!(finding.summary.contains("stood in its own send queue for 3.2 s in all, 97 %"), "{}", finding.summary);
        assert!(finding.summary.contains("some 40 ms each, until 10.0.0.9:1 acknowledged"), "{}", finding.summary);
        assert_eq!((finding.subject.pid, finding.subject.socket.as_deref()), (Some(7), Some("10.0.0.9:1")));
    }

    /// One question in twenty is held for 40 ms, the others take 10 ms: a sixth of all the time, and all of the slowest ones.
    #[test]
    fn a_few_questions_that_are_held() {
        let few = |count: u32| {
            asks("", "nagled=80")
                .replace("nagle=32 nagle_ns=64e7", "nagle=16 nagle_ns=32e7")
                .replace("count=80 sum_ns=33e8", &format!("count={count} sum_ns={count}e7"))
        };
        assert!(found(&RULE, &few(800)).summary.contains("1.6 s in all, 20 %"));
        assert!(silent(&RULE, &few(8000)).contains("2.0 %"), "{}", silent(&RULE, &few(8000)));
    }

    #[test]
    fn answers_in_two_writes() {
        let text = format!(
            "{TARGET}
             connection t_ns=4e9 role=accepted port=80 looks=40 open=40 unsent=20 nagle=20 nagle_ns=40e7 min_rtt_ns=2e5
             exchange t_ns=4e9 role=accepted port=80 stage=response count=50 sum_ns=5e7 nagled=50"
        );
        let finding = found(&RULE, &text);
        assert!(finding.explains.share > 0.95 && finding.explains.seconds == 2.0, "{:?}", finding.explains);
        assert!(finding.summary.contains("until its clients acknowledged"), "{}", finding.summary);
        // Among many others that are not held it is a small part, and chance is no cause.
        assert!(silent(&RULE, &text.replace("sum_ns=5e7", "sum_ns=5e10")).contains("3.8 %"));
        assert!(silent(&RULE, &text.replace("nagle=20", "nagle=4")).contains("400 ms"));
    }

    #[test]
    fn a_slow_answer_with_a_long_round_trip_is_no_hold() {
        let slow = "connection t_ns=4e9 role=made peer=10.0.0.9:1 looks=40 open=40 unanswered=39 on_its_way=30 srtt_ns=6e8 min_rtt_ns=2e5
            exchange t_ns=4e9 role=made peer=10.0.0.9:1 stage=response count=90 sum_ns=39e8";
        assert!(silent(&RULE, &format!("{TARGET}{slow}")).contains("no connection"));
    }

    #[test]
    fn held_by_a_window_a_long_way_or_a_loss() {
        let window = asks("", "").replace("nagle=32 nagle_ns=64e7", "rwnd=32");
        assert!(silent(&RULE, &window).contains("no connection"));
        let far = asks("", "nagled=80").replace("min_rtt_ns=2e5", "min_rtt_ns=38e6");
        assert!(silent(&RULE, &far).contains("40 ms at a time: the other end acknowledges without delay"));
        assert!(silent(&RULE, &asks("retransmits=60", "nagled=80")).contains("segments were lost"));
        assert!(silent(&RULE, &asks("", "nagled=2")).contains("hardly any write"));
    }

    #[test]
    fn clients_that_do_not_wait_for_it() {
        let clients = |sum_ns: f64| {
            format!(
                "{}\nexchange t_ns=4e9 role=accepted port=80 stage=response count=900 sum_ns={sum_ns} length_ns=[{}] counts=[900]",
                asks("", "nagled=80"),
                (sum_ns / 900.0) as u64
            )
        };
        assert!(silent(&RULE, &clients(9e10)).contains("its clients hardly wait for that"));
        found(&RULE, &clients(9e9));
    }

    #[test]
    fn an_older_recording_does_not_say() {
        let old = asks("", "").replace("nagle=32 nagle_ns=64e7", "");
        assert!(gap(&RULE, &old).why.contains("does not say why"));
    }
}
