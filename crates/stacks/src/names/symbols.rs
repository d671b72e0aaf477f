// SPDX-License-Identifier: Apache-2.0
//! Function names from `.symtab`, or `.dynsym` where that is all that is left.
//!
//! One pass over the table for all addresses of a file: the table may have millions of entries,
//! the addresses are some hundreds.

use std::{cmp::Reverse, time::Instant};

use crate::{elf::Layout, source::Source};

/// Largest symbol and string table that is read.
const MAX_TABLE_BYTES: u64 = 128 << 20;

/// Longest mangled name. Names may overlap, so that the table's size does not bound them.
const MAX_NAME_BYTES: usize = 4096;

/// Symbols after which the time is looked at: one may take as long as its name.
const SYMBOLS_PER_CHECK: usize = 1 << 10;

/// Size of an `Elf64_Sym`.
const ENTRY_BYTES: usize = 24;

const STT_NOTYPE: u8 = 0;
const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;
const STB_GLOBAL: u8 = 1;

/// A symbol that may name code.
#[derive(Clone, Copy, Debug)]
struct Symbol {
    start: u64,
    size: u64,
    name: u32,
    global: bool,
    function: bool,
}

/// For each of the sorted addresses, the nearest symbol before it.
#[derive(Clone, Copy, Default)]
struct Nearest {
    /// Among those that say how long they are.
    sized: Option<Symbol>,
    /// Among the labels of assembly that do not.
    label: Option<Symbol>,
}

/// Mangled names of sorted addresses, by as much of the tables as can be looked through in time.
pub(super) fn find(source: &Source, layout: &Layout, addresses: &[u64], deadline: Instant) -> Vec<Option<String>> {
    let mut found = vec![None; addresses.len()];
    for (table, names) in [(".symtab", ".strtab"), (".dynsym", ".dynstr")] {
        let read = |name| layout.section(name).and_then(|s| source.read(s.offset, s.size, MAX_TABLE_BYTES));
        let (Some(table), Some(names)) = (read(table), read(names)) else { continue };
        let symbols = addresses.iter().zip(nearest(&table, &names, addresses, deadline));
        // A label without a length reaches to the end of its section: what follows `_init` are the stubs that call other libraries.
        let symbols =
            symbols.map(|(address, symbol)| symbol.filter(|s| s.size > 0 || layout.share_section(s.start, *address)));
        for (found, symbol) in found.iter_mut().zip(symbols).filter(|(found, _)| found.is_none()) {
            *found = symbol.and_then(|s| name(&names, s.name)).map(|n| String::from_utf8_lossy(n).into_owned());
        }
    }
    found
}

fn nearest(table: &[u8], names: &[u8], addresses: &[u64], deadline: Instant) -> Vec<Option<Symbol>> {
    let mut nearest = vec![Nearest::default(); addresses.len()];
    let parts = table.chunks(ENTRY_BYTES * SYMBOLS_PER_CHECK).take_while(|_| Instant::now() < deadline);
    for symbol in parts.flat_map(|part| part.chunks_exact(ENTRY_BYTES)).filter_map(symbol) {
        // Noted at the first address it may name; carried on to the later ones below.
        let first = addresses.partition_point(|address| *address < symbol.start);
        if let Some(slot) = nearest.get_mut(first) {
            let slot = if symbol.size > 0 { &mut slot.sized } else { &mut slot.label };
            *slot = better(*slot, Some(symbol), names);
        }
    }
    let mut before = Nearest::default();
    let choose = |(address, here): (&u64, Nearest)| {
        before.sized = better(before.sized, here.sized, names);
        before.label = better(before.label, here.label, names);
        before.sized.filter(|s| address - s.start < s.size).or(before.label)
    };
    addresses.iter().zip(nearest).map(choose).collect()
}

/// Of two symbols before an address the nearer one; of two names of a function the public, plain one.
fn better(a: Option<Symbol>, b: Option<Symbol>, names: &[u8]) -> Option<Symbol> {
    let (Some(a), Some(b)) = (a, b) else { return a.or(b) };
    let rank = |s: &Symbol| {
        let name = name(names, s.name).unwrap_or_default();
        let plain = Reverse(name.iter().take_while(|c| **c == b'_').count());
        (s.start, s.function, s.global, plain, Reverse(name.len()), Reverse(name))
    };
    let nearer = if a.start == b.start { rank(&a) < rank(&b) } else { a.start < b.start };
    Some(if nearer { b } else { a })
}

fn symbol(entry: &[u8]) -> Option<Symbol> {
    let word = |at: usize| Some(u64::from_le_bytes(entry.get(at..at + 8)?.try_into().ok()?));
    let first = word(0)?;
    let [info, _, section_low, section_high] = first.to_le_bytes()[4..] else { return None };
    let (kind, defined) = (info & 15, section_low | section_high != 0);
    let code = matches!(kind, STT_NOTYPE | STT_FUNC | STT_GNU_IFUNC);
    (code && defined && first as u32 != 0).then_some(Symbol {
        start: word(8)?,
        size: word(16)?,
        name: first as u32,
        global: info >> 4 == STB_GLOBAL,
        function: kind != STT_NOTYPE,
    })
}

fn name(names: &[u8], at: u32) -> Option<&[u8]> {
    let rest = names.get(at as usize..)?;
    rest[..rest.len().min(MAX_NAME_BYTES)].split(|b| *b == 0).next().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: u32, info: u8, section: u16, start: u64, size: u64) -> Vec<u8> {
        let mut bytes = name.to_le_bytes().to_vec();
        bytes.extend([info, 0]);
        bytes.extend(section.to_le_bytes());
        bytes.extend(start.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes
    }

    #[test]
    fn the_function_around_an_address() {
        let names = b"\0__write\0write\0label\0other\0data\0";
        let table = [
            entry(1, 0x12, 1, 100, 20),
            entry(9, 0x12, 1, 100, 20),
            entry(15, 0x00, 1, 105, 0),  // a label inside
            entry(21, 0x02, 1, 130, 10), // local
            entry(27, 0x11, 1, 131, 1),  // no code
            entry(27, 0x12, 0, 131, 1),  // undefined
            entry(15, 0x00, 1, 150, 0),  // a label after all functions
        ]
        .concat();
        let found = nearest(&table, names, &[99, 100, 119, 120, 131, 139, 145, 151], later());
        let found: Vec<&str> = found
            .iter()
            .map(|s| s.and_then(|s| name(names, s.name)).map_or("", |n| std::str::from_utf8(n).unwrap()))
            .collect();
        assert_eq!(found, ["", "write", "write", "label", "other", "other", "label", "label"]);
    }

    fn later() -> Instant {
        Instant::now() + std::time::Duration::from_secs(60)
    }

    #[test]
    fn a_table_that_was_made_to_be_slow_ends() {
        // Symbols of one address are told apart by their names: each here is 4 KB that differ at the end.
        let names = vec![b'x'; 1 << 20];
        let table: Vec<u8> = (0..1_u32 << 16).flat_map(|at| entry(1 + at, 2, 1, 100, 1)).collect();
        assert!(nearest(&table, &names, &[100], Instant::now()).iter().all(Option::is_none), "no time, no names");
    }

    #[test]
    fn nonsense_has_no_names() {
        let table = [entry(u32::MAX, 2, 1, u64::MAX, u64::MAX), vec![0xff; 23]].concat();
        assert!(
            nearest(&table, b"abc", &[0, u64::MAX], later())
                .iter()
                .all(|s| s.is_none_or(|s| name(b"abc", s.name).is_none()))
        );
    }
}
