// SPDX-License-Identifier: Apache-2.0
//! From waits to rows, slice by slice.

use anyhow::Result;
use recording::tables::Wait;
use stacks::Stacks;

use super::kernel_stacks::KernelStacks;
use crate::probes::ledger::{Ledger, WaitRow};

/// Waits of the slice that ends at `t_ns`; right after the threads were read, so that both agree.
pub fn rows(t_ns: u64, ledger: &Ledger<'_>, known: &mut KernelStacks, stacks: &mut Stacks) -> Result<Vec<Wait>> {
    let rows = ledger.waits()?; // before the stacks: a wait that comes meanwhile is of the next slice
    known.learn(ledger, stacks)?;
    let mut waits = Vec::with_capacity(rows.len());
    for row in &rows {
        waits.push(wait(t_ns, row, known.id(row.stack, ledger, stacks)?));
    }
    waits.sort_by_key(|w| (w.pid, w.tid, std::cmp::Reverse(w.total_ns), w.syscall, w.stack));
    Ok(waits)
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
