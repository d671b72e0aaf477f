// SPDX-License-Identifier: Apache-2.0
//! From raw samples to rows: stacks are unwound at once, while the process is still there; names come later.

use recording::tables::{Sample, WaitStack};
use stacks::{Registers, Snapshot, Stacks};

use crate::collector::Suspicion;
use crate::probes::profile::{self, Moment, RawSample};
use crate::probes::shapes;

/// `-ENOSYS`, which the kernel leaves in ax while a call has no result yet.
const NO_RESULT_YET: i64 = -38;

/// Row of a thread that was about to wait, or to wake somebody.
pub fn wait(raw: &RawSample, start_ns: u64, stacks: &mut Stacks) -> WaitStack {
    let r = registers(&raw.registers);
    let user = stacks.user_functions(&Snapshot { pid: raw.tgid, regs: r, stack: &raw.stack });
    WaitStack {
        t_ns: raw.at_ns.saturating_sub(start_ns),
        pid: raw.tgid,
        tid: raw.tid,
        comm: raw.comm.clone(),
        wakes: raw.moment == Moment::BeforeWakeup,
        syscall: call_number(raw),
        args: vec![r.di, r.si, r.dx, r.r10],
        own_frame: shapes::is_in_own_frame(r.di, r.sp),
        stack: stacks.intern(&[], &user.frames, user.complete),
    }
}

/// Row of a thread that ran.
pub fn sample(raw: &RawSample, start_ns: u64, stacks: &mut Stacks, suspicion: &mut Suspicion) -> Sample {
    let r = registers(&raw.registers);
    let syscall = if raw.user_mode { -1 } else { call_number(raw) };
    let result = if raw.user_mode {
        raw.after_call.then_some(r.ax.cast_signed())
    } else {
        (syscall >= 0 && r.ax.cast_signed() != NO_RESULT_YET).then_some(r.ax.cast_signed())
    };
    suspicion.see(raw.tgid, raw.tid, syscall, raw.after_call);
    let kernel = stacks.kernel(&raw.kernel);
    let user = stacks.user(&Snapshot { pid: raw.tgid, regs: r, stack: &raw.stack });
    Sample {
        t_ns: raw.at_ns.saturating_sub(start_ns),
        pid: raw.tgid,
        tid: raw.tid,
        comm: raw.comm.clone(),
        cpu: raw.cpu,
        kernel: !raw.user_mode,
        syscall,
        args: if syscall >= 0 { vec![r.di, r.si, r.dx, r.r10, r.r8, r.r9] } else { Vec::new() },
        result,
        stack: stacks.intern(&kernel, &user.frames, user.complete),
        weight: raw.weight,
    }
}

/// The segment of 32-bit code (arch/x86/include/asm/segment.h), whose calls have other numbers.
const USER32_CS: u16 = 0x23;

/// orig_ax is the call's number inside a call and -1 after an interrupt or a fault from user mode.
fn call_number(raw: &RawSample) -> i32 {
    if raw.registers[17] as u16 == USER32_CS {
        return -1;
    }
    i32::try_from(raw.registers[15].cast_signed()).ok().filter(|nr| *nr >= 0).unwrap_or(-1)
}

/// Those that unwinding needs, of all as the kernel keeps them.
pub fn registers(raw: &profile::Registers) -> Registers {
    let [r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, _orig_ax, ip, _cs, _flags, sp, _ss] =
        *raw;
    Registers { ip, sp, bp, ax, bx, cx, dx, si, di, r8, r9, r10, r11, r12, r13, r14, r15 }
}
