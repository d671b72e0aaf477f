// SPDX-License-Identifier: Apache-2.0
//! A binary or library that is mapped somewhere: its code, how to unwind it, where its names are.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use gimli::UnwindContext;

use crate::{
    cfi::Cfi,
    elf::Layout,
    golang::{self, Runtime},
    row::Row,
    source::Source,
};

/// A file (or the vdso), shared by all processes that map it.
pub(crate) struct Image {
    /// File name without its folder.
    pub(crate) name: String,
    /// `None`: it could not be opened, so there is only the name.
    pub(crate) source: Option<Source>,
    parts: Option<Parts>,
    rows: HashMap<u64, Option<Arc<Row>>>,
    row_time: Duration,
    row_time_of_all: RowTime,
}

/// Addresses whose rows are remembered.
const MAX_ROWS: usize = 1 << 16;

/// Time for finding rows, in one file and in all together. A real file needs microseconds for each; one
/// that was made to be slow is taken for one that describes nothing.
const MAX_ROW_TIME: Duration = Duration::from_secs(2);
const MAX_ROW_TIME_OF_ALL: Duration = Duration::from_secs(10);

/// Time spent on rows of all images.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowTime(Arc<AtomicU64>);

impl RowTime {
    fn is_used_up(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= MAX_ROW_TIME_OF_ALL.as_nanos() as u64
    }

    fn add(&self, time: Duration) {
        self.0.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }
}

/// What is read when the first address falls into the image.
#[derive(Default)]
struct Parts {
    layout: Layout,
    cfi: Option<Cfi>,
    go: Option<Runtime>,
}

impl Image {
    pub(crate) fn new(name: String, source: Option<Source>, row_time_of_all: RowTime) -> Self {
        Image { name, source, parts: None, rows: HashMap::new(), row_time: Duration::ZERO, row_time_of_all }
    }

    /// Reads headers and call frame information, unless that was done before. `budget` is what
    /// all images together may still keep of such information, in bytes.
    pub(crate) fn load(&mut self, budget: &mut u64) {
        if self.parts.is_some() {
            return;
        }
        let read = |source: &Source| {
            let layout = Layout::read(source)?;
            let mut affordable = |names: &[&str]| {
                let sizes = names.iter().filter_map(|name| layout.section(name)).map(|s| s.size);
                let left = budget.checked_sub(sizes.fold(0, u64::saturating_add));
                left.map(|left| *budget = left)
            };
            let cfi = affordable(&[".eh_frame", ".eh_frame_hdr"]).and_then(|()| Cfi::read(source, &layout));
            let go = affordable(&golang::SECTIONS).and_then(|()| Runtime::find(source, &layout));
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
        let in_time = self.row_time < MAX_ROW_TIME && !self.row_time_of_all.is_used_up();
        let parts = self.parts.as_mut().filter(|_| in_time)?;
        let start = Instant::now();
        let described = parts.cfi.as_mut().and_then(|cfi| cfi.row(vaddr, context));
        let row = described.or_else(|| parts.go.as_ref()?.row(vaddr)).map(Arc::new);
        let time = start.elapsed();
        self.row_time += time;
        self.row_time_of_all.add(time);
        if self.rows.len() >= MAX_ROWS {
            self.rows.clear();
        }
        self.rows.insert(vaddr, row.clone());
        row
    }
}
