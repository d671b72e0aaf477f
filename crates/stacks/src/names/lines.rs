// SPDX-License-Identifier: Apache-2.0
//! Source lines from DWARF line tables.
//!
//! Units are looked through one after the other, and the line program of a unit with a wanted
//! address is run once; no tables are built, so that a hostile file costs time (which has a limit)
//! and never memory.

use std::time::Instant;

use gimli::{Dwarf, EndianSlice, LineRow, LittleEndian, SectionId, Unit};

use super::{MAX_NAME_BYTES, clip, sections::Budget};
use crate::{elf::Layout, row::Slice, source::Source};

/// Debug information that is read of one file, unpacked: beyond it there are no source lines.
const MAX_BYTES: u64 = 64 << 20;

/// Largest line table; every byte of it may make a row.
const MAX_LINE_BYTES: u64 = 16 << 20;

/// Rows after which the time is looked at.
const ROWS_PER_CHECK: usize = 1 << 16;

/// `file:line` of sorted addresses.
pub(super) fn find(source: &Source, layout: &Layout, addresses: &[u64], deadline: Instant) -> Vec<Option<String>> {
    let mut found = vec![None; addresses.len()];
    let _ = read(source, layout).and_then(|sections| {
        let slice = |id: SectionId| EndianSlice::new(sections.get(&id).map_or(&[][..], Vec::as_slice), LittleEndian);
        let dwarf = Dwarf::load(|id| Ok::<_, gimli::Error>(slice(id))).ok()?;
        // An error ends the search; what was found until then is right.
        search(&dwarf, &mut Wanted { addresses, found: &mut found, deadline }).ok()
    });
    found
}

type Sections = std::collections::HashMap<SectionId, Vec<u8>>;

/// What is needed to find units and run line programs; not the description of variables.
const NEEDED: [SectionId; 9] = [
    SectionId::DebugInfo,
    SectionId::DebugAbbrev,
    SectionId::DebugLine,
    SectionId::DebugStr,
    SectionId::DebugLineStr,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugAddr,
    SectionId::DebugStrOffsets,
];

fn read(source: &Source, layout: &Layout) -> Option<Sections> {
    layout.section(".debug_line")?;
    let mut budget = Budget { bytes_left: MAX_BYTES };
    let sections: Option<Sections> =
        NEEDED.iter().map(|id| Some((*id, budget.read(source, layout, id.name())?))).collect();
    sections.filter(|s| s[&SectionId::DebugLine].len() as u64 <= MAX_LINE_BYTES)
}

struct Wanted<'a> {
    addresses: &'a [u64],
    found: &'a mut [Option<String>],
    deadline: Instant,
}

impl Wanted<'_> {
    /// Places of the wanted addresses in a range.
    fn between(&self, start: u64, end: u64) -> std::ops::Range<usize> {
        let at = |limit: u64| self.addresses.partition_point(|address| *address < limit);
        at(start)..at(end).max(at(start))
    }

    fn late(&self) -> bool {
        Instant::now() >= self.deadline
    }
}

fn search(dwarf: &Dwarf<Slice<'_>>, wanted: &mut Wanted<'_>) -> gimli::Result<()> {
    let mut headers = dwarf.units();
    while let Some(header) = headers.next()? {
        if wanted.late() {
            break;
        }
        let Ok(unit) = dwarf.unit(header) else { continue };
        let mut ranges = dwarf.unit_ranges(&unit)?;
        let mut any = false;
        while let (false, Ok(Some(range))) = (any, ranges.next()) {
            any = !wanted.between(range.begin, range.end).is_empty();
        }
        if any {
            // A broken line program concerns its own unit only.
            let _ = run(dwarf, &unit, wanted);
        }
    }
    Ok(())
}

/// Runs the line program: a row holds from its address up to that of the next row.
fn run(dwarf: &Dwarf<Slice<'_>>, unit: &Unit<Slice<'_>>, wanted: &mut Wanted<'_>) -> gimli::Result<()> {
    let Some(program) = unit.line_program.clone() else { return Ok(()) };
    let mut rows = program.rows();
    let mut before: Option<LineRow> = None;
    let mut count = 0_usize;
    while let Some((header, row)) = rows.next_row()? {
        if let Some(before) = &before {
            for at in wanted.between(before.address(), row.address()) {
                if wanted.found[at].is_none() && !wanted.late() {
                    wanted.found[at] = text(dwarf, unit, header, before);
                }
            }
        }
        before = (!row.end_sequence()).then_some(*row);
        count += 1;
        if count.is_multiple_of(ROWS_PER_CHECK) && wanted.late() {
            break;
        }
    }
    Ok(())
}

fn text(
    dwarf: &Dwarf<Slice<'_>>,
    unit: &Unit<Slice<'_>>,
    header: &gimli::LineProgramHeader<Slice<'_>>,
    row: &LineRow,
) -> Option<String> {
    let path = dwarf.attr_string(unit, row.file(header)?.path_name()).ok()?;
    let file = path.slice().rsplit(|b| *b == b'/').next().unwrap_or_default();
    let file = String::from_utf8_lossy(&file[..file.len().min(MAX_NAME_BYTES)]);
    Some(format!("{}:{}", clip(&file), row.line()?))
}
