// SPDX-License-Identifier: Apache-2.0
//! Requests that stood in the target for long, against all that is known to have held them. What is left stood in queues
//! that the kernel does not see: of goroutines, coroutines, monitors, rows of a table. Its constants are the model by which what is
//! known is counted; how much of a rest matters, `judgement/standing` says.

use std::collections::HashSet;
use std::sync::Arc;

use recording::tables::Wakeup;

use super::connections::Connections;
use super::hanging::AllHanging;
use super::requests::{LATE_NS, Requests};
use super::serving::Serving;
use super::silent::Silent;
use super::waiting::{Sleeper, Waiting, sum};
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::ledger::threads::Threads;
use crate::statistics::{ratio, share};
use crate::walk::chains::Chain;
use crate::walk::{Who, kind_of_thread};

/// Requests that stood for 10 ms or longer, on average.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Unexplained {
    /// All of them.
    pub late: f64,
    /// How long ago they had come, on average, ns.
    pub late_ns: f64,
    /// Those that somebody else owed an answer to.
    pub upstream: f64,
    /// Those that stand behind busy threads, as a queue before a server of that utilization is long.
    pub queued: f64,
    /// Those of which the client had not sent all.
    pub asking: f64,
    /// Those whose threads wait for something that is known.
    pub waiting: f64,
}

/// A queue before a thread is taken for so long at most, however full that is.
const MAX_QUEUE: f64 = 50.0;

/// An answer that is owed to the target for so many times longer than its own is nothing that it waits for: a
/// subscription.
const MUCH_LATER: f64 = 2.0;

impl Fact for Unexplained {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let (connections, ledger) = (case.fact::<Connections>()?, case.fact::<Threads>()?);
        let accepted = &connections.accepted;
        // One that says nothing at all explains no more than itself: whether requests hang for it is asked where it is accused.
        let silent = case.fact::<Silent>().ok();
        let is_asked = |name: &str| !silent.as_ref().is_some_and(|silent| silent.has(name));
        let asked = connections.peers.iter().filter(|(name, _)| is_asked(name));
        let waits = case.fact::<Waiting>().ok();
        let awaited =
            |peer: &str| waits.as_ref().map_or(0.0, |waiting| ratio(awaited_ns(waiting, peer), case.length_ns()));
        let asked = asked.filter(|(_, held)| held.late_ns <= accepted.late_ns * MUCH_LATER);
        // Of the whole window: one that lived for a moment, and computed meanwhile, is no server with a queue.
        let elsewhere = Elsewhere::of(case);
        let lasting =
            ledger.threads.iter().filter(|thread| thread.tid != 0 && !elsewhere.has((thread.pid, thread.tid)));
        let used = lasting.map(|thread| share(thread.lines.demand_ns(), case.length_ns()).min(1.0));
        let each_ns = each_ns(case, ledger.total.demand_ns());
        // Where an answer takes little of them, nobody stands before them for as long as a late one does: but one may be at work.
        let is_long = |used: f64| each_ns.is_none_or(|ns| ns * queue(used) >= LATE_NS * HARDLY_LATE);
        let before = |used: f64| if is_long(used) { queue(used) } else { used };
        // Those that wait for a peer are counted there: a thread in a read of it, and the answer that it owes, are one request.
        let asked: Vec<[f64; 2]> = asked.map(|(peer, held)| [held.late, awaited(peer)]).collect();
        let of_peers = asked.iter().map(|[_, awaited]| awaited).sum::<f64>();
        let waiting = waits.as_ref().map_or(0.0, |waiting| ratio(waited_ns(waiting), case.length_ns()) - of_peers);
        Ok(Self {
            late: accepted.late,
            late_ns: accepted.late_ns,
            upstream: asked.iter().map(|[late, awaited]| late.max(*awaited)).sum(),
            queued: used.map(before).sum::<f64>().min(answered_late(case).unwrap_or(f64::INFINITY)),
            asking: asking(case),
            waiting: waiting.max(0.0),
        })
    }
}

/// For how long threads waited for a peer.
fn awaited_ns(waiting: &Waiting, peer: &str) -> f64 {
    sum(waiting.chains.iter().filter(|chain| chain.links[0].who.peer == peer && !chain.is_own_sleep()))
}

/// Threads that are at something else, as one that rewrites a log: no request stands behind them, however full they are.
struct Elsewhere {
    serving: Option<Arc<Serving>>,
    wakers: HashSet<u32>,
}

impl Elsewhere {
    fn of(case: &Case) -> Self {
        let wakers = case.recording.rows::<Wakeup>().iter().map(|row| row.waker_tid).collect();
        Self { serving: case.fact::<Serving>().ok(), wakers }
    }

    /// Whether a thread takes part in no traffic, as others do, and hands nothing on: whoever works for a request has to.
    fn has(&self, thread: (u32, u32)) -> bool {
        self.serving.as_ref().is_some_and(|serving| serving.is_aside(thread)) && !self.wakers.contains(&thread.1)
    }
}

/// For how long threads waited for somebody. Those that only let time pass and take no requests, as the timers of runtimes do, hold
/// none.
fn waited_ns(waiting: &Waiting) -> f64 {
    let takes = |who: &Who| {
        let same = |s: &&Sleeper| s.pid == who.pid && kind_of_thread(&s.comm) == who.comm;
        waiting.sleepers.iter().filter(same).any(|sleeper| sleeper.clients > 0)
    };
    let idles = |chain: &&Chain| chain.is_own_sleep() && !takes(&chain.links[0].who);
    waiting.waiting_ns - sum(waiting.chains.iter().filter(idles))
}

/// How long a queue before a thread of that utilization is.
fn queue(used: f64) -> f64 {
    (used / (1.0 - used).max(1e-9)).min(MAX_QUEUE)
}

/// Of a late answer, the time in the queue before a thread: jobs differ, and come in bursts.
const HARDLY_LATE: f64 = 0.25;

/// CPU time of all threads for an answer, ns; none = too few answers came to tell.
fn each_ns(case: &Case, demand_ns: f64) -> Option<f64> {
    let requests = case.fact::<Requests>().ok()?;
    Some(ratio(demand_ns, answers(&requests)? * requests.scale()))
}

/// Answers from which on they tell of a queue.
const ENOUGH: f64 = 20.0;

/// Answers to clients, if they are enough.
fn answers(requests: &Requests) -> Option<f64> {
    let accepted = requests.endpoints.iter().filter(|endpoint| endpoint.accepted);
    Some(accepted.map(|endpoint| endpoint.response.count).sum()).filter(|answers| *answers >= ENOUGH)
}

/// How many stood late at a time of those that got their answers: whoever stands in the same queue is late too. None = too few
/// answers came to tell.
fn answered_late(case: &Case) -> Option<f64> {
    let (requests, hanging) = (case.fact::<Requests>().ok()?, case.fact::<AllHanging>().ok()?);
    answers(&requests).map(|_| hanging.ports.values().map(|at| at.late - at.connections).sum())
}

/// By Little's law, from what came in parts.
fn asking(case: &Case) -> f64 {
    let Ok(requests) = case.fact::<Requests>() else { return 0.0 };
    let in_parts = requests.endpoints.iter().filter(|e| e.accepted && e.is_in_parts());
    ratio(in_parts.map(|e| e.rest.sum_ns).sum::<f64>() * requests.scale(), case.length_ns())
}

impl Unexplained {
    /// Those that nothing explains.
    pub fn rest(&self) -> f64 {
        (self.late - self.upstream - self.queued - self.asking - self.waiting).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    fn rest(late: f64, more: &str) -> Unexplained {
        let text = format!(
            "meta length_ns=1e9 target.pids=[1]
             connection t_ns=1 role=accepted port=80 looks=100 open=1600 late={} late_ns={}
             {more}",
            late * 100.0,
            late * 100.0 * 8e7
        );
        (*Case::new(&parse(&text).unwrap()).fact::<Unexplained>().unwrap()).clone()
    }

    const THREAD: &str = "thread t_ns=1e9 pid=1 tid=1 wall_ns=1e9 cpu_ns=3e7 blocked_ns=97e7";

    #[test]
    fn requests_that_stand_for_nothing_that_is_known() {
        let u = rest(8.0, THREAD);
        assert!(u.rest() > 7.9, "{u:?}");
    }

    #[test]
    fn the_timer_of_a_runtime_holds_no_request() {
        let timer = "thread t_ns=1e9 pid=1 tid=1 comm=timer wall_ns=1e9 cpu_ns=1e7 blocked_ns=99e7
             frame id=1 symbol=hrtimer_wakeup module=kernel kind=kernel
             stack id=1 frames=[1]
             wakeup t_ns=900e6 pid=1 tid=1 comm=timer wait_ns=100e6 blocked_ns=900e6 syscall=230 context=interrupt waker_stack=1";
        let u = rest(1.0, &format!("meta host.arch=x86_64\n{timer}"));
        assert!(u.waiting == 0.0 && u.rest() > 0.9, "{u:?}");
    }

    #[test]
    fn a_busy_thread_has_a_queue() {
        let busy = "thread t_ns=1e9 pid=1 tid=1 wall_ns=1e9 cpu_ns=9e8 blocked_ns=1e8";
        assert!(rest(8.0, busy).rest() < 0.1);
    }

    #[test]
    fn a_full_thread_that_hands_nothing_on_holds_no_request() {
        let two = "meta host.arch=x86_64
             thread t_ns=1e9 pid=1 tid=1 wall_ns=1e9 cpu_ns=1e7 blocked_ns=99e7
             thread t_ns=1e9 pid=1 tid=2 comm=compact wall_ns=1e9 cpu_ns=1e9
             wait pid=1 tid=1 syscall=0 fd_kind=socket total_ns=9
             sample pid=1 tid=2 syscall=-1";
        assert!(rest(8.0, two).rest() > 7.9);
        let hands = "wakeup t_ns=9e8 pid=1 tid=1 wait_ns=1e6 syscall=202 waker_pid=1 waker_tid=2";
        assert!(rest(8.0, &format!("{two}\n{hands}")).rest() < 0.1);
    }

    /// Those that get answers get them at once, so that no queue before the same threads holds the others.
    #[test]
    fn busy_threads_do_not_hold_what_hangs_beside_quick_answers() {
        let busy = "thread t_ns=1e9 pid=1 tid=1 wall_ns=1e9 cpu_ns=9e8 blocked_ns=1e8
             exchange_window t_ns=1e9 length_ns=1e9";
        let answers = |each_ns: u64| {
            let ns = each_ns * 900;
            format!(
                "{busy}\nexchange role=accepted port=80 stage=response count=900 sum_ns={ns} length_ns=[{each_ns}] counts=[900]"
            )
        };
        assert!(rest(8.0, &answers(1_000_000)).rest() > 7.9);
        assert!(rest(8.0, &answers(20_000_000)).rest() < 0.1, "they are late as well");
    }

    #[test]
    fn processes_that_lived_for_a_moment_have_no_queue() {
        let moment = |tid: u32| format!("thread t_ns=1e9 pid={tid} tid={tid} wall_ns=1e7 cpu_ns=95e5 blocked_ns=5e5");
        let together = "thread t_ns=1e9 pid=0 tid=0 wall_ns=5e8 cpu_ns=45e7 blocked_ns=5e7";
        let u = rest(8.0, &format!("{THREAD}\n{}\n{}\n{together}", moment(8), moment(9)));
        assert!(u.rest() > 7.8, "{u:?}");
    }

    #[test]
    fn an_answer_that_somebody_else_owes() {
        let upstream = "connection t_ns=1 role=made peer=10.0.0.9:1 looks=100 open=800 late=790 late_ns=5e10";
        assert!(rest(8.0, &format!("{THREAD}\n{upstream}")).rest() < 0.2);
        let subscription = upstream.replace("5e10", "5e12");
        assert!(rest(8.0, &format!("{THREAD}\n{subscription}")).rest() > 7.0);
    }

    #[test]
    fn a_silent_peer_explains_nothing_by_itself() {
        let hang = |more: &str| {
            let text = format!(
                "meta length_ns=4e9 target.pids=[1]
                 {THREAD}
                 exchange_window t_ns=4e9 length_ns=4e9
                 connection t_ns=1 role=accepted port=80 looks=100 open=800 late=100 late_ns=5e11
                 connection t_ns=1 role=made peer=10.0.0.9:1 looks=100 open=100 late=100 late_ns=5e11 awaited=100
                 {more}"
            );
            Case::new(&parse(&text).unwrap()).fact::<Unexplained>().unwrap().rest()
        };
        assert!(hang("") > 0.9, "one request, too few to accuse the peer: not healthy either");
        let answers =
            "exchange role=made peer=10.0.0.9:1 stage=response count=9 sum_ns=1 length_ns=[1000000] counts=[9]";
        assert!(hang(answers) < 0.1);
    }
}
