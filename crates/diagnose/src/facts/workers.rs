// SPDX-License-Identifier: Apache-2.0
//! Threads that take connections, one at a time each, and the queue before them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use recording::counters::{listeners, snmp};
use recording::tables::Wakeup;

use super::calls::{Calls, Counted};
use super::counters::Counters;
use super::listeners::is_unix;
use super::listening::Listening;
use super::readers::Readers;
use super::requests::Requests;
use super::servers::Servers;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::ledger::blocked::Blocked;
use crate::ledger::threads::{ALL_THE_TIME, ThreadLedger, Threads};
use crate::statistics::share;
use crate::syscall::{Family, family};
use crate::walk::Walk;
use crate::walk::clients::Clients;

/// The listener with the longest queue, and who accepts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workers {
    /// Address of the listener.
    pub listener: String,
    /// Connections in its accept queue, on average.
    pub queue: f64,
    /// Share of the window in which there was one.
    pub queued: f64,
    /// How long a connection stands in it, on average, ns: by Little's law from all connections that were made in the
    /// meantime, so a lower bound; infinite = none was.
    pub wait_ns: f64,
    /// Threads that accept.
    pub threads: usize,
    /// They were not seen to, and nobody else can.
    pub by_elimination: bool,
    /// Process and thread of those that are in the ledger, those with the largest CPU demand first.
    pub who: Vec<(u32, u32)>,
    /// Share of their time in which they had or wanted a CPU.
    pub busy: f64,
    /// Share in which they waited for a connection.
    pub free: f64,
    /// Share in which they waited for the next request in a connection that a client keeps open.
    pub kept: f64,
    /// No connection was taken from it, while others were answered.
    pub none_taken: bool,
}

impl Fact for Workers {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let (ledger, counters) = (case.fact::<Threads>()?, case.fact::<Counters>());
        let mut workers = Self::default();
        if let Ok(counters) = counters {
            for listener in counters.entities(listeners::SOURCE) {
                workers.add_listener(case, &counters, listener);
            }
            // Exchanges are those of TCP.
            let taken = taken(case, &workers.listener);
            workers.none_taken = taken == Some(0.0);
            let made = taken.or_else(|| match is_unix(&workers.listener) {
                true => accepted(case),
                false => counters.grew(snmp::PASSIVE_OPENS),
            });
            let made = made.unwrap_or(0.0);
            workers.wait_ns = if made > 0.0 { workers.queue * case.length_ns() / made } else { f64::INFINITY };
        }
        let mut accepting = accepting(case, workers.none_taken);
        if accepting.is_empty() {
            accepting = one_each(case);
            workers.by_elimination = !accepting.is_empty();
        }
        let rows = ledger.threads.iter().filter(|t| t.tid != 0 && accepting.contains(&(t.pid, t.tid)));
        let (walk, at_connections) = (case.fact::<Walk>().ok(), polls_at_connections(case, &accepting));
        let (mut wall, mut demand, mut free, mut kept) = (0.0, 0.0, 0.0, 0.0);
        let mut who = Vec::new();
        for thread in rows {
            workers.threads += 1;
            who.push((thread.lines.demand_ns(), (thread.pid, thread.tid)));
            wall += thread.lines.wall_ns;
            demand += thread.lines.demand_ns();
            // A worker may poll for its client, for a database or for the next connection: the walk tells which.
            let idle = walk.as_ref().and_then(|walk| walk.idleness.of(thread.tid)).unwrap_or(1.0);
            let (polls, at) = (thread.lines.blocked(Blocked::Poll) * idle, at_connections.get(&thread.tid));
            let polls_kept = polls * at.copied().unwrap_or_default();
            free += thread.lines.blocked(Blocked::Accept) + polls - polls_kept;
            kept += thread.lines.blocked(Blocked::SocketRead) * idle + polls_kept;
        }
        who.sort_by(|a, b| b.0.total_cmp(&a.0));
        workers.who = who.into_iter().map(|(_, who)| who).collect();
        (workers.busy, workers.free, workers.kept) = (share(demand, wall), share(free, wall), share(kept, wall));
        Ok(workers)
    }
}

/// Requests, from which on they tell how many connections were taken.
const ENOUGH: f64 = 10.0;

/// Connections of a listener that were taken and answered; none = too few were seen to tell. The kernel's own count is that of all
/// listeners of the network namespace.
fn taken(case: &Case, listener: &str) -> Option<f64> {
    let (requests, listening) = (case.fact::<Requests>().ok()?, case.fact::<Listening>().ok()?);
    // Exchanges know the port alone, of which the listener may be one of several.
    let port = listening.all().find(|socket| socket.name == listener)?.port?;
    let endpoint = requests.at_port(port)?;
    let first = endpoint.first_read.count;
    let is_none = first == 0.0 && endpoint.response.count >= ENOUGH;
    (is_none || first >= ENOUGH).then(|| first * requests.scale())
}

/// Of each of these threads' waits in polls that a client ended, how much was for a connection that it had taken, and not for the next
/// one.
fn polls_at_connections(case: &Case, of: &BTreeSet<(u32, u32)>) -> BTreeMap<u32, f64> {
    let Ok(clients) = case.fact::<Clients>() else { return BTreeMap::new() };
    let mut threads: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for row in case.recording.rows::<Wakeup>().iter().filter(|row| of.contains(&(row.pid, row.tid))) {
        if family(&case.syscall(row.syscall)) == Family::Poll && clients.ended(case, row) {
            let (kept, all) = threads.entry(row.tid).or_default();
            let ns = row.blocked_ns.max(row.wait_ns) as f64;
            *all += ns;
            *kept += if clients.is_read(case, row) { ns } else { 0.0 };
        }
    }
    threads.into_iter().map(|(tid, (kept, all))| (tid, share(kept, all))).collect()
}

/// Connections that were taken by accept(2), as far as its calls were counted; none = they were not. The kernel has no counter of
/// those at Unix sockets.
fn accepted(case: &Case) -> Option<f64> {
    let calls = case.fact::<Calls>().ok()?;
    let accept = calls.counted.values().filter(|call| call.family == Family::Accept);
    let each = |call: &Counted| call.per_second * share(call.found as f64, call.calls as f64);
    Some(accept.map(each).sum::<f64>() * case.seconds())
}

impl Workers {
    /// What shows the queue.
    pub fn look(&self) -> &'static str {
        if is_unix(&self.listener) { "ss -lx  # Recv-Q" } else { "ss -ltn  # Recv-Q" }
    }

    fn add_listener(&mut self, case: &Case, counters: &Counters, listener: &str) {
        let Some(queue) = counters.mean(listeners::ACCEPT_QUEUE, listener, case.length_ns()) else {
            return;
        };
        if queue.value > self.queue {
            (self.listener, self.queue, self.queued) = (listener.to_string(), queue.value, queue.above_zero);
        }
    }
}

/// Threads that were seen to accept: in the windows in which calls were counted, in a sample, or waiting for a connection. Where none
/// was taken nobody could be seen.
fn accepting(case: &Case, none_taken: bool) -> BTreeSet<(u32, u32)> {
    let accept = |calls: Arc<Calls>| calls.threads_in(case, |family| family == Family::Accept);
    let mut threads = case.fact::<Calls>().map_or_else(|_| BTreeSet::new(), accept);
    // With a connection always at hand none ever waits for one: then those that serve one client at a time.
    if threads.is_empty()
        && let Ok(walk) = case.fact::<Walk>()
    {
        // Of those whom it asks, too, some serve one client each: the target itself.
        let own = case.recording.rows::<Wakeup>().iter().filter(|row| walk.target.contains(&row.pid));
        threads.extend(own.filter(|row| walk.serves_one(row.tid)).map(|row| (row.pid, row.tid)));
    }
    // Where those that accept read what they took themselves, all that read take turns to accept.
    if let Ok(readers) = case.fact::<Readers>()
        && (none_taken || !threads.is_empty())
        && threads.is_subset(&readers.who)
    {
        threads.extend(&readers.who);
    }
    threads
}

/// The one thread of each process that may serve, if it listens and none of them has more: nobody else can accept. Whoever only minds the others does
/// not, nor does who came and went.
fn one_each(case: &Case) -> BTreeSet<(u32, u32)> {
    let (Ok(ledger), Ok(servers)) = (case.fact::<Threads>(), case.fact::<Servers>()) else { return BTreeSet::new() };
    let own = || ledger.threads.iter().filter(|thread| thread.tid != 0 && servers.has(thread.pid));
    let at_unix = |counters: Arc<Counters>| counters.entities(listeners::SOURCE).any(is_unix);
    let listens = case.fact::<Listening>().is_ok_and(|listening| listening.on_tcp())
        || case.fact::<Counters>().is_ok_and(at_unix);
    let processes: BTreeSet<u32> = own().map(|thread| thread.pid).collect();
    if !listens || processes.len() < own().count() {
        return BTreeSet::new();
    }
    let least_ns = case.length_ns() * ALL_THE_TIME;
    let stays = own().filter(|thread| thread.lines.wall_ns >= least_ns);
    let minds = |thread: &&ThreadLedger| thread.lines.blocked(Blocked::Child) >= least_ns;
    stays.filter(|thread| !minds(thread)).map(|thread| (thread.pid, thread.tid)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    /// Workers behind a Unix socket, of one thread each, who are never without a connection, and the process that minds them.
    #[test]
    fn who_takes_connections_though_nobody_was_seen_to() {
        let of = |more: &str| {
            let text = format!(
                "meta host.arch=x86_64 length_ns=6e9 target.pids=[1]
                 counter source=proc/net/listeners entity=\"unix /a\" name=accept_queue value=20
                 counter t_ns=6e9 source=proc/net/listeners entity=\"unix /a\" name=accept_queue value=20
                 thread t_ns=6e9 pid=1 tid=1 wall_ns=6e9 blocked_ns=6e9
                 wait t_ns=6e9 pid=1 tid=1 syscall=61 state=1 total_ns=6e9
                 thread t_ns=6e9 pid=2 tid=2 wall_ns=6e9 blocked_ns=6e9
                 thread t_ns=6e9 pid=3 tid=3 wall_ns=6e9 blocked_ns=6e9\n{more}"
            );
            let workers = Case::new(&parse(&text).unwrap()).fact::<Workers>().unwrap();
            workers.who.iter().map(|who| who.1).collect::<Vec<_>>()
        };
        assert_eq!(of(""), [2, 3]);
        assert_eq!(
            of(
                "thread t_ns=2e9 comm=sh wall_ns=1e9 blocked_ns=1e9\nthread t_ns=2e9 comm=date wall_ns=1e9 blocked_ns=1e9"
            ),
            [2, 3],
            "they came and went"
        );
        assert!(of("thread t_ns=6e9 pid=3 tid=5 wall_ns=6e9 blocked_ns=6e9").is_empty(), "any of several threads");
    }
}
