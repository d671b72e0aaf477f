// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::fake_root::{FakeRoot, stat_line};

const MS: u64 = 1_000_000;

fn times(at_ms: u64, cpu_ms: u64, delay_ms: u64) -> Times {
    Times { at_ns: at_ms * MS, age_ns: None, cpu_ns: cpu_ms * MS, run_delay_ns: delay_ms * MS }
}

fn seen(start_ticks: u64, comm: &str, threads: &[(u32, Times)]) -> Seen {
    Seen { start_ticks, comm: comm.into(), threads: threads.iter().copied().collect(), ..Seen::default() }
}

fn snapshot(processes: &[(u32, Seen)]) -> Snapshot {
    Snapshot { at_ns: 1, processes: processes.iter().cloned().collect() }
}

#[test]
fn threads_are_summed_and_sorted_by_cpu() {
    let before = snapshot(&[
        (5, seen(1, "idle", &[(5, times(1000, 10, 0))])),
        (6, seen(1, "busy", &[(6, times(1000, 100, 5)), (7, times(1000, 0, 0))])),
    ]);
    let after = snapshot(&[
        (5, seen(1, "idle", &[(5, times(3000, 10, 0))])),
        (6, seen(1, "busy", &[(6, times(3000, 600, 25)), (7, times(3000, 300, 0))])),
    ]);
    let found = difference(&before, &after);
    let busy = &found.ran[0];
    assert_eq!((busy.comm.as_str(), busy.threads, busy.born_ns), ("busy", 2, None));
    assert_eq!((busy.wall_ns, busy.cpu_ns, busy.run_delay_ns), (4000 * MS, 800 * MS, 20 * MS));
    assert_eq!((found.ran[1].cpu_ns, found.ran[1].wall_ns), (0, 2000 * MS));
}

#[test]
fn born_gone_and_reused_numbers_are_told_apart() {
    let before = snapshot(&[(5, seen(1, "old", &[(5, times(1, 90, 0))])), (8, seen(1, "gone", &[]))]);
    let young = Times { age_ns: Some(500 * MS), ..times(3000, 20, 1) };
    let after = snapshot(&[(5, seen(77, "new", &[(5, young)]))]);
    let found = difference(&before, &after);
    assert_eq!((found.ran[0].born_ns, found.ran[0].cpu_ns, found.ran[0].wall_ns), (Some(2500 * MS), 20 * MS, 500 * MS));
    assert_eq!(found.gone, BTreeMap::from([("gone".to_string(), 1), ("old".to_string(), 1)]));
}

#[test]
fn cpu_of_ended_threads_is_not_lost() {
    let mut before = seen(1, "pool", &[(5, times(1000, 0, 0)), (6, times(1000, 0, 0))]);
    let mut after = seen(1, "pool", &[(5, times(2000, 10, 0))]);
    (before.tick_cpu_ns, after.tick_cpu_ns) = (0, 400 * MS);
    let ran = &difference(&snapshot(&[(5, before)]), &snapshot(&[(5, after)])).ran[0];
    assert_eq!((ran.cpu_ns, ran.wall_ns), (400 * MS, 1390 * MS));
}

#[test]
fn a_root_is_read_without_zombies_and_new_threads_get_an_age() {
    let root = FakeRoot::new();
    root.process(10, 1, "app").process(11, 1, "dead").stat(11, &stat_line(11, 1, "dead", 'Z', 0));
    root.file("proc/10/task/10/schedstat", "5000 70 3\n").file("proc/uptime", "100.00 150.00\n");
    root.file("proc/10/cgroup", "0::/web\n");
    let before = host_processes(root.path(), None);
    assert_eq!(before.processes.keys().collect::<Vec<_>>(), [&10]);
    let app = &before.processes[&10];
    assert_eq!(
        (app.threads[&10].cpu_ns, app.threads[&10].run_delay_ns, app.membership.name()),
        (5000, 70, "/web".into())
    );
    root.file("proc/10/task/12/schedstat", "1 2 3\n").file("proc/10/task/12/stat", stat_line(12, 1, "app", 'S', 0));
    let after = host_processes(root.path(), Some(&before));
    let threads = &after.processes[&10].threads;
    // The fake line says that the thread started 500 ticks after boot.
    assert_eq!((threads[&10].age_ns, threads[&12].age_ns), (None, Some(100_000 * MS - ticks_ns(500))));
}

#[test]
fn our_own_work_is_seen() {
    let root = Path::new("/");
    let before = host_processes(root, None);
    let mut sum = 0u64;
    // Until the kernel has charged us 20 ms: how long that takes on a busy machine does not matter.
    loop {
        sum = (0..1_000_000u64).fold(sum, |sum, i| std::hint::black_box(sum ^ i));
        let found = difference(&before, &host_processes(root, Some(&before)));
        let own = found.ran.into_iter().find(|ran| ran.pid == std::process::id()).unwrap();
        assert!(own.cpu_ns + own.run_delay_ns <= own.wall_ns, "{own:?}");
        if own.cpu_ns >= 20 * MS {
            break;
        }
    }
}
