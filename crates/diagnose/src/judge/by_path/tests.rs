// SPDX-License-Identifier: Apache-2.0
//! Requests written as text.

use recording::text::parse;

use crate::diagnose;

/// `number` requests, each read by thread 1 and answered by it so many ms after it came; it sleeps for so long of that.
fn requests(number: u32, length: u32, asleep: u32) -> String {
    let mut text = "meta host.arch=x86_64 length_ns=10e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
        process pid=1 listen=[\"tcp 0.0.0.0:80\"]
        thread t_ns=10e9 pid=1 tid=1 comm=worker wall_ns=10e9 cpu_ns=5e8 blocked_ns=95e8
        burst t_ns=10e9 length_ns=10e9
        frame id=1 symbol=hrtimer_wakeup module=kernel kind=kernel
        stack id=1 frames=[1]\n"
        .to_string();
    for at in (0..number).map(|nth| 10 + nth * (length + 5)) {
        let (end, woken) = (at + length, at + asleep);
        text += &format!(
            "request t_ns={end}e6 role=accepted port=80 pid=1 began_ns={at}e6 began_tid=1 read_ns={at}e6 ended_tid=1
             wakeup t_ns={woken}e6 pid=1 tid=1 comm=worker wait_ns={asleep}e6 blocked_ns={asleep}e6 since_ns={at}e6 waits=1 syscall=35 context=interrupt waker_stack=1\n"
        );
    }
    text + &format!(
        "exchange role=accepted port=80 stage=response count={number} sum_ns={}e6 length_ns=[{length}000000] counts=[{number}]",
        number * length
    )
}

/// One thread reads requests, and another one sleeps 10 ms for each of them: each waits for four others.
#[test]
fn requests_that_stand_behind_others_for_which_a_thread_sleeps() {
    let mut text = requests(0, 50, 0);
    text += "\nthread t_ns=10e9 pid=1 tid=2 comm=pool wall_ns=10e9 cpu_ns=5e8 blocked_ns=95e8\n";
    for end in (0..90).map(|nth| 100 + nth * 10) {
        let (at, woken) = (end - 50, end - 1);
        text += &format!(
            "request t_ns={end}e6 role=accepted port=80 pid=1 began_ns={at}e6 began_tid=1 read_ns={at}e6 ended_tid=2
             wakeup t_ns={woken}e6 pid=1 tid=2 comm=pool wait_ns=8e6 blocked_ns=8e6 since_ns={}e6 waits=1 syscall=35 context=interrupt waker_stack=1\n",
            end - 9
        );
    }
    text += "exchange role=accepted port=80 stage=response count=90 sum_ns=45e8 length_ns=[50000000] counts=[90]
        exchange_window t_ns=1e9 length_ns=1e9";
    let found = diagnose(&parse(&text).unwrap());
    assert_eq!(found.verdict, "sleep-in-path", "{found:?}");
    assert!(found.findings[0].summary.contains("before their turn"), "{}", found.findings[0].summary);
    // What they wait for is another's answer: more threads would take them sooner.
    let by_store = "syscall=0 fd_kind=pipe context=thread waker_pid=9 waker_tid=9 waker_comm=store";
    let mut pipe = text.replace("syscall=35 context=interrupt waker_stack=1", by_store);
    for woken in (0..90).map(|nth| 99 + nth * 10) {
        pipe += &format!(
            "\nwakeup t_ns={}e6 pid=9 tid=9 comm=store wait_ns=75e5 blocked_ns=75e5 since_ns={}e6 waits=1 syscall=35 context=interrupt waker_stack=1",
            f64::from(woken) - 0.1,
            woken - 8
        );
    }
    let found = diagnose(&parse(&pipe).unwrap());
    assert_eq!(found.verdict, "pool-exhausted", "{:#?} {:#?}", found.ruled_out, found.requests);
    assert!(found.headline.contains("the one thread that takes them has another in hand"), "{}", found.headline);
}

fn verdict(number: u32, length: u32, asleep: u32) -> String {
    diagnose(&parse(&requests(number, length, asleep)).unwrap()).verdict
}

#[test]
fn requests_that_wait_for_a_sleep() {
    let found = diagnose(&parse(&requests(60, 25, 20)).unwrap());
    assert_eq!(found.verdict, "sleep-in-path", "{found:?}");
    assert!(found.headline.contains("80 % of their response time (20 ms of 25 ms)"), "{}", found.headline);
    assert!(!found.ruled_out.iter().any(|ruled| ruled.cause == "sleep-in-path"));
}

/// A thread that never waits for a client, and sleeps most of its active time, shortly for each request.
#[test]
fn short_sleeps_for_each_request_of_a_full_pool() {
    let found = diagnose(&parse(&requests(400, 4, 3)).unwrap());
    assert_eq!(found.verdict, "sleep-in-path", "{found:?}");
    assert!(found.headline.contains("in threads that serve clients (worker)"), "{}", found.headline);
}

/// A thread that its runtime keeps for work sleeps until there is some, and answers then: what held the request before is not seen.
#[test]
fn a_worker_without_work_is_no_sleep() {
    let parked = |function: &str| {
        let mut text = requests(60, 25, 20);
        text += &format!("\nframe id=2 symbol={function} module=svc kind=native\nstack id=2 frames=[2]");
        for at in (0..60).map(|nth| 10 + nth * 30) {
            text += &format!("\nwait_stack t_ns={at}e6 pid=1 tid=1 comm=worker syscall=35 stack=2");
        }
        verdict_of(&text)
    };
    assert_eq!(parked("main.throttle"), "sleep-in-path");
    assert_eq!(parked("runtime.sysmon"), "not-determined");
}

/// select(2) without a file is a sleep; with one it waits for that as well.
#[test]
fn a_poll_of_nothing_is_a_sleep() {
    let selects = |files: u32| {
        let call = format!("syscall=270 args=[{files},0,0,0]");
        verdict_of(&requests(60, 25, 20).replace("syscall=35", &call))
    };
    assert_eq!((selects(0).as_str(), selects(9).as_str()), ("sleep-in-path", "not-determined"));
}

#[test]
fn requests_that_wait_for_a_disk() {
    let file = "syscall=74 fd_kind=file state=2 io_wait=true context=interrupt";
    let text = requests(60, 25, 20).replace("syscall=35 context=interrupt", file);
    let text = text.replace("hrtimer_wakeup", "blk_update_request");
    let found = diagnose(&parse(&text).unwrap());
    assert_eq!(found.verdict, "disk-wait", "{:?}", found.requests);
    assert!(found.headline.contains("wait for a disk for 80 % of their response time"), "{}", found.headline);
}

/// Threads 1 and 2 take turns, and each waits for the other in mmap, with this function of the kernel on its stack.
fn before_a_lock(function: &str) -> String {
    let mut text = "meta host.arch=x86_64 length_ns=10e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
        process pid=1 listen=[\"tcp 0.0.0.0:80\"]
        burst t_ns=10e9 length_ns=10e9
        stack id=1 frames=[1]\n"
        .to_string();
    text += &format!("frame id=1 symbol={function} module=kernel kind=kernel\n");
    for tid in [1, 2] {
        text += &format!("thread t_ns=10e9 pid=1 tid={tid} comm=worker wall_ns=10e9 cpu_ns=5e8 blocked_ns=95e8\n");
    }
    for (nth, at) in (0..60).map(|nth| (nth, 10 + nth * 60)) {
        let (tid, other) = (1 + nth % 2, 2 - nth % 2);
        let (end, woken) = (at + 50, at + 45);
        text += &format!(
            "request t_ns={end}e6 role=accepted port=80 pid=1 began_ns={at}e6 began_tid={tid} read_ns={at}e6 ended_tid={tid}
             wakeup t_ns={woken}e6 pid=1 tid={tid} comm=worker wait_ns=45e6 blocked_ns=45e6 since_ns={at}e6 waits=1 syscall=9 stack=1 context=thread waker_pid=1 waker_tid={other} waker_comm=worker\n"
        );
    }
    text + "exchange role=accepted port=80 stage=response count=60 sum_ns=3e9 length_ns=[50000000] counts=[60]"
}

#[test]
fn a_lock_of_the_kernel_is_none_of_the_program_s_own() {
    let accused = |function: &str| {
        let found = diagnose(&parse(&before_a_lock(function)).unwrap()).findings;
        found.iter().any(|finding| finding.cause == "user-lock-contention")
    };
    assert!(accused("some_wait"), "requests that wait for each other");
    assert!(!accused("rwsem_down_write_slowpath"));
}

/// A thread beside it takes a request now and then, and sleeps most of the time.
#[test]
fn a_sleep_that_requests_do_not_wait_for_is_ruled_out() {
    let mut text = requests(60, 25, 0);
    for at in (0..90).map(|nth| 50 + nth * 100) {
        text += &format!(
            "\nwakeup t_ns={at}e6 pid=1 tid=2 comm=janitor wait_ns=1e6 blocked_ns=1e6 waits=1 syscall=0 family=2 local_port=80 remote_port=9 context=interrupt
             wakeup t_ns={}e6 pid=1 tid=2 comm=janitor wait_ns=90e6 blocked_ns=90e6 waits=1 syscall=35 context=interrupt waker_stack=1",
            at + 95
        );
    }
    let verdict = diagnose(&parse(&text).unwrap());
    let ruled = verdict.ruled_out.iter().find(|ruled| ruled.cause == "sleep-in-path");
    let why = ruled.map_or("", |ruled| ruled.why.as_str());
    assert!(why.contains("followed from end to end spent 0 % of their time on it"), "{why:?} {}", verdict.headline);
}

/// Requests of 82 ms one after the other that ask a host for `asked` ms of it, among quick ones that are in nobody's way. Its
/// loop turns once more before it answers, when the connection is closed.
fn asking(asked: u32, by_sockets: u32) -> String {
    let mut text = "meta host.arch=x86_64 length_ns=10e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
        process pid=1 listen=[\"tcp 0.0.0.0:80\"]
        thread t_ns=10e9 pid=1 tid=1 comm=loop wall_ns=10e9 cpu_ns=9e8 blocked_ns=91e8
        burst t_ns=10e9 length_ns=10e9
        exchange_window t_ns=10e9 length_ns=10e9
        frame id=1 symbol=net_rx_action module=kernel kind=kernel
        stack id=1 frames=[1]\n"
        .to_string();
    for at in (0..100).map(|nth| 10 + nth * 90) {
        let (until, end) = (at + 1 + asked, at + 82);
        text += &format!(
            "request t_ns={end}e6 role=accepted port=80 pid=1 began_ns={at}e6 began_tid=1 read_ns={at}e6 ended_tid=1
             request t_ns={until}e6 role=made peer=10.0.0.9:5432 pid=1 began_ns={}e6 began_tid=1 read_ns={until}e6 ended_tid=1
             wakeup t_ns={until}e6 pid=1 tid=1 comm=loop wait_ns=5e6 blocked_ns=5e6 since_ns={at}e6 waits=1 syscall=232 family=2 local_port=4000 remote_port=5432 peer=10.0.0.9 context=interrupt waker_stack=1
             wakeup t_ns={}e5 pid=1 tid=1 comm=loop wait_ns=3e5 blocked_ns=3e5 since_ns={until}e6 waits=1 syscall=232 family=2 local_port=4000 remote_port=5432 peer=10.0.0.9 context=interrupt waker_stack=1\n",
            at + 1,
            until * 10 + 4
        );
        for quick in (0..4).map(|nth| at + 10 + nth * 15) {
            text += &format!(
                "request t_ns={quick}e6 role=accepted port=80 pid=1 began_ns={}e5 began_tid=1 read_ns={}e5 ended_tid=1\n",
                quick * 10 - 2,
                quick * 10 - 1
            );
        }
    }
    text + &format!(
        "exchange role=accepted port=80 stage=response count=500 sum_ns=828e7 length_ns=[200000,82000000] counts=[400,100]
         exchange role=made peer=10.0.0.9:5432 stage=response count={by_sockets} sum_ns={}e6 length_ns=[1] counts=[{by_sockets}] began={by_sockets}",
        by_sockets * asked
    )
}

#[test]
fn a_loop_that_serves_others_while_requests_wait_for_a_peer() {
    let found = diagnose(&parse(&asking(80, 100)).unwrap());
    assert_eq!(found.verdict, "slow-dependency", "{} {:?}", found.headline, found.ruled_out);
    assert!(found.headline.contains("slow requests wait for 10.0.0.9:5432 for 9"), "{}", found.headline);
    assert_eq!(found.findings[0].subject.socket.as_deref(), Some("10.0.0.9:5432"));
    assert!(!found.ruled_out.iter().any(|ruled| ruled.cause == "slow-dependency"));
}

#[test]
fn a_peer_that_is_a_part_of_their_time_or_that_the_sockets_know_less_of() {
    let verdict = |text: String| diagnose(&parse(&text).unwrap()).verdict;
    assert_ne!(verdict(asking(20, 100)), "slow-dependency", "its answers come long before those of the target");
    assert_ne!(verdict(asking(80, 20)), "slow-dependency", "it was asked for less");
}

/// Among quick requests some of 60 ms, whose thread waits for a dispatcher, and that one for this thread of the process.
fn held_by(thread: &str) -> String {
    let mut text = requests(0, 60, 0);
    for at in (0..60).map(|nth| 10 + nth * 70) {
        let (end, woken, before) = (at + 60, at + 58, at + 57);
        text += &format!(
            "request t_ns={end}e6 role=accepted port=80 pid=1 began_ns={at}e6 began_tid=1 read_ns={woken}e6 ended_tid=1
             wakeup t_ns={woken}e6 pid=1 tid=1 comm=worker wait_ns=58e6 blocked_ns=58e6 since_ns={at}e6 waits=1 syscall=202 context=thread waker_pid=1 waker_tid=2 waker_comm=dispatcher
             wakeup t_ns={before}e6 pid=1 tid=2 comm=dispatcher wait_ns=56e6 blocked_ns=56e6 since_ns={at}e6 waits=1 syscall=202 context=thread waker_pid=1 waker_tid=3 waker_comm=\"{thread}\"
             wakeup t_ns={at}e6 pid=1 tid=3 comm=\"{thread}\" wait_ns=9e6 blocked_ns=9e6 waits=1 syscall=202 context=thread waker_pid=1 waker_tid=1\n"
        );
    }
    text + "exchange role=accepted port=80 stage=response count=60 sum_ns=36e8 length_ns=[60000000] counts=[60]"
}

#[test]
fn requests_that_stand_still_for_a_collector() {
    let found = diagnose(&parse(&held_by("VM Thread")).unwrap());
    assert_eq!(found.verdict, "runtime-pause", "{} {:?}", found.headline, found.ruled_out);
    assert!(found.headline.contains("for 9"), "{}", found.headline);
    let path = &found.requests[0].path[0].what;
    assert!(path.contains("in futex < VM Thread/1: code on a CPU"), "{path}");
    assert_ne!(verdict_of(&held_by("planner")), "runtime-pause");
}

fn verdict_of(text: &str) -> String {
    diagnose(&parse(text).unwrap()).verdict
}

/// A loop that starts a program for each request and answers when that has slept; meanwhile it turns for a timer of its own.
fn starting(instances: u32) -> String {
    let mut text = format!("{}\nprocess pid=0 instances={instances} comm=convert\n", requests(0, 82, 0));
    for (nth, at) in (0..60).map(|nth| (nth, 10 + nth * 90)) {
        let (turn, woken, end, child) = (at + 30, at + 80, at + 82, 100 + nth);
        text += &format!(
            "request t_ns={end}e6 role=accepted port=80 pid=1 began_ns={at}e6 began_tid=1 read_ns={at}e6 ended_tid=1
             wakeup t_ns={turn}e6 pid=1 tid=1 comm=loop wait_ns=29e6 blocked_ns=29e6 since_ns={at}e6 waits=1 syscall=232 context=interrupt waker_stack=1
             wakeup t_ns={woken}e6 pid=1 tid=1 comm=loop wait_ns=49e6 blocked_ns=49e6 since_ns={turn}e6 waits=1 syscall=232 fd_kind=pipe context=thread waker_pid={child} waker_tid={child} waker_comm=convert
             wakeup t_ns={woken}e6 since_ns={at}e6 pid={child} tid={child} comm=convert wait_ns=78e6 blocked_ns=78e6 syscall=35 context=interrupt waker_stack=1\n"
        );
    }
    text + "exchange role=accepted port=80 stage=response count=60 sum_ns=492e7 length_ns=[82000000] counts=[60]"
}

#[test]
fn a_program_that_is_started_for_each_request() {
    let found = diagnose(&parse(&starting(60)).unwrap());
    assert_eq!(found.verdict, "slow-dependency", "{} {:?}", found.headline, found.ruled_out);
    assert!(found.headline.contains("wait for convert/* for"), "{}", found.headline);
    assert_eq!(found.findings[0].explains.of, "response time of requests");
}

#[test]
fn too_few_too_short_or_too_little_of_it() {
    assert_ne!(verdict(15, 25, 20), "sleep-in-path", "too few requests");
    assert_ne!(verdict(60, 8, 7), "sleep-in-path", "nobody feels it");
    assert_ne!(verdict(60, 25, 10), "sleep-in-path", "a part of their time");
}

/// Clients of a service behind TLS wait for its answers to their hellos, and hardly for those to what they ask.
#[test]
fn handshakes_that_wait_for_a_thread_that_sleeps() {
    let text = requests(60, 80, 78).replace("request t_ns", "request handshake=true t_ns");
    let text = text.replace("stage=response", "stage=handshake")
        + "\nexchange role=accepted port=80 stage=response count=60 sum_ns=6e6 length_ns=[100000] counts=[60] began=60
           exchange role=accepted port=80 stage=first_read count=60 sum_ns=60 length_ns=[1] counts=[60]
           exchange_window t_ns=10e9 length_ns=10e9";
    let found = diagnose(&parse(&text).unwrap());
    assert_eq!(found.verdict, "sleep-in-path", "{found:#?}");
    let told =
        "TLS handshakes wait for a thread of the service that sleeps for 98 % of their time from hello to answer";
    assert!(found.headline.starts_with(told), "{}", found.headline);
    assert_eq!(found.findings[0].explains.of, "time to answer hellos of TLS");
    let path = &found.requests[0].handshakes.as_ref().unwrap().path;
    assert!((path[0].seconds - 0.078).abs() < 1e-4, "{path:?}");
    assert!(found.requests[0].path.is_empty(), "a hello is no request");
}

const CIRCLE: &str = "meta host.arch=x86_64 length_ns=10e9 target.pids=[1,2] target.listen=[\"tcp 0.0.0.0:80\"] target.ports=[5432]
    process pid=1 listen=[\"tcp 0.0.0.0:80\"]
    process pid=2 listen=[\"tcp 0.0.0.0:80\"]
    thread t_ns=10e9 pid=1 tid=1 comm=till wall_ns=10e9 cpu_ns=1e8 blocked_ns=99e8
    thread t_ns=10e9 pid=2 tid=2 comm=till wall_ns=10e9 cpu_ns=1e8 blocked_ns=99e8
    burst t_ns=10e9 length_ns=10e9
    exchange_window t_ns=10e9 length_ns=10e9
    connection t_ns=10e9 role=accepted port=80 looks=100 open=400 unanswered=190 late=170 late_ns=2e9
    exchange role=accepted port=80 stage=response count=180 sum_ns=7272e6 length_ns=[40400000] counts=[180]
    exchange role=made peer=127.0.0.1:5432 stage=response count=270 sum_ns=3636e6 length_ns=[100000,40200000] counts=[180,90]
    frame id=1 symbol=hrtimer_wakeup module=kernel kind=kernel
    frame id=2 symbol=__send_signal_locked module=kernel kind=kernel
    frame id=3 symbol=net_rx_action module=kernel kind=kernel
    stack id=1 frames=[1]
    stack id=2 frames=[2]
    stack id=3 frames=[3]\n";

/// The row of a thread of the service or of the database that was woken by a write over a connection between the two.
fn written(from: &str, (tid, own): (u32, u32), peer: u32) -> String {
    format!(
        "fd_kind=socket family=2 local_port={peer} remote_port={own} context=thread waker_pid={tid} waker_tid={tid} waker_comm={from} \
         waker_syscall=44 waker_family=2 waker_local_port={own} waker_remote_port={peer}"
    )
}

/// Two workers of a service, each with a backend of a database of its own. One sleeps for 40 ms in each transaction; the other's backend
/// stands before its row meanwhile. `keeper` ends the waits of the first backend for its client.
fn circle(keeper: &str) -> String {
    let asks = |backend: u32, by: u32, port: u32| {
        format!(
            "pid={backend} tid={backend} comm=db asked=1 syscall=232 args=[4,0,1,0] {}",
            written("till", (by, port), 5432)
        )
    };
    let answers = |to: u32, by: u32, port: u32| {
        format!("pid={to} tid={to} comm=till syscall=45 peer=127.0.0.1 {}", written("db", (by, 5432), port))
    };
    let sleeps = "pid=1 tid=1 comm=till syscall=230 context=interrupt waker_stack=1".to_string();
    let keeps = format!(
        "pid=11 tid=11 comm=db asked=1 syscall=232 args=[4,0,1,0] fd_kind=socket family=2 local_port=5432 remote_port=4001 {keeper}"
    );
    let signals = "pid=12 tid=12 comm=db syscall=232 args=[9,0,1,0] fd_kind=anon context=thread waker_pid=11 waker_tid=11 waker_comm=db \
                   waker_syscall=62 waker_stack=2"
        .to_string();
    // Each asks; the first one gets the row.
    let waits = [
        (1.0, 80.0, asks(11, 1, 4001)),
        (1.1, 0.1, answers(1, 11, 4001)),
        (1.2, 60.0, asks(12, 2, 4002)),
        (41.1, 40.0, sleeps),
        (41.2, 40.1, keeps),
        (41.3, 40.1, signals),
        (41.5, 40.2, answers(2, 12, 4002)),
    ];
    let mut text = CIRCLE.to_string();
    for at in (0..90u32).map(|nth| 100.0 + f64::from(nth) * 100.0) {
        for (after, wait, rest) in &waits {
            let (end, since) = (at + after, at + after - wait);
            text += &format!(
                "wakeup t_ns={end}e6 since_ns={since}e6 wait_ns={wait}e6 blocked_ns={wait}e6 waits=1 cpu_ns=1e4 {rest}\n"
            );
        }
        for (tid, began, ended) in [(1, at + 0.9, at + 41.4), (2, at + 1.1, at + 41.6)] {
            text += &format!(
                "request t_ns={ended}e6 role=accepted port=80 peer=127.0.0.1:3{tid} pid={tid} began_ns={began}e6 began_tid={tid} read_ns={began}e6 ended_tid={tid}\n"
            );
        }
    }
    text
}

#[test]
fn a_database_that_waits_for_the_service_itself() {
    let own = "context=thread waker_pid=1 waker_tid=1 waker_comm=till waker_syscall=44 waker_family=2 waker_local_port=4001 waker_remote_port=5432";
    let found = diagnose(&parse(&circle(own)).unwrap());
    assert_eq!(found.verdict, "sleep-in-path", "{found:#?}");
    assert!(found.advice.starts_with("do not sleep while db"), "{}", found.advice);
    assert_eq!(found.findings[0].subject.syscall.as_deref(), Some("clock_nanosleep"));
    assert!(found.findings.iter().all(|finding| finding.cause != "slow-dependency"), "{found:#?}");
}

/// Nor does it know more of a client on another host.
#[test]
fn a_database_that_waits_for_another_client() {
    let found = diagnose(&parse(&circle("context=interrupt waker_stack=3")).unwrap());
    assert!(found.findings.iter().all(|finding| finding.cause != "slow-dependency"), "{found:#?}");
}
