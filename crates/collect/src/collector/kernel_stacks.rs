// SPDX-License-Identifier: Apache-2.0
//! Which stack of the kernel's map is which of the recording. The map is emptied each slice, so that it never fills; what
//! was in it is remembered here by key.

use std::collections::HashMap;

use anyhow::Result;
use stacks::Stacks;

use crate::probes::ledger::Ledger;

/// Ids by the kernel's key.
#[derive(Default)]
pub struct KernelStacks(HashMap<u64, u32>);

impl KernelStacks {
    /// Empties the map.
    pub fn learn(&mut self, ledger: &Ledger<'_>, stacks: &mut Stacks) -> Result<()> {
        for (key, addresses) in ledger.stacks()? {
            self.0.entry(key).or_insert_with(|| intern(&addresses, stacks));
        }
        Ok(())
    }

    /// Id of a stack, also of one that came after the map was emptied; 0 = there is none.
    pub fn id(&mut self, key: u64, ledger: &Ledger<'_>, stacks: &mut Stacks) -> Result<u32> {
        if key == 0 {
            return Ok(0);
        }
        if let Some(id) = self.0.get(&key) {
            return Ok(*id);
        }
        let Some(addresses) = ledger.stack(key)? else { return Ok(0) };
        let id = intern(&addresses, stacks);
        self.0.insert(key, id);
        Ok(id)
    }
}

fn intern(addresses: &[u64], stacks: &mut Stacks) -> u32 {
    let frames = stacks.kernel(addresses);
    stacks.intern(&frames, &[], true)
}
