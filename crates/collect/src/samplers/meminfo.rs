// SPDX-License-Identifier: Apache-2.0
//! `/proc/meminfo`: the fields that say whether memory is short, in bytes.

use recording::counters::{Key, meminfo};

use super::text_file::TextFile;
use super::{Readings, Scope};

const FIELDS: [(&str, Key); 11] = [
    ("MemTotal", meminfo::MEM_TOTAL),
    ("MemFree", meminfo::MEM_FREE),
    ("MemAvailable", meminfo::MEM_AVAILABLE),
    ("Buffers", meminfo::BUFFERS),
    ("Cached", meminfo::CACHED),
    ("SwapTotal", meminfo::SWAP_TOTAL),
    ("SwapFree", meminfo::SWAP_FREE),
    ("Dirty", meminfo::DIRTY),
    ("Writeback", meminfo::WRITEBACK),
    ("AnonPages", meminfo::ANON_PAGES),
    ("Slab", meminfo::SLAB),
];

pub fn sampler(scope: &Scope) -> TextFile {
    TextFile::new(meminfo::SOURCE, scope.proc.path("meminfo"), "procfs; without it the use of memory is unknown", parse)
}

fn parse(text: &str, out: &mut Readings) {
    for line in text.lines() {
        let Some((key, rest)) = line.split_once(':') else { continue };
        let kib = rest.split_whitespace().next().and_then(|w| w.parse::<f64>().ok());
        let field = FIELDS.into_iter().find(|(name, _)| *name == key);
        if let (Some((_, field)), Some(kib)) = (field, kib) {
            out.put(field, "", kib * 1024.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::samplers::tests::rows;

    #[test]
    fn kib_become_bytes() {
        let found = rows(super::parse, "MemTotal:  24 kB\nSwapCached: 9 kB\nSlab:\t1 kB\nHugePages_Total: 0\n");
        assert_eq!((found[" MemTotal_bytes"], found[" Slab_bytes"], found.len()), (24576.0, 1024.0, 2));
    }
}
