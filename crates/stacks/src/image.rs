// SPDX-License-Identifier: Apache-2.0
//! A binary or library that is mapped somewhere: its code, how to unwind it, where its names are.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use gimli::UnwindContext;

use crate::{cfi::Cfi, elf::Layout, golang::Runtime, row::Row, source::Source};

/// A file (or the vdso), shared by all processes that map it.
pub(crate) struct Image {
    /// File name without its folder.
    pub(crate) name: String,
    /// `None`: it could not be opened, so there is only the name.
    pub(crate) source: Option<Source>,
    parts: Option<Parts>,
    rows: HashMap<u64, Option<Arc<Row>>>,
    row_time: Duration,
}

/// Addresses whose rows are remembered.
const MAX_ROWS: usize = 1 << 16;

/// Time for finding rows. A real file needs microseconds for each; one that was made to be slow
/// is taken for one that describes nothing.
const MAX_ROW_TIME: Duration = Duration::from_secs(2);

/// What is read when the first address falls into the image.
#[derive(Default)]
struct Parts {
    layout: Layout,
    cfi: Option<Cfi>,
    go: Option<Runtime>,
}

impl Image {
    pub(crate) fn new(name: String, source: Option<Source>) -> Self {
        Image { name, source, parts: None, rows: HashMap::new(), row_time: Duration::ZERO }
    }

    /// Reads headers and call frame information, unless that was done before. `budget` is what
    /// all images together may still keep of such information, in bytes.
    pub(crate) fn load(&mut self, budget: &mut u64) {
        if self.parts.is_some() {
            return;
        }
        let read = |source: &Source| {
            let layout = Layout::read(source)?;
            let size = layout.section(".eh_frame").map_or(0, |s| s.size);
            let cfi = budget.checked_sub(size).and_then(|left| {
                *budget = left;
                Cfi::read(source, &layout)
            });
            let go = Runtime::find(source, &layout);
            Some(Parts { layout, cfi, go })
        };
        self.parts = Some(self.source.as_ref().and_then(read).unwrap_or_default());
    }

    /// Forgets what was read, for a source that could be opened at last.
    pub(crate) fn replace(&mut self, source: Source) {
        self.source = Some(source);
        self.parts = None;
        self.rows.clear();
    }

    pub(crate) fn vaddr(&self, offset: u64) -> Option<u64> {
        self.parts.as_ref()?.layout.vaddr(offset)
    }

    pub(crate) fn layout(&self) -> Option<&Layout> {
        Some(&self.parts.as_ref()?.layout)
    }

    pub(crate) fn go(&self) -> Option<&Runtime> {
        self.parts.as_ref()?.go.as_ref()
    }

    /// How to get from the code at `vaddr` to its caller; `None` = this code is not described.
    pub(crate) fn row(&mut self, vaddr: u64, context: &mut UnwindContext<usize>) -> Option<Arc<Row>> {
        if let Some(row) = self.rows.get(&vaddr) {
            return row.clone();
        }
        let parts = self.parts.as_mut().filter(|_| self.row_time < MAX_ROW_TIME)?;
        let start = Instant::now();
        let described = parts.cfi.as_mut().and_then(|cfi| cfi.row(vaddr, context));
        let row = described.or_else(|| parts.go.as_ref()?.row(vaddr)).map(Arc::new);
        self.row_time += start.elapsed();
        if self.rows.len() >= MAX_ROWS {
            self.rows.clear();
        }
        self.rows.insert(vaddr, row.clone());
        row
    }
}
