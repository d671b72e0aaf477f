// SPDX-License-Identifier: Apache-2.0
//! What threads of the target hand around among each other, one waiting for the other: a lock that the language runtime
//! keeps, or a pool of connections or permits. Which of the two is told by how many hold one at once.

use recording::tables::Wakeup;

use super::waiting::Waiting;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::statistics::ratio;
use crate::walk::chains::Chain;
use crate::walk::clients::Clients;
use crate::walk::{HAND_OFF, Walk, Who, kind_of_thread};

/// Waits for what other threads hold.
#[derive(Clone, Debug, Default)]
pub struct Contended {
    /// Chains that begin with one, those that explain most first.
    pub chains: Vec<Chain>,
    /// Their time, ns.
    pub ns: f64,
    /// Threads that were in the holders' own wait at once, at most.
    pub most: usize,
    /// The same on average, while a thread stood in the queue.
    pub mean: f64,
}

impl Fact for Contended {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let waiting = case.fact::<Waiting>()?;
        let (chains, ns) = waiting.of(|chain| chain.links[0].who.fd_kind == HAND_OFF);
        let Some(holder) = chains.first().and_then(|chain| chain.links.get(1)) else { return Ok(Self::default()) };
        let (walk, clients) = (case.fact::<Walk>()?, case.fact::<Clients>()?);
        let within = |row: &Wakeup| row.context == "thread" && walk.target.contains(&row.waker_pid);
        // Of those among whom it is handed around: other threads may wait in the same call for something else.
        let serves = |row: &Wakeup| walk.serves_one(row.tid);
        let of_holders = |row: &&Wakeup| !within(row) && serves(row) && is_wait_of(case, &clients, row, &holder.who);
        let held: Vec<&Wakeup> = case.recording.rows::<Wakeup>().iter().filter(of_holders).collect();
        let queued: Vec<&Wakeup> =
            case.recording.rows::<Wakeup>().iter().filter(|row| walk.is_turn(case, row)).collect();
        let (most, picked) = at_once(&held, &queued);
        // Of many waits only some are picked: then the whole of them over the window says more.
        let all: f64 = held.iter().map(|row| row.blocked_ns.max(row.wait_ns) as f64).sum();
        let mean = picked.max(ratio(all, case.length_ns())).min(most as f64);
        Ok(Self { ns, most, mean, chains: chains.into_iter().cloned().collect() })
    }
}

fn is_wait_of(case: &Case, clients: &Clients, row: &Wakeup, who: &Who) -> bool {
    let peer = clients.asked_by(row).unwrap_or_default();
    let same_thread = row.pid == who.pid && kind_of_thread(&row.comm) == who.comm;
    same_thread && case.syscall(row.syscall) == who.call && peer == who.peer
}

/// How many of some waits there were at the same time, at most, and on average while another kind of wait was on.
fn at_once(waits: &[&Wakeup], meanwhile: &[&Wakeup]) -> (usize, f64) {
    let ends = |row: &&Wakeup, kind: usize| {
        [(row.t_ns.saturating_sub(row.wait_ns), kind, 1), (row.t_ns, kind, -1)] // an end comes first at the same time
    };
    let mut events: Vec<(u64, usize, i64)> = waits.iter().flat_map(|row| ends(row, 0)).collect();
    events.extend(meanwhile.iter().flat_map(|row| ends(row, 1)));
    events.sort_unstable_by_key(|&(at, _, step)| (at, step));
    let (mut now, mut most, mut before) = ([0_i64; 2], 0, 0);
    let (mut sum, mut time) = (0.0, 0.0);
    for (at, kind, step) in events {
        if now[1] > 0 {
            time += (at - before) as f64;
            sum += (at - before) as f64 * now[0] as f64;
        }
        before = at;
        now[kind] += step;
        most = most.max(now[0]);
    }
    (usize::try_from(most).unwrap_or(0), ratio(sum, time))
}
