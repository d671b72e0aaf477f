// SPDX-License-Identifier: Apache-2.0
//! What the ledger counts about itself.

use super::{Totals, types};

/// What the ledger counted about itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Runs of the switch hook, bystanders' too.
    pub switches: u64,
    /// Ends of watched threads.
    pub exits: u64,
    /// Ends whose row found no room; their time is in `lost`.
    pub exits_lost: u64,
    /// Programs replaced in watched processes.
    pub execs: u64,
    /// Those whose row found no room.
    pub execs_lost: u64,
    /// Threads taken into the watch.
    pub forks: u64,
    /// Threads that could not be watched.
    pub forks_lost: u64,
    /// Stays of watched threads on a CPU.
    pub stays: u64,
    /// Those whose beginning was not seen, but told from their CPU time.
    pub stays_unseen: u64,
    /// Waits booked, and parts of waits that go on.
    pub waits: u64,
    /// Waits that found the map full.
    pub waits_lost: u64,
    /// Stacks of waits taken.
    pub stacks: u64,
    /// Stacks that found the map full.
    pub stacks_lost: u64,
    /// Snapshots of threads that were about to wait.
    pub snapshots: u64,
    /// Those that found the ring full.
    pub snapshots_lost: u64,
    /// Waits for a CPU that are worth a name.
    pub delays: u64,
    /// Those whose name found the map full.
    pub delays_lost: u64,
    /// Time of threads whose end row was lost.
    pub lost: Totals,
}

impl Counts {
    /// Of all CPUs together.
    pub(super) fn sum(rows: Vec<types::counts>) -> Self {
        let mut sum = Counts::default();
        for c in rows {
            sum.switches += c.switches;
            sum.exits += c.exits;
            sum.exits_lost += c.exits_lost;
            sum.execs += c.execs;
            sum.execs_lost += c.execs_lost;
            sum.forks += c.forks;
            sum.forks_lost += c.forks_lost;
            sum.stays += c.stays;
            sum.stays_unseen += c.stays_unseen;
            sum.waits += c.waits;
            sum.waits_lost += c.waits_lost;
            sum.stacks += c.stacks;
            sum.stacks_lost += c.stacks_lost;
            sum.snapshots += c.snapshots;
            sum.snapshots_lost += c.snapshots_lost;
            sum.delays += c.delays;
            sum.delays_lost += c.delays_lost;
            sum.lost.wall += c.lost.wall;
            sum.lost.cpu += c.lost.cpu;
            sum.lost.run_queue += c.lost.run_queue;
            sum.lost.preempted += c.lost.preempted;
            sum.lost.throttled += c.lost.throttled;
            sum.lost.blocked += c.lost.blocked;
            sum.lost.interrupted += c.lost.interrupted;
        }
        sum
    }
}
