// SPDX-License-Identifier: Apache-2.0
//! What a capture is made of: each collector fills its tables, from what it needs of the kernel before the start to what only
//! the end can tell. The capture (`capture.rs`) drives all of them alike and knows none; what they share is in [`Shared`].
//!
//! All is done in one thread, which drains rings meanwhile: no method but those of the start and the end may take longer than
//! a few ms, of all collectors together no longer than rings hold out, which is twice the time between two ticks. What takes
//! time is a state that [`Collector::tick`] moves on. Programs are loaded in [`Kind::start`], where nothing is watched yet and the
//! load may stand back behind others as long as it likes; what is rarely needed, in [`Collector::load`].

mod kernel_stacks;
mod known;
mod lazy;
mod shared;
mod suspicion;

use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use anyhow::Result;
use libbpf_rs::OpenObject;
use recording::Tables;
use recording::tables::{Cost, Gap, Process};

use crate::account::Account;
use crate::probes::{Kept, Probe, run_stats};
pub use kernel_stacks::KernelStacks;
pub use known::Known;
pub use lazy::Lazy;
pub use shared::{Shared, SliceEnd, Start};
pub use suspicion::Suspicion;

/// Where the object of a probe stands while it is loaded. Each collector gets one.
pub type Slot<'o> = &'o mut MaybeUninit<OpenObject>;

/// Starts a collector. An error is why the kernel does not let it.
pub type Starter = for<'o> fn(&mut Start<'_, 'o>, Slot<'o>) -> Result<Box<dyn Collector + 'o>>;

/// What is known of a collector before it is started: what `doctor` shows, and what a capture says where it is missing.
pub struct Kind {
    /// What is missing where it cannot be started, as a gap names it.
    pub gap: &'static str,
    /// What it is called for people, and what it gives or what is lost without it; none = it needs nothing that a kernel
    /// could refuse, or says itself what is missing.
    pub facility: Option<(&'static str, &'static str)>,
    /// Makes the tables that are there even where nothing is in them, so that a reader can tell a table without rows from one
    /// that was never tried.
    pub tables: fn(&mut Tables),
    /// Starts it.
    pub start: Starter,
}

/// A collector at work. Every method but [`Collector::slice`] has a default, so that a small one stays small. Methods are in
/// the order in which they are called.
pub trait Collector {
    /// Does at once what it would do when it is first needed: for `doctor`, which watches nobody.
    ///
    /// # Errors
    /// Why the kernel does not let it.
    fn prove(&mut self, _: &Shared<'_>) -> Result<()> {
        Ok(())
    }

    /// The capture's clock has started, and the target is watched: rows of what is known then.
    ///
    /// # Errors
    /// A map fails.
    fn begin(&mut self, _: &mut Shared<'_>, _: &mut Tables) -> Result<()> {
        Ok(())
    }

    /// Comes round every 50 ms, for what it does of its own accord.
    ///
    /// # Errors
    /// A map or a hook fails.
    fn tick(&mut self, _: &mut Shared<'_>) -> Result<()> {
        Ok(())
    }

    /// Loads programs that it has come to need; true = it did. Rings were emptied just before and are again right after, so that
    /// nothing is lost if it takes as long as two ticks, by the clock. The programs of the windows on calls take 13 ms of CPU time;
    /// they must not stand back behind others meanwhile.
    fn load(&mut self, _: &Shared<'_>) -> bool {
        false
    }

    /// In what time something ends that it has under way: it gets a tick then, and no slice ends before.
    fn busy_for(&self) -> Option<Duration> {
        None
    }

    /// Takes what rings hold: after each tick, and once more when the hooks are off.
    ///
    /// # Errors
    /// A ring fails.
    fn drain(&mut self, _: &mut Shared<'_>) -> Result<()> {
        Ok(())
    }

    /// Reads at the end of a slice what must be as of this moment; it is written with [`Collector::slice`], a little later.
    fn read(&mut self, _: &Shared<'_>, _: &SliceEnd) {}

    /// Adds its rows of the slice that has ended.
    ///
    /// # Errors
    /// A map fails.
    fn slice(&mut self, shared: &mut Shared<'_>, end: &SliceEnd, tables: &mut Tables) -> Result<()>;

    /// Takes note of processes of the target that were born since the last slice, became another program, or began to listen.
    fn come(&mut self, _: &[Process]) {}

    /// Ends what it has under way: the last look at the threads comes next.
    ///
    /// # Errors
    /// A map fails.
    fn conclude(&mut self, _: &mut Shared<'_>) -> Result<()> {
        Ok(())
    }

    /// Takes its hooks off; maps and rings stay readable.
    fn detach(&mut self, shared: &mut Shared<'_>) {
        self.probe_mut(shared).into_iter().for_each(Probe::detach);
    }

    /// Adds what only the end can tell.
    ///
    /// # Errors
    /// A map fails.
    fn finish(&mut self, _: &mut Shared<'_>, _: &SliceEnd, _: &mut Tables) -> Result<()> {
        Ok(())
    }

    /// Its probe on hooks, where it has one: what follows is answered from there.
    fn probe<'a>(&'a self, _: &'a Shared<'_>) -> Option<&'a dyn Probe> {
        None
    }

    /// The same, to take its hooks off.
    fn probe_mut<'a>(&'a mut self, _: &'a mut Shared<'_>) -> Option<&'a mut dyn Probe> {
        None
    }

    /// Its programs that run all the time, for their run statistics.
    fn programs<'a>(&'a self, shared: &'a Shared<'_>) -> Vec<(&'static str, BorrowedFd<'a>)> {
        self.probe(shared).map(Probe::programs).unwrap_or_default()
    }

    /// What was kept and lost, since the start.
    ///
    /// # Errors
    /// A map cannot be read.
    fn losses(&self, shared: &Shared<'_>) -> Result<Vec<Kept>> {
        let Some(probe) = self.probe(shared) else { return Ok(Vec::new()) };
        Ok([probe.losses()?, run_stats::missed(probe)?].concat())
    }

    /// What its programs in the kernel have cost, since the start.
    ///
    /// # Errors
    /// A map cannot be read.
    fn costs(&self, shared: &Shared<'_>, account: &Account) -> Result<Vec<Cost>> {
        let runs = self.probe(shared).map_or(Ok(Vec::new()), Probe::runs)?;
        Ok(runs.into_iter().map(|(name, runs)| account.program(name, runs)).collect())
    }

    /// Kernel memory of its own maps, bytes.
    fn map_bytes(&self, shared: &Shared<'_>) -> u64 {
        self.probe(shared).map_or(0, Probe::map_bytes)
    }

    /// What it could not see, but for losses.
    ///
    /// # Errors
    /// A map cannot be read.
    fn gaps(&mut self, shared: &Shared<'_>) -> Result<Vec<Gap>> {
        self.probe(shared).map_or(Ok(Vec::new()), Probe::gaps)
    }

    /// Gives up one step of what it costs, for the rest of the capture; false = it has nothing more to give. What is shed shows
    /// in its rows (weights, windows, looks), so that no reader takes it for less of what was counted.
    fn shed(&mut self) -> bool {
        false
    }

    /// Gives up all of it, for the rest of the capture: takes its hooks off for good, and does nothing of its own accord any more.
    /// What it has gathered is written with the slice that is on; after that its tables get no rows. False = it goes on, because
    /// others need what it does, or there is nothing to give up.
    fn stop(&mut self, shared: &mut Shared<'_>) -> bool {
        self.probe_mut(shared).map(Probe::detach).is_some()
    }
}
