// SPDX-License-Identifier: Apache-2.0
//! `/proc/stat`: where each CPU's time went, by the timer tick, and what the scheduler did.

use recording::counters::{Key, stat};

use super::text_file::TextFile;
use super::{Readings, Scope};

/// Fields of a `cpu` line in the kernel's order. `user_ns` includes guest time, as in the kernel.
const FIELDS: [Key; 8] = [
    stat::USER_NS,
    stat::NICE_NS,
    stat::SYSTEM_NS,
    stat::IDLE_NS,
    stat::IOWAIT_NS,
    stat::IRQ_NS,
    stat::SOFTIRQ_NS,
    stat::STEAL_NS,
];
/// Lines of one number: the kernel's word and ours.
const TOTALS: [(&str, Key); 4] = [
    ("ctxt", stat::CONTEXT_SWITCHES),
    ("processes", stat::FORKS),
    ("procs_running", stat::PROCS_RUNNING),
    ("procs_blocked", stat::PROCS_BLOCKED),
];

pub fn sampler(scope: &Scope) -> TextFile {
    TextFile::new(stat::SOURCE, scope.proc.path("stat"), "procfs; without it the use of CPUs is unknown", parse)
}

fn parse(text: &str, out: &mut Readings) {
    let tick_ns = 1e9 / procfs::ticks_per_second() as f64;
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let Some(key) = words.next() else { continue };
        if key.starts_with("cpu") {
            for (field, ticks) in FIELDS.into_iter().zip(words.map_while(|w| w.parse::<f64>().ok())) {
                out.put(field, key, ticks * tick_ns);
            }
        } else if let Some((_, total)) = TOTALS.into_iter().find(|(word, _)| *word == key)
            && let Some(value) = words.next().and_then(|w| w.parse().ok())
        {
            out.put(total, "", value);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::samplers::tests::rows;

    #[test]
    fn ticks_become_ns() {
        let text =
            "cpu  10 0 5 100 1 0 2 7 0 0\ncpu1 1 0 0 0 0 0 0 3 0 0\nintr 99 1\nctxt 42\nprocesses 7\nprocs_blocked 1\n";
        let found = rows(super::parse, text);
        let tick = 1e9 / procfs::ticks_per_second() as f64;
        assert_eq!(found["cpu user_ns"], 10.0 * tick);
        assert_eq!((found["cpu steal_ns"], found["cpu1 steal_ns"]), (7.0 * tick, 3.0 * tick));
        assert_eq!((found[" context_switches"], found[" forks"], found[" procs_blocked"]), (42.0, 7.0, 1.0));
        assert_eq!(found.len(), 8 + 8 + 3);
    }

    #[test]
    fn an_old_kernel_without_steal_has_no_steal_row() {
        assert!(!rows(super::parse, "cpu 1 2 3 4\n").contains_key("cpu steal_ns"));
    }
}
