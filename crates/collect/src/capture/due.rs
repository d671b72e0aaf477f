// SPDX-License-Identifier: Apache-2.0
//! What rings brought since the last slice.

use std::mem::take;

use anyhow::Result;
use recording::Writer;
use recording::tables::{Sample, WaitStack, Wakeup};

/// Rows that are written with the next slice: a batch costs as much as hundreds of rows.
#[derive(Default)]
pub struct Due {
    pub samples: Vec<Sample>,
    pub waits: Vec<WaitStack>,
    pub wakeups: Vec<Wakeup>,
}

impl Due {
    /// Leaves out what came while the hooks were taken off: no thread's time goes as far.
    pub fn end(&mut self, t_ns: u64) {
        self.samples.retain(|row| row.t_ns <= t_ns);
        self.waits.retain(|row| row.t_ns <= t_ns);
        self.wakeups.retain(|row| row.t_ns <= t_ns);
    }

    /// Writes them.
    pub fn write(&mut self, writer: &mut Writer) -> Result<()> {
        writer.append(&take(&mut self.samples))?;
        writer.append(&take(&mut self.waits))?;
        writer.append(&take(&mut self.wakeups))
    }
}
