// SPDX-License-Identifier: Apache-2.0
//! Causes that requests were seen to wait for, where the time of threads alone tells too little: idle workers beside busy ones,
//! a few slow requests among many quick ones, a thread of which no wait for a client was seen.

use std::collections::BTreeSet;

use crate::case::Case;
use crate::facts::requests::Requests;
use crate::facts::stacks::Stacks;
use crate::judgement::clients_wait::waited_longer;
use crate::judgement::often::Often;
use crate::judgement::paths::{
    Felt, asks_a_peer, awaits_a_program, collector, is_own_sleep, stands_before_peers, stands_still,
};
use crate::judgement::{asked, streams};
use crate::ledger::blocked::symbols;
use crate::ledger::kernel_lock;
use crate::phrases::chain::links;
use crate::remarks::hidden_queues;
use crate::rules::{confidence, explain};
use crate::statement::Statement;
use crate::verdict::{Finding, Link, Subject};
use crate::walk::Walk;
use crate::walk::chains::Chain;
use crate::walk::clients::UNIX_PEER;
use crate::walk::paths::{Part, What};
use crate::wording::{percent, seconds};

/// A cause that paths tell by themselves.
struct Told {
    cause: &'static str,
    is_it: fn(&Part) -> bool,
    /// Requests … for most of their time.
    does: fn(Option<&Chain>) -> String,
    /// Whether something speaks against it, of the chains with that part of the time.
    doubted: fn(&Case, &[&Chain]) -> bool,
    /// What to do first, where it is more than to look at the wait.
    advises: fn(&Chain) -> Option<String>,
    /// It is somebody else who is asked: what the end of the chain does says what to do, and the sockets are a second witness.
    asks: bool,
    /// Causes that say the same more precisely, where they were found.
    unless: &'static [&'static str],
}

const TOLD: &[Told] = &[
    Told {
        cause: "user-lock-contention",
        is_it: stands_before_peers,
        does: |_| "wait for each other".into(),
        doubted: are_before_the_kernel,
        advises: |_| None,
        asks: false,
        // A collector that stops all threads has them wait for each other too.
        unless: &["pool-exhausted", "runtime-pause", "disk-wait"],
    },
    Told {
        cause: "runtime-pause",
        is_it: stands_still,
        does: |_| "stand still for the garbage collector".into(),
        doubted: |_, _| false,
        advises: |chain| collector(chain).map(|collector| collector.less_often.into()),
        asks: false,
        unless: &[],
    },
    Told {
        cause: "sleep-in-path",
        is_it: is_own_sleep,
        does: |_| "wait for a thread of the service that sleeps".into(),
        doubted: |case, chains| streams::awaited(case, chains).is_some(),
        advises: |_| None,
        asks: false,
        unless: &[],
    },
    Told {
        cause: "slow-dependency",
        is_it: |part| asks_a_peer(part) || awaits_a_program(part),
        does: |chain| format!("wait for {}", chain.map_or_else(String::new, asked::who)),
        doubted: |case, chains| {
            asked::is_doubted(case, chains)
                || !asked_for_as_long(case, chains)
                || streams::awaited(case, chains).is_some()
        },
        advises: |_| None,
        asks: true,
        unless: &["pool-exhausted", "nagle-delayed-ack", "send-buffer-limited", "packet-loss", "link-saturated"],
    },
];

/// Whether they stand before a lock of the kernel, as that of the memory map or of a file: none of the program's own.
fn are_before_the_kernel(case: &Case, chains: &[&Chain]) -> bool {
    let Ok(stacks) = case.fact::<Stacks>() else { return false };
    let is_one = |chain: &&&Chain| kernel_lock::of(&symbols(&stacks, chain.links[0].stack)).is_some();
    let time = |chains: &mut dyn Iterator<Item = &&Chain>| chains.map(|chain| chain.ns).sum::<f64>();
    2.0 * time(&mut chains.iter().filter(is_one)) > time(&mut chains.iter())
}

/// Of what the paths say, what the sockets have to say too.
const AS_LONG: f64 = 0.5;

/// Whether the sockets saw the target wait for those peers for about so long: paths are put together from times of different
/// connections. Where several questions share a connection, neither tells. A program that was started is asked over none.
fn asked_for_as_long(case: &Case, chains: &[&Chain]) -> bool {
    let Ok(requests) = case.fact::<Requests>() else { return false };
    // Of questions over Unix sockets, nothing else is counted.
    let is_counted = |peer: &str| !peer.is_empty() && peer != UNIX_PEER;
    let over_sockets = || chains.iter().filter(|chain| is_counted(&chain.links[0].who.peer));
    let peers: BTreeSet<&str> = over_sockets().map(|chain| chain.links[0].who.peer.as_str()).collect();
    // A loop that has much under way is woken by whoever answers next.
    let first = chains.first().map_or("", |chain| chain.links[0].who.peer.as_str());
    if waited_longer(&requests, first).is_some() {
        return false;
    }
    let asked = requests.endpoints.iter().filter(|e| !e.accepted && !e.is_mixed() && peers.contains(e.name.as_str()));
    let waited: f64 = asked.map(|e| e.response.sum_ns).sum();
    waited * requests.scale() >= over_sockets().map(|chain| chain.ns).sum::<f64>() * AS_LONG
}

/// What was found, but for causes that were found otherwise.
pub fn found(case: &Case, known: impl Fn(&str) -> bool) -> Vec<(Finding, Statement)> {
    let Some(felt) = Felt::of(case) else { return Vec::new() };
    // One waits for another in an interpreter that runs one at a time.
    let in_turn = case.fact::<Walk>().is_ok_and(|walk| walk.mostly_interpreter());
    let told = TOLD.iter().filter(|told| !in_turn || told.cause != "user-lock-contention");
    let unknown = told.filter(|told| !known(told.cause) && !told.unless.iter().any(|cause| known(cause)));
    let found = |told: &Told| {
        let (part, chains) = (felt.most(told.is_it)?, chains(&felt, told.is_it));
        (!(told.doubted)(case, &chains)).then(|| finding(case, &felt, told, (part, &chains)))
    };
    unknown.filter_map(found).collect()
}

fn finding(case: &Case, felt: &Felt, told: &Told, (part, chains): (f64, &[&Chain])) -> (Finding, Statement) {
    let longest = chains.first().copied();
    let does = (told.does)(longest);
    let headline = format!(
        "{} {does} for {} of their response time ({} of {})",
        felt.whose(),
        percent(part),
        seconds(felt.mean_ns() * part / 1e9),
        seconds(felt.mean_ns() / 1e9)
    );
    let stacks = case.fact::<Stacks>().ok();
    let chain = longest.zip(stacks.as_deref()).map_or_else(Vec::new, |(chain, stacks)| links(chain, stacks));
    let first = chain.first().cloned().unwrap_or_default();
    let place = first.stack.first().map_or(String::new(), |function| format!(", in {function}"));
    let asked = longest.filter(|_| told.asks);
    let next = asked.map(|chain| asked::words::next(chain, stacks.as_deref()));
    let advised = || longest.and_then(told.advises).unwrap_or_else(|| advice(case, &first));
    let otherwise = || (advised(), explained(told.cause));
    let (advised, remedy) = next.unwrap_or_else(otherwise);
    let some = felt.number(case).map(|number| (number, felt.mean_ns()));
    let often = asked.zip(some).and_then(|(chain, some)| Often::of_some(case, &chain.links[0].who.peer, some));
    let (headline, advised) = match (often, asked) {
        (Some(often), Some(chain)) => (format!("{headline}, {}", often.words()), often.advice(&asked::who(chain))),
        _ => (headline, advised),
    };
    let finding = Finding {
        cause: told.cause.into(),
        // What is asked, the sockets saw too.
        confidence: confidence(case, if asked.is_some() { 2 } else { 1 }),
        summary: format!("{}; for {} of it they {does}{place}", felt.words(), percent(part)),
        subject: asked.map_or_else(|| subject(longest), asked::subject),
        explains: felt.explains(case, part),
        evidence: felt.evidence("of it, spent on this", part),
        chain,
        remedy,
        check: "The response times fall by this part at the same load.".into(),
    };
    (finding, Statement::short(headline, advised))
}

fn explained(cause: &str) -> String {
    explain(cause).map_or(String::new(), |words| words.what_to_do)
}

fn advice(case: &Case, first: &Link) -> String {
    match first.stack.first() {
        Some(function) => format!("look at the {} of {function} in {}", first.waits_on, first.who),
        None => format!("look at the {} in {}: {}", first.waits_on, first.who, hidden_queues::look(case).look),
    }
}

/// The chains of a part of the time, those with most of it first.
fn chains<'f>(felt: &'f Felt, is_it: fn(&Part) -> bool) -> Vec<&'f Chain> {
    let chain = |part: &'f Part| if let What::Waits(chain) = &part.what { Some(&**chain) } else { None };
    felt.group().parts.iter().filter(|part| is_it(part)).filter_map(chain).collect()
}

fn subject(chain: Option<&Chain>) -> Subject {
    let who = chain.map(|chain| &chain.links[0].who);
    Subject {
        pid: who.map(|who| who.pid),
        comm: who.map(|who| who.comm.clone()),
        syscall: who.map(|who| who.call.clone()),
        ..Subject::default()
    }
}

#[cfg(test)]
mod tests {
    use recording::text::parse;

    use crate::diagnose;

    /// `number` requests, each read by thread 1 and answered by it so many ms after it came; it sleeps for so long of that.
    fn requests(number: u32, length: u32, asleep: u32) -> String {
        let mut text = "meta host.arch=x86_64 length_ns=10e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
            process pid=1 listen=[\"tcp 0.0.0.0:80\"]
            thread t_ns=10e9 pid=1 tid=1 comm=worker wall_ns=10e9 cpu_ns=5e8 blocked_ns=95e8
            burst t_ns=10e9 length_ns=10e9
            frame id=1 symbol=hrtimer_wakeup module=kernel kind=kernel
            stack id=1 frames=[1]\n"
            .to_string();
        for at in (0..number).map(|nth| 10 + nth * (length + 5)) {
            let (end, woken) = (at + length, at + asleep);
            text += &format!(
                "request t_ns={end}e6 role=accepted port=80 pid=1 began_ns={at}e6 began_tid=1 read_ns={at}e6 ended_tid=1
                 wakeup t_ns={woken}e6 pid=1 tid=1 comm=worker wait_ns={asleep}e6 blocked_ns={asleep}e6 since_ns={at}e6 waits=1 syscall=35 context=interrupt waker_stack=1\n"
            );
        }
        text + &format!(
            "exchange role=accepted port=80 stage=response count={number} sum_ns={}e6 length_ns=[{length}000000] counts=[{number}]",
            number * length
        )
    }

    fn verdict(number: u32, length: u32, asleep: u32) -> String {
        diagnose(&parse(&requests(number, length, asleep)).unwrap()).verdict
    }

    #[test]
    fn requests_that_wait_for_a_sleep() {
        let found = diagnose(&parse(&requests(60, 25, 20)).unwrap());
        assert_eq!(found.verdict, "sleep-in-path", "{found:?}");
        assert!(found.headline.contains("80 % of their response time (20 ms of 25 ms)"), "{}", found.headline);
        assert!(!found.ruled_out.iter().any(|ruled| ruled.cause == "sleep-in-path"));
    }

    /// Threads 1 and 2 take turns, and each waits for the other in mmap, with this function of the kernel on its stack.
    fn before_a_lock(function: &str) -> String {
        let mut text = "meta host.arch=x86_64 length_ns=10e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
            process pid=1 listen=[\"tcp 0.0.0.0:80\"]
            burst t_ns=10e9 length_ns=10e9
            stack id=1 frames=[1]\n"
            .to_string();
        text += &format!("frame id=1 symbol={function} module=kernel kind=kernel\n");
        for tid in [1, 2] {
            text += &format!("thread t_ns=10e9 pid=1 tid={tid} comm=worker wall_ns=10e9 cpu_ns=5e8 blocked_ns=95e8\n");
        }
        for (nth, at) in (0..60).map(|nth| (nth, 10 + nth * 60)) {
            let (tid, other) = (1 + nth % 2, 2 - nth % 2);
            let (end, woken) = (at + 50, at + 45);
            text += &format!(
                "request t_ns={end}e6 role=accepted port=80 pid=1 began_ns={at}e6 began_tid={tid} read_ns={at}e6 ended_tid={tid}
                 wakeup t_ns={woken}e6 pid=1 tid={tid} comm=worker wait_ns=45e6 blocked_ns=45e6 since_ns={at}e6 waits=1 syscall=9 stack=1 context=thread waker_pid=1 waker_tid={other} waker_comm=worker\n"
            );
        }
        text + "exchange role=accepted port=80 stage=response count=60 sum_ns=3e9 length_ns=[50000000] counts=[60]"
    }

    #[test]
    fn a_lock_of_the_kernel_is_none_of_the_program_s_own() {
        let accused = |function: &str| {
            let found = diagnose(&parse(&before_a_lock(function)).unwrap()).findings;
            found.iter().any(|finding| finding.cause == "user-lock-contention")
        };
        assert!(accused("some_wait"), "requests that wait for each other");
        assert!(!accused("rwsem_down_write_slowpath"));
    }

    /// A thread beside it takes a request now and then, and sleeps most of the time.
    #[test]
    fn a_sleep_that_requests_do_not_wait_for_is_ruled_out() {
        let mut text = requests(60, 25, 0);
        for at in (0..90).map(|nth| 50 + nth * 100) {
            text += &format!(
                "\nwakeup t_ns={at}e6 pid=1 tid=2 comm=janitor wait_ns=1e6 blocked_ns=1e6 waits=1 syscall=0 family=2 local_port=80 remote_port=9 context=interrupt
                 wakeup t_ns={}e6 pid=1 tid=2 comm=janitor wait_ns=90e6 blocked_ns=90e6 waits=1 syscall=35 context=interrupt waker_stack=1",
                at + 95
            );
        }
        let verdict = diagnose(&parse(&text).unwrap());
        let ruled = verdict.ruled_out.iter().find(|ruled| ruled.cause == "sleep-in-path");
        let why = ruled.map_or("", |ruled| ruled.why.as_str());
        assert!(why.contains("followed from end to end spent 0 % of their time on it"), "{why:?} {}", verdict.headline);
    }

    /// Requests of 82 ms one after the other that ask a host for `asked` ms of it, among quick ones that are in nobody's way. Its
    /// loop turns once more before it answers, when the connection is closed.
    fn asking(asked: u32, by_sockets: u32) -> String {
        let mut text = "meta host.arch=x86_64 length_ns=10e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
            process pid=1 listen=[\"tcp 0.0.0.0:80\"]
            thread t_ns=10e9 pid=1 tid=1 comm=loop wall_ns=10e9 cpu_ns=9e8 blocked_ns=91e8
            burst t_ns=10e9 length_ns=10e9
            exchange_window t_ns=10e9 length_ns=10e9
            frame id=1 symbol=net_rx_action module=kernel kind=kernel
            stack id=1 frames=[1]\n"
            .to_string();
        for at in (0..100).map(|nth| 10 + nth * 90) {
            let (until, end) = (at + 1 + asked, at + 82);
            text += &format!(
                "request t_ns={end}e6 role=accepted port=80 pid=1 began_ns={at}e6 began_tid=1 read_ns={at}e6 ended_tid=1
                 request t_ns={until}e6 role=made peer=10.0.0.9:5432 pid=1 began_ns={}e6 began_tid=1 read_ns={until}e6 ended_tid=1
                 wakeup t_ns={until}e6 pid=1 tid=1 comm=loop wait_ns=5e6 blocked_ns=5e6 since_ns={at}e6 waits=1 syscall=232 family=2 local_port=4000 remote_port=5432 peer=10.0.0.9 context=interrupt waker_stack=1
                 wakeup t_ns={}e5 pid=1 tid=1 comm=loop wait_ns=3e5 blocked_ns=3e5 since_ns={until}e6 waits=1 syscall=232 family=2 local_port=4000 remote_port=5432 peer=10.0.0.9 context=interrupt waker_stack=1\n",
                at + 1,
                until * 10 + 4
            );
            for quick in (0..4).map(|nth| at + 10 + nth * 15) {
                text += &format!(
                    "request t_ns={quick}e6 role=accepted port=80 pid=1 began_ns={}e5 began_tid=1 read_ns={}e5 ended_tid=1\n",
                    quick * 10 - 2,
                    quick * 10 - 1
                );
            }
        }
        text + &format!(
            "exchange role=accepted port=80 stage=response count=500 sum_ns=828e7 length_ns=[200000,82000000] counts=[400,100]
             exchange role=made peer=10.0.0.9:5432 stage=response count={by_sockets} sum_ns={}e6 length_ns=[1] counts=[{by_sockets}] began={by_sockets}",
            by_sockets * asked
        )
    }

    #[test]
    fn a_loop_that_serves_others_while_requests_wait_for_a_peer() {
        let found = diagnose(&parse(&asking(80, 100)).unwrap());
        assert_eq!(found.verdict, "slow-dependency", "{} {:?}", found.headline, found.ruled_out);
        assert!(found.headline.contains("slow requests wait for 10.0.0.9:5432 for 9"), "{}", found.headline);
        assert_eq!(found.findings[0].subject.socket.as_deref(), Some("10.0.0.9:5432"));
        assert!(!found.ruled_out.iter().any(|ruled| ruled.cause == "slow-dependency"));
    }

    #[test]
    fn a_peer_that_is_a_part_of_their_time_or_that_the_sockets_know_less_of() {
        let verdict = |text: String| diagnose(&parse(&text).unwrap()).verdict;
        assert_ne!(verdict(asking(20, 100)), "slow-dependency", "its answers come long before those of the target");
        assert_ne!(verdict(asking(80, 20)), "slow-dependency", "it was asked for less");
    }

    /// Among quick requests some of 60 ms, whose thread waits for a dispatcher, and that one for this thread of the process.
    fn held_by(thread: &str) -> String {
        let mut text = requests(0, 60, 0);
        for at in (0..60).map(|nth| 10 + nth * 70) {
            let (end, woken, before) = (at + 60, at + 58, at + 57);
            text += &format!(
                "request t_ns={end}e6 role=accepted port=80 pid=1 began_ns={at}e6 began_tid=1 read_ns={woken}e6 ended_tid=1
                 wakeup t_ns={woken}e6 pid=1 tid=1 comm=worker wait_ns=58e6 blocked_ns=58e6 since_ns={at}e6 waits=1 syscall=202 context=thread waker_pid=1 waker_tid=2 waker_comm=dispatcher
                 wakeup t_ns={before}e6 pid=1 tid=2 comm=dispatcher wait_ns=56e6 blocked_ns=56e6 since_ns={at}e6 waits=1 syscall=202 context=thread waker_pid=1 waker_tid=3 waker_comm=\"{thread}\"
                 wakeup t_ns={at}e6 pid=1 tid=3 comm=\"{thread}\" wait_ns=9e6 blocked_ns=9e6 waits=1 syscall=202 context=thread waker_pid=1 waker_tid=1\n"
            );
        }
        text + "exchange role=accepted port=80 stage=response count=60 sum_ns=36e8 length_ns=[60000000] counts=[60]"
    }

    #[test]
    fn requests_that_stand_still_for_a_collector() {
        let found = diagnose(&parse(&held_by("VM Thread")).unwrap());
        assert_eq!(found.verdict, "runtime-pause", "{} {:?}", found.headline, found.ruled_out);
        assert!(found.headline.contains("for 9"), "{}", found.headline);
        let path = &found.requests[0].path[0].what;
        assert!(path.contains("in futex < VM Thread/1: code on a CPU"), "{path}");
        assert_ne!(verdict_of(&held_by("planner")), "runtime-pause");
    }

    fn verdict_of(text: &str) -> String {
        diagnose(&parse(text).unwrap()).verdict
    }

    /// A loop that starts a program for each request and answers when that has slept; meanwhile it turns for a timer of its own.
    fn starting(instances: u32) -> String {
        let mut text = format!("{}\nprocess pid=0 instances={instances} comm=convert\n", requests(0, 82, 0));
        for (nth, at) in (0..60).map(|nth| (nth, 10 + nth * 90)) {
            let (turn, woken, end, child) = (at + 30, at + 80, at + 82, 100 + nth);
            text += &format!(
                "request t_ns={end}e6 role=accepted port=80 pid=1 began_ns={at}e6 began_tid=1 read_ns={at}e6 ended_tid=1
                 wakeup t_ns={turn}e6 pid=1 tid=1 comm=loop wait_ns=29e6 blocked_ns=29e6 since_ns={at}e6 waits=1 syscall=232 context=interrupt waker_stack=1
                 wakeup t_ns={woken}e6 pid=1 tid=1 comm=loop wait_ns=49e6 blocked_ns=49e6 since_ns={turn}e6 waits=1 syscall=232 fd_kind=pipe context=thread waker_pid={child} waker_tid={child} waker_comm=convert
                 wakeup t_ns={woken}e6 since_ns={at}e6 pid={child} tid={child} comm=convert wait_ns=78e6 blocked_ns=78e6 syscall=35 context=interrupt waker_stack=1\n"
            );
        }
        text + "exchange role=accepted port=80 stage=response count=60 sum_ns=492e7 length_ns=[82000000] counts=[60]"
    }

    #[test]
    fn a_program_that_is_started_for_each_request() {
        let found = diagnose(&parse(&starting(60)).unwrap());
        assert_eq!(found.verdict, "slow-dependency", "{} {:?}", found.headline, found.ruled_out);
        assert!(found.headline.contains("wait for convert/* for"), "{}", found.headline);
        assert_eq!(found.findings[0].explains.of, "response time of requests");
    }

    #[test]
    fn too_few_too_short_or_too_little_of_it() {
        assert_ne!(verdict(15, 25, 20), "sleep-in-path", "too few requests");
        assert_ne!(verdict(60, 8, 7), "sleep-in-path", "nobody feels it");
        assert_ne!(verdict(60, 25, 10), "sleep-in-path", "a part of their time");
    }
}
