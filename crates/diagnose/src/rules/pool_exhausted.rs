// SPDX-License-Identifier: Apache-2.0
//! Requests wait because all connections of a pool, or all workers, are taken.

mod accepting;
mod held;
mod questions;
mod readers;

use super::{COULD_BE, Check, Checked, Rule, absent, evidence, explained, found, not_it, too_short};
use crate::answer::{Gap, Measured, Reason, Unit, Unseen};
use crate::case::Case;
use crate::facts::contended::Contended;
use crate::facts::stacks::Stacks;
use crate::facts::waiting::{Waiting, wait_ns};
use crate::facts::workers::Workers;
use crate::judgement::enough::little;
use crate::judgement::holders::is_pool;
use crate::judgement::untaken;
use crate::phrases::chain::{called_from, links};
use crate::verdict::{Explains, Finding, Subject};
use crate::walk::chains::Chain;
use crate::walk::{Kind, lasting};
use crate::wording::{percent, seconds};

pub(super) static RULE: Rule =
    Rule { cause: "pool-exhausted", explain: explain!("pool-exhausted"), check: Check::Accuses(check) };

/// Behind what to do if there is room for more at once.
const AT_ITS_LIMIT: &str = "if it is at its own limit, a larger pool only moves the queue there, and it has to become quicker or be asked less.";

/// Half of active time.
const MIN_SHARE: f64 = 0.5;

/// Of the window, over all threads.
const MIN_TIME: f64 = 0.05;

/// One wait for one of a pool, on average: a store that answers within half a millisecond, near its limit, makes shorter ones, which
/// no request feels.
const MIN_TAKEN_NS: f64 = 1e6;

/// Connections in the accept queue on average that a reader wonders about.
const A_QUEUE: f64 = 0.5;

fn check(case: &Case) -> Checked {
    let (contended, waiting) = (case.fact::<Contended>()?, case.fact::<Waiting>()?);
    let little = little(case, (contended.ns, waiting.share(contended.ns)), MIN_SHARE, MIN_TIME);
    let each_ns = wait_ns(&contended.chains.iter().collect::<Vec<_>>());
    if is_pool(&contended) && little.is_none() && each_ns >= MIN_TAKEN_NS {
        return of_connections(case, &contended, &waiting);
    }
    let workers = case.fact::<Workers>()?;
    if let Some(gap) = untaken::look(case).map(|untaken| undecided(untaken.detail())) {
        return Err(gap); // more workers would not take those either
    }
    if are_taken(&workers) && sleep_by_themselves(case, &workers, &waiting) {
        return explained("connections stand in the accept queue because those that accept sleep by themselves");
    }
    if are_taken(&workers) {
        return accepting::of_workers(case, &workers, &waiting);
    }
    if let Some(found) = readers::check(case).or_else(|| questions::check(case)) {
        return Ok(found);
    }
    let queue = format!("{:.1} connections stood in the accept queue on average", workers.queue);
    // A queue that is always there is never innocent; only a CPU that they have or want explains it without a pool.
    if are_asked_for(&workers) && !are_computing(&workers) {
        return Err(undecided(format!("{queue}, and what keeps whoever should take them was not seen")));
    }
    if let Some(why) = readers::before_a_lock(case) {
        return explained(why);
    }
    if is_pool(&contended) && little.is_none() {
        let seen = Measured::new(each_ns / 1e9, MIN_TAKEN_NS / 1e9, Unit::Seconds);
        let why = format!("threads that serve clients waited for each other, for {} at a time", seconds(each_ns / 1e9));
        return too_short(seen, format!("{why} (under {}); {queue}", seconds(MIN_TAKEN_NS / 1e9)));
    }
    if let Some((seen, _)) = little.filter(|_| is_pool(&contended)) {
        let held = seconds(contended.ns / 1e9);
        let could_be = waiting.share(contended.ns) >= MIN_SHARE * COULD_BE;
        let why = format!("threads that serve clients waited for each other for {held}; {queue}");
        return not_it(Reason::TooLittle, Some(seen), could_be, why);
    }
    let none = format!("no threads that serve clients waited for what several others of them held; {queue}");
    if workers.queue >= A_QUEUE { explained(none) } else { absent(none) }
}

/// Several threads, all of them, in words.
fn all(threads: usize) -> String {
    if threads == 2 { "both threads".into() } else { format!("all {threads} threads") }
}

fn undecided(why: String) -> Gap {
    Gap::new(RULE.cause, Unseen::Undecided, why)
}

/// Connections in the queue on average: one is always there.
const MIN_QUEUE: f64 = 1.0;

/// Of a connection in the queue, on average: with thousands a second, somebody is always about to be taken.
const MIN_WAIT_NS: f64 = 5e6;

/// Share of the window with a queue: bursts come and go.
const MIN_QUEUED: f64 = 0.7;

/// Share of the workers' time in which they wait for a connection: between two of them, no longer.
const MAX_FREE: f64 = 0.1;

/// Share of their time in which they have or want a CPU: above, the CPU is what there is too little of.
const MAX_BUSY: f64 = 0.6;

/// Whether connections wait nearly all the time, and long enough to be felt, whatever keeps the workers.
fn are_asked_for(workers: &Workers) -> bool {
    workers.queue >= MIN_QUEUE && workers.queued >= MIN_QUEUED && workers.wait_ns >= MIN_WAIT_NS
}

/// Whether the workers have or want a CPU most of the time.
fn are_computing(workers: &Workers) -> bool {
    workers.threads > 0 && workers.busy >= MAX_BUSY
}

/// Of the workers' time, asleep: then more of them would sleep as well, and the sleep is what to look at.
const ASLEEP: f64 = 0.5;

fn sleep_by_themselves(case: &Case, workers: &Workers, waiting: &Waiting) -> bool {
    let theirs = waiting.sleepers.iter().filter(|sleeper| workers.who.contains(&(sleeper.pid, sleeper.tid)));
    theirs.map(|sleeper| sleeper.slept_ns).sum::<f64>() >= case.length_ns() * workers.threads as f64 * ASLEEP
}

/// Whether connections wait although nothing but the number of workers keeps them: those are neither free nor short of CPU. Who takes
/// none of them, while those that it has are answered, is as good as taken: it has as many as it may.
fn are_taken(workers: &Workers) -> bool {
    let are_held = workers.free < MAX_FREE || workers.none_taken;
    workers.threads > 0 && are_asked_for(workers) && are_held && !are_computing(workers)
}

fn of_connections(case: &Case, contended: &Contended, waiting: &Waiting) -> Checked {
    let stacks = case.fact::<Stacks>()?;
    let (first, part) = (&contended.chains[0], waiting.share(contended.ns));
    let (waiter, what) = (&first.links[0].who, held(first));
    let summary = format!(
        "Threads that serve clients waited for one of {} for {} of thread time, {} of the target's active time; {:.1} \
         were taken on average, {} at most{}",
        what,
        seconds(contended.ns / 1e9),
        percent(part),
        contended.mean,
        contended.most,
        called_from(&*case.fact()?, waiter, &stacks)
    );
    let explains = Explains { share: part, of: "active time".into(), seconds: contended.ns / 1e9 };
    let mut finding = finding(case, Some(first), explains, summary)?;
    let see = format!("strace -f -c -p {}", waiter.pid);
    finding.evidence = vec![
        evidence("threads in the queue, on average", contended.ns / case.length_ns(), "threads", "0", see),
        evidence("taken at once, on average", contended.mean, "holders", "", ""),
        evidence("taken at once, at most", contended.most as f64, "holders", "", ""),
        evidence("CPU demand", waiting.demand_ns / 1e9, "s", "most of active time", ""),
    ];
    let headline = format!(
        "requests wait for one of {what} for {} of active time: all {} are taken",
        percent(part),
        contended.most
    );
    found(
        finding,
        headline,
        advice(first, "look at what its holders wait for: a larger pool helps only if that has room"),
    )
}

/// What to do: more of them help only as long as what they lead to has room.
fn advice(chain: &Chain, otherwise: &str) -> String {
    match chain.end.kind {
        Kind::OnCpu | Kind::RunQueue => {
            format!("{}: all wait for its CPU time, and more of them would not help", chain.end.to_see())
        }
        _ => otherwise.to_string(),
    }
}

/// What the holders have, in words: told by what they wait for.
fn held(chain: &Chain) -> String {
    match chain.links.get(1).map(|link| &link.who) {
        Some(who) if !who.peer.is_empty() => format!("the connections to {}", who.peer),
        Some(who) => format!("the permits whose holders wait in {}", who.call_words()),
        None => "the permits".to_string(),
    }
}

fn finding(case: &Case, chain: Option<&Chain>, explains: Explains, summary: String) -> Result<Finding, Gap> {
    let stacks = case.fact::<Stacks>()?;
    let holder = chain.map(|chain| &chain.links.get(1).unwrap_or(&chain.links[0]).who);
    let root = match holder.map(|who| (who.peer.as_str(), who)) {
        Some(("", who)) => {
            format!("Those that hold one wait in {}: the chain says where that ends. ", who.call_words())
        }
        Some((peer, _)) => format!("Those that hold one wait for {peer}: the chain says where that ends. "),
        None => String::new(),
    };
    Ok(Finding {
        summary,
        subject: Subject {
            pid: holder.and_then(|who| lasting(who.pid)),
            comm: holder.map(|who| who.comm.clone()),
            syscall: holder.map(|who| who.call.clone()),
            ..Subject::default()
        },
        explains,
        chain: chain.map_or_else(Vec::new, |chain| links(chain, &stacks)),
        remedy: format!("{root}If what the holders wait for can do more at once, make the pool larger; {AT_ITS_LIMIT}"),
        check: "The queue is gone at the same load, and the same diagnosis names another limit or none.".into(),
        ..RULE.finding(case, 2)
    })
}

#[cfg(test)]
mod tests {
    use super::super::asking::{found, gap, silent};
    use super::RULE;

    /// Thread `tid` waits for its turn until the one before it hands it on, which has asked a database meanwhile.
    fn row(tid: u32, asks: u32) -> String {
        let at = 900_000_000 - u64::from(tid);
        let before = if tid == 1 { 9 } else { tid - 1 };
        let mut text = format!(
            "wakeup t_ns={at} pid=1 tid={tid} comm=http-{tid} wait_ns=20e6 blocked_ns=800e6 syscall=202 args=[{tid},0,7,0] \
             context=thread waker_pid=1 waker_tid={before} waker_comm=http-{before} waker_syscall=202\n"
        );
        text += &format!(
            "wakeup t_ns=100e6 pid=1 tid={tid} comm=http-{tid} wait_ns=1e6 blocked_ns=40e6 syscall=0 family=2 \
             local_port=80 remote_port=5{tid:03} context=interrupt\n"
        );
        if tid <= asks {
            text += &format!(
                "wakeup t_ns={} pid=1 tid={tid} comm=http-{tid} wait_ns=19e6 blocked_ns=900e6 syscall=0 family=2 \
                 local_port=40{tid:03} remote_port=5432 peer=10.0.0.9 context=interrupt waker_stack=1\n",
                at - 1_000
            );
        }
        text
    }

    fn text(asks: u32) -> String {
        let rows: String = (1..=9).map(|tid| row(tid, asks)).collect();
        format!(
            "meta host.arch=x86_64 length_ns=1e9 target.pids=[1]
             process pid=1 listen=[\"tcp 0.0.0.0:80\"]
             frame id=1 symbol=net_rx_action module=kernel kind=kernel
             stack id=1 frames=[1]
             thread pid=1 tid=1 wall_ns=1e9 cpu_ns=1e8 blocked_ns=9e8
             {rows}"
        )
    }

    #[test]
    fn a_pool_of_connections_that_are_all_taken() {
        let finding = found(&RULE, &text(5));
        assert!(finding.summary.contains("one of the connections to 10.0.0.9:5432"), "{}", finding.summary);
        assert_eq!(finding.evidence[2].value, 5.0);
    }

    /// A store near its limit that answers within half a millisecond.
    #[test]
    fn waits_that_no_request_feels() {
        let short = text(5).replace("wait_ns=20e6 blocked_ns=800e6", "wait_ns=800e3 blocked_ns=800e6");
        assert!(silent(&RULE, &short).contains("for 800 µs at a time (under 1 ms)"), "{}", silent(&RULE, &short));
    }

    #[test]
    fn one_at_a_time_is_a_lock() {
        assert!(silent(&RULE, &text(1)).contains("no threads that serve clients"));
    }

    const DOOR: &str = "meta host.arch=x86_64 length_ns=1e9 target.pids=[1]
        process pid=1 listen=[\"tcp 0.0.0.0:80\"]
        wakeup
        call_window t_ns=0 length_ns=1e9
        call pid=1 tid=1 syscall=43 count=100
        call pid=1 tid=2 syscall=43 count=100
        thread pid=1 tid=1 wall_ns=1e9 cpu_ns=1e8 blocked_ns=9e8
        thread pid=1 tid=2 wall_ns=1e9 cpu_ns=1e8 blocked_ns=9e8
        counter source=proc/net/listeners entity=\"tcp 0.0.0.0:80\" name=accept_queue value=8\n";

    #[test]
    fn workers_that_are_all_taken() {
        let finding = found(&RULE, DOOR);
        assert!(finding.summary.contains("8.0 connections waited for accept()"), "{}", finding.summary);
        assert!((finding.explains.share - 0.8).abs() < 1e-9, "{:?}", finding.explains);
    }

    /// Clients are answered on connections of before, and nobody takes those that stand there.
    #[test]
    fn workers_that_take_nobody() {
        let answers =
            "exchange role=accepted port=80 stage=response count=20 sum_ns=2e7 length_ns=[1000000] counts=[20]\n";
        let newcomer =
            "exchange role=accepted port=80 stage=first_read count=10 sum_ns=1e7 length_ns=[1000000] counts=[10]\n";
        let listens = DOOR.replace("target.pids=[1]", "target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]");
        let none = |text: &str| found(&RULE, text).summary.contains("of which none was taken");
        let stuck = format!("{listens}{answers}");
        let idle = format!("{stuck}wait pid=1 tid=1 syscall=232 total_ns=8e8\n");
        assert!(none(&stuck) && none(&idle) && !none(&format!("{stuck}{newcomer}")));
        assert!(gap(&RULE, &format!("{idle}{newcomer}")).why.contains("8.0 connections stood in the accept queue"));
    }

    #[test]
    fn workers_that_wait_for_connections_or_compute() {
        let idle = DOOR.to_string() + "wait pid=1 tid=1 syscall=43 fd_kind=socket total_ns=8e8";
        assert!(gap(&RULE, &idle).why.contains("8.0 connections stood in the accept queue"));
        silent(&RULE, &DOOR.replace("cpu_ns=1e8 blocked_ns=9e8", "cpu_ns=9e8 blocked_ns=1e8"));
    }
}
