// SPDX-License-Identifier: Apache-2.0
//! Clients make a connection for each request, and a good part of the CPU time goes to taking and closing them.

use super::{Check, Checked, Rule, absent, evidence, found, too_little};
use crate::answer::{Measured, Unit};
use crate::case::Case;
use crate::judgement::churn::{Churn, Side, look};
use crate::remarks::hidden_queues;
use crate::verdict::{Evidence, Explains, Finding};
use crate::wording::{cores, count, percent};

pub(super) static RULE: Rule =
    Rule { cause: "connection-churn", explain: explain!("connection-churn"), check: Check::Accuses(check) };

/// Of its CPU time: a user who keeps connections open feels a quarter more room.
const MIN_SHARE: f64 = 0.25;

/// A tenth of a CPU: to save less is nobody's first step, however large a part of little it is.
const MIN_CORES: f64 = 0.1;

fn check(case: &Case) -> Checked {
    let Some(churn) = look(case) else {
        return absent("no client was seen to ask it for anything over TCP");
    };
    if !churn.is_churn() {
        return absent(churn.words());
    }
    let needed =
        [Measured::new(churn.part, MIN_SHARE, Unit::Share), Measured::new(churn.cores, MIN_CORES, Unit::Cores)];
    if let Some(seen) = Measured::farthest(needed) {
        let why = format!(
            "{} connections, one for each request, cost {} of its CPU time, {} (a finding needs 25 %, and 0.10 cores)",
            count(churn.taken),
            percent(churn.part),
            cores(churn.cores)
        );
        return too_little(seen, why);
    }
    let part = percent(churn.part);
    let (headline, advice) = match churn.side {
        Side::Clients => (
            format!("a connection for each request: {part} of its CPU time takes and closes them"),
            "keep connections open, in the clients and in each proxy between",
        ),
        Side::Own => (
            format!("it makes a connection for each question of its own: {part} of its CPU time makes and closes them"),
            "keep connections to those that it asks open: keep-alive, or a pool of connections",
        ),
    };
    found(finding(case, &churn), headline, advice)
}

fn finding(case: &Case, churn: &Churn) -> Finding {
    Finding {
        // Which requests are first ones is counted at the sockets; samples say what connections cost.
        summary: format!(
            "{}: to {} and to close them is {} of its CPU time, {}",
            churn.words(),
            if churn.side == Side::Own { "make" } else { "take" },
            percent(churn.part),
            cores(churn.cores)
        ),
        explains: Explains {
            share: churn.part,
            of: "on-CPU time".into(),
            seconds: churn.cores * case.seconds(),
        },
        evidence: rows(case, churn),
        remedy: "Keep connections open: HTTP keep-alive in the clients and in every proxy between, a pool in a client library. \
                 Where clients cannot, several processes that accept (SO_REUSEPORT) spread the cost, and do not save it."
            .into(),
        check: "The target calls accept4, or connect, far less often than it answers, and uses less CPU at the same load."
            .into(),
        ..RULE.finding(case, 2)
    }
}

fn rows(case: &Case, churn: &Churn) -> Vec<Evidence> {
    let pid = hidden_queues::pid_of_who_answers(case);
    vec![
        evidence(
            "connections that lived for one request",
            churn.taken,
            "connections",
            "far fewer than requests",
            format!("perf trace -s -p {pid}  # accept4, connect"),
        ),
        evidence("requests", churn.requests, "requests", "", ""),
        evidence(
            "CPU time in accept, connect, close and the like",
            churn.part * 100.0,
            "%",
            "under 25",
            format!("perf trace -s -p {pid}  # accept4, connect, close"),
        ),
        evidence("in TIME_WAIT, at most", churn.time_wait, "sockets", "harmless by itself", "ss -s"),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::asking::{found, silent};
    use super::RULE;

    /// A service that uses so much of a CPU, of which so many of a hundred samples are in close().
    fn text(first: u32, cpu_ns: f64, in_close: u32) -> String {
        format!(
            "meta host.arch=x86_64 length_ns=1e9 target.pids=[1]
             thread t_ns=1e9 pid=1 tid=1 wall_ns=1e9 cpu_ns={cpu_ns} blocked_ns=1e8
             counter source=proc/net/snmp entity=Tcp name=PassiveOpens value=0
             counter t_ns=9 source=proc/net/snmp entity=Tcp name=PassiveOpens value=9000
             counter source=proc/net/sockstat entity=TCP name=tw value=13946
             exchange_window t_ns=1e9 length_ns=1e9
             exchange t_ns=1e9 role=accepted port=80 stage=response count=9000 sum_ns=9e8 length_ns=[100000] counts=[9000]
             exchange t_ns=1e9 role=accepted port=80 stage=first_read count={first}
             sample pid=1 tid=1 kernel=true syscall=3 weight={in_close}
             sample pid=1 tid=1 kernel=true syscall=1 weight={}",
            100 - in_close
        )
    }

    #[test]
    fn short_connections_that_cost() {
        let finding = found(&RULE, &text(8900, 8e8, 40));
        assert!(finding.summary.contains("8900 connections were taken for 9000 requests"), "{}", finding.summary);
        assert!((finding.explains.seconds - 0.32).abs() < 1e-9, "{:?}", finding.explains);
    }

    #[test]
    fn short_connections_that_are_harmless() {
        let small = silent(&RULE, &text(8900, 8e8, 10));
        assert!(small.contains("one for each request, cost 10 % of its CPU time"), "{small}");
        assert!(silent(&RULE, &text(8900, 1e8, 40)).contains("0.04 cores"), "a large part of little");
    }

    /// A proxy whose clients keep their connections, and that makes one for each question of its own.
    #[test]
    fn connections_of_its_own_for_one_question_each() {
        let own = |opened: u32| {
            text(90, 8e8, 0)
                + &format!(
                    "\nsample pid=1 tid=1 kernel=true syscall=42 weight=60
                     counter source=proc/net/snmp entity=Tcp name=ActiveOpens value=0
                     counter t_ns=9 source=proc/net/snmp entity=Tcp name=ActiveOpens value={opened}
                     exchange t_ns=1e9 role=made peer=10.0.0.9:1 stage=response count=5000 sum_ns=9e8"
                )
        };
        let finding = found(&RULE, &own(20_000));
        assert!(finding.summary.starts_with("5000 connections were made for 5000 questions"), "{}", finding.summary);
        assert!(silent(&RULE, &own(900)).contains("connections were"), "kept");
    }

    #[test]
    fn connections_that_are_kept_and_nobody_who_asks() {
        let kept = silent(&RULE, &text(90, 8e8, 40));
        assert!(kept.contains("connections were taken for 9000 requests"), "{kept}");
        assert!(silent(&RULE, "meta length_ns=1e9").contains("no client"));
    }
}
