// SPDX-License-Identifier: Apache-2.0
//! `/proc/meminfo`: the fields that say whether memory is short, in bytes.

use super::text_file::TextFile;
use super::{Readings, Scope};

const NAME: &str = "proc/meminfo";
const FIELDS: [&str; 11] = [
    "MemTotal",
    "MemFree",
    "MemAvailable",
    "Buffers",
    "Cached",
    "SwapTotal",
    "SwapFree",
    "Dirty",
    "Writeback",
    "AnonPages",
    "Slab",
];

pub fn sampler(scope: &Scope) -> TextFile {
    TextFile::new(NAME, scope.proc.path("meminfo"), "procfs; without it the use of memory is unknown", parse)
}

fn parse(text: &str, out: &mut Readings) {
    for line in text.lines() {
        let Some((key, rest)) = line.split_once(':') else { continue };
        let kib = rest.split_whitespace().next().and_then(|w| w.parse::<f64>().ok());
        if let (true, Some(kib)) = (FIELDS.contains(&key), kib) {
            out.put(NAME, "", &format!("{key}_bytes"), kib * 1024.0);
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
