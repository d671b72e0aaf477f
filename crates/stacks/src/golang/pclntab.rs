// SPDX-License-Identifier: Apache-2.0
//! `.gopclntab`: the table by which Go's runtime walks its own stacks. It survives stripping, and
//! says for every instruction how far the stack pointer is from the return address, so that a
//! leaf without a frame does not cost its caller.
//!
//! The layout is that of Go 1.18 and later (`runtime/symtab.go`); older tables are not read.

use crate::{elf::Layout, row::Row, source::Source};

/// Largest table that is read; large programs have some 50 MB.
const MAX_BYTES: u64 = 128 << 20;

/// Longest name or path.
const MAX_TEXT_BYTES: usize = 4096;

/// First words of the table in Go 1.18 and in Go 1.20.
const MAGIC: [u32; 2] = [0xffff_fff0, 0xffff_fff1];

/// Offset of the start of the text in the linker's module description (section `.go.module`):
/// after a pointer, six slices, a pointer and two addresses.
const TEXT_IN_MODULE: usize = 8 + 6 * 24 + 8 + 16;

/// `runtime._func.flag`: nothing is above this function; it moves the stack pointer to elsewhere.
const TOP_FRAME: u8 = 1;
const SP_WRITE: u8 = 2;

/// The table of one binary.
pub(crate) struct Pclntab {
    bytes: Vec<u8>,
    text: u64,
    functions: usize,
    names: usize,
    units: usize,
    files: usize,
    values: usize,
    /// Offset of the function list, from which functions are found too.
    list: usize,
}

/// One function's entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function {
    at: usize,
    /// Address as the file counts it.
    start: u64,
    flag: u8,
}

impl Function {
    pub(crate) fn switches_stack(&self) -> bool {
        self.flag & SP_WRITE != 0
    }
}

impl Pclntab {
    /// Reads the table of a Go binary; `None` for other binaries.
    pub(crate) fn read(source: &Source, layout: &Layout) -> Option<Pclntab> {
        let section = super::SECTIONS.iter().find_map(|name| layout.section(name))?;
        let bytes = source.read(section.offset, section.size, MAX_BYTES)?;
        let magic = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?);
        if !MAGIC.contains(&magic) || bytes.get(6..8)? != [1, 8] {
            return None;
        }
        let header = |index: usize| word(&bytes, 8 + 8 * index).and_then(|value| usize::try_from(value).ok());
        let (functions, text) = (header(0)?, word(&bytes, 24)?);
        let (names, units, files, values, list) = (header(3)?, header(4)?, header(5)?, header(6)?, header(7)?);
        let table =
            Pclntab { text: text_start(text, source, layout)?, functions, names, units, files, values, list, bytes };
        // The list has an entry of 8 bytes a function, and one for the end.
        table.entry(functions).map(|_| table)
    }

    /// The function at an address.
    pub(crate) fn function(&self, vaddr: u64) -> Option<Function> {
        let offset = u32::try_from(vaddr.checked_sub(self.text)?).ok()?;
        let (mut low, mut high) = (0, self.functions);
        if offset >= self.entry(high)?.0 {
            return None;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if self.entry(middle)?.0 <= offset { low = middle + 1 } else { high = middle }
        }
        self.nth(low.checked_sub(1)?)
    }

    pub(crate) fn name(&self, function: Function) -> Option<&[u8]> {
        self.text_at(self.names.checked_add(self.field(function, 1)? as usize)?)
    }

    /// Source file, without its folder, and line.
    pub(crate) fn line(&self, function: Function, vaddr: u64) -> Option<(&[u8], u32)> {
        let file = self.value(self.field(function, 5)?, function, vaddr)?;
        let line = self.value(self.field(function, 6)?, function, vaddr)?;
        let unit = self.field(function, 8)?.checked_add(u32::try_from(file).ok()?)?;
        let offset = self.number(self.units.checked_add(4 * unit as usize)?)?;
        let path = self.text_at(self.files.checked_add(offset as usize)?)?;
        Some((path.rsplit(|b| *b == b'/').next()?, u32::try_from(line).ok()?))
    }

    /// How to get to the caller; `None` where the stack pointer is moved to another stack.
    pub(crate) fn row(&self, function: Function, vaddr: u64) -> Option<Row> {
        if function.flag & TOP_FRAME != 0 {
            return Some(Row::first_function());
        }
        let size = self.value(self.field(function, 4)?, function, vaddr).filter(|_| !function.switches_stack())?;
        u32::try_from(size).ok().map(Row::of_frame_size)
    }

    /// Start (from the text) and position of the `index`th function.
    fn entry(&self, index: usize) -> Option<(u32, u32)> {
        let at = self.list.checked_add(index.checked_mul(8)?)?;
        Some((self.number(at)?, self.number(at.checked_add(4)?).unwrap_or(0)))
    }

    fn nth(&self, index: usize) -> Option<Function> {
        let (start, at) = self.entry(index)?;
        let at = self.list.checked_add(at as usize)?;
        let flag = *self.bytes.get(at.checked_add(41)?)?;
        Some(Function { at, start: self.text.checked_add(start.into())?, flag })
    }

    /// The `index`th 32-bit field of a function.
    fn field(&self, function: Function, index: usize) -> Option<u32> {
        self.number(function.at.checked_add(4 * index)?)
    }

    fn number(&self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
    }

    fn text_at(&self, at: usize) -> Option<&[u8]> {
        let rest = self.bytes.get(at..)?;
        rest[..rest.len().min(MAX_TEXT_BYTES)].split(|b| *b == 0).next()
    }

    /// A value that changes along a function: pairs of differences, of the value and of the address.
    fn value(&self, table: u32, function: Function, vaddr: u64) -> Option<i32> {
        let mut bytes = self.bytes.get(self.values.checked_add(table as usize)?..)?.iter().copied();
        let (mut value, mut end) = (-1_i32, function.start);
        for first in std::iter::once(true).chain(std::iter::repeat(false)) {
            let change = varint(&mut bytes)?;
            if table == 0 || change == 0 && !first {
                return None;
            }
            value = value.wrapping_add((change >> 1).cast_signed() ^ -((change & 1).cast_signed()));
            end = end.checked_add(varint(&mut bytes)?.into())?;
            if vaddr < end {
                break;
            }
        }
        Some(value)
    }
}

fn varint(bytes: &mut impl Iterator<Item = u8>) -> Option<u32> {
    let mut value = 0;
    for shift in (0..35).step_by(7) {
        let byte = bytes.next()?;
        value |= u32::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// Where the addresses of the table begin: in its header until Go 1.25, in the module description
/// since. In a position-independent binary both are blank in the file; then Go's text is the
/// section's. Where a C compiler linked it (which leaves `.init`), its own code stands before that,
/// and nobody knows how much: no name is better than that of the next function.
fn text_start(in_header: u64, source: &Source, layout: &Layout) -> Option<u64> {
    let text = layout.section(".text")?;
    let inside = |start: &u64| *start >= text.vaddr && *start < text.vaddr.saturating_add(text.size);
    let in_module = || {
        let module = layout.section(".go.module")?;
        word(&source.read(module.offset, module.size, 1 << 20)?, TEXT_IN_MODULE)
    };
    Some(in_header)
        .filter(inside)
        .or_else(|| in_module().filter(inside))
        .or_else(|| layout.section(".init").is_none().then_some(text.vaddr))
}

#[cfg(test)]
mod tests {
    use super::varint;

    #[test]
    fn varints() {
        assert_eq!(varint(&mut [0x7f].into_iter()), Some(127));
        assert_eq!(varint(&mut [0x80, 0x01].into_iter()), Some(128));
        assert_eq!(varint(&mut [0x80].into_iter()), None);
        assert_eq!(varint(&mut [0xff; 9].into_iter()), None);
    }
}
