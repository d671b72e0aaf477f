// SPDX-License-Identifier: Apache-2.0
//! Locks of the kernel that the target stood before: what they guard, and which functions wanted them.

use std::collections::BTreeMap;

use recording::tables::Wait;

use super::stacks::Stacks;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::ledger::blocked::{Blocked, of_wait, symbols};
use crate::ledger::kernel_lock::{self, Guards, KernelLock};

/// Waits for locks that guard one thing.
#[derive(Clone, Debug, PartialEq)]
pub struct LockWait {
    /// What they guard.
    pub guards: Guards,
    /// Time, ns.
    pub ns: f64,
    /// Waits.
    pub count: u64,
    /// The longest one, ns.
    pub max_ns: u64,
    /// Functions that wanted the lock, by time, ns; empty name = unknown.
    pub wanted_in: Vec<(String, f64)>,
}

/// All waits for locks of the kernel, those with most time first.
#[derive(Clone, Debug, Default)]
pub struct KernelLocks {
    /// By what they guard.
    pub waits: Vec<LockWait>,
}

impl Fact for KernelLocks {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let stacks = case.fact::<Stacks>()?;
        let mut by_guard: BTreeMap<Guards, LockWait> = BTreeMap::new();
        let mut functions: BTreeMap<(Guards, String), f64> = BTreeMap::new();
        for row in case.recording.rows::<Wait>().iter().filter(|r| of_wait(case, &stacks, r) == Blocked::KernelLock) {
            let names = symbols(&stacks, row.stack);
            let Some(KernelLock { guards, taken_in, .. }) = kernel_lock::of(&names) else { continue };
            let blank = || LockWait { guards, ns: 0.0, count: 0, max_ns: 0, wanted_in: Vec::new() };
            let sum = by_guard.entry(guards).or_insert_with(blank);
            sum.ns += row.total_ns as f64;
            sum.count = sum.count.saturating_add(row.count);
            sum.max_ns = sum.max_ns.max(row.max_ns);
            *functions.entry((guards, taken_in.to_string())).or_default() += row.total_ns as f64;
        }
        for ((guards, name), ns) in functions {
            by_guard.entry(guards).and_modify(|sum| sum.wanted_in.push((name, ns)));
        }
        let mut waits: Vec<LockWait> = by_guard.into_values().collect();
        waits.iter_mut().for_each(|wait| wait.wanted_in.sort_by(|a, b| b.1.total_cmp(&a.1)));
        waits.sort_by(|a, b| b.ns.total_cmp(&a.ns));
        Ok(Self { waits })
    }
}
