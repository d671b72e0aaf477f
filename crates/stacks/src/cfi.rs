// SPDX-License-Identifier: Apache-2.0
//! Call frame information of one file: the row that holds for an address.
//!
//! `.eh_frame` is copied into memory (it is at most some megabytes), searched through
//! `.eh_frame_hdr`, or through an index made here for the files that lack it.

use std::time::{Duration, Instant};

use gimli::{
    BaseAddresses, CieOrFde, EhFrame, EhFrameHdr, EhFrameOffset, FrameDescriptionEntry, LittleEndian, UnwindContext,
    UnwindSection,
};

use crate::{
    elf::Layout,
    row::{Row, Slice},
    source::Source,
};

/// Largest `.eh_frame` that is read. The largest seen in the wild (a browser) has some 20 MB.
const MAX_BYTES: u64 = 64 << 20;

/// Longest description of one function that is followed; bounds the time of one look-up.
const MAX_ENTRY_BYTES: usize = 64 << 10;

/// Functions in an index made here, and the time it may take: entries can be made slow to read.
const MAX_INDEX: usize = 1 << 20;
const MAX_INDEX_TIME: Duration = Duration::from_secs(1);
const ENTRIES_PER_CHECK: usize = 16;

/// The call frame information of a file.
pub(crate) struct Cfi {
    eh_frame: Vec<u8>,
    header: Vec<u8>,
    bases: BaseAddresses,
    index: Option<Vec<(u64, usize)>>,
}

type Fde<'a> = FrameDescriptionEntry<Slice<'a>>;

impl Cfi {
    /// Reads the sections; `None` when there are none, or ones beyond the bound.
    pub(crate) fn read(source: &Source, layout: &Layout) -> Option<Cfi> {
        let section = |name| {
            let section = layout.section(name)?;
            Some((section.vaddr, source.read(section.offset, section.size, MAX_BYTES)?))
        };
        let (vaddr, eh_frame) = section(".eh_frame")?;
        let (header_vaddr, header) = section(".eh_frame_hdr").unwrap_or_default();
        let start = |name| layout.section(name).map_or(0, |s| s.vaddr);
        let bases = BaseAddresses::default()
            .set_eh_frame(vaddr)
            .set_eh_frame_hdr(header_vaddr)
            .set_text(start(".text"))
            .set_got(start(".got"));
        Some(Cfi { eh_frame, header, bases, index: None })
    }

    /// The row for the code at `vaddr`; `None` = this address is not described.
    pub(crate) fn row(&mut self, vaddr: u64, context: &mut UnwindContext<usize>) -> Option<Row> {
        let offset = match self.offset_by_header(vaddr) {
            Some(offset) => offset,
            None => self.offset_by_index(vaddr)?,
        };
        let section = EhFrame::new(&self.eh_frame, LittleEndian);
        let fde: Fde<'_> = section.fde_from_offset(&self.bases, offset, EhFrame::cie_from_offset).ok()?;
        let long = fde.entry_len() > MAX_ENTRY_BYTES || fde.cie().entry_len() > MAX_ENTRY_BYTES;
        if long || !fde.contains(vaddr) {
            return None;
        }
        let row = fde.unwind_info_for_address(&section, &self.bases, context, vaddr).ok()?;
        Row::new(&section, row, fde.cie().encoding(), fde.is_signal_trampoline())
    }

    fn offset_by_header(&self, vaddr: u64) -> Option<EhFrameOffset> {
        let parsed = EhFrameHdr::new(&self.header, LittleEndian).parse(&self.bases, 8).ok()?;
        let table = parsed.table()?;
        let pointer = table.lookup(vaddr, &self.bases).ok()?.direct().ok()?;
        // It may point to anywhere, also to before the section.
        let offset = pointer.checked_sub(parsed.eh_frame_ptr().direct().ok()?)?;
        usize::try_from(offset).ok().map(EhFrameOffset)
    }

    /// Only for files without a usable header; a header that simply does not know the address
    /// leads to an entry before it, which then does not contain it.
    fn offset_by_index(&mut self, vaddr: u64) -> Option<EhFrameOffset> {
        if !self.header.is_empty() {
            return None;
        }
        let index = self.index.get_or_insert_with(|| index(&self.eh_frame, &self.bases));
        let after = index.partition_point(|(start, _)| *start <= vaddr);
        Some(EhFrameOffset(index.get(after.checked_sub(1)?)?.1))
    }
}

/// Start and position of every function's entry, sorted; stops at the first broken entry.
fn index(eh_frame: &[u8], bases: &BaseAddresses) -> Vec<(u64, usize)> {
    let section = EhFrame::new(eh_frame, LittleEndian);
    let mut entries = section.entries(bases);
    let (mut index, mut count, start) = (Vec::new(), 0_usize, Instant::now());
    while let (Ok(Some(entry)), true) = (entries.next(), index.len() < MAX_INDEX) {
        if let CieOrFde::Fde(partial) = entry
            && let Ok(fde) = partial.parse(EhFrame::cie_from_offset)
        {
            index.push((fde.initial_address(), fde.offset()));
        }
        count += 1;
        if count.is_multiple_of(ENTRIES_PER_CHECK) && start.elapsed() > MAX_INDEX_TIME {
            break;
        }
    }
    index.sort_unstable();
    index
}
