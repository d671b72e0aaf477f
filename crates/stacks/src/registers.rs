// SPDX-License-Identifier: Apache-2.0
//! The general registers of a stopped thread, and of its callers as far as they can be known.

/// The x86-64 general registers, as in the kernel's `pt_regs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // They are the processor's own names.
pub struct Registers {
    pub ip: u64,
    pub sp: u64,
    pub bp: u64,
    pub ax: u64,
    pub bx: u64,
    pub cx: u64,
    pub dx: u64,
    pub si: u64,
    pub di: u64,
    pub r8: u64,
    pub r9: u64,
    pub r10: u64,
    pub r11: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
}

/// Numbers of registers in DWARF (System V ABI for x86-64, figure 3.36).
pub(crate) const BP: usize = 6;
pub(crate) const SP: usize = 7;
pub(crate) const RA: usize = 16;

/// What a function must give back unchanged: rbx, rbp, r12 to r15.
const CALLEE_SAVED: [usize; 6] = [3, BP, 12, 13, 14, 15];

/// Registers of one frame by DWARF number; a caller's scratch registers are lost, hence `None`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Frame([Option<u64>; 17]);

impl Frame {
    /// Nothing is known but the stack pointer.
    pub(crate) fn with_sp(sp: u64) -> Frame {
        let mut frame = Frame::default();
        frame.set(SP, Some(sp));
        frame
    }

    pub(crate) fn get(&self, number: usize) -> Option<u64> {
        self.0.get(number).copied().flatten()
    }

    pub(crate) fn set(&mut self, number: usize, value: Option<u64>) {
        if let Some(slot) = self.0.get_mut(number) {
            *slot = value;
        }
    }

    /// What the caller has in its registers unless a rule says otherwise.
    pub(crate) fn kept_by_call(&self) -> Frame {
        let mut kept = Frame::default();
        for number in CALLEE_SAVED {
            kept.0[number] = self.0[number];
        }
        kept
    }
}

impl From<&Registers> for Frame {
    fn from(r: &Registers) -> Self {
        let order = [
            r.ax, r.dx, r.cx, r.bx, r.si, r.di, r.bp, r.sp, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.ip,
        ];
        Frame(order.map(Some))
    }
}
