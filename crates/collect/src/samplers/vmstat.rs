// SPDX-License-Identifier: Apache-2.0
//! `/proc/vmstat`: major faults, swapping, direct reclaim and kills for want of memory.

use recording::counters::{Key, vmstat};

use super::text_file::TextFile;
use super::{Readings, Scope};

const FIELDS: [Key; 7] = [
    vmstat::PGMAJFAULT,
    vmstat::PSWPIN,
    vmstat::PSWPOUT,
    vmstat::OOM_KILL,
    vmstat::PGSCAN_DIRECT,
    vmstat::PGSTEAL_DIRECT,
    vmstat::REFAULTS,
];

pub fn sampler(scope: &Scope) -> TextFile {
    TextFile::new(
        vmstat::SOURCE,
        scope.proc.path("vmstat"),
        "procfs; without it the pressure on memory is unknown",
        parse,
    )
}

fn parse(text: &str, out: &mut Readings) {
    // The kernel counts stalls by memory zone; before 4.8 it had one number.
    let mut stalls = None;
    for line in text.lines() {
        let Some((key, Ok(value))) = line.split_once(' ').map(|(key, value)| (key, value.parse::<f64>())) else {
            continue;
        };
        if key == "allocstall" || key.starts_with("allocstall_") {
            *stalls.get_or_insert(0.0) += value;
        } else if let Some(field) = FIELDS.into_iter().find(|field| field.name == key) {
            out.put(field, "", value);
        }
    }
    if let Some(stalls) = stalls {
        out.put(vmstat::ALLOCSTALL, "", stalls);
    }
}

#[cfg(test)]
mod tests {
    use crate::samplers::tests::rows;

    #[test]
    fn stalls_are_summed_over_zones() {
        let found = rows(super::parse, "nr_free_pages 4\nallocstall_dma 1\nallocstall_normal 2\npgmajfault 3\n");
        assert_eq!((found[" allocstall"], found[" pgmajfault"], found.len()), (3.0, 3.0, 2));
        assert!(rows(super::parse, "pgmajfault 3\n").len() == 1);
    }
}
