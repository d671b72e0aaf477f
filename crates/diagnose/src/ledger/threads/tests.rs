// SPDX-License-Identifier: Apache-2.0
//! Ledgers of recordings written as text.

use super::*;
use recording::text::parse;

fn ledger(text: &str) -> std::sync::Arc<Threads> {
    let recording = parse(text).unwrap();
    Case::new(&recording).fact::<Threads>().unwrap()
}

#[test]
fn lines_add_up_to_the_wall() {
    let l = ledger(
        "meta host.arch=x86_64
         frame id=1 symbol=ep_poll module=kernel kind=kernel
         stack id=1 frames=[1]
         thread t_ns=1e9 pid=1 tid=1 comm=a wall_ns=1e9 cpu_ns=4e8 run_queue_ns=1e8 blocked_ns=5e8
         thread t_ns=2e9 pid=1 tid=1 comm=a wall_ns=1e9 cpu_ns=4e8 preempted_ns=1e8 blocked_ns=4e8 interrupted_ns=1e8
         wait pid=1 tid=1 syscall=232 state=1 total_ns=6e8 stack=1
         wait pid=1 tid=1 syscall=202 state=1 total_ns=2e8
         sample pid=1 tid=1 weight=6
         sample pid=1 tid=1 kernel=true syscall=232 weight=3
         sample pid=1 tid=1 kernel=true syscall=1 weight=3",
    );
    let t = &l.threads[0].lines;
    assert_eq!((t.sum_ns(), t.wall_ns, l.coverage), (2e9, 2e9, 1.0));
    assert_eq!((t.user_ns, t.kernel_ns, t.kernel_in_wait_calls_ns, t.cpu_unsplit_ns), (4e8, 2e8, 2e8, 0.0));
    assert_eq!(
        (t.blocked(Blocked::Poll), t.blocked(Blocked::Futex), t.blocked(Blocked::Unattributed)),
        (6e8, 2e8, 1e8)
    );
    assert!((l.blocked_with_stack - 0.6 / 0.9).abs() < 1e-9);
    assert!((0.25..0.35).contains(&t.user_share_error), "{}: three rows tell little", t.user_share_error);
    assert_eq!(
        l.slices.iter().map(|s| (s.t_ns, s.length_ns)).collect::<Vec<_>>(),
        [(1_000_000_000, 1e9), (2_000_000_000, 1e9)]
    );
    let named: f64 = t.named().iter().map(|(_, ns)| ns).sum();
    assert_eq!(named, 2e9);
}

#[test]
fn what_is_missing_or_too_much_lowers_coverage() {
    assert_eq!(ledger("thread pid=1 tid=1 wall_ns=100 cpu_ns=90").coverage, 0.9);
    assert_eq!(ledger("thread pid=1 tid=1 wall_ns=100 cpu_ns=110").coverage, 0.9);
    // One thread's surplus does not cover for another's shortage.
    assert_eq!(
        ledger("thread pid=1 tid=1 wall_ns=100 cpu_ns=120\nthread pid=1 tid=2 wall_ns=100 cpu_ns=80").coverage,
        0.8
    );
    assert_eq!(ledger("thread pid=1 tid=1").coverage, 0.0);
}

#[test]
fn short_lived_threads_keep_their_names_and_samples() {
    let l = ledger(
        "thread t_ns=1 comm=sh instances=10 wall_ns=100 cpu_ns=40 blocked_ns=60
         thread t_ns=2 comm=sh instances=5 wall_ns=50 cpu_ns=20 blocked_ns=30
         thread t_ns=2 comm=cat instances=1 wall_ns=30 cpu_ns=0 blocked_ns=30
         wait syscall=202 total_ns=120
         sample pid=77 tid=77 comm=sh",
    );
    let sh = l.threads.iter().find(|t| t.comm == "sh").unwrap();
    assert_eq!((sh.instances, sh.lines.user_ns, sh.lines.sum_ns()), (15, 60.0, 150.0));
    assert_eq!(l.coverage, 1.0);
    assert!(l.thread(0, 0).is_none());
}

#[test]
fn waits_of_the_first_second_are_of_those_that_live_on_too() {
    let l = ledger(
        "meta host.arch=x86_64
         thread t_ns=1 comm=sh instances=5 wall_ns=100 blocked_ns=100
         thread t_ns=1 pid=7 tid=8 comm=api wall_ns=400 blocked_ns=400
         wait pid=7 tid=8 syscall=35 total_ns=100
         wait syscall=202 total_ns=400",
    );
    let blocked = |comm: &str| {
        let t = l.threads.iter().find(|t| t.comm == comm).unwrap();
        (t.lines.blocked(Blocked::Sleep), t.lines.blocked(Blocked::Futex), t.lines.sum_ns())
    };
    assert_eq!((blocked("sh"), blocked("api")), ((0.0, 100.0, 100.0), (100.0, 300.0, 400.0)));
    assert_eq!(l.coverage, 1.0);
}
