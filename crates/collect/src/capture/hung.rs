// SPDX-License-Identifier: Apache-2.0
//! The probes that hang on hooks for the whole of a capture, together.

use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

use anyhow::Result;
use libbpf_rs::OpenObject;
use recording::tables::Gap;

use super::{Plan, SAMPLE_HZ};
use crate::collector::Collector;
use crate::probes::ledger::{self, Ledger};
use crate::probes::profile::Profile;
use crate::probes::wakeups::Wakeups;
use crate::{hooks, host};

/// A probe that the kernel refuses is a gap in the recording, not a failure of the capture.
fn or_gap<T>(loaded: Result<T>, what: &str, gaps: &mut Vec<Gap>) -> Option<T> {
    loaded.map_err(|e| gaps.push(Gap { what: what.into(), why: format!("{e:#}") })).ok()
}

/// What hangs on hooks for the whole capture.
pub struct Probes<'o> {
    pub ledger: Ledger<'o>,
    pub profile: Option<Profile<'o>>,
    pub wakeups: Option<Wakeups<'o>>,
}

impl<'o> Probes<'o> {
    /// Loads the ledger, and beside it what the kernel allows.
    pub fn load(
        plan: &Plan,
        stack_bytes: u32,
        [a, b, c]: [&'o mut MaybeUninit<OpenObject>; 3],
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
        Ok(Self { ledger, profile, wakeups })
    }

    /// All that are there.
    pub fn all(&self) -> Vec<&dyn Collector> {
        let mut all: Vec<&dyn Collector> = vec![&self.ledger];
        all.extend(self.profile.iter().map(|profile| profile as &dyn Collector));
        all.extend(self.wakeups.iter().map(|wakeups| wakeups as &dyn Collector));
        all
    }

    /// The programs, for their run statistics.
    pub fn programs(&self) -> Vec<(&'static str, BorrowedFd<'_>)> {
        self.all().into_iter().flat_map(|collector| collector.programs()).collect()
    }

    /// Takes all hooks off; maps and rings stay readable.
    pub fn detach(&mut self) {
        self.ledger.detach();
        self.profile.iter_mut().for_each(Collector::detach);
        self.wakeups.iter_mut().for_each(Collector::detach);
    }
}
