// SPDX-License-Identifier: Apache-2.0
//! The samplers, as a collector.

use std::mem::take;

use anyhow::Result;
use recording::Writer;
use recording::tables::{Counter, Gap};

use crate::collector::{Collector, Kind, Shared, SliceEnd, Start};
use crate::samplers::{Samplers, Scope};

/// Each sampler says itself what it needs, and what is unknown without it.
pub const KIND: Kind =
    Kind { gap: "counter", facility: None, tables: |_| Ok(()), start: |start, _| Ok(Box::new(Counters::new(start))) };

/// The samplers, and what they have read at the end of this slice.
struct Counters {
    samplers: Samplers,
    rows: Vec<Counter>,
}

impl Counters {
    fn new(start: &Start<'_, '_>) -> Self {
        let scope = Scope::of(&start.plan.root, &start.plan.target);
        Self { samplers: Samplers::new(scope), rows: Vec::new() }
    }
}

impl Collector for Counters {
    fn begin(&mut self, _: &mut Shared<'_>, writer: &mut Writer) -> Result<()> {
        writer.append(&self.samplers.sample(0))
    }

    fn read(&mut self, _: &Shared<'_>, end: &SliceEnd) {
        self.rows = if end.last { self.samplers.last(end.t_ns) } else { self.samplers.sample(end.t_ns) };
    }

    fn slice(&mut self, _: &mut Shared<'_>, _: &SliceEnd, writer: &mut Writer) -> Result<()> {
        writer.append(&take(&mut self.rows))
    }

    fn gaps(&mut self, _: &Shared<'_>) -> Result<Vec<Gap>> {
        Ok(self.samplers.gaps())
    }
}
