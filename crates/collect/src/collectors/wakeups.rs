// SPDX-License-Identifier: Apache-2.0
//! Who woke whom: from wakeups to rows.

use std::mem::take;

use anyhow::Result;
use recording::Tables;
use recording::tables::{Birth, Process, Wakeup};

use crate::collector::{Collector, Kind, Shared, SliceEnd, Slot, Start};
use crate::file_names::FileNames;
use crate::probes::{Probe, ip_of, shapes, wakeups};

/// What is known of it before it is started.
pub const KIND: Kind = Kind {
    gap: "wakeup",
    facility: Some((
        "wakeups",
        "whom the service waits for, walked to the end; without them a wait is not told from idleness",
    )),
    tables: |tables| {
        tables.extend::<Wakeup>([]);
        tables.extend::<Birth>([]);
    },
    start: |start, slot| Ok(Box::new(Wakeups::start(start, slot)?)),
};

/// The probe, and rows of this slice.
struct Wakeups<'o> {
    probe: wakeups::Wakeups<'o>,
    rows: Vec<Wakeup>,
    births: Vec<Birth>,
    files: FileNames,
}

impl<'o> Wakeups<'o> {
    fn start(start: &mut Start<'_, 'o>, slot: Slot<'o>) -> Result<Self> {
        let snapshots = (start.sample_hz > 0).then_some(start.stack_bytes);
        let allowed = &start.plan.target.limits.allowed_cpus;
        let mut probe = wakeups::Wakeups::load_in(slot, start.ledger, snapshots, start.plan.room, allowed)?;
        probe.listen(&start.plan.target.listen);
        start.bursts = Some(probe.bursts()?);
        Ok(Self { probe, rows: Vec::new(), births: Vec::new(), files: FileNames::new(&start.plan.root) })
    }
}

impl Collector for Wakeups<'_> {
    fn drain(&mut self, shared: &mut Shared<'_>) -> Result<()> {
        let (wakeups, births) = self.probe.rows()?;
        self.births.extend(births.into_iter().map(|raw| birth(raw, shared.start_ns)));
        for raw in wakeups {
            let stacks = (shared.kernel_stack(raw.sleeper.stack)?, shared.kernel_stack(raw.waker.stack)?);
            let path = self.files.name(raw.fd_kind, (raw.sleeper.tgid, raw.args[0], raw.inode));
            self.rows.push(row(&raw, shared.start_ns, stacks, path));
        }
        Ok(())
    }

    fn slice(&mut self, _: &mut Shared<'_>, end: &SliceEnd, tables: &mut Tables) -> Result<()> {
        if end.last {
            // Not what came while the hooks were taken off.
            self.rows.retain(|row| row.t_ns <= end.t_ns);
            self.births.retain(|row| row.t_ns <= end.t_ns);
        }
        self.files.forget(); // a number may be another file's in the next
        tables.extend(take(&mut self.rows));
        tables.extend(take(&mut self.births));
        Ok(())
    }

    fn come(&mut self, processes: &[Process]) {
        self.probe.listen(processes.iter().flat_map(|process| &process.listen));
    }

    fn probe<'a>(&'a self, _: &'a Shared<'_>) -> Option<&'a dyn Probe> {
        Some(&self.probe)
    }

    fn probe_mut<'a>(&'a mut self, _: &'a mut Shared<'_>) -> Option<&'a mut dyn Probe> {
        Some(&mut self.probe)
    }

    /// Writes half as many rows, of fewer events in a burst too: each stands for more waits then.
    fn shed(&mut self) -> bool {
        self.probe.shed()
    }

    fn stop(&mut self, shared: &mut Shared<'_>) -> bool {
        self.probe.detach();
        shared.has_wakeups = false;
        true
    }
}

fn birth(raw: wakeups::Birth, start_ns: u64) -> Birth {
    Birth {
        t_ns: raw.at_ns.saturating_sub(start_ns),
        pid: raw.tgid,
        tid: raw.tid,
        comm: raw.comm,
        parent_pid: raw.parent_tgid,
        parent_tid: raw.parent_tid,
    }
}

fn row(raw: &wakeups::Wakeup, start_ns: u64, (stack, waker_stack): (u32, u32), path: String) -> Wakeup {
    let (sleeper, waker) = (&raw.sleeper, &raw.waker);
    Wakeup {
        t_ns: raw.at_ns.saturating_sub(start_ns),
        pid: sleeper.tgid,
        tid: sleeper.tid,
        comm: sleeper.comm.clone(),
        wait_ns: raw.wait_ns,
        since_ns: raw.since_ns.saturating_sub(start_ns),
        blocked_ns: raw.blocked_ns,
        cpu_ns: raw.cpu_ns,
        run_queue_ns: raw.run_queue_ns,
        waits: raw.waits,
        asked: raw.asked,
        syscall: sleeper.syscall,
        args: if sleeper.syscall >= 0 { raw.args.to_vec() } else { Vec::new() },
        own_frame: sleeper.syscall >= 0 && shapes::is_in_own_frame(raw.args[0], raw.sp),
        fd_kind: raw.fd_kind.into(),
        file_system: raw.file_system,
        state: raw.state.into(),
        io_wait: raw.io_wait,
        stack,
        family: sleeper.ports.family.into(),
        local_port: sleeper.ports.local.into(),
        remote_port: sleeper.ports.remote.into(),
        peer: ip_of(sleeper.ports.family, sleeper.ports.peer),
        path,
        context: raw.context.into(),
        waker_pid: waker.tgid,
        waker_tid: waker.tid,
        waker_comm: waker.comm.clone(),
        waker_syscall: waker.syscall,
        waker_stack,
        waker_family: waker.ports.family.into(),
        waker_local_port: waker.ports.local.into(),
        waker_remote_port: waker.ports.remote.into(),
    }
}
