// SPDX-License-Identifier: Apache-2.0
//! Requests queue inside a program because all connections to somebody whom it asks are taken. Where loops or goroutines serve many
//! requests each, the kernel sees no such queue; but Little's law tells how many requests were in hand and how many questions under
//! way, and looks at sockets how many connections there were to ask over.

use std::collections::BTreeMap;

use recording::tables;

use super::super::{Outcome, Statement, evidence};
use super::{AT_ITS_LIMIT, RULE};
use crate::case::Case;
use crate::facts::connections::Connections;
use crate::facts::requests::{Endpoint, LATE_NS, Requests};
use crate::facts::stacks::Stacks;
use crate::facts::unexplained::Unexplained;
use crate::facts::waiting::Waiting;
use crate::judgement::one_each;
use crate::judgement::paths::{asks_a_peer, stands_before_peers};
use crate::phrases::chain::links;
use crate::statistics::{ratio, share};
use crate::verdict::{Evidence, Explains, Finding, Subject};
use crate::walk::Walk;
use crate::walk::chains::Chain;
use crate::walk::paths::{Meanwhile, Part, RequestPaths, What};
use crate::wording::{percent, plural, seconds, sockets_to};

/// Exchanges from which on sums say something.
const ENOUGH: f64 = 10.0;

/// Requests followed from end to end, from which on their paths say something.
const FOLLOWED: u64 = 10;

/// Questions for one request: with fewer, most requests do without.
const MOSTLY: f64 = 0.5;

/// Of the connections to whom it asks, on average: before fewer no queue is long.
const TAKEN: f64 = 0.7;

/// Of their time: nobody counts what is left.
const ALL_THE_TIME: f64 = 0.95;

/// So many deviations of a number that comes by chance may be free on average: with a limit, hardly any is, and without one, a pool is
/// as large as its largest need was, which is some deviations more than the usual.
const FREE: f64 = 0.5;

/// Looks at connections, of which the most says something.
const LOOKS: f64 = 30.0;

/// Of the most questions at once, on average.
const NEARLY_ALWAYS: f64 = 0.8;

/// Of the requests in hand, in the queue; and of their time, where nothing else is seen.
const MIN_SHARE: f64 = 0.5;

/// Connections at the least, of a pool that threads share.
const SEVERAL: f64 = 1.5;

/// In the queue on average.
const MIN_QUEUE: f64 = 1.0;

/// A pool of connections of which none is free.
struct Taken<'r> {
    /// Whom they lead to.
    peer: &'r Endpoint,
    /// How many there are, on average.
    open: f64,
    /// Questions under way there, on average.
    asked: f64,
    /// The same as looks found it: on average, and at most.
    seen: (f64, f64),
    /// Requests in hand, on average.
    in_hand: f64,
    /// Of those, in the queue.
    queued: f64,
    /// How long each stands there, ns.
    each_ns: f64,
    /// There are always as many connections.
    is_kept: bool,
}

/// The pool that requests stand before, if there is one.
fn taken<'r>(case: &Case, requests: &'r Requests) -> Option<Taken<'r>> {
    let clients = requests.busiest()?;
    if clients.is_mixed() || clients.response.count < ENOUGH {
        return None;
    }
    let stand = stand(case)?;
    let (connections, known) = (case.fact::<Connections>().ok()?, case.fact::<Unexplained>().ok()?);
    let at_once = |endpoint: &Endpoint| requests.at_once(&endpoint.response);
    let asked = || requests.endpoints.iter().filter(|e| !e.accepted);
    let in_hand = requests.at_once(&clients.service);
    let queued = in_hand - asked().map(at_once).sum::<f64>() - known.queued - known.asking;
    let each_ns = clients.service.mean_ns() * share(queued.max(0.0), in_hand);
    if queued < MIN_QUEUE || share(queued, in_hand) < MIN_SHARE || each_ns < LATE_NS {
        return None;
    }
    let held = |name: &str| connections.peers.iter().find(|(peer, _)| peer == name).map(|(_, held)| held.clone());
    let is_told = connections.looks >= LOOKS;
    let pools = asked().filter(|e| !e.is_mixed() && e.response.count >= (clients.response.count * MOSTLY).max(ENOUGH));
    let pool = |peer: &'r Endpoint| {
        let held = held(&peer.name).unwrap_or_default();
        let seen = if is_told { (held.unanswered, held.most_unanswered) } else { (0.0, 0.0) };
        Taken {
            peer,
            open: held.open,
            asked: at_once(peer),
            seen,
            in_hand,
            queued,
            each_ns,
            is_kept: is_kept(case, &peer.name),
        }
    };
    pools.map(pool).filter(|pool| pool.is_full() && stand.is_before(pool)).max_by(|a, b| a.asked.total_cmp(&b.asked))
}

/// Of the connections to a peer, from one slice to another: a pool keeps them.
const STEADY: f64 = 0.05;

/// Whether there are as many connections to a peer in each slice.
fn is_kept(case: &Case, peer: &str) -> bool {
    let rows = case.recording.rows::<tables::Connection>().iter().filter(|row| !row.is_accepted() && row.peer == peer);
    let open = rows.map(|row| ratio(row.open as f64, row.looks as f64));
    let (least, most) =
        open.fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), open| (least.min(open), most.max(open)));
    least >= most * (1.0 - STEADY)
}

/// Where requests stand for most of their time.
enum Stand {
    /// Inside a loop or a runtime, where the kernel sees nothing.
    Inside,
    /// Their threads wait for others that ask this peer.
    Behind(String),
}

impl Stand {
    /// Of threads that wait for each other, one connection is a lock.
    fn is_before(&self, pool: &Taken<'_>) -> bool {
        match self {
            Self::Inside => true,
            Self::Behind(peer) => pool.peer.name == *peer && pool.open >= SEVERAL,
        }
    }
}

fn stand(case: &Case) -> Option<Stand> {
    let (walk, paths) = (case.fact::<Walk>().ok()?, case.fact::<RequestPaths>().ok()?);
    let all = &paths.busiest()?.all;
    if all.requests < FOLLOWED {
        return None;
    }
    // A loop that waits for an answer waits for anybody's: whether that is the request's own, its path does not tell.
    let inside =
        |part: &Part| matches!(part.what, What::Inside { meanwhile: Meanwhile::Unknown, .. }) || asks_a_peer(part);
    let has_threads = || walk.has_serving_threads() || one_each::threads(case).is_some();
    if all.share(inside) >= MIN_SHARE && !has_threads() {
        return Some(Stand::Inside);
    }
    let mut behind: BTreeMap<&str, f64> = BTreeMap::new();
    for part in all.parts.iter().filter(|part| stands_before_peers(part)) {
        let What::Waits(chain) = &part.what else { continue };
        if let Some(holder) = chain.links.iter().skip(1).find(|link| !link.who.peer.is_empty()) {
            *behind.entry(&holder.who.peer).or_default() += part.ns;
        }
    }
    let (peer, ns) = behind.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (ns >= all.ns * MIN_SHARE).then(|| Stand::Behind(peer.to_string()))
}

impl Taken<'_> {
    fn is_full(&self) -> bool {
        self.has_no_connection_free() || self.is_at_its_most()
    }

    /// Never more at once than a small number, and nearly always as many: somebody counts. By chance, the most of many looks is far
    /// above what is usual. Of quick answers the looks miss too many.
    fn is_at_its_most(&self) -> bool {
        let (usual, most) = self.seen;
        let is_near = usual >= most * NEARLY_ALWAYS && most - usual <= usual.sqrt() * FREE;
        most >= 1.0 && is_near && self.peer.response.mean_ns() >= LATE_NS
    }

    fn has_no_connection_free(&self) -> bool {
        // A pool has one connection at least, and keeps what it has: where each question has one of its own, none is ever free.
        self.is_kept && self.asked >= self.open.max(1.0) * TAKEN && self.open - self.asked <= self.asked.sqrt() * FREE
    }

    /// What a finding rests on.
    fn evidence(&self) -> Vec<Evidence> {
        let to_see = sockets_to("-tnp", &self.peer.name);
        let mut all = vec![
            evidence("requests in hand, on average", self.in_hand, "requests", "about as many as questions", ""),
            evidence("questions under way, on average", self.asked, "questions", "fewer than connections", ""),
            evidence("connections to ask over", self.open, "connections", "more than questions", to_see),
            evidence("an answer from there, on average", self.peer.response.mean_ns() / 1e9, "s", "", ""),
        ];
        if self.seen.1 > 0.0 {
            all.insert(2, evidence("at most", self.seen.1, "questions", "more than on average", ""));
        }
        all
    }

    fn words(&self) -> String {
        if !self.has_no_connection_free() {
            let questions = plural(self.seen.1 as usize, "question");
            return format!("never more than {questions} to {} at once", self.peer.name);
        }
        let taken = share(self.asked, self.open);
        let part = if taken >= ALL_THE_TIME { String::new() } else { format!(" for {} of the time", percent(taken)) };
        match self.open.round() as u64 {
            0 | 1 => format!("its one connection to {} is taken{part}", self.peer.name),
            number => format!("all {number} connections to {} are taken{part}", self.peer.name),
        }
    }
}

/// The finding, if requests stand before such a pool.
pub(super) fn check(case: &Case) -> Option<Outcome> {
    let (requests, waiting) = (case.fact::<Requests>().ok()?, case.fact::<Waiting>().ok()?);
    let taken = taken(case, &requests)?;
    let part = share(taken.queued, taken.in_hand);
    let headline = format!("requests queue inside it for {} of their time: {}", percent(part), taken.words());
    let advice = format!(
        "see why an answer from there takes {}: a larger pool helps only if that has room for more at once",
        seconds(taken.peer.response.mean_ns() / 1e9)
    );
    let chain = waiting.chains.iter().find(|chain| chain.links[0].who.peer == taken.peer.name);
    let finding = finding(case, &taken, chain)?;
    Some(Outcome::Found(Box::new(finding), Statement::short(headline, advice)))
}

fn finding(case: &Case, taken: &Taken<'_>, chain: Option<&Chain>) -> Option<Finding> {
    let (stacks, peer) = (case.fact::<Stacks>().ok()?, taken.peer);
    let part = share(taken.queued, taken.in_hand);
    let open = taken.open.round().max(1.0);
    let who = chain.map(|chain| &chain.links[0].who);
    Some(Finding {
        summary: format!(
            "{:.1} requests were in hand on average, and {:.1} questions to {} under way, over {}: the others, {} of their \
             time, stood for {} each until one was free",
            taken.in_hand,
            taken.asked,
            peer.name,
            plural(open as usize, "connection"),
            percent(part),
            seconds(taken.each_ns / 1e9)
        ),
        subject: Subject {
            pid: who.map(|who| who.pid),
            comm: who.map(|who| who.comm.clone()),
            socket: Some(peer.name.clone()),
            ..Subject::default()
        },
        explains: Explains {
            share: part,
            of: "response time of requests".into(),
            seconds: taken.queued * case.seconds(),
        },
        evidence: taken.evidence(),
        chain: chain.map_or_else(Vec::new, |chain| links(chain, &stacks)),
        remedy: format!(
            "The program itself asks {} for no more at once: the size of a pool, a limit of its client library, a semaphore, a lock \
             that is held while it asks. If that has room for more, raise it; {AT_ITS_LIMIT}",
            peer.name
        ),
        check: "Requests in hand are about as many as questions under way, and the response time falls by this part."
            .into(),
        // That nobody asks for more is a weaker witness than that there is nothing to ask over.
        ..RULE.finding(case, if taken.has_no_connection_free() { 2 } else { 1 })
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::asking::{found, silent};
    use super::super::RULE;

    /// A loop that answers 100 requests in 4 s, each `length` ms after it was read, and asks a database over `open` connections for
    /// `asked` ms of that, one after the other on each.
    fn service(length: u32, asked: u32, open: u32) -> String {
        let mut text = "meta host.arch=x86_64 length_ns=4e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
            process pid=1 listen=[\"tcp 0.0.0.0:80\"]
            thread t_ns=4e9 pid=1 tid=1 comm=loop wall_ns=4e9 cpu_ns=1e8 blocked_ns=39e8
            frame id=1 symbol=net_rx_action module=kernel kind=kernel
            stack id=1 frames=[1]
            burst t_ns=4e9 length_ns=4e9
            exchange_window t_ns=4e9 length_ns=4e9\n"
            .to_string();
        for end in (0..80).map(|nth| 790 + nth * 40) {
            let (began, until) = (end - length, end - 1);
            text += &format!(
                "request t_ns={end}e6 role=accepted port=80 pid=1 began_ns={began}e6 began_tid=1 read_ns={began}e6 ended_tid=1
                 request t_ns={until}e6 role=made peer=10.0.0.9:5432 pid=1 began_ns={}e6 began_tid=1 read_ns={until}e6 ended_tid=1
                 wakeup t_ns={until}e6 pid=1 tid=1 comm=loop wait_ns=38e6 blocked_ns=38e6 since_ns={}e6 waits=1 syscall=232 family=2 local_port=4000 remote_port=5432 peer=10.0.0.9 context=interrupt waker_stack=1\n",
                until - asked,
                until - 38
            );
        }
        let sum = |ms: u32| format!("sum_ns={}e6 length_ns=[{ms}000000] counts=[100]", 100 * ms);
        let (response, made) = (sum(length), sum(asked));
        text + &format!(
            "exchange role=accepted port=80 stage=response count=100 {response}
             exchange role=accepted port=80 stage=service count=100 {response}
             exchange role=made peer=10.0.0.9:5432 stage=response count=100 {made}
             connection t_ns=4e9 role=accepted port=80 looks=40 open=1600 unanswered=760 late=760 late_ns=4e11
             connection t_ns=4e9 role=made peer=10.0.0.9:5432 looks=40 open={}",
            open * 40
        )
    }

    #[test]
    fn requests_that_stand_before_a_pool_of_the_program_s_own() {
        // 760 ms each are 19 in hand, 78 ms each 1.95 questions.
        let finding = found(&RULE, &service(760, 78, 2));
        assert_eq!(finding.subject.socket.as_deref(), Some("10.0.0.9:5432"));
        assert!(
            finding.summary.contains("19.0 requests were in hand on average, and 1.9 questions"),
            "{}",
            finding.summary
        );
        assert!((finding.explains.share - 0.897).abs() < 0.01, "{:?}", finding.explains);
    }

    #[test]
    fn connections_that_are_free_or_requests_that_ask_at_once() {
        silent(&RULE, &service(760, 78, 4));
        silent(&RULE, &service(84, 78, 2));
        // A connection for each question, and questions of 1 ms: nothing is taken.
        silent(&RULE, &service(760, 1, 0));
    }

    #[test]
    fn a_connection_for_each_question() {
        let more = "connection t_ns=3e9 role=made peer=10.0.0.9:5432 looks=40 open=60";
        silent(&RULE, &format!("{}\n{more}", service(760, 78, 2)));
        found(&RULE, &format!("{}\n{}", service(760, 78, 2), more.replace("open=60", "open=80")));
    }

    #[test]
    fn a_limit_that_is_no_pool_of_connections() {
        // Six connections, of which never more than two are used.
        let limited = |most: u32| {
            let text =
                service(760, 78, 6).replace("open=240", &format!("open=240 unanswered=76 most_unanswered={most}"));
            text.replace("meta ", "meta target.named=\"--port 80\" ")
        };
        let finding = found(&RULE, &limited(2));
        assert!(finding.summary.contains("1.9 questions to 10.0.0.9:5432 under way"), "{}", finding.summary);
        silent(&RULE, &limited(5));
        silent(&RULE, &limited(0));
    }
}
