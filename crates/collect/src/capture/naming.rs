// SPDX-License-Identifier: Apache-2.0
//! Names of functions: as they come where that is quickly done, the rest at the end. A service's functions are in files of
//! megabytes and kept for the end; the kernel's are looked up one by one.

use std::mem::MaybeUninit;

use anyhow::Result;
use libbpf_rs::OpenObject;
use recording::Writer;
use stacks::{Effort, Stacks};

use crate::probes::names::KernelNames;

/// Symbol tables that are read in one slice, bytes: some milliseconds.
const BYTES_OF_SLICE: u64 = 4 << 20;

/// Who knows the kernel's functions; loaded for the first names.
pub enum Naming<'o> {
    NotLoaded(&'o mut MaybeUninit<OpenObject>),
    Loaded(Box<KernelNames<'o>>),
    Refused,
}

impl Naming<'_> {
    /// Writes the stacks of a slice, with as many names as are quickly found.
    pub fn slice(&mut self, stacks: &mut Stacks, writer: &mut Writer) -> Result<()> {
        self.write(stacks, Effort::Bytes(BYTES_OF_SLICE), writer)
    }

    /// Writes the stacks of the last slice, and all names that are still missing.
    pub fn finish(&mut self, stacks: &mut Stacks, writer: &mut Writer) -> Result<()> {
        self.write(stacks, Effort::All, writer)
    }

    fn write(&mut self, stacks: &mut Stacks, effort: Effort, writer: &mut Writer) -> Result<()> {
        self.load();
        let (rows, frames) = match self {
            Self::Loaded(names) => {
                let mut of = |address| names.of(address);
                stacks.fresh(effort, &mut stacks::KernelNames::By(&mut of))
            }
            _ => stacks.fresh(effort, &mut stacks::KernelNames::List),
        };
        writer.append(&rows)?;
        writer.append(&frames)
    }

    fn load(&mut self) {
        if let Self::NotLoaded(_) = self
            && let Self::NotLoaded(storage) = std::mem::replace(self, Self::Refused)
        {
            *self = KernelNames::load(storage).map_or(Self::Refused, |names| Self::Loaded(Box::new(names)));
        }
    }
}
