// SPDX-License-Identifier: Apache-2.0
//! One thread serves all clients, and they wait while it is busy with the request of another, or waits for that.

mod asks;
mod hung;
mod place;
mod stood;

use self::place::Place;
use super::{Check, Checked, Rule, absent, evidence, explained, found, too_little};
use crate::answer::{Measured, Unit};
use crate::case::Case;
use crate::facts::limits::{Limits, ThreadUse};
use crate::judgement::felt::Felt;
use crate::judgement::full::FULL;
use crate::judgement::loops::{self, Loop};
use crate::judgement::paths::label_on_cpu;
use crate::judgement::secure::mostly_computed;
use crate::judgement::waits_for_turn::WaitsForTurn;
use crate::runtimes::collectors::Collector;
use crate::verdict::{Finding, Subject};
use crate::walk::Kind;
use crate::walk::paths::{Part, What};
use crate::wording::{count, percent, seconds, short};

pub(super) static RULE: Rule =
    Rule { cause: "event-loop-blocked", explain: explain!("event-loop-blocked"), check: Check::Accuses(check) };

/// Of the time of slow requests.
const MIN_SHARE: f64 = 0.5;

fn check(case: &Case) -> Checked {
    let Some(felt) = Felt::of(case) else {
        // Where requests were followed, what they waited for is known better.
        let unseen = || absent("no answer took 10 ms or longer of which it was seen what for");
        return stood::check(case).or_else(|| hung::check(case)).map_or_else(unseen, Ok);
    };
    let part = felt.group().share(is_others_turn);
    let words = format!(
        "requests waited for {} of their response time while the thread that serves them computed for others",
        percent(part)
    );
    if part < MIN_SHARE {
        let seen = Measured::new(part, MIN_SHARE, Unit::Share);
        let computes_little = || too_little(seen, format!("{words} (under {})", percent(MIN_SHARE)));
        return asks::check(case, &felt).map_or_else(computes_little, Ok);
    }
    computes(case, &felt, (part, &words))
}

/// The finding, of a thread that computes for others in a good part of the time of requests.
fn computes(case: &Case, felt: &Felt, (part, words): (f64, &str)) -> Checked {
    let limits = case.fact::<Limits>()?;
    let Some(Loop { thread: (pid, tid), of }) = loops::of(case, felt.port()) else {
        return explained(format!("{words}, but several threads serve them"));
    };
    let of_thread = limits.threads.iter().find(|t| (t.pid, t.tid) == (pid, tid));
    if let Some(queue) = of_thread.and_then(|thread| queue(case, felt, thread)) {
        return explained(format!("{words}, {queue}"));
    }
    let busy = of_thread.map_or(0.0, |t| t.on_cpu);
    let comm = of_thread.map_or_else(String::new, |t| t.comm.clone());
    let collector = place::collector(case, (pid, tid));
    let does = if collector.is_some() { "collects garbage" } else { "computes for others" };
    let headline = format!(
        "{} wait {} of {} while the {} that serves them {does}",
        felt.whose(),
        seconds(felt.mean_ns() * part / 1e9),
        seconds(felt.mean_ns() / 1e9),
        if of == 1 { "one thread".to_string() } else { format!("one of {of} threads") }
    );
    // Whatever called the collector, it could not be taken elsewhere.
    let function = if collector.is_none() { place::name(case, (pid, tid)) } else { None };
    let place = function.as_ref().map_or_else(|| "what it computes for long".to_string(), |place| short(&place.whole));
    let asked = label_on_cpu(case).map_or_else(String::new, |(label, part)| {
        format!(", or find who asks for {label} ({} of the CPU time of requests)", percent(part))
    });
    let finding = finding(case, felt, (pid, tid, comm, of), (part, busy), function);
    match collector {
        Some(collector) => found(of_collector(finding, collector), headline, collector.less_often),
        None => match mostly_computed(case, busy * case.length_ns()) {
            Some(part) => found(of_handshakes(finding, part), headline, FEWER_HANDSHAKES),
            None => found(finding, headline, format!("take {place} out of the loop{asked}")),
        },
    }
}

const FEWER_HANDSHAKES: &str =
    "let clients keep connections and resume TLS sessions, or take a key of an elliptic curve (ECDSA)";

/// The same where it computes handshakes of TLS.
fn of_handshakes(finding: Finding, part: f64) -> Finding {
    Finding {
        summary: format!("{} TLS handshakes are {} of its CPU time.", finding.summary, percent(part)),
        remedy: format!(
            "No work can be moved elsewhere: {FEWER_HANDSHAKES}, which costs a tenth of one of RSA. More processes or threads that \
             accept share the rest."
        ),
        ..finding
    }
}

/// The same where the thread does not compute for anybody, but stands still for its runtime.
fn of_collector(finding: Finding, collector: &Collector) -> Finding {
    Finding {
        summary: format!(
            "{} In most of the samples of long answers it collects garbage ({}).",
            finding.summary, collector.runtime
        ),
        remedy: format!(
            "No work can be moved elsewhere: the collector of {} stops the thread that serves all. Make it collect less often, and \
             less at a time: {}.",
            collector.runtime, collector.less_often
        ),
        ..finding
    }
}

/// Why requests only stand in a queue before the thread, if so.
fn queue(case: &Case, felt: &Felt, thread: &ThreadUse) -> Option<String> {
    // One that wants a CPU all the time has a queue of requests before it, whoever has that CPU.
    if thread.demand >= FULL {
        return Some(format!("which wants a CPU for {} of the time: all of it is load", percent(thread.demand)));
    }
    let short = WaitsForTurn::of(case, felt, thread, is_others_turn).filter(WaitsForTurn::are_short)?;
    Some(format!(
        "some {} of them each, at {} of CPU time an answer: a queue of short ones",
        count(short.others),
        seconds(short.each_ns / 1e9)
    ))
}

/// Whether the thread computed for another request, before this one's turn came.
fn is_others_turn(part: &Part) -> bool {
    part.before && matches!(part.what, What::Awake { kind: Kind::OnCpu | Kind::Short, .. })
}

/// In a sentence behind others.
fn mostly_in(place: &Place) -> String {
    match &place.mostly {
        Some(function) => {
            format!(" Its CPU time in long answers is in {}, most of that in {}.", short(&place.whole), short(function))
        }
        None => format!(" Most of its CPU time is in {}.", short(&place.whole)),
    }
}

fn finding(
    case: &Case,
    felt: &Felt,
    (pid, tid, comm, of): (u32, u32, String, usize),
    (part, busy): (f64, f64),
    function: Option<Place>,
) -> Finding {
    let mostly = function.as_ref().map_or(String::new(), mostly_in);
    let mut measured = felt.evidence("of it, while the thread computed for others", part);
    measured.push(evidence("the thread, on a CPU", busy * 100.0, "%", "", format!("pidstat -t -p {pid} 1")));
    Finding {
        summary: format!(
            "{}; for {} of it {}, computed for others.{mostly}",
            felt.words(),
            percent(part),
            match of {
                1 => format!("thread {comm} (tid {tid}), which serves all"),
                _ => format!("their thread, of {of} that each serve some and most of all {comm} (tid {tid})"),
            }
        ),
        subject: Subject { pid: Some(pid), tid: Some(tid), comm: Some(comm), ..Subject::default() },
        explains: felt.explains(case, part),
        evidence: measured,
        remedy: RULE.explained().what_to_do,
        check: "The slowest answers come down to what their own work takes, at the same load.".into(),
        ..RULE.finding(case, 2)
    }
}

#[cfg(test)]
mod tests {
    use super::super::asking::{found, silent};
    use super::RULE;

    /// Thread 1 answers a request every 100 ms that lay unread for most of `held` ms, because it computed for another one.
    fn text(held: u32, cpu_ns: &str, tids: u32) -> String {
        let mut text = format!(
            "meta host.arch=x86_64 length_ns=10e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"] target.sample_hz=100
             process pid=1 listen=[\"tcp 0.0.0.0:80\"]
             thread t_ns=10e9 pid=1 tid=1 comm=node wall_ns=10e9 cpu_ns={cpu_ns} blocked_ns=1e9
             burst t_ns=10e9 length_ns=10e9
             exchange_window t_ns=10e9 length_ns=10e9
             wakeup
             exchange role=accepted port=80 stage=response count=180 sum_ns=9e9 length_ns=[{held}000000] counts=[180]\n"
        );
        for (nth, at) in (0..90u32).map(|nth| (nth, 50 + nth * 100)) {
            let (tid, end, read) = (1 + nth % tids, at + held, at + held - 1);
            text += &format!(
                "request t_ns={at}e6 role=accepted port=80 pid=1 began_ns={}e6 began_tid={tid} read_ns={}e6 ended_tid={tid}
                 request t_ns={end}e6 role=accepted port=80 pid=1 began_ns={at}e6 began_tid={tid} read_ns={read}e6 ended_tid={tid}
                 wakeup t_ns={woken}e6 pid=1 tid={tid} comm=node wait_ns=1e6 blocked_ns=1e6 since_ns={since}e6 waits=1 cpu_ns=1e6 syscall=232 context=interrupt family=2 local_port=80 remote_port=9\n",
                at - held,
                at - 1,
                woken = at - 20,
                since = at.saturating_sub(70),
            );
        }
        text
    }

    #[test]
    fn one_thread_computes_while_all_wait() {
        let finding = found(&RULE, &text(30, "4e9", 1));
        assert!(finding.explains.share > 0.9 && finding.summary.contains("which serves all"), "{finding:?}");
    }

    /// The same, and samples in the long answers are in the runtime's collector.
    #[test]
    fn a_loop_that_collects_garbage_has_nothing_to_move() {
        let mut text = text(30, "4e9", 1)
            + "frame id=1 symbol=v8::internal::Heap::CollectGarbage module=node kind=native\nstack id=1 frames=[1] complete=true\n";
        for nth in 0..90 {
            text += &format!("sample t_ns={}e6 pid=1 tid=1 comm=node stack=1 weight=1\n", 50 + nth * 100 + 15);
        }
        let finding = found(&RULE, &text);
        assert!(finding.remedy.contains("V8 (Node.js) stops the thread"), "{}", finding.remedy);
        assert!(finding.summary.contains("it collects garbage"), "{}", finding.summary);
    }

    /// The thread is kept from its CPU now and then, and answers all that came meanwhile one after the other.
    #[test]
    fn a_queue_of_short_ones_is_none_that_computes_for_long() {
        let counted = "count=5400 sum_ns=11e9 length_ns=[1000000,30000000] counts=[5220,180]";
        let one = text(30, "4e9", 1);
        let mut queue = one.split_once("count=180").unwrap().0.to_string() + counted + "\n";
        queue += one.split_once("counts=[180]\n").unwrap().1;
        for at in (0..90u32).flat_map(|nth| (1..59).map(move |other| 20 + nth * 100 + other)) {
            queue += &format!(
                "request t_ns={at}e6 role=accepted port=80 pid=1 began_ns={at}e6 began_tid=1 read_ns={at}e6 ended_tid=1\n"
            );
        }
        let why = silent(&RULE, &queue);
        assert!(why.ends_with("some 28 of them each, at 741 µs of CPU time an answer: a queue of short ones"), "{why}");
    }

    #[test]
    fn quick_answers_several_threads_or_a_full_one() {
        assert!(silent(&RULE, &text(5, "4e9", 1)).contains("no answer took 10 ms"));
        assert!(silent(&RULE, &text(30, "4e9", 3)).contains("several threads"));
        assert!(silent(&RULE, &text(30, "99e8", 1)).contains("all of it is load"));
    }
}
