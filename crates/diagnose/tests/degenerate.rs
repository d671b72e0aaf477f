// SPDX-License-Identifier: Apache-2.0
//! Odd recordings: whatever is missing, empty or absurd, there is a verdict, and it is valid JSON.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use recording::{tables::NAMES, text::parse};
use wakewalk_diagnose::{causes, diagnose, verdict::Verdict};

/// A recording with a row or more in every table, as a service has them that polls, answers HTTP, asks a database and loses some
/// connections.
const RICH: &str = "\
meta host.arch=x86_64 host.cpus=2 length_ns=2e9 target.allowed_cpus=[0] target.sample_hz=100 target.pids=[1] target.quota_cpus=0.5
meta target.listen=[\"tcp 0.0.0.0:80\"] target.named=\"--port 80\" target.comm=svc
process pid=1 comm=svc exe=/usr/bin/svc listen=[\"tcp 0.0.0.0:80\"]
process pid=5 ppid=1 comm=worker started_ns=1e8
thread t_ns=1e9 pid=1 tid=1 comm=a wall_ns=1e9 cpu_ns=9e8 run_queue_ns=5e7 blocked_ns=5e7
thread t_ns=2e9 pid=1 tid=1 comm=a wall_ns=1e9 cpu_ns=5e8 preempted_ns=3e8 throttled_ns=2e8 voluntary_switches=5
thread t_ns=2e9 comm=sh instances=40 wall_ns=2e8 cpu_ns=1e8 blocked_ns=1e8
wait pid=1 tid=1 syscall=232 state=1 stack=1 count=3 total_ns=5e7
wait syscall=-1 state=2 io_wait=true count=3 total_ns=5e7
wakeup t_ns=5e8 pid=1 tid=1 comm=a wait_ns=8e6 since_ns=492e6 blocked_ns=6e6 cpu_ns=1e6 run_queue_ns=1e6 waits=3 asked=1 syscall=0 fd_kind=socket state=1 stack=1 family=2 local_port=40000 remote_port=5432 peer=10.0.0.9 context=interrupt waker_stack=1
wakeup t_ns=9e8 pid=1 tid=2 comm=b wait_ns=3e7 since_ns=87e7 blocked_ns=28e6 run_queue_ns=2e6 waits=1 syscall=202 args=[4096,128,0,0] state=1 stack=2 context=thread waker_pid=1 waker_tid=1 waker_comm=a waker_syscall=202 waker_stack=2
wakeup t_ns=15e8 pid=1 tid=1 comm=a wait_ns=2e7 since_ns=148e7 blocked_ns=2e7 syscall=73 fd_kind=file file_system=61267 state=2 io_wait=true stack=1 path=/var/lib/svc.lock context=\"kernel thread\" waker_pid=50 waker_tid=50 waker_comm=backup
wait_stack t_ns=5e8 pid=1 tid=1 comm=a syscall=0 args=[4,0,0,0] stack=2
wait_stack t_ns=9e8 pid=1 tid=1 comm=a wakes=true syscall=202 args=[4096,129,1,0] stack=2
standing t_ns=2e9 pid=1 tid=1 comm=a wait_ns=12e8 syscall=202 args=[4096,128,2,0] state=1 stack=1 user_stack=3 requests=4 request_ns=13e8 owner=2
standing t_ns=2e9 pid=1 tid=2 comm=b wait_ns=11e8 syscall=202 args=[8192,128,2,0] state=1 stack=1 owner=1
standing t_ns=2e9 pid=1 tid=7 comm=c wait_ns=6e8 syscall=0 fd_kind=socket state=1 user_stack=2 family=2 local_port=40000 remote_port=5432 peer=10.0.0.9 path=/run/x
connection t_ns=1e9 role=accepted port=80 looks=10 open=160 unread=8 unsent=6 unanswered=60 most_unanswered=9 late=20 most_late=4 late_ns=9e9 went_on=2 nagle=3 nagle_ns=1e8 rwnd=2 window_bytes=65536 widest_bytes=131072 cwnd=10 on_its_way=4 no_room=1 nodelay=40 keepalive=9 srtt_ns=3e7 min_rtt_ns=1e6 busy_ns=9e8 rwnd_ns=1e8 sndbuf_ns=1e7 slow_start=2 restarted=1 slow_start_cwnd=10 slow_start_unsent=4096 queued=3 retransmits=2 segments_out=4100 segments=4000 rwnd_segments=200 sndbuf_segments=9
connection t_ns=2e9 role=made peer=10.0.0.9:5432 looks=10 open=80 opening=2 unanswered=40 late=10 late_ns=4e9 awaited=30 cork=1 paced=1 other=1 own_sndbuf=1 own_rcvbuf=1 srtt_ns=4e6 min_rtt_ns=1e6 busy_ns=1e9 segments=2000
exchange_window t_ns=1e9 length_ns=9e8
exchange_window t_ns=2e9 length_ns=1e9
exchange t_ns=1e9 role=accepted port=80 stage=response count=90 sum_ns=2e9 length_ns=[1000000,51000000] counts=[50,40] began=95 unanswered=3 more=2 pushed=4 continued=6 continued_ns=9e7 apart=2 apart_ns=8e7 stood_ns=1e7 stood=3 nagled=1
exchange t_ns=1e9 role=accepted port=80 stage=read_wait count=90 sum_ns=5e7 length_ns=[500000] counts=[90]
exchange t_ns=1e9 role=accepted port=80 stage=service count=90 sum_ns=19e8 length_ns=[20000000] counts=[90]
exchange t_ns=2e9 role=made peer=10.0.0.9:5432 stage=response count=85 sum_ns=1e9 length_ns=[12000000] counts=[85] began=86
label t_ns=1e9 role=accepted port=80 protocol=http label=\"GET /a\" outcome=ok seen=9 count=80 sum_ns=1e9 length_ns=[12000000] counts=[80]
label t_ns=1e9 role=accepted port=80 protocol=http label=\"GET /b\" outcome=failed seen=9 count=10 sum_ns=1e9 length_ns=[100000000] counts=[10]
label t_ns=1e9 role=made peer=10.0.0.9:5432 protocol=postgresql label=\"SELECT orders\" outcome=ok seen=4 count=40 sum_ns=4e8 length_ns=[10000000] counts=[40]
retransmit t_ns=1e9 kind=retransmit state=ESTABLISHED role=accepted port=80 count=9
retransmit t_ns=1e9 kind=reset_sent state=CLOSE role=accepted port=80 reason=TCP_ABORT_ON_CLOSE unanswered=true count=7
retransmit t_ns=2e9 kind=reset_received state=SYN_SENT failed=true role=made peer=10.0.0.9:1 count=30
drop t_ns=1e9 reason=NETFILTER_DROP protocol=tcp role=accepted port=80 begins=true stack=1 count=9
drop t_ns=2e9 reason=SOCKET_RCVBUFF protocol=udp role=none port=53 stack=2 count=30
socket_state t_ns=0 state=CLOSE_WAIT role=accepted port=80 count=900
socket_state t_ns=19e8 state=CLOSE_WAIT role=accepted port=80 count=950
socket_state t_ns=19e8 state=TIME_WAIT role=accepted port=80 peer=10.0.0.7 count=9000
socket_state t_ns=19e8 state=ESTABLISHED role=made peer=10.0.0.9:5432 count=8
request t_ns=150e6 role=accepted port=80 peer=10.0.0.7:50000 pid=1 began_ns=100e6 began_tid=1 read_ns=101e6 rest_ns=102e6 ended_tid=1 label=\"GET /a\"
request t_ns=510e6 role=accepted port=80 peer=10.0.0.7:50001 pid=1 began_ns=480e6 began_tid=1 read_ns=490e6 ended_tid=1 label=\"GET /b\"
request t_ns=500e6 role=made peer=10.0.0.9:5432 pid=1 began_ns=492e6 began_tid=1 read_ns=500e6 ended_tid=1
burst t_ns=1e9 length_ns=9e8
birth t_ns=95e6 pid=1 tid=1 comm=svc parent_pid=1 parent_tid=2
birth t_ns=96e6 pid=1 tid=2 parent_pid=1 parent_tid=1
burst t_ns=2e9 length_ns=1e9
setting area=sysctl name=net.core.somaxconn value=\"4096\"
setting area=file entity=svc name=build_id value=aa
file_lock t_ns=1e9 kind=FLOCK pid=50 comm=backup path=/var/lib/svc.lock inode=77 waiting=5
death t_ns=1e9 pid=5 ppid=1 comm=worker signal=11 count=2
sample pid=1 tid=1 kernel=true syscall=232 args=[4,0,1,0] stack=1 weight=80
sample pid=1 tid=1 syscall=232 result=0 stack=2 weight=40
sample pid=1 tid=1 syscall=-1 stack=2 weight=60
sample pid=9 tid=9 comm=sh syscall=-1 stack=77
stack id=1 frames=[1,2,3] complete=true
stack id=2 frames=[2,3]
frame id=1 symbol=do_epoll_wait module=kernel kind=kernel
frame id=2 module=libc.so.6 kind=native offset=4096
frame id=3 symbol=spin module=svc kind=native
frame id=4 symbol=pthread_mutex_lock module=libc.so.6 kind=native
stack id=3 frames=[4,3] complete=true
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

/// What is not in it, the tests below cannot leave out or make absurd.
#[test]
fn the_rich_one_has_all_tables() {
    let rich = parse(RICH).unwrap();
    // A load generator writes these, about itself: no recording of a target has them.
    let of_load = ["load_second", "load_latency"];
    let missing: Vec<_> =
        NAMES.iter().filter(|name| !of_load.contains(name) && !rich.tables.names().any(|n| n == **name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
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

/// Columns of 32 bits. Others have 64.
const NARROW: [&str; 34] = [
    "parent_pid",
    "parent_tid",
    "asked",
    "began_tid",
    "cpu",
    "cpus",
    "ended_tid",
    "family",
    "file_system",
    "frames",
    "id",
    "local_port",
    "owner",
    "pid",
    "port",
    "ppid",
    "remote_port",
    "requests",
    "sample_hz",
    "signal",
    "stack",
    "state",
    "tid",
    "user_stack",
    "waiting",
    "waits",
    "waker_family",
    "waker_local_port",
    "waker_pid",
    "waker_remote_port",
    "waker_stack",
    "waker_tid",
    "weight",
    "window",
];

/// Columns of numbers that may be below 0.
const SIGNED: [&str; 6] = ["argument", "fd", "result", "syscall", "value", "waker_syscall"];

/// One of the numbers at the ends of what the column can hold.
fn absurd(key: &str, random: &mut impl FnMut(u64) -> u64) -> String {
    let at = random(4) as usize;
    if SIGNED.contains(&key) {
        return ["-1", "0", "-2147483648", "2147483647"][at].to_string();
    }
    let is_narrow = NARROW.contains(&key) || key.contains('.');
    let wide = if is_narrow { u64::from(u32::MAX) } else { u64::MAX };
    [0, 1, wide, wide / 2][at].to_string()
}

/// The line with some of its numbers absurd, also in lists.
fn with_absurd(line: &str, random: &mut impl FnMut(u64) -> u64) -> String {
    let mut number = |key: &str, value: &str| {
        let is_one = value.parse::<f64>().is_ok() && random(6) == 0;
        if is_one { absurd(key, random) } else { value.to_string() }
    };
    let words = line.split(' ').map(|word| match word.split_once('=') {
        Some((key, value)) if value.starts_with('[') && !key.contains('.') => {
            let items: Vec<String> = value.trim_matches(['[', ']']).split(',').map(|item| number(key, item)).collect();
            if value.contains('"') { word.to_string() } else { format!("{key}=[{}]", items.join(",")) }
        }
        Some((key, value)) => format!("{key}={}", number(key, value)),
        None => word.to_string(),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn absurd_numbers() {
    for seed in 0..300 {
        let mut random = noise(seed);
        let lines: Vec<String> = RICH.lines().map(|line| with_absurd(line, &mut random)).collect();
        checked(&lines.join("\n"));
    }
}

/// The line with all its times somewhere in the window, in any order.
fn with_times(line: &str, random: &mut impl FnMut(u64) -> u64) -> String {
    const TIMES: [&str; 6] = ["t_ns", "began_ns", "read_ns", "rest_ns", "since_ns", "started_ns"];
    let words = line.split(' ').map(|word| match word.split_once('=') {
        Some((key, _)) if TIMES.contains(&key) => format!("{key}={}", random(2_000_000_000)),
        _ => word.to_string(),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn times_in_any_order() {
    for seed in 0..300 {
        let mut random = noise(seed);
        let lines: Vec<String> = RICH.lines().map(|line| with_times(line, &mut random)).collect();
        checked(&lines.join("\n"));
    }
}

#[test]
fn no_window_at_all() {
    assert_eq!(checked("").verdict, "not-determined");
    assert_eq!(checked("meta length_ns=0").verdict, "not-determined");
    checked(&RICH.replace("length_ns=2e9", "length_ns=0"));
    checked(&RICH.replace("wall_ns=1e9", "wall_ns=0"));
}
