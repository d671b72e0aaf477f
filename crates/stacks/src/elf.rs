// SPDX-License-Identifier: Apache-2.0
//! The layout of an ELF file: segments and sections, read with bounds from a file nobody vouches for.

use object::{
    LittleEndian,
    elf::{FileHeader64, PF_X, PT_LOAD, ProgramHeader64, SectionHeader64},
    read::{
        ReadCache,
        elf::{FileHeader, ProgramHeader, SectionHeader, SectionTable},
    },
};

use crate::source::{Cursor, Source};

/// More headers than this are not read. Linked programs have some dozens.
const MAX_HEADERS: u32 = 4096;

/// Largest table of section names; linked programs have some hundred bytes. Names may overlap in it, so
/// that each is cut too.
const MAX_NAMES_BYTES: u64 = 1 << 20;
const MAX_NAME_BYTES: usize = 64;

/// Page size of the mappings.
const PAGE: u64 = 4096;

/// An executable `PT_LOAD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    offset: u64,
    size: u64,
    vaddr: u64,
}

/// A section header.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) kind: u32,
    pub(crate) flags: u64,
    pub(crate) vaddr: u64,
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

/// What the file says of itself.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    code: Vec<Segment>,
    sections: Vec<Section>,
}

impl Layout {
    /// Reads the headers; `None` when this is no 64-bit x86 ELF file.
    pub(crate) fn read(source: &Source) -> Option<Layout> {
        let cache = ReadCache::new(source.cursor());
        let data = &cache;
        let header = FileHeader64::<LittleEndian>::parse(data).ok()?;
        let endian = header.endian().ok()?;
        if header.e_machine(endian) != object::elf::EM_X86_64 {
            return None;
        }
        // Checked before the reader allocates for them: the counts may claim anything.
        if header.phnum(endian, data).ok()? > MAX_HEADERS || header.shnum(endian, data).ok()? > MAX_HEADERS {
            return None;
        }
        let code = header.program_headers(endian, data).ok()?.iter().filter_map(|p| segment(p, endian)).collect();
        // A file without section headers can still be told apart by its offsets.
        let names = || header.shstrndx(endian, data).map_or(0, |index| index as usize);
        let sections = header.sections(endian, data).map(|table| sections(&table, names(), source, endian));
        Some(Layout { code, sections: sections.unwrap_or_default() })
    }

    pub(crate) fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|s| s.name == name)
    }

    /// Whether two addresses lie in one section; so it is taken where the first lies in none that is known.
    pub(crate) fn share_section(&self, one: u64, other: u64) -> bool {
        let has = |section: &Section, vaddr: u64| vaddr.checked_sub(section.vaddr).is_some_and(|at| at < section.size);
        let around = self.sections.iter().find(|section| section.vaddr > 0 && has(section, one));
        around.is_none_or(|section| has(section, other))
    }

    /// Bytes of those of these sections that it has.
    pub(crate) fn bytes_of(&self, names: &[&str]) -> u64 {
        names.iter().filter_map(|name| self.section(name)).fold(0, |sum, section| section.size.saturating_add(sum))
    }

    /// Address, as the file counts them, of the code at a file offset.
    ///
    /// Linkers such as lld let segments share a page of the file, which is then mapped twice; the
    /// mapping's offset is that of the page. So an offset that is in no executable segment belongs
    /// to the one whose pages hold it.
    pub(crate) fn vaddr(&self, offset: u64) -> Option<u64> {
        let exact = |s: &&Segment| offset >= s.offset && offset - s.offset < s.size;
        let paged = |s: &&Segment| {
            let end = s.offset.saturating_add(s.size).checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
            (s.offset / PAGE * PAGE..end).contains(&offset)
        };
        let segment = self.code.iter().find(exact).or_else(|| self.code.iter().find(paged))?;
        Some(offset.wrapping_sub(segment.offset).wrapping_add(segment.vaddr))
    }
}

fn segment(p: &ProgramHeader64<LittleEndian>, endian: LittleEndian) -> Option<Segment> {
    let executable = p.p_type(endian) == PT_LOAD && p.p_flags(endian).contains(PF_X);
    executable.then(|| Segment { offset: p.p_offset(endian), size: p.p_filesz(endian), vaddr: p.p_vaddr(endian) })
}

type Table<'a> = SectionTable<'a, FileHeader64<LittleEndian>, &'a ReadCache<Cursor<'a>>>;

/// The sections that have a name in section `names`.
fn sections(table: &Table<'_>, names: usize, source: &Source, endian: LittleEndian) -> Vec<Section> {
    let all = table.section(object::SectionIndex(names)).ok();
    let all = all.and_then(|s| source.read(s.sh_offset(endian), s.sh_size(endian), MAX_NAMES_BYTES));
    let all = all.unwrap_or_default();
    let section = |s: &SectionHeader64<LittleEndian>| {
        let name = all.get(s.sh_name(endian) as usize..)?;
        let name = name[..name.len().min(MAX_NAME_BYTES)].split(|byte| *byte == 0).next()?;
        Some(Section {
            name: String::from_utf8_lossy(name).into_owned(),
            kind: s.sh_type(endian).0,
            flags: s.sh_flags(endian).0,
            vaddr: s.sh_addr(endian),
            offset: s.sh_offset(endian),
            size: s.sh_size(endian),
        })
    };
    table.iter().filter_map(section).collect()
}

#[cfg(test)]
mod tests {
    use super::{Layout, Section, Segment};

    #[test]
    fn segments_that_share_a_page() {
        let segment = |offset, size, vaddr| Segment { offset, size, vaddr };
        let layout =
            Layout { code: vec![segment(0x1730, 0x900, 0x2730), segment(0x5000, 0x10, 0)], ..Layout::default() };
        assert_eq!(layout.vaddr(0x1730), Some(0x2730));
        assert_eq!(layout.vaddr(0x1000), Some(0x2000), "the mapping starts at the page");
        assert_eq!(layout.vaddr(0x2fff), Some(0x3fff));
        assert_eq!(layout.vaddr(0x3000), None);
    }

    #[test]
    fn what_is_in_one_section() {
        let section = |vaddr, size| Section { name: String::new(), kind: 1, flags: 6, vaddr, offset: 0, size };
        let layout = Layout { sections: vec![section(0x1000, 0x1b), section(0x1020, 0x100)], ..Layout::default() };
        assert!(layout.share_section(0x1000, 0x101a));
        assert!(!layout.share_section(0x1000, 0x1030), "`.plt` behind `.init`");
        assert!(layout.share_section(0x9000, 0x9999), "nobody knows");
    }
}
