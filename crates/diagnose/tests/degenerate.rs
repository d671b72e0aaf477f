// SPDX-License-Identifier: Apache-2.0
//! Odd recordings: whatever is missing, empty or absurd, there is a verdict, and it is valid JSON.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use recording::text::parse;
use wakewalk_diagnose::{causes, diagnose, verdict::Verdict};

/// A recording with a row or more in every table.
const RICH: &str = "\
meta host.arch=x86_64 host.cpus=2 length_ns=2e9 target.allowed_cpus=[0] target.sample_hz=100 target.pids=[1] target.quota_cpus=0.5
process pid=1 comm=svc
thread t_ns=1e9 pid=1 tid=1 comm=a wall_ns=1e9 cpu_ns=9e8 run_queue_ns=5e7 blocked_ns=5e7
thread t_ns=2e9 pid=1 tid=1 comm=a wall_ns=1e9 cpu_ns=5e8 preempted_ns=3e8 throttled_ns=2e8 voluntary_switches=5
thread t_ns=2e9 comm=sh instances=40 wall_ns=2e8 cpu_ns=1e8 blocked_ns=1e8
wait pid=1 tid=1 syscall=232 state=1 stack=1 count=3 total_ns=5e7
wait syscall=-1 state=2 io_wait=true count=3 total_ns=5e7
sample pid=1 tid=1 kernel=true syscall=232 args=[4,0,1,0] stack=1 weight=80
sample pid=1 tid=1 syscall=232 result=0 stack=2 weight=40
sample pid=1 tid=1 syscall=-1 stack=2 weight=60
sample pid=9 tid=9 comm=sh syscall=-1 stack=77
stack id=1 frames=[1,2,3] complete=true
stack id=2 frames=[2,3]
frame id=1 symbol=do_epoll_wait module=kernel kind=kernel
frame id=2 module=libc.so.6 kind=native offset=4096
frame id=3 symbol=spin module=svc kind=native
call_window id=1 kind=results length_ns=1e8 calls=90000 lost=10
call_window id=2 kind=latency length_ns=5e7 calls=40000
call window=1 pid=1 tid=1 syscall=232 fd=4 argument_kind=timeout argument=0 result=0 count=90000
call window=1 pid=1 tid=1 syscall=0 fd=5 argument_kind=size argument=512 result=-11 count=5
call_latency window=2 pid=1 tid=1 syscall=232 from_ns=256 count=40000
call_example pid=1 tid=1 syscall=232 args=[4,0,1,0]
neighbour pid=50 comm=hog samples=99 delayed_ns=2e8
neighbour pid=1 own=true delayed_ns=1e7
counter source=proc/stat entity=cpu0 name=user_ns value=0
counter t_ns=2e9 source=proc/stat entity=cpu0 name=user_ns value=18e8
counter t_ns=2e9 source=proc/stat entity=cpu0 name=steal_ns value=4e8
counter source=proc/stat entity=cpu0 name=steal_ns value=0
counter source=proc/stat entity=cpu0 name=idle_ns value=7
counter source=cgroup/cpu entity=/a name=quota_ns value=5e7
counter source=cgroup/cpu entity=/a name=period_ns value=1e8
counter source=cgroup/cpu entity=/a name=nr_throttled value=0
counter t_ns=2e9 source=cgroup/cpu entity=/a name=nr_throttled value=15
gap what=lock why=\"not there\"
loss what=ring count=1 kept=1000
cost what=user cpu_ns=1e7
";

/// The verdict of a text, after the checks that every verdict must pass.
fn checked(text: &str) -> Verdict {
    let recording = parse(text).unwrap();
    let verdict = diagnose(&recording);
    assert!(causes().contains(&verdict.verdict.as_str()), "{}", verdict.verdict);
    assert!(!verdict.headline.is_empty() && !verdict.advice.is_empty());
    // Numbers that are none become null, which no reader of the contract expects.
    let json = serde_json::to_string(&verdict).unwrap();
    assert!(serde_json::from_str::<Verdict>(&json).is_ok(), "not a number in {json}\nfrom\n{text}");
    assert_eq!(json, serde_json::to_string(&diagnose(&recording)).unwrap(), "two answers to one question");
    let (c, share) = (&verdict.coverage, 0.0..=1.0);
    assert!([c.thread_time, c.cpu_time, c.blocked_time].iter().all(|s| share.contains(s)), "{c:?}");
    assert!(verdict.findings.iter().all(|f| share.contains(&f.explains.share)), "{:?}", verdict.findings);
    verdict
}

/// Numbers without a pattern, the same in each run.
fn noise(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut rng = fastrand::Rng::with_seed(seed);
    move |below| rng.u64(..below)
}

#[test]
fn the_rich_one_finds_something() {
    assert_eq!(checked(RICH).verdict, "busy-poll");
}

#[test]
fn any_rows_missing() {
    for seed in 0..400 {
        let mut random = noise(seed);
        let odds = 1 + random(9);
        let kept: Vec<&str> = RICH.lines().filter(|_| random(10) < odds).collect();
        checked(&kept.join("\n"));
    }
}

#[test]
fn any_tables_missing() {
    let name = |line: &str| line.split(' ').next().unwrap().to_string();
    let mut tables: Vec<String> = RICH.lines().map(name).collect();
    tables.dedup();
    for seed in 0..200 {
        let mut random = noise(seed);
        let gone: Vec<&String> = tables.iter().filter(|_| random(2) == 0).collect();
        let kept: Vec<&str> = RICH.lines().filter(|line| !gone.contains(&&name(line))).collect();
        checked(&kept.join("\n"));
    }
}

#[test]
fn absurd_numbers() {
    for seed in 0..300 {
        let mut random = noise(seed);
        let words: Vec<String> = RICH
            .lines()
            .map(|line| {
                let words = line.split(' ').map(|word| match word.split_once('=') {
                    Some((key, value)) if value.parse::<f64>().is_ok() && random(6) == 0 => {
                        let unsigned = !["argument", "result", "syscall", "fd", "value"].contains(&key);
                        let narrow =
                            ["pid", "tid", "stack", "id", "cpu", "weight", "window", "state", "sample_hz", "cpus"]
                                .contains(&key)
                                || key.contains('.');
                        let wide = if narrow { u64::from(u32::MAX) } else { u64::MAX };
                        let choices = [0, 1, wide, wide / 2];
                        let signed = ["-1", "0", "-2147483648", "2147483647"];
                        let at = random(4) as usize;
                        match unsigned {
                            true => format!("{key}={}", choices[at]),
                            false => format!("{key}={}", signed[at]),
                        }
                    }
                    _ => word.to_string(),
                });
                words.collect::<Vec<_>>().join(" ")
            })
            .collect();
        checked(&words.join("\n"));
    }
}

#[test]
fn no_window_at_all() {
    assert_eq!(checked("").verdict, "not-determined");
    assert_eq!(checked("meta length_ns=0").verdict, "not-determined");
    checked(&RICH.replace("length_ns=2e9", "length_ns=0"));
    checked(&RICH.replace("wall_ns=1e9", "wall_ns=0"));
}
