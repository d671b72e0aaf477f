// SPDX-License-Identifier: Apache-2.0
//! `/proc/sys/fs/file-nr`: open files of the whole host and their limit.

use recording::counters::file_nr;

use super::text_file::TextFile;
use super::{Readings, Scope};

pub fn sampler(scope: &Scope) -> TextFile {
    let needs = "procfs; without it the host's open files are unknown";
    TextFile::new(file_nr::SOURCE, scope.proc.path("sys/fs/file-nr"), needs, parse)
}

/// Allocated, unused (always 0 since 2.6), maximum.
fn parse(text: &str, out: &mut Readings) {
    let numbers: Vec<f64> = text.split_whitespace().map_while(|w| w.parse().ok()).collect();
    if let [allocated, _, max] = numbers[..] {
        out.put(file_nr::ALLOCATED, "", allocated);
        out.put(file_nr::MAX, "", max);
    }
}

#[cfg(test)]
mod tests {
    use crate::samplers::tests::rows;

    #[test]
    fn allocated_and_max() {
        let found = rows(super::parse, "484\t0\t2466177\n");
        assert_eq!((found[" allocated"], found[" max"], found.len()), (484.0, 2_466_177.0, 2));
    }
}
