// SPDX-License-Identifier: Apache-2.0
//! Names of functions: as they come where that is quickly done, the rest at the end. A service's functions are in files of
//! megabytes and kept for the end; the kernel's are looked up one by one.

use anyhow::Result;
use recording::Tables;
use recording::tables::Gap;
use stacks::{Effort, Stacks};

use crate::collector::{Collector, Kind, Shared, SliceEnd};
use crate::probes::names::KernelNames;

/// Symbol tables that are read in one slice, bytes: some milliseconds.
const BYTES_OF_SLICE: u64 = 4 << 20;

/// It needs nothing: where the program is refused, the kernel's list of all functions is read.
pub const KIND: Kind = Kind {
    gap: "frame",
    facility: None,
    tables: |_| (),
    start: |_, slot| Ok(Box::new(Naming(KernelNames::load(slot).ok()))),
};

/// Who knows the kernel's functions; none = the kernel refused the program.
struct Naming<'o>(Option<KernelNames<'o>>);

impl Naming<'_> {
    fn name(&mut self, stacks: &mut Stacks, effort: Effort, tables: &mut Tables) {
        let (rows, frames) = match &mut self.0 {
            Some(names) => {
                let mut of = |address| names.of(address);
                stacks.fresh(effort, &mut stacks::KernelNames::By(&mut of))
            }
            None => stacks.fresh(effort, &mut stacks::KernelNames::List),
        };
        tables.extend(rows);
        tables.extend(frames);
    }
}

impl Collector for Naming<'_> {
    /// The stacks of a slice, with as many names as are quickly found.
    fn slice(&mut self, shared: &mut Shared<'_>, _: &SliceEnd, tables: &mut Tables) -> Result<()> {
        self.name(&mut shared.stacks, Effort::Bytes(BYTES_OF_SLICE), tables);
        Ok(())
    }

    /// The stacks of the last slice, and all names that are still missing.
    fn finish(&mut self, shared: &mut Shared<'_>, _: &SliceEnd, tables: &mut Tables) -> Result<()> {
        self.name(&mut shared.stacks, Effort::All, tables);
        Ok(())
    }

    /// That stacks came which found no room among those that are told apart.
    fn gaps(&mut self, shared: &Shared<'_>) -> Result<Vec<Gap>> {
        let lost = shared.stacks.lost();
        let why = "there are more different stacks, or places in code, than are told apart (a million of each): what came later has no \
                   stack, so that functions are those of the first part of the capture";
        let gap = (lost.stacks + lost.frames > 0).then(|| Gap::partial("stack", 0.0, why));
        Ok(gap.into_iter().collect())
    }
}
