// SPDX-License-Identifier: Apache-2.0
//! What collectors share.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context, Result};
use stacks::Stacks;

use super::{KernelStacks, Known, Suspicion};
use crate::clock;
use crate::plan::Plan;
use crate::probes::exchanges::InHand;
use crate::probes::ledger::{Ledger, ThreadRow};
use crate::probes::wakeups::Bursts;
use crate::samplers::Scope;
use crate::sockets::tcp_listeners;

/// What a collector is started with. One that is started later sees what those before it have said.
pub struct Start<'s, 'o> {
    /// What to capture.
    pub plan: &'s Plan,
    /// Its threads; probes share its maps.
    pub ledger: &'s Ledger<'o>,
    /// When the capture began to load programs, since the boot.
    pub began: Duration,
    /// Bytes of user stack in a snapshot of a thread.
    pub stack_bytes: u32,
    /// Samples a second and CPU; 0 = there is no profile, and nobody reads snapshots.
    pub sample_hz: u32,
    /// Bursts of full detail of the wakeups, for who begins them.
    pub bursts: Option<Bursts>,
}

impl Start<'_, '_> {
    /// Number of the network namespace of the target's first process.
    ///
    /// # Errors
    /// It is not told, as of a process that has ended.
    pub fn network(&self) -> Result<u32> {
        let scope = Scope::of(&self.plan.root, &self.plan.target);
        let network = scope.proc.namespace(&scope.network(), "net").unwrap_or_default();
        let number: String = network.chars().filter(char::is_ascii_digit).collect(); // of `net:[4026531840]`
        number.parse().context("the target's network namespace is unknown")
    }

    /// TCP ports at which somebody listens in the target's network namespaces, others too: a backend that was forked serves at
    /// its parent's. Those of the first namespace are as of now, the others as when the target was looked for.
    pub fn listening(&self) -> Vec<u16> {
        let (target, scope) = (&self.plan.target, Scope::of(&self.plan.root, &self.plan.target));
        let listeners = tcp_listeners(&scope.proc, &scope.network());
        let then = target.ports.iter().filter_map(|port| u16::try_from(*port).ok());
        listeners.iter().map(|listener| listener.address.port()).chain(then).collect()
    }
}

/// What collectors share while they work.
pub struct Shared<'o> {
    /// What to capture.
    pub plan: &'o Plan,
    /// The capture's start, CLOCK_MONOTONIC ns.
    pub start_ns: u64,
    /// The base of all: the map of its threads says to every probe who is of the target, and other probes write into its ring
    /// and its map of stacks. So it is loaded before any collector and stands here; the collector of threads answers for it.
    pub ledger: Ledger<'o>,
    /// Processes of the target, as of the last slice.
    pub known: Known,
    /// Stacks, to be named.
    pub stacks: Stacks,
    /// Which of them the kernel's own are.
    pub kernel_stacks: KernelStacks,
    /// What samples say about asking calls.
    pub suspicion: Suspicion,
    /// Waits are told in bursts: false once the probe of wakeups was stopped.
    pub has_wakeups: bool,
    /// Whom samples of this slice found that is not of the target: pid, CPU, name, samples.
    pub bystanders: Vec<(u32, u32, String, u64)>,
    /// Requests of clients that are read and not answered when the capture ends, by the thread that read them.
    pub in_hand: HashMap<u32, InHand>,
}

/// The end of a slice.
pub struct SliceEnd {
    /// When, ns after the capture's start.
    pub t_ns: u64,
    /// It is the last one, and all hooks are off.
    pub last: bool,
    /// Threads of the target as they are at its end.
    pub living: Vec<ThreadRow>,
    /// Those that have ended in it.
    pub ended: Vec<ThreadRow>,
}

impl<'o> Shared<'o> {
    /// Nothing is known yet.
    pub fn new(plan: &'o Plan, ledger: Ledger<'o>, start_ns: u64) -> Self {
        Self {
            plan,
            start_ns,
            ledger,
            known: Known::default(),
            stacks: Stacks::new(),
            kernel_stacks: KernelStacks::default(),
            suspicion: Suspicion::default(),
            has_wakeups: true,
            bystanders: Vec::new(),
            in_hand: HashMap::new(),
        }
    }

    /// Since the capture's start.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(clock::monotonic_ns().saturating_sub(self.start_ns))
    }

    /// Id of a kernel stack by its key in the ledger's map; 0 = there is none.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn kernel_stack(&mut self, key: u64) -> Result<u32> {
        self.kernel_stacks.id(key, &self.ledger, &mut self.stacks)
    }
}
