// SPDX-License-Identifier: Apache-2.0
//! What the target's threads waited for, slice by slice.

use anyhow::Result;
use recording::Tables;
use recording::tables::Wait;

use crate::collector::{Collector, Kind, Shared, SliceEnd};
use crate::probes::ledger::WaitRow;

/// What is known of it before it is started.
pub const KIND: Kind = Kind { gap: "wait", facility: None, tables: |_| (), start: |_, _| Ok(Box::new(Waits::default())) };

/// The ledger's table of waits. It is emptied right after the threads were read, so that both agree: what comes meanwhile is of the
/// next slice.
#[derive(Default)]
struct Waits {
    read: Option<Result<Vec<WaitRow>>>,
}

impl Collector for Waits {
    fn read(&mut self, shared: &Shared<'_>, _: &SliceEnd) {
        self.read = Some(shared.ledger.waits());
    }

    fn slice(&mut self, shared: &mut Shared<'_>, end: &SliceEnd, tables: &mut Tables) -> Result<()> {
        let rows = self.read.take().unwrap_or_else(|| shared.ledger.waits())?;
        let Shared { ledger, stacks, kernel_stacks, .. } = shared;
        kernel_stacks.learn(ledger, stacks)?;
        let mut waits = Vec::with_capacity(rows.len());
        for row in &rows {
            waits.push(wait(end.t_ns, row, shared.kernel_stack(row.stack)?));
        }
        waits.sort_by_key(|w| (w.pid, w.tid, std::cmp::Reverse(w.total_ns), w.syscall, w.stack));
        tables.extend(waits);
        Ok(())
    }
}

fn wait(t_ns: u64, row: &WaitRow, stack: u32) -> Wait {
    Wait {
        t_ns,
        pid: row.tgid,
        tid: row.tid,
        syscall: row.syscall,
        fd_kind: row.fd_kind.into(),
        file_system: row.file_system,
        state: row.state.into(),
        io_wait: row.io_wait,
        stack,
        count: row.count,
        total_ns: row.total_ns,
        max_ns: row.max_ns,
    }
}
