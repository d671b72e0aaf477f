// SPDX-License-Identifier: Apache-2.0
//! The probes that hang on hooks for the whole of a capture, together.

use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

use anyhow::Result;
use libbpf_rs::OpenObject;
use recording::tables::Gap;

use super::{Plan, SAMPLE_HZ};
use crate::collector::Collector;
use crate::probes::exchanges::Exchanges;
use crate::probes::ledger::{self, Ledger};
use crate::probes::profile::Profile;
use crate::probes::wakeups::Wakeups;
use crate::samplers::Scope;
use crate::sockets::Source;
use crate::{hooks, host};

/// A probe that the kernel refuses is a gap in the recording, not a failure of the capture.
fn or_gap<T>(loaded: Result<T>, what: &str, gaps: &mut Vec<Gap>) -> Option<T> {
    loaded.map_err(|e| gaps.push(Gap::refused(what, format!("{e:#}")))).ok()
}

/// Ports at which somebody listens in the target's network namespace: a backend that was forked serves at one that is its
/// parent's.
fn listening(plan: &Plan) -> Vec<u16> {
    let scope = Scope::of(&plan.root, &plan.target);
    let listeners = Source::of(&scope.proc, &scope.network()).tcp().unwrap_or_default();
    listeners.iter().map(|listener| listener.address.port()).collect()
}

/// What hangs on hooks for the whole capture.
pub struct Probes<'o> {
    pub ledger: Ledger<'o>,
    pub profile: Option<Profile<'o>>,
    pub wakeups: Option<Wakeups<'o>>,
    pub exchanges: Option<Exchanges<'o>>,
}

impl<'o> Probes<'o> {
    /// Loads the ledger, and beside it what the kernel allows.
    pub fn load(
        plan: &Plan,
        stack_bytes: u32,
        [a, b, c, d]: [&'o mut MaybeUninit<OpenObject>; 4],
        gaps: &mut Vec<Gap>,
    ) -> Result<Self> {
        let ledger = Ledger::load_in(a, stack_bytes, plan.room);
        let ledger = ledger.map_err(|e| hooks::explain(&plan.root, &ledger::HOOKS, e))?;
        let cpus = host::online_cpus(&plan.root);
        let profile = Profile::load_in(b, &ledger, &cpus, SAMPLE_HZ, stack_bytes, plan.room);
        let profile = or_gap(profile, "sample", gaps);
        let stack_bytes = profile.as_ref().map(|_| stack_bytes);
        let mut wakeups = or_gap(Wakeups::load_in(c, &ledger, stack_bytes, plan.room), "wakeup", gaps);
        wakeups.iter_mut().for_each(|wakeups| wakeups.listen(&plan.target.listen));
        let exchanges = or_gap(Exchanges::load(d, &ledger, listening(plan)), "exchange", gaps);
        Ok(Self { ledger, profile, wakeups, exchanges })
    }

    /// All that are there.
    pub fn all(&self) -> Vec<&dyn Collector> {
        let mut all: Vec<&dyn Collector> = vec![&self.ledger];
        all.extend(self.profile.iter().map(|profile| profile as &dyn Collector));
        all.extend(self.wakeups.iter().map(|wakeups| wakeups as &dyn Collector));
        all.extend(self.exchanges.iter().map(|exchanges| exchanges as &dyn Collector));
        all
    }

    /// The programs, for their run statistics.
    pub fn programs(&self) -> Vec<(&'static str, BorrowedFd<'_>)> {
        self.all().into_iter().flat_map(|collector| collector.programs()).collect()
    }

    /// Learns sockets at which a process that was born meanwhile listens, such as `tcp 0.0.0.0:80`.
    pub fn listen<'s>(&mut self, sockets: impl Iterator<Item = &'s String> + Clone) {
        self.wakeups.iter_mut().for_each(|wakeups| wakeups.listen(sockets.clone()));
        let tcp = sockets.filter_map(|socket| socket.strip_prefix("tcp "));
        let ports: Vec<u16> = tcp.filter_map(|address| address.rsplit(':').next()?.parse().ok()).collect();
        self.exchanges.iter_mut().for_each(|exchanges| exchanges.listen(ports.iter().copied()));
    }

    /// Takes all hooks off; maps and rings stay readable.
    pub fn detach(&mut self) {
        self.ledger.detach();
        self.profile.iter_mut().for_each(Collector::detach);
        self.wakeups.iter_mut().for_each(Collector::detach);
        self.exchanges.iter_mut().for_each(Collector::detach);
    }
}
