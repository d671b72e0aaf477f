// SPDX-License-Identifier: Apache-2.0
//! `/proc/loadavg`: runnable and uninterruptible tasks, averaged over 1, 5 and 15 minutes.

use recording::counters::loadavg;

use super::text_file::TextFile;
use super::{Readings, Scope};

pub fn sampler(scope: &Scope) -> TextFile {
    TextFile::new(
        loadavg::SOURCE,
        scope.proc.path("loadavg"),
        "procfs; without it the load before the capture is unknown",
        parse,
    )
}

fn parse(text: &str, out: &mut Readings) {
    for (load, word) in [loadavg::LOAD1, loadavg::LOAD5, loadavg::LOAD15].into_iter().zip(text.split_whitespace()) {
        if let Ok(value) = word.parse() {
            out.put(load, "", value);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::samplers::tests::rows;

    #[test]
    fn three_averages() {
        let found = rows(super::parse, "0.20 1.18 0.12 1/80 11206\n");
        assert_eq!((found[" load1"], found[" load5"], found[" load15"], found.len()), (0.2, 1.18, 0.12, 3));
    }
}
