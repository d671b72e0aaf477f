// SPDX-License-Identifier: Apache-2.0
//! The on-CPU profile: samples become rows as they come, clocks slow down when enough is known.

mod pace;
pub(crate) mod samples;

use std::mem::take;

use anyhow::Result;
use recording::Tables;
use recording::tables::{Sample, WaitStack};

use crate::collector::{Collector, Kind, Shared, SliceEnd, Slot, Start};
use crate::host;
use crate::plan::Plan;
use crate::probes::Probe;
use crate::probes::profile::{self, Moment};
use pace::Pace;

/// Samples a second and CPU. Not a divisor of common timers, so that it does not march in step.
const SAMPLE_HZ: u32 = 197;

/// Bytes of user stack that are copied for each sample, and for each thread that waits. Node's frames are large: V8 needs twice.
pub fn stack_bytes(plan: &Plan) -> u32 {
    let is_node = |pid: &u32| {
        let exe = std::fs::read_link(plan.root.join(format!("proc/{pid}/exe")));
        exe.is_ok_and(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("node")))
    };
    if plan.target.pids.iter().take(64).any(is_node) { 32 << 10 } else { 16 << 10 }
}

/// What is known of it before it is started.
pub const KIND: Kind = Kind {
    gap: "sample",
    facility: Some(("on-CPU profile", "user and kernel time, functions, flame graph, suspicion of busy polls")),
    tables: |tables| {
        tables.extend::<Sample>([]);
        tables.extend::<WaitStack>([])
    },
    start: |start, slot| Ok(Box::new(Profile::start(start, slot)?)),
};

/// The clocks, and rows of this slice.
struct Profile<'o> {
    probe: profile::Profile<'o>,
    pace: Pace,
    samples: Vec<Sample>,
    waits: Vec<WaitStack>,
}

impl<'o> Profile<'o> {
    fn start(start: &mut Start<'_, 'o>, slot: Slot<'o>) -> Result<Self> {
        let cpus = host::online_cpus(&start.plan.root);
        let (bytes, room) = (start.stack_bytes, start.plan.room);
        let probe = profile::Profile::load_in(slot, start.ledger, &cpus, SAMPLE_HZ, bytes, room)?;
        start.sample_hz = SAMPLE_HZ;
        Ok(Self { pace: Pace::new(probe.cpus()), probe, samples: Vec::new(), waits: Vec::new() })
    }
}

impl Collector for Profile<'_> {
    /// Clocks tick since they were made: whom they found while others were loaded is of no slice.
    fn begin(&mut self, _: &mut Shared<'_>, _: &mut Tables) -> Result<()> {
        self.probe.neighbours().map(drop)
    }

    fn drain(&mut self, shared: &mut Shared<'_>) -> Result<()> {
        let now = shared.elapsed();
        let Shared { start_ns, stacks, suspicion, .. } = shared;
        for raw in self.probe.samples()? {
            if raw.moment == Moment::AtClock {
                self.pace.see(raw.cpu, now);
                self.samples.push(samples::sample(&raw, *start_ns, stacks, suspicion));
            } else {
                self.waits.push(samples::wait(&raw, *start_ns, stacks));
            }
        }
        for (cpu, weight) in self.pace.changes(now) {
            self.probe.set_pace(cpu, weight);
        }
        Ok(())
    }

    fn slice(&mut self, shared: &mut Shared<'_>, end: &SliceEnd, tables: &mut Tables) -> Result<()> {
        if end.last {
            // What came while the hooks were taken off: no thread's time goes as far.
            self.samples.retain(|row| row.t_ns <= end.t_ns);
            self.waits.retain(|row| row.t_ns <= end.t_ns);
        }
        let new = self.probe.follow(&host::online_cpus(&shared.plan.root));
        self.pace.come(new, shared.elapsed());
        shared.suspicion.keep(&end.living);
        shared.bystanders = self.probe.neighbours()?;
        tables.extend(take(&mut self.samples));
        tables.extend(take(&mut self.waits));
        Ok(())
    }

    fn probe<'a>(&'a self, _: &'a Shared<'_>) -> Option<&'a dyn Probe> {
        Some(&self.probe)
    }

    fn probe_mut<'a>(&'a mut self, _: &'a mut Shared<'_>) -> Option<&'a mut dyn Probe> {
        Some(&mut self.probe)
    }

    /// All clocks tick at half their rate.
    fn shed(&mut self) -> bool {
        self.pace.shed()
    }
}
