// SPDX-License-Identifier: Apache-2.0
//! `/proc/net/softnet_stat`: packets that each CPU's softirq took, dropped, or left for want of time.

use recording::counters::{Key, softnet_stat};

use super::text_file::TextFile;
use super::{Readings, Scope};

const FIELDS: [Key; 3] = [softnet_stat::PROCESSED, softnet_stat::DROPPED, softnet_stat::TIME_SQUEEZE];

pub fn sampler(scope: &Scope) -> TextFile {
    let needs = "procfs; without it drops in the kernel's receive backlog are unknown";
    TextFile::new(softnet_stat::SOURCE, scope.proc.path("net/softnet_stat"), needs, parse)
}

/// Hexadecimal columns, a line for each online CPU. Since Linux 5.10 column 13 names the CPU; before, the
/// line's place has to do.
fn parse(text: &str, out: &mut Readings) {
    for (place, line) in text.lines().enumerate() {
        let numbers: Vec<u64> = line.split_whitespace().map_while(|w| u64::from_str_radix(w, 16).ok()).collect();
        let cpu = numbers.get(12).map_or_else(|| place.to_string(), ToString::to_string);
        for (field, value) in FIELDS.into_iter().zip(&numbers) {
            out.put(field, &format!("cpu{cpu}"), *value as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::samplers::tests::rows;

    #[test]
    fn the_cpu_is_named_by_the_line_or_its_place() {
        let found = rows(super::parse, "0000001f 00000002 1 0 0 0 0 0 0 0 0 0 00000003 0 0\n00000001 0 0\n");
        assert_eq!((found["cpu3 processed"], found["cpu3 dropped"], found["cpu3 time_squeeze"]), (31.0, 2.0, 1.0));
        assert_eq!(found["cpu1 processed"], 1.0);
    }
}
