// SPDX-License-Identifier: Apache-2.0
//! Whether threads wait for each other's lock, which one holds at a time, or for a pool, which several do.

use crate::answer::Gap;
use crate::case::Case;
use crate::facts::contended::Contended;
use crate::judgement::hung::ALL_THE_TIME;
use crate::ledger::blocked::Blocked;
use crate::ledger::threads::Threads;
use crate::statistics::ratio;
use crate::walk::chains::Chain;
use crate::walk::{HAND_OFF, Kind, LOCK, Walk, Who};

/// Holders on average, between one and two.
const SEVERAL: f64 = 1.5;

/// Of the largest number of holders, so many on average: between two requests a holder is on a CPU.
const HELD: f64 = 0.6;

/// Whether several hold one at once, nearly all the time: a pool, and it is empty.
pub(crate) fn is_pool(held: &Contended) -> bool {
    held.mean >= SEVERAL && held.mean >= held.most as f64 * HELD
}

/// Locks of the target's, which one of its threads holds at a time.
pub(crate) struct Locks {
    /// What threads that serve clients hand around is one.
    handed: bool,
}

impl Locks {
    /// By how many hold at once what is handed around. Some runtimes look at a lock again now and then, which is a wait beside the
    /// holder's; and in an interpreter that runs one thread at a time, each waits for another.
    pub(crate) fn of(case: &Case) -> Result<Self, Gap> {
        let held = case.fact::<Contended>()?;
        let one_holder = !held.chains.is_empty() && held.mean < SEVERAL;
        Ok(Self { handed: one_holder && !case.fact::<Walk>()?.mostly_interpreter() })
    }

    /// Whether a chain begins before one.
    pub(crate) fn keep(&self, chain: &Chain) -> bool {
        match chain.links[0].who.fd_kind.as_str() {
            LOCK => true,
            HAND_OFF => self.handed,
            _ => false,
        }
    }
}

/// What the holder of a lock did while others stood before it, behind any number that stood there as the first one did.
pub(crate) fn holder_does(chain: &Chain) -> String {
    match (holder(chain), chain.end.kind) {
        (Some(who), _) if who.sleeps() => "sleeps".to_string(),
        (Some(who), _) => format!("waits in {}", who.call_words()),
        (None, Kind::OnCpu) => "computes".to_string(),
        (None, Kind::RunQueue) => "has no CPU".to_string(),
        (None, Kind::Unseen) => "does something that was not recorded".to_string(),
        (None, Kind::Client) => "waits for its client".to_string(),
        (None, Kind::Packet) => "waits for the network".to_string(),
        (None, kind) => format!("waits for {}", kind.words()),
    }
}

fn holder(chain: &Chain) -> Option<&Who> {
    Some(&chain.links[holder_at(chain)?].who)
}

/// The first link of a chain that waits for something else than those before it; none = the end of the chain has the lock.
pub(crate) fn holder_at(chain: &Chain) -> Option<usize> {
    let first = &chain.links.first()?.who;
    let stands = |who: &Who| (&who.comm, &who.call) == (&first.comm, &first.call) && !who.sleeps();
    (1..chain.links.len()).find(|at| !stands(&chain.links[*at].who))
}

/// Process and thread name of whoever has the lock before which a chain begins.
pub(crate) fn who_holds(chain: &Chain) -> (u32, &str) {
    holder(chain).map_or((chain.end.pid, &chain.end.comm), |who| (who.pid, &who.comm))
}

/// Of the window, one thread at a time in one state.
const ONE_AT_A_TIME: (f64, f64) = (0.7, 1.1);

/// In what one thread of the target at a time was blocked, nearly all the time, where nobody waits for work: what has its turn there may be
/// done under a lock.
pub(crate) fn one_at_a_time(case: &Case) -> Option<Blocked> {
    const LINES: [Blocked; 4] = [Blocked::Pipe, Blocked::Disk, Blocked::SocketSend, Blocked::Connect];
    let ledger = case.fact::<Threads>().ok()?;
    let at_a_time = |line: &Blocked| {
        let of_each = ledger.threads.iter().map(|thread| thread.lines.blocked(*line));
        // One that stands there for good has no turn.
        let blocked_ns: f64 = of_each.filter(|ns| *ns < case.length_ns() * ALL_THE_TIME).sum();
        (ONE_AT_A_TIME.0..=ONE_AT_A_TIME.1).contains(&ratio(blocked_ns, case.length_ns()))
    };
    LINES.into_iter().find(at_a_time)
}
