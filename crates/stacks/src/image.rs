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
    /// Bytes of call frame information that are kept, or were before it was let go.
    cfi_bytes: u64,
    /// When code of it was on a stack, in slices.
    used: u64,
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

/// Takes bytes from a budget; `None` = it does not have them.
fn afford(budget: &mut u64, bytes: u64) -> Option<()> {
    *budget = budget.checked_sub(bytes)?;
    Some(())
}

/// What is read when the first address falls into the image.
#[derive(Default)]
struct Parts {
    layout: Layout,
    cfi: Option<Cfi>,
    /// Call frame information was let go, and is to be read again.
    rests: bool,
    go: Option<Runtime>,
}

const CFI: [&str; 2] = [".eh_frame", ".eh_frame_hdr"];

impl Image {
    pub(crate) fn new(name: String, source: Option<Source>, row_time_of_all: RowTime) -> Self {
        let (parts, rows, row_time) = Default::default();
        Image { name, source, parts, rows, cfi_bytes: 0, used: 0, row_time, row_time_of_all }
    }

    /// Reads headers, and tables of Go, unless that was done before. `budget` is what all images together may still keep of
    /// such information, in bytes.
    pub(crate) fn load(&mut self, budget: &mut u64) {
        if self.parts.is_some() {
            return;
        }
        let read = |source: &Source| {
            let layout = Layout::read(source)?;
            let go = afford(budget, layout.bytes_of(&golang::SECTIONS)).and_then(|()| Runtime::find(source, &layout));
            Some(Parts { layout, cfi: None, rests: true, go })
        };
        self.parts = Some(self.source.as_ref().and_then(read).unwrap_or_default());
    }

    /// The same with call frame information, because code of it is on a stack in slice `now`.
    pub(crate) fn load_whole(&mut self, budget: &mut u64, now: u64) {
        self.used = now;
        self.load(budget);
        let (Some(parts), Some(source)) = (self.parts.as_mut().filter(|parts| parts.rests), &self.source) else {
            return;
        };
        parts.rests = false;
        self.cfi_bytes = parts.layout.bytes_of(&CFI);
        if afford(budget, self.cfi_bytes).is_none() {
            self.cfi_bytes = 0;
            return;
        }
        parts.cfi = Cfi::read(source, &parts.layout);
    }

    /// Lets call frame information go that nobody has needed since slice `since`. Services, and those who wake them, come and go.
    pub(crate) fn rest(&mut self, budget: &mut u64, since: u64) {
        let Some(parts) = self.parts.as_mut().filter(|parts| self.used < since && !parts.rests) else { return };
        (parts.cfi, parts.rests, self.rows) = (None, true, HashMap::new());
        *budget += std::mem::take(&mut self.cfi_bytes);
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
