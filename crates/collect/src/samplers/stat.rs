// SPDX-License-Identifier: Apache-2.0
//! `/proc/stat`: where each CPU's time went, by the timer tick, and what the scheduler did.

use super::text_file::TextFile;
use super::{Readings, Scope};

const NAME: &str = "proc/stat";
/// Fields of a `cpu` line in the kernel's order. `user_ns` includes guest time, as in the kernel.
const FIELDS: [&str; 8] =
    ["user_ns", "nice_ns", "system_ns", "idle_ns", "iowait_ns", "irq_ns", "softirq_ns", "steal_ns"];
/// Lines of one number: the kernel's word and ours.
const TOTALS: [(&str, &str); 4] = [
    ("ctxt", "context_switches"),
    ("processes", "forks"),
    ("procs_running", "procs_running"),
    ("procs_blocked", "procs_blocked"),
];

pub fn sampler(scope: &Scope) -> TextFile {
    TextFile::new(NAME, scope.proc.path("stat"), "procfs; without it the use of CPUs is unknown", parse)
}

fn parse(text: &str, out: &mut Readings) {
    let tick_ns = 1e9 / procfs::ticks_per_second() as f64;
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let Some(key) = words.next() else { continue };
        if key.starts_with("cpu") {
            for (name, ticks) in FIELDS.iter().zip(words.map_while(|w| w.parse::<f64>().ok())) {
                out.put(NAME, key, name, ticks * tick_ns);
            }
        } else if let Some((_, name)) = TOTALS.iter().find(|(word, _)| *word == key)
            && let Some(value) = words.next().and_then(|w| w.parse().ok())
        {
            out.put(NAME, "", name, value);
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
