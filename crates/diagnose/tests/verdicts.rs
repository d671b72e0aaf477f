// SPDX-License-Identifier: Apache-2.0
//! Whole verdicts: which cause leads, what is ruled out, and that the contract's numbers are there.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use recording::text::parse;
use wakewalk_diagnose::{causes, diagnose, verdict::Verdict};

fn verdict(text: &str) -> Verdict {
    diagnose(&parse(text).unwrap())
}

/// Counters of a machine with two CPUs over 10 s: busy seconds of both together.
fn machine(busy: f64) -> String {
    let mut text = "meta host.arch=x86_64 host.cpus=2 length_ns=10e9 target.allowed_cpus=[0,1] target.sample_hz=100 target.comm=svc\nwakeup\n".to_string();
    for cpu in ["cpu0", "cpu1"] {
        for (name, value) in [("user_ns", busy / 2.0), ("idle_ns", 10.0 - busy / 2.0)] {
            text += &format!("counter source=proc/stat entity={cpu} name={name} value=0\n");
            text += &format!(
                "counter t_ns=10e9 source=proc/stat entity={cpu} name={name} value={}\n",
                (value * 1e9).round()
            );
        }
    }
    text
}

/// A thread: seconds on a CPU, in the queue, throttled; the rest blocked in epoll_wait.
fn thread(tid: u32, cpu: f64, queue: f64, throttled: f64) -> String {
    let blocked = 10.0 - cpu - queue - throttled;
    format!(
        "thread t_ns=10e9 pid=1 tid={tid} comm=t{tid} wall_ns=10e9 cpu_ns={} run_queue_ns={} throttled_ns={} blocked_ns={}
         wait pid=1 tid={tid} syscall=232 state=1 total_ns={}\n",
        (cpu * 1e9).round(), (queue * 1e9).round(), (throttled * 1e9).round(), (blocked * 1e9).round(), (blocked * 1e9).round()
    )
}

/// Ordinary work of a thread: five functions alike, some kernel time.
fn work(tid: u32, samples: u32) -> String {
    let mut text = String::new();
    for f in 1..=5 {
        text +=
            &format!("frame id={f} symbol=step{f} module=svc kind=native\nstack id={f} frames=[{f}] complete=true\n");
        text += &format!("sample pid=1 tid={tid} comm=t{tid} syscall=-1 stack={f} weight={}\n", samples / 6);
    }
    text + &format!("sample pid=1 tid={tid} comm=t{tid} kernel=true syscall=1 stack=1 weight={}\n", samples / 6)
}

fn neutral(v: &Verdict) -> &str {
    assert!(v.findings.is_empty(), "{:?}", v.findings);
    &v.verdict
}

/// Verdicts that accuse nobody: they are never ruled out, they are what is left.
const NEUTRAL: usize = 3;

#[test]
fn healthy_rules_everything_else_out() {
    let v = verdict(&(machine(3.0) + &thread(1, 2.0, 0.1, 0.0) + &work(1, 200)));
    assert_eq!(neutral(&v), "healthy");
    assert_eq!(v.ruled_out.len(), causes().len() - NEUTRAL, "{:?}", v.ruled_out);
    assert!(v.gaps.is_empty(), "{:?}", v.gaps);
    assert_eq!((v.symptom.kind.as_str(), v.symptom.value, v.symptom.unit.as_str()), ("cpu", 0.2, "cores"));
    let sum: f64 = v.ledger.threads.iter().filter(|(line, _)| *line != "wall").map(|(_, s)| s).sum();
    assert!((sum - v.ledger.threads["wall"]).abs() < 1e-6 && v.ledger.threads["blocked_poll"] > 7.8);
    assert_eq!(v.coverage.thread_time, 1.0);
}

#[test]
fn an_idle_pool_shows_no_symptom() {
    let pool: String = (1..=50).map(|tid| thread(tid, 0.0, 0.0, 0.0)).collect();
    let v = verdict(&(machine(0.5) + &pool + "sample pid=1 tid=1 kernel=true syscall=202 weight=1"));
    assert_eq!((neutral(&v), v.symptom.kind.as_str()), ("healthy", "none-seen"));
}

#[test]
fn a_full_machine_accuses_nobody() {
    let v = verdict(
        &(machine(19.6) + &thread(1, 9.4, 0.3, 0.0) + &thread(2, 9.4, 0.3, 0.0) + &work(1, 900) + &work(2, 900)),
    );
    assert_eq!(neutral(&v), "at-capacity");
    assert!(v.headline.starts_with("at its CPU limit"), "{}", v.headline);
}

#[test]
fn quota_and_neighbour_are_told_apart() {
    let quota = |throttled: f64| {
        format!(
            "counter source=cgroup/cpu entity=/svc name=quota_ns value=3e7\ncounter source=cgroup/cpu entity=/svc name=period_ns value=1e8
             counter source=cgroup/cpu entity=/svc name=nr_periods value=0\ncounter t_ns=10e9 source=cgroup/cpu entity=/svc name=nr_periods value=100
             counter source=cgroup/cpu entity=/svc name=nr_throttled value=0\ncounter t_ns=10e9 source=cgroup/cpu entity=/svc name=nr_throttled value={throttled}
             counter source=cgroup/cpu entity=/svc name=throttled_ns value=0\ncounter t_ns=10e9 source=cgroup/cpu entity=/svc name=throttled_ns value={}\n",
            throttled * 7e7
        )
    };
    let held = verdict(&(machine(4.0) + &quota(95.0) + &thread(1, 3.0, 0.2, 6.0) + &work(1, 300)));
    assert_eq!(held.verdict, "cpu-throttled");
    let hogs = "neighbour pid=9 comm=hog samples=900 delayed_ns=6e9 by_length_ns=[0,0,0,0,0,6000000000]\n";
    let crowded = verdict(&(machine(20.0) + &quota(0.0) + hogs + &thread(1, 3.0, 6.5, 0.0) + &work(1, 300)));
    assert_eq!(crowded.verdict, "run-queue-wait");
    for v in [held, crowded] {
        assert_eq!((v.findings.len(), v.headline.is_empty()), (1, false));
        assert_eq!(v.ruled_out.len(), causes().len() - NEUTRAL - 1);
    }
}

#[test]
fn waste_comes_before_the_quota_that_it_uses_up() {
    let text = machine(11.0) + &thread(1, 5.0, 0.0, 5.0)
        + "frame id=1 symbol=spin module=svc kind=native\nstack id=1 frames=[1] complete=true
           sample pid=1 tid=1 kernel=true syscall=232 args=[4,9,1,0,0,0] stack=1 weight=400
           sample pid=1 tid=1 syscall=-1 stack=1 weight=100
           call_window id=1 kind=results length_ns=5e8
           call window=1 pid=1 tid=1 syscall=232 argument_kind=timeout argument=0 result=0 count=300000
           counter source=cgroup/cpu entity=/svc name=nr_throttled value=0\ncounter t_ns=10e9 source=cgroup/cpu entity=/svc name=nr_throttled value=90";
    let v = verdict(&text);
    let order: Vec<&str> = v.findings.iter().map(|f| f.cause.as_str()).collect();
    assert_eq!(order, ["busy-poll", "cpu-throttled"]);
}

#[test]
fn missing_evidence_is_not_health() {
    // 0.9 cores of something: without samples and calls nobody knows of what.
    let v = verdict(&(machine(9.5) + &thread(1, 9.0, 0.0, 0.0)));
    assert_eq!(neutral(&v), "not-determined");
    assert!(
        v.gaps.iter().any(|g| g.what == "hot-code") || v.gaps.iter().any(|g| g.what == "busy-poll"),
        "{:?}",
        v.gaps
    );
    assert!(v.advice.contains("wakewalk doctor"));
    assert_eq!(neutral(&verdict("")), "not-determined");
}

#[test]
fn a_host_recording_accuses_nobody() {
    let v = verdict(&(machine(20.0) + "meta kind=host\n" + &thread(1, 9.0, 1.0, 0.0)));
    assert_eq!(neutral(&v), "not-determined");
    assert!(v.advice.contains("sudo wakewalk diagnose --pid 1"));
}

#[test]
fn no_headline_says_slow() {
    for text in [machine(3.0), machine(20.0) + &thread(1, 9.9, 0.0, 0.0) + &work(1, 900), String::new()] {
        assert!(!verdict(&text).headline.to_lowercase().contains("slow"));
    }
}
