// SPDX-License-Identifier: Apache-2.0
//! What threads of the target hand around among each other, one waiting for the other: a lock that the language runtime
//! keeps, or a pool of connections or permits. Which of the two is told by how many hold one at once.

use recording::tables::Wakeup;

use super::waiting::Waiting;
use crate::case::{Case, Fact};
use crate::statistics::ratio;
use crate::verdict::Gap;
use crate::walk::chains::Chain;
use crate::walk::clients::Clients;
use crate::walk::turns::TURN;
use crate::walk::{Walk, Who, kind_of_thread};

/// Waits for what other threads hold.
#[derive(Clone, Debug, Default)]
pub struct Rights {
    /// Chains that begin with one, those that explain most first.
    pub chains: Vec<Chain>,
    /// Their time, ns.
    pub ns: f64,
    /// Threads that were in the holders' own wait at once, at most.
    pub most: usize,
    /// The same on average.
    pub mean: f64,
}

impl Fact for Rights {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let waiting = case.fact::<Waiting>()?;
        let (chains, ns) = waiting.of(|chain| chain.links[0].who.fd_kind == TURN);
        let Some(holder) = chains.first().and_then(|chain| chain.links.get(1)) else { return Ok(Self::default()) };
        let (walk, clients) = (case.fact::<Walk>()?, case.fact::<Clients>()?);
        let within = |row: &Wakeup| row.context == "thread" && walk.target.contains(&row.waker_pid);
        let of_holders = |row: &&Wakeup| !within(row) && is_wait_of(case, &clients, row, &holder.who);
        let held: Vec<&Wakeup> = case.recording.rows::<Wakeup>().iter().filter(of_holders).collect();
        let total: f64 = held.iter().map(|row| row.blocked_ns.max(row.wait_ns) as f64).sum();
        Ok(Self {
            ns,
            most: most_at_once(&held),
            mean: ratio(total, case.length_ns()),
            chains: chains.into_iter().cloned().collect(),
        })
    }
}

impl Rights {
    /// Whether several hold one at once, nearly all the time: a pool, and it is empty.
    pub fn is_pool(&self) -> bool {
        self.mean >= SEVERAL && self.mean >= self.most as f64 * HELD
    }

    /// Whether one holds it at a time. Some runtimes look at a lock again now and then, which is a wait beside the holder's.
    pub fn is_lock(&self) -> bool {
        !self.chains.is_empty() && self.mean < SEVERAL
    }
}

/// Holders on average, between one and two.
const SEVERAL: f64 = 1.5;

/// Of the largest number of holders, so many on average: between two requests a holder is on a CPU.
const HELD: f64 = 0.6;

fn is_wait_of(case: &Case, clients: &Clients, row: &Wakeup, who: &Who) -> bool {
    let peer = clients.asked_by(row).unwrap_or_default();
    let same_thread = row.pid == who.pid && kind_of_thread(&row.comm) == who.comm;
    same_thread && case.syscall(row.syscall) == who.call && peer == who.peer
}

/// Most waits at the same time.
fn most_at_once(waits: &[&Wakeup]) -> usize {
    let mut events: Vec<(u64, i32)> =
        waits.iter().flat_map(|row| [(row.t_ns.saturating_sub(row.wait_ns), 1), (row.t_ns, -1)]).collect();
    events.sort_unstable(); // an end comes before a beginning at the same time
    let mut now = 0;
    events.iter().fold(0, |most, (_, step)| {
        now += step;
        most.max(now)
    }) as usize
}
