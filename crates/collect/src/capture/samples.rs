// SPDX-License-Identifier: Apache-2.0
//! From raw samples to rows: stacks are unwound at once, while the process is still there; names
//! come at the end, all together.

use recording::tables::{Sample, WaitStack};
use stacks::{Registers, Snapshot, Stacks};

use super::Plan;
use super::windows::Suspicion;
use crate::probes::profile::{Moment, RawSample};

/// `-ENOSYS`, which the kernel leaves in ax while a call has no result yet.
const NO_RESULT_YET: i64 = -38;

/// Bytes of user stack that are copied for each sample. Node's frames are large: V8 needs twice.
pub fn stack_bytes(plan: &Plan) -> u32 {
    let is_node = |pid: &u32| {
        let exe = std::fs::read_link(plan.root.join(format!("proc/{pid}/exe")));
        exe.is_ok_and(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("node")))
    };
    if plan.target.pids.iter().take(64).any(is_node) { 32 << 10 } else { 16 << 10 }
}

/// Unwinds samples and keeps the stacks until the end.
pub struct Samples {
    start_ns: u64,
    /// Stacks of samples and of waits.
    pub stacks: Stacks,
    /// Whether system calls deserve counting.
    pub suspicion: Suspicion,
}

impl Samples {
    pub fn new(start_ns: u64) -> Self {
        Self { start_ns, stacks: Stacks::new(), suspicion: Suspicion::default() }
    }

    /// Rows of a batch of raw samples.
    pub fn take(&mut self, raw: Vec<RawSample>) -> Vec<Sample> {
        raw.iter().map(|sample| self.row(sample)).collect()
    }

    /// Rows of threads that were about to wait, or to wake somebody.
    pub fn waits(&mut self, raw: Vec<RawSample>) -> Vec<WaitStack> {
        raw.iter().map(|raw| self.wait(raw)).collect()
    }

    fn wait(&mut self, raw: &RawSample) -> WaitStack {
        let r = registers(raw);
        let user = self.stacks.user_functions(&Snapshot { pid: raw.tgid, regs: r, stack: &raw.stack });
        WaitStack {
            t_ns: raw.at_ns.saturating_sub(self.start_ns),
            pid: raw.tgid,
            tid: raw.tid,
            comm: raw.comm.clone(),
            wakes: raw.moment == Moment::BeforeWakeup,
            syscall: call_number(raw),
            args: vec![r.di, r.si, r.dx, r.r10],
            stack: self.stacks.intern(&[], &user.frames, user.complete),
        }
    }

    fn row(&mut self, raw: &RawSample) -> Sample {
        let r = registers(raw);
        let syscall = if raw.user_mode { -1 } else { call_number(raw) };
        let result = if raw.user_mode {
            raw.after_call.then_some(r.ax.cast_signed())
        } else {
            (syscall >= 0 && r.ax.cast_signed() != NO_RESULT_YET).then_some(r.ax.cast_signed())
        };
        self.suspicion.see(raw.tgid, raw.tid, syscall, raw.after_call);
        let kernel = self.stacks.kernel(&raw.kernel);
        let user = self.stacks.user(&Snapshot { pid: raw.tgid, regs: r, stack: &raw.stack });
        Sample {
            t_ns: raw.at_ns.saturating_sub(self.start_ns),
            pid: raw.tgid,
            tid: raw.tid,
            comm: raw.comm.clone(),
            cpu: raw.cpu,
            kernel: !raw.user_mode,
            syscall,
            args: if syscall >= 0 { vec![r.di, r.si, r.dx, r.r10, r.r8, r.r9] } else { Vec::new() },
            result,
            stack: self.stacks.intern(&kernel, &user.frames, user.complete),
            weight: raw.weight,
        }
    }
}

/// orig_ax is the call's number inside a call and -1 after an interrupt or a fault from user mode.
fn call_number(raw: &RawSample) -> i32 {
    i32::try_from(raw.registers[15].cast_signed()).ok().filter(|nr| *nr >= 0).unwrap_or(-1)
}

fn registers(raw: &RawSample) -> Registers {
    let [r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, _orig_ax, ip, _cs, _flags, sp, _ss] =
        raw.registers;
    Registers { ip, sp, bp, ax, bx, cx, dx, si, di, r8, r9, r10, r11, r12, r13, r14, r15 }
}
