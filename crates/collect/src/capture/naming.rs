// SPDX-License-Identifier: Apache-2.0
//! Names of functions: as they come where that is quickly done, the rest at the end. A service's functions are in files of
//! megabytes and kept for the end; the kernel's are looked up one by one.

use std::mem::MaybeUninit;

use anyhow::Result;
use libbpf_rs::OpenObject;
use recording::Writer;
use stacks::{Effort, Stacks};

use super::lazy::Lazy;
use crate::probes::names::KernelNames;

/// Symbol tables that are read in one slice, bytes: some milliseconds.
const BYTES_OF_SLICE: u64 = 4 << 20;

/// Who knows the kernel's functions; loaded for the first names.
pub struct Naming<'o>(Lazy<'o, KernelNames<'o>>);

impl<'o> Naming<'o> {
    pub fn new(storage: &'o mut MaybeUninit<OpenObject>) -> Self {
        Self(Lazy::NotLoaded(storage))
    }

    /// Writes the stacks of a slice, with as many names as are quickly found.
    pub fn slice(&mut self, stacks: &mut Stacks, writer: &mut Writer) -> Result<()> {
        self.write(stacks, Effort::Bytes(BYTES_OF_SLICE), writer)
    }

    /// Writes the stacks of the last slice, and all names that are still missing.
    pub fn finish(&mut self, stacks: &mut Stacks, writer: &mut Writer) -> Result<()> {
        self.write(stacks, Effort::All, writer)
    }

    fn write(&mut self, stacks: &mut Stacks, effort: Effort, writer: &mut Writer) -> Result<()> {
        let (rows, frames) = match self.0.get(KernelNames::load) {
            Some(names) => {
                let mut of = |address| names.of(address);
                stacks.fresh(effort, &mut stacks::KernelNames::By(&mut of))
            }
            None => stacks.fresh(effort, &mut stacks::KernelNames::List),
        };
        writer.append(&rows)?;
        writer.append(&frames)
    }
}
