// SPDX-License-Identifier: Apache-2.0
use recording::Writer;

use super::*;
use crate::fake_root::FakeRoot;

const MS: u64 = 1_000_000;

fn counter(name: &str, value: f64) -> Counter {
    Counter { source: "proc/stat".into(), entity: "cpu".into(), name: name.into(), value, ..Counter::default() }
}

#[test]
fn a_row_adds_up_and_throttling_is_part_of_the_delay() {
    let ran = Ran { pid: 4, threads: 3, wall_ns: 100, cpu_ns: 20, run_delay_ns: 30, ..Ran::default() };
    let row = thread(&ran, 12, 9);
    assert_eq!((row.run_queue_ns, row.throttled_ns, row.blocked_ns), (18, 12, 50));
    assert_eq!(row.cpu_ns + row.run_queue_ns + row.throttled_ns + row.blocked_ns, row.wall_ns);
    assert_eq!(thread(&ran, 99, 9).run_queue_ns, 0);
}

#[test]
fn what_came_and_went_is_a_gap_with_its_size() {
    let counters = [counter("user_ns", 1e9), counter("user_ns", 2e9), counter("user_ns", 3e9)];
    let mut found = Difference { ran: vec![Ran { cpu_ns: 500 * MS, ..Ran::default() }], ..Difference::default() };
    let quiet = Snapshot::default();
    assert!(!unseen(&quiet, &found, &counters).iter().any(|gap| gap.what == "process"));
    found.gone.insert("sh".into(), 7);
    let gap = unseen(&quiet, &found, &counters).into_iter().find(|gap| gap.what == "process").unwrap();
    assert!(gap.why.contains("7 ended (sh)") && gap.why.contains("of 2.00 s"), "{}", gap.why);
    assert!(gap.why.contains("account for 0.50 s"), "{}", gap.why);
}

#[test]
fn throttled_time_is_split_by_run_delay() {
    let root = FakeRoot::new();
    root.file("proc/self/mountinfo", "1 0 0:1 / /cg rw - cgroup2 cgroup2 rw\n")
        .file("sys/devices/system/cpu/online", "0-1\n")
        .file("cg/cpu.stat", "usage_usec 1\n")
        .file("cg/app/cpu.max", "10000 100000\n")
        .file("cg/app/cpu.stat", "throttled_usec 1000\n");
    for pid in [4, 5, 6] {
        root.process(pid, 1, "app")
            .file(&format!("proc/{pid}/cgroup"), if pid == 6 { "0::/\n" } else { "0::/app/sub\n" });
    }
    root.file("cg/app/sub/cpu.max", "max 100000\n");
    let mut throttled = Throttled::start(root.path(), &host_processes(root.path(), None));
    assert_eq!(throttled.cgroups().cpu.len(), 1);
    root.file("cg/app/cpu.stat", "throttled_usec 101000\n");
    let ran = |pid, delay_ms: u64| Ran { pid, run_delay_ns: delay_ms * MS, ..Ran::default() };
    let found = Difference { ran: vec![ran(4, 300), ran(5, 100), ran(6, 50)], ..Difference::default() };
    // One CPU-second of wall has 0.2 runnable threads per CPU: at least one is counted.
    assert_eq!(throttled.end(&found, 1000 * MS), BTreeMap::from([(4, 75 * MS), (5, 25 * MS)]));
    // 400 ms of delay in 50 ms are four runnable threads per CPU: all of their delay is throttling.
    assert_eq!(throttled.end(&found, 50 * MS), BTreeMap::from([(4, 300 * MS), (5, 100 * MS)]));
}

#[test]
fn this_host_is_watched_and_saved() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(dir.path(), &Meta::default()).unwrap();
    let mut furthest = Duration::ZERO;
    let root = Path::new("/");
    let length = Duration::from_millis(300);
    run(root, length, "wakewalk 1", &mut writer, &AtomicBool::new(false), &mut |at| furthest = at).unwrap();
    let seen = recording::open(dir.path()).unwrap();
    assert!(furthest >= length && seen.meta.sealed && seen.meta.tool == "wakewalk 1");
    assert_eq!((seen.meta.kind.as_str(), seen.meta.ended.as_str()), ("host", "time"));
    assert!(seen.meta.length_ns >= 300 * MS);
    let parent = std::os::unix::process::parent_id();
    assert!(seen.rows::<Process>().iter().any(|row| row.pid == parent));
    let row = seen.rows::<Thread>().iter().find(|row| row.pid == parent).unwrap();
    assert!(row.tid == 0 && row.instances >= 1 && row.wall_ns >= 200 * MS, "{row:?}");
    let own = std::process::id();
    assert!(!seen.rows::<Process>().iter().any(|row| row.pid == own), "our own look is a cost, not a finding");
    assert!(!seen.rows::<Counter>().is_empty());
    assert!(!seen.rows::<Gap>().iter().any(|gap| gap.why.contains("of the target is visible")));
}

#[test]
fn a_stop_is_heard() {
    let seen = watch(Path::new("/"), Duration::from_secs(600), &AtomicBool::new(true), &mut |_| {});
    assert_eq!(seen.meta.ended, "interrupted");
}
