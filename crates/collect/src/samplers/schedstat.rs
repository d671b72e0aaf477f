//! `/proc/schedstat`: time that tasks ran on each CPU and waited for it, in ns.

use super::text_file::TextFile;
use super::{Readings, Scope};

const NAME: &str = "proc/schedstat";
const NEEDS: &str =
    "a kernel with CONFIG_SCHEDSTATS; without it the wait for each CPU, summed over all processes, is unknown";

pub fn sampler(scope: &Scope) -> TextFile {
    TextFile::new(NAME, scope.proc.path("schedstat"), NEEDS, parse)
}

/// Since version 15 a `cpuN` line has nine numbers; the seventh is time run, the eighth run delay
/// (Documentation/scheduler/sched-stats.rst).
fn parse(text: &str, out: &mut Readings) {
    for line in text.lines().filter(|line| line.starts_with("cpu")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        for (name, at) in [("run_ns", 7), ("run_delay_ns", 8)] {
            if let Some(value) = words.get(at).and_then(|w| w.parse().ok()) {
                out.put(NAME, words[0], name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::samplers::tests::rows;

    #[test]
    fn run_and_delay_by_cpu() {
        let found = rows(super::parse, "version 16\ntimestamp 5\ncpu3 0 0 0 0 0 0 700 800 9\ndomain0 f 1 2 3\n");
        assert_eq!((found["cpu3 run_ns"], found["cpu3 run_delay_ns"], found.len()), (700.0, 800.0, 2));
    }
}
