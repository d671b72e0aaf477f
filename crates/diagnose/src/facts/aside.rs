// SPDX-License-Identifier: Apache-2.0
//! Threads of a service that do something else than what its clients ask for: consumers of a queue, checkpointers, compactors,
//! shippers of logs. Whatever they wait for, no client does.
//!
//! That one does not take part has to be shown: others serve clients, no client ever ended a wait of its own, it neither reads nor
//! answers requests, and those who do hardly ever wait for it.

use std::collections::{HashMap, HashSet};

use recording::tables::{Request, Wakeup};

use super::woken_by_clients::WokenByClients;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::statistics::share;
use crate::walk::Walk;
use crate::walk::clients::Clients;

/// Requests that were followed, from which on a thread that had none of them takes none.
const ENOUGH: usize = 20;

/// Of the time that a thread waits, the time that others wait for it: whoever holds a lock for a moment keeps them for less.
const AWAITED: f64 = 0.1;

/// The threads, by their ids.
pub struct Aside {
    /// Those that take part.
    taking_part: HashSet<u32>,
    /// Those of which it is known what they wait for.
    told: HashSet<u32>,
}

impl Fact for Aside {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let (walk, woken) = (case.fact::<Walk>()?, case.fact::<WokenByClients>()?);
        let requests = || case.recording.rows::<Request>().iter().filter(|row| row.is_accepted());
        let mut taking_part = woken.0.clone();
        taking_part.extend(requests().flat_map(|row| [row.began_tid, row.ended_tid]));
        let rows = case.recording.rows::<Wakeup>().iter().filter(|row| walk.target.contains(&row.pid));
        let (mut waited_ns, mut ended_ns): (HashMap<u32, f64>, HashMap<(u32, u32), f64>) = Default::default();
        for row in rows {
            *waited_ns.entry(row.tid).or_default() += row.blocked_ns as f64;
            if row.context == "thread" && row.waker_tid != row.tid && walk.target.contains(&row.waker_pid) {
                *ended_ns.entry((row.waker_tid, row.tid)).or_default() += row.blocked_ns as f64;
            }
        }
        let waited = |tid: u32| waited_ns.get(&tid).copied().unwrap_or(0.0);
        if requests().filter(|row| row.is_of_client()).count() < ENOUGH {
            // Whoever was given work may answer the client itself.
            let given = ended_ns.keys().filter(|(by, _)| taking_part.contains(by)).map(|(_, whom)| *whom);
            let more: Vec<u32> = given.collect();
            taking_part.extend(more);
        }
        extend(&mut taking_part, &ended_ns, waited);
        Ok(Self { taking_part, told: waited_ns.into_keys().collect() })
    }
}

/// Those for whom one that takes part waits take part as well.
fn extend(taking_part: &mut HashSet<u32>, ended_ns: &HashMap<(u32, u32), f64>, waited: impl Fn(u32) -> f64) {
    loop {
        let mut awaited: HashMap<u32, f64> = HashMap::new();
        for ((by, whom), ns) in ended_ns {
            if taking_part.contains(whom) && !taking_part.contains(by) {
                *awaited.entry(*by).or_default() += ns;
            }
        }
        let more: Vec<u32> =
            awaited.iter().filter(|(by, ns)| **ns >= waited(**by) * AWAITED).map(|(by, _)| *by).collect();
        if more.is_empty() {
            return;
        }
        taking_part.extend(more);
    }
}

impl Aside {
    /// Whether a thread takes no part, as far as that is known.
    pub fn has(&self, tid: u32) -> bool {
        self.told.contains(&tid) && self.is_unasked(tid)
    }

    /// Whether it takes none, as far as the waits of others tell: of one that never waits nothing else is known.
    pub fn is_unasked(&self, tid: u32) -> bool {
        !self.taking_part.is_empty() && !self.taking_part.contains(&tid)
    }

    /// Of the time that threads waited for a peer, that of threads that take no part.
    pub fn of_peer(&self, case: &Case, peer: &str) -> Option<f64> {
        let clients = case.fact::<Clients>().ok()?;
        let rows = case.recording.rows::<Wakeup>().iter().filter(|row| clients.is_own(row.pid));
        let (mut all, mut aside) = (0.0, 0.0);
        for row in rows.filter(|row| clients.asked_by(row).as_deref() == Some(peer)) {
            all += row.blocked_ns as f64;
            aside += if self.has(row.tid) { row.blocked_ns as f64 } else { 0.0 };
        }
        (all > 0.0).then(|| share(aside, all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    /// Thread 1 serves clients; thread 2 waits for 10.0.0.9, and ends waits of thread 1 that long.
    fn part(ends_ms: u32, more: &str) -> Option<f64> {
        let text = format!(
            "meta host.arch=x86_64 length_ns=10e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
             process pid=1 listen=[\"tcp 0.0.0.0:80\"]
             wakeup t_ns=1e9 pid=1 tid=1 wait_ns=5e8 blocked_ns=5e9 waits=10 syscall=0 family=2 local_port=80 remote_port=5 peer=10.0.0.1 context=interrupt
             wakeup t_ns=2e9 pid=1 tid=2 wait_ns=5e8 blocked_ns=8e9 waits=10 syscall=0 family=2 local_port=9 remote_port=9092 peer=10.0.0.9 context=interrupt
             wakeup t_ns=3e9 pid=1 tid=1 wait_ns={ends_ms}e6 blocked_ns={ends_ms}e6 waits=1 syscall=202 context=thread waker_pid=1 waker_tid=2
             {more}"
        );
        let recording = parse(&text).unwrap();
        let case = Case::new(&recording);
        case.fact::<Aside>().unwrap().of_peer(&case, "10.0.0.9:9092")
    }

    #[test]
    fn a_consumer_beside_those_who_serve() {
        assert_eq!(part(5, ""), Some(1.0), "a lock for a moment");
        assert_eq!(part(3000, ""), Some(0.0), "whoever serves waits for it");
        let given = "wakeup t_ns=4e9 pid=1 tid=2 wait_ns=1e9 blocked_ns=2e9 waits=4 syscall=202 context=thread waker_pid=1 waker_tid=1";
        assert_eq!(part(5, given), Some(0.0), "it is given work, and may answer itself");
        let asked = "wakeup t_ns=5e9 pid=1 tid=3 wait_ns=5e8 blocked_ns=2e9 waits=4 syscall=0 family=2 local_port=10 remote_port=9092 peer=10.0.0.9 context=interrupt
             request t_ns=6e9 role=accepted port=80 pid=1 began_ns=5e9 began_tid=3 read_ns=5e9 ended_tid=3";
        assert_eq!(part(5, asked), Some(0.8), "another thread asks the same for a request");
    }

    #[test]
    fn nobody_is_aside_where_nobody_serves() {
        let text = "meta host.arch=x86_64 length_ns=1e9 target.pids=[1]
            wakeup t_ns=2e8 pid=1 tid=2 wait_ns=1e8 blocked_ns=1e8 waits=1 syscall=0 family=2 local_port=9 remote_port=9092 peer=10.0.0.9 context=interrupt";
        let recording = parse(text).unwrap();
        assert!(!Case::new(&recording).fact::<Aside>().unwrap().has(2));
    }
}
