// SPDX-License-Identifier: Apache-2.0
//! The one thread that serves all clients waits in a call for the answer of somebody whom it asked for one of them, or for a program
//! that it started for it, and the others stand until that has come.

use std::collections::BTreeSet;

use recording::tables::Wakeup;

use super::super::{Outcome, Statement, evidence};
use super::RULE;
use crate::case::Case;
use crate::facts::connections::open_at;
use crate::facts::stacks::Stacks;
use crate::judgement::asked;
use crate::judgement::felt::Felt;
use crate::judgement::paths::{is_of_a_program, waits_for_a_peer};
use crate::phrases::chain::{called_from, callers, links};
use crate::runtimes::code::Code;
use crate::syscall::{self, Family, family, is_loop};
use crate::verdict::{Finding, Subject};
use crate::walk::chains::Chain;
use crate::walk::paths::{Part, What};
use crate::walk::{INNER, Walk, Who};
use crate::wording::{percent, seconds};

/// Connections of clients that the thread holds at once, on average: one that takes them one after the other is no loop.
const SEVERAL: f64 = 1.5;

/// Of the time of requests: whoever asks waits as long itself, so that in most of it they may all the same.
const MIN_SHARE: f64 = 0.25;

/// The finding, if a good part of the time of requests went to that. Of the slowest ones, many ask themselves, and those that stand
/// behind them may be quicker.
pub(super) fn check(case: &Case, felt: &Felt) -> Option<Outcome> {
    of(case, felt).or_else(|| of(case, &felt.with_quick_ones()))
}

fn of(case: &Case, felt: &Felt) -> Option<Outcome> {
    let (pid, tid) = felt.one_thread(case)?;
    let held = open_at(case, felt.port());
    if held < SEVERAL {
        return None;
    }
    let waits_in = calls(case, (pid, tid));
    let is_it = |part: &Part| chain(part).is_some_and(|chain| part.before && blocks(&chain.links[0].who, &waits_in));
    let part = Some(felt.group().share(is_it)).filter(|part| *part >= MIN_SHARE)?;
    let chains = felt.group().parts.iter().filter(|part| is_it(part)).filter_map(chain);
    let longest = chains.max_by(|a, b| a.ns.total_cmp(&b.ns))?;
    let asked = asked::who(longest);
    let headline = format!(
        "{} wait {} of {} while the one thread that serves them waits for {asked}",
        felt.whose(),
        seconds(felt.mean_ns() * part / 1e9),
        seconds(felt.mean_ns() / 1e9)
    );
    let finding = finding(case, felt, (pid, tid), (part, longest, held))?;
    let advice = match is_of_a_program(longest) {
        true => format!("start {asked} without waiting for it in the loop: asynchronously, or in a thread of its own"),
        false => format!("ask {asked} without blocking the loop: an asynchronous client, or a thread of its own"),
    };
    Some(Outcome::Found(Box::new(finding), Statement::short(headline, advice)))
}

fn chain(part: &Part) -> Option<&Chain> {
    let What::Waits(chain) = &part.what else { return None };
    (waits_for_a_peer(part) || is_of_a_program(chain)).then_some(chain)
}

/// Whether a wait is one for that peer or program alone: the thread does nothing else until it is over. A client with a timeout polls
/// before it reads, but in another call than its loop, or for another set of files.
fn blocks(who: &Who, waits_in: &BTreeSet<String>) -> bool {
    let mut polls = waits_in.iter().filter(|call| family(call) == Family::Poll);
    match family(&who.call) {
        Family::Receive | Family::Connect | Family::Child => polls.next().is_some(),
        Family::Poll => who.fd_kind == INNER || !is_loop(&who.call) && polls.any(|call| is_loop(call)),
        _ => false,
    }
}

/// The calls in which a thread was seen to wait.
fn calls(case: &Case, thread: (u32, u32)) -> BTreeSet<String> {
    let arch = &case.recording.meta.host.arch;
    let rows = case.recording.rows::<Wakeup>().iter().filter(|row| (row.pid, row.tid) == thread);
    rows.map(|row| syscall::name(arch, row.syscall)).collect()
}

fn finding(
    case: &Case,
    felt: &Felt,
    (pid, tid): (u32, u32),
    (part, longest, held): (f64, &Chain, f64),
) -> Option<Finding> {
    let (walk, stacks) = (case.fact::<Walk>().ok()?, case.fact::<Stacks>().ok()?);
    let (asked, who) = (asked::who(longest), &longest.links[0].who);
    let from = called_from(&walk, who, &stacks);
    let mut measured = felt.evidence("of it, while the thread waited for an answer to others", part);
    measured.push(evidence("connections of clients that it holds", held, "connections", "", ""));
    Some(Finding {
        summary: format!(
            "{}; for {} of it thread {} (tid {tid}), which serves all, waited in {} for {asked} because of others{from}",
            felt.words(),
            percent(part),
            who.comm,
            who.call,
        ),
        subject: Subject {
            pid: Some(pid),
            tid: Some(tid),
            comm: Some(who.comm.clone()),
            syscall: Some(who.call.clone()),
            socket: Some(who.peer.clone()).filter(|peer| !peer.is_empty()),
            function: callers(walk.code(who), &stacks).next().map(Code::label),
            ..Subject::default()
        },
        explains: felt.explains(case, part),
        evidence: measured,
        chain: links(longest, &stacks),
        remedy: remedy(&asked, is_of_a_program(longest)),
        check: "Requests that ask nobody are answered at once while another one waits for its answer.".into(),
        ..RULE.finding(case, 2)
    })
}

fn remedy(asked: &str, is_program: bool) -> String {
    let (how, what) = match is_program {
        true => ("Start it asynchronously (as `execFile`, not `execSync`)", "it ends"),
        false => ("Ask by the loop's own client (asynchronous)", "the answer comes"),
    };
    format!(
        "While one request waits for {asked}, the loop serves nobody. {how}, or in threads that the loop hands such requests to; until \
         then, do so less often (cache), or run several of these processes. That {what} sooner helps too: look at {asked}."
    )
}

#[cfg(test)]
mod tests {
    use super::super::super::asking::{found, silent};
    use super::super::RULE;

    /// Thread 1 takes three requests every 100 ms; for the first it asks a store that answers after 40 ms, in a call of this number, and
    /// serves the others after that.
    fn text(call: u32, open: u32) -> String {
        let mut text = format!(
            "meta host.arch=x86_64 length_ns=10e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"] target.sample_hz=100
             process pid=1 listen=[\"tcp 0.0.0.0:80\"]
             thread t_ns=10e9 pid=1 tid=1 comm=python wall_ns=10e9 cpu_ns=1e8 blocked_ns=98e8
             frame id=1 symbol=net_rx_action module=kernel kind=kernel
             stack id=1 frames=[1]
             burst t_ns=10e9 length_ns=10e9
             exchange_window t_ns=10e9 length_ns=10e9
             exchange role=accepted port=80 stage=response count=270 sum_ns=113e8 length_ns=[42000000] counts=[270]
             exchange role=made peer=10.0.0.9:5432 stage=response count=90 sum_ns=36e8 length_ns=[40000000] counts=[90]
             connection t_ns=10e9 role=accepted port=80 looks=100 open={}\n",
            open * 100
        );
        for at in (0..90u32).map(|nth| 50 + nth * 100) {
            text += &format!(
                "wakeup t_ns={at}e6 pid=1 tid=1 comm=python wait_ns=57e6 blocked_ns=57e6 since_ns={since}e6 waits=1 syscall=232 context=interrupt family=2 local_port=80 remote_port=9 waker_stack=1
                 wakeup t_ns={answer}e6 pid=1 tid=1 comm=python wait_ns=40e6 blocked_ns=40e6 since_ns={asked}e6 waits=1 syscall={call} context=interrupt family=2 local_port=4000 remote_port=5432 peer=10.0.0.9 waker_stack=1
                 request t_ns={answer}e6 role=made peer=10.0.0.9:5432 pid=1 began_ns={asked}e6 began_tid=1 read_ns={answer}e6 ended_tid=1
                 request t_ns={first}e6 role=accepted port=80 peer=10.0.0.2:9 pid=1 began_ns={at}e6 began_tid=1 read_ns={at}e6 ended_tid=1
                 request t_ns={second}e6 role=accepted port=80 peer=10.0.0.2:10 pid=1 began_ns={at}e6 began_tid=1 read_ns={first}e6 ended_tid=1
                 request t_ns={second}e6 role=accepted port=80 peer=10.0.0.2:11 pid=1 began_ns={at}e6 began_tid=1 read_ns={first}e6 ended_tid=1\n",
                since = at.saturating_sub(57),
                asked = at + 1,
                answer = at + 41,
                first = at + 42,
                second = at + 43,
            );
        }
        text
    }

    #[test]
    fn a_call_that_waits_for_one_answer_keeps_the_others_waiting() {
        let finding = found(&RULE, &text(45, 6));
        assert!(finding.summary.contains("waited in recvfrom for 10.0.0.9:5432"), "{}", finding.summary);
        assert_eq!(finding.subject.socket.as_deref(), Some("10.0.0.9:5432"));
        found(&RULE, &text(7, 6)); // a poll(2) before it, with a timeout
    }

    #[test]
    fn a_loop_that_goes_on_meanwhile_or_a_worker_for_each() {
        silent(&RULE, &text(232, 6));
        silent(&RULE, &text(45, 1));
    }

    /// `text`, where the loop waits for its clients in the set of files 5, and for the answer in this one.
    fn in_set(set: u32) -> String {
        let told = |line: &str| {
            let set = if line.contains("local_port=80") { 5 } else { set };
            line.replace("syscall=232", &format!("syscall=232 args=[{set},0,16,0]"))
        };
        text(232, 6).lines().map(told).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_loop_inside_the_loop_looks_at_no_client() {
        let finding = found(&RULE, &in_set(7));
        assert!(finding.summary.contains("waited in epoll_wait for 10.0.0.9:5432"), "{}", finding.summary);
        assert_eq!(finding.chain[0].waits_on, "epoll_wait (10.0.0.9:5432)");
        silent(&RULE, &in_set(5));
    }

    /// A program is started anew for each, and waited for in this call: for its end, or for what it prints.
    fn started(call: u32) -> String {
        let asked = "context=interrupt family=2 local_port=4000 remote_port=5432 peer=10.0.0.9 waker_stack=1";
        let ended = |nth: u64| {
            let pid = 77 + nth;
            format!("context=thread waker_pid={pid} waker_tid={pid} waker_comm=convert waker_syscall=231")
        };
        let mut started = "process pid=0 instances=90 comm=convert\n".to_string();
        let text = text(call, 6);
        let mut nth = 0;
        for line in text.lines().filter(|line| !line.contains("role=made")) {
            started += &format!("{}\n", line.replace(asked, &ended(nth)));
            nth += u64::from(line.contains(asked));
        }
        for (nth, at) in (0..90).map(|nth| (nth, 50 + nth * 100)) {
            let pid = 77 + nth;
            started += &format!(
                "wakeup t_ns={}e6 since_ns={at}e6 pid={pid} tid={pid} comm=convert wait_ns=38e6 blocked_ns=38e6 waits=1 syscall=230 context=interrupt waker_stack=1\n",
                at + 40,
            );
        }
        started
    }

    #[test]
    fn a_program_that_the_loop_waits_for() {
        for call in [61, 7] {
            let finding = found(&RULE, &started(call));
            assert!(finding.remedy.contains("Start it asynchronously"), "{}", finding.remedy);
        }
        silent(&RULE, &started(232));
        // A packet came meanwhile: whoever was interrupted is no program.
        let by_packet = "context=interrupt waker_comm=swapper/0 family=2 local_port=80 remote_port=9";
        let others = started(7).replace("waker_syscall=231", "").replace("context=thread", by_packet);
        silent(&RULE, &others);
    }
}
