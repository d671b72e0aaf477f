// SPDX-License-Identifier: Apache-2.0
//! `/proc/diskstats`: whole disks that did anything since boot.

use std::path::PathBuf;

use recording::counters::{Key, diskstats};

use super::reread::Reread;
use super::{Readings, Sampler, Scope};

/// The unit of diskstats, whatever the disk's own (Documentation/admin-guide/iostats.rst).
const SECTOR_BYTES: f64 = 512.0;
/// Ours and where it stands after the name, with its factor to ns or bytes.
const FIELDS: [(Key, usize, f64); 7] = [
    (diskstats::READS, 0, 1.0),
    (diskstats::READ_BYTES, 2, SECTOR_BYTES),
    (diskstats::WRITES, 4, 1.0),
    (diskstats::WRITTEN_BYTES, 6, SECTOR_BYTES),
    (diskstats::IN_FLIGHT, 8, 1.0),
    (diskstats::IO_NS, 9, 1e6),
    (diskstats::WEIGHTED_IO_NS, 10, 1e6),
];

/// Disks; `/sys/block` tells them from their partitions.
pub struct Diskstats {
    file: Reread,
    blocks: PathBuf,
}

pub fn sampler(scope: &Scope) -> Diskstats {
    Diskstats { file: Reread::new(scope.proc.path("diskstats")), blocks: scope.proc.root().join("sys/block") }
}

impl Sampler for Diskstats {
    fn name(&self) -> &'static str {
        diskstats::SOURCE
    }

    fn needs(&self) -> &'static str {
        "procfs and sysfs; without them the use of disks is unknown"
    }

    fn sample(&mut self, _: &Scope, out: &mut Readings) -> Result<(), String> {
        let blocks = &self.blocks;
        // A name such as cciss/c0d0 is written with ! in sysfs.
        let is_disk = |name: &str| blocks.join(name.replace('/', "!")).exists();
        parse(self.file.text()?, &is_disk, out);
        Ok(())
    }
}

fn parse(text: &str, is_disk: &dyn Fn(&str) -> bool, out: &mut Readings) {
    for line in text.lines() {
        let mut words = line.split_whitespace().skip(2);
        let Some(name) = words.next() else { continue };
        let numbers: Vec<f64> = words.map_while(|w| w.parse().ok()).collect();
        let idle = numbers.iter().all(|n| *n == 0.0);
        // Loop and RAM disks have no hardware behind them; what a loop does, its backing disk does too.
        let virtual_disk = ["loop", "ram", "zram"].iter().any(|prefix| name.starts_with(prefix));
        if idle || virtual_disk || !is_disk(name) {
            continue;
        }
        for (field, at, factor) in FIELDS {
            if let Some(value) = numbers.get(at) {
                out.put(field, name, value * factor);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samplers::tests::rows;

    #[test]
    fn whole_disks_with_activity_only() {
        let text = "   7  0 loop0 1 0 8 0 0 0 0 0 0 0 0\n 254 0 vda 10 1 16 5 20 2 32 6 3 7 9\n 254 1 vda1 10 1 16 5 20 2 32 6 0 7 9\n 8 0 sda 0 0 0 0 0 0 0 0 0 0 0\n";
        let found = rows(|text, out| parse(text, &|name| name != "vda1", out), text);
        assert_eq!((found["vda reads"], found["vda writes"], found["vda in_flight"]), (10.0, 20.0, 3.0));
        assert_eq!((found["vda read_bytes"], found["vda written_bytes"]), (8192.0, 16384.0));
        assert_eq!((found["vda io_ns"], found["vda weighted_io_ns"], found.len()), (7e6, 9e6, 7));
    }
}
