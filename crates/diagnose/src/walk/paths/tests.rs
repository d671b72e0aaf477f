// SPDX-License-Identifier: Apache-2.0
//! Paths over requests written as text, and over random ones.

use std::fmt::Write as _;

use recording::text::parse;

use super::{Group, RequestPaths, Step};
use crate::case::Case;

const HEAD: &str = "meta host.arch=x86_64 length_ns=1e9 target.pids=[1]
    process pid=1 listen=[\"tcp 0.0.0.0:80\"]
    burst t_ns=1e9 length_ns=1e9
    frame id=1 symbol=hrtimer_wakeup module=kernel kind=kernel
    frame id=2 symbol=net_rx_action module=kernel kind=kernel
    stack id=1 frames=[1]
    stack id=2 frames=[2]\n";

fn all(rows: &str) -> Group {
    let recording = parse(&format!("{HEAD}{rows}")).unwrap();
    Case::new(&recording).fact::<RequestPaths>().unwrap().main().unwrap().all.clone()
}

/// Words and ms of what took longest.
pub(in crate::walk) fn told(rows: &str) -> Vec<(String, f64)> {
    let group = all(rows);
    let sum: f64 = group.parts.iter().map(|part| part.ns).sum();
    assert!((sum - group.ns).abs() < 1.0, "{sum} is not {}", group.ns);
    group.parts.iter().map(|part| (part.words(), (part.ns / 1e4).round() / 100.0)).collect()
}

/// A request that thread 1 reads at 101 ms and `by` answers at 150 ms.
pub(in crate::walk) fn request(by: u32) -> String {
    format!("request t_ns=150e6 role=accepted port=80 pid=1 began_ns=100e6 began_tid=1 read_ns=101e6 ended_tid={by}\n")
}

/// A wait of a thread of the target that ended because of a packet, a timer, or another thread.
pub(in crate::walk) fn wait(tid: u32, at_ms: f64, ms: f64, rest: &str) -> String {
    let (at, ns) = (at_ms * 1e6, ms * 1e6);
    format!(
        "wakeup t_ns={at:.0} pid=1 tid={tid} comm=t{tid} wait_ns={ns:.0} blocked_ns={ns:.0} since_ns={:.0} waits=1 cpu_ns=1e5 {rest}\n",
        (at - ns - 100_000.0).max(0.0)
    )
}

pub(in crate::walk) const PACKET: &str =
    "syscall=0 family=2 local_port=80 remote_port=5000 context=interrupt waker_stack=2";
pub(in crate::walk) const TIMER: &str = "syscall=35 context=interrupt waker_stack=1";

#[test]
fn a_thread_that_sleeps_with_the_request_in_hand() {
    let told = told(&format!("{}{}{}", request(1), wait(1, 100.0, 50.0, PACKET), wait(1, 149.0, 40.0, TIMER)));
    assert_eq!(told[0], ("t1/1 in nanosleep".to_string(), 40.0));
    assert_eq!(told[1], ("t1/1 on a CPU".to_string(), 9.0));
}

/// Each connection has a process of its own, which ends with it.
#[test]
fn processes_of_one_program_that_come_and_go_are_one() {
    let one = |pid: u32, at: u32| {
        format!(
            "request t_ns={}e6 role=accepted port=80 pid={pid} began_ns={at}e6 began_tid={pid} read_ns={at}e6 ended_tid={pid}
             wakeup t_ns={}e6 pid={pid} tid={pid} comm=kid wait_ns=40e6 blocked_ns=40e6 since_ns={at}e6 waits=1 {TIMER}\n",
            at + 50,
            at + 49
        )
    };
    let told = told(&format!("process pid=0 comm=kid instances=9\n{}{}", one(5, 100), one(6, 200)));
    assert_eq!(told[0], ("kid/* in nanosleep".to_string(), 80.0), "{told:?}");
    assert!(told.iter().all(|part| part.0.starts_with("kid/*")), "{told:?}");
}

/// Thread 2 answers another one at 110 ms, sleeps for it before that, and takes this one from a queue.
#[test]
fn a_worker_that_comes_to_it_after_another_one() {
    let other = "request t_ns=110e6 role=accepted port=80 pid=1 began_ns=60e6 began_tid=1 read_ns=61e6 ended_tid=2\n";
    let [own, others] = [wait(2, 149.0, 38.0, TIMER), wait(2, 109.5, 30.0, TIMER)];
    let told = told(&format!("{}{other}{}{others}{own}", request(2), wait(1, 100.0, 50.0, PACKET)));
    let asleep = |words: &str| told.iter().find(|part| part.0 == words).map(|part| part.1);
    // The other one of 50 ms began with 18 ms before its turn to sleep, from 61 to 79.
    assert_eq!(asleep("t2/1 in nanosleep"), Some(38.0 + 30.0), "{told:?}");
    assert_eq!(asleep("before its turn: t2/1 in nanosleep"), Some(8.5), "{told:?}");
}

/// Thread 2 writes what thread 9 and others have made of requests, and has none of them in hand before; or it sleeps, and answers all
/// that have come.
#[test]
fn a_writer_of_answers_and_one_that_answers_several_at_once() {
    let other = |ms: u32| {
        format!("request t_ns={ms}e6 role=accepted port=80 pid=1 began_ns=60e6 began_tid=1 read_ns=61e6 ended_tid=2\n")
    };
    let made = "syscall=202 args=[7,128,9,0] context=thread waker_pid=1 waker_tid=9 waker_comm=t9 waker_syscall=202";
    let [own, others] = [wait(2, 149.0, 38.0, made), wait(2, 109.5, 30.0, made)];
    let makes = wait(9, 148.0, 36.0, TIMER) + &wait(9, 109.0, 28.0, TIMER);
    let read = wait(1, 100.0, 50.0, PACKET);
    let rows = [request(2), other(110), read.clone(), makes, others, own].concat();
    let batch = [request(2), other(146), read, wait(2, 145.0, 40.0, TIMER)].concat();
    for (rows, slept) in [(rows, 36.0), (batch, 40.0)] {
        let told = told(&rows);
        let before: f64 = told.iter().filter(|part| part.0.starts_with("before its turn: t2")).map(|part| part.1).sum();
        assert!(before <= 2.0, "{told:?}");
        assert!(told.iter().any(|(words, ms)| words.contains("nanosleep") && *ms >= slept), "{told:?}");
    }
}

#[test]
fn one_reads_it_another_sleeps_and_answers() {
    let handed = "syscall=202 args=[7,128,9,0] context=thread waker_pid=1 waker_tid=1 waker_comm=t1 waker_syscall=202";
    let rows = [request(2), wait(1, 100.0, 50.0, PACKET), wait(2, 105.0, 90.0, handed), wait(2, 145.0, 38.0, TIMER)];
    let told = told(&rows.concat());
    assert_eq!(told[0].1, 38.0, "{told:?}");
    assert!(told[0].0.starts_with("t2/1 in nanosleep"), "{told:?}");
    let ran: f64 = told.iter().filter(|(words, _)| words.contains("on a CPU")).map(|(_, ms)| ms).sum();
    assert!((ran - 12.0).abs() < 0.1, "{told:?}");
}

#[test]
fn a_loop_that_asks_somebody_else() {
    let made =
        "request t_ns=140e6 role=made peer=10.0.0.9:5432 pid=1 began_ns=110e6 began_tid=1 read_ns=141e6 ended_tid=1\n";
    let poll =
        |peer| format!("syscall=232 family=2 local_port=4000 remote_port={peer} context=interrupt waker_stack=2");
    // Others ask meanwhile: that the loop waits for them is no wait of this request.
    let rows = [request(1), made.to_string(), wait(1, 125.0, 14.0, PACKET), wait(1, 140.9, 15.0, &poll(5432))];
    let told = told(&rows.concat());
    assert_eq!((told[0].1, told[0].0.contains("10.0.0.9:5432")), (30.0, true), "{told:?}");
}

/// A long poll that is passed on: whoever was asked has nothing to say until the same loop asks it something else, for another client.
/// That its housekeeping timer ticks meanwhile is nothing that was waited for. Where the timer comes last, it is; and where somebody
/// asks something less than a ms before, which is as near as calls tell it.
#[test]
fn a_loop_that_passes_on_what_others_say() {
    let made = "request t_ns=148e6 role=made peer=127.0.0.1:5432 pid=1 began_ns=102e6 began_tid=1 read_ns=148.1e6 ended_tid=1\n";
    let answered = "syscall=232 family=2 peer=127.0.0.1 local_port=4000 remote_port=5432 context=thread waker_pid=9 waker_tid=9 \
                    waker_comm=chat waker_family=2 waker_local_port=5432 waker_remote_port=4000";
    let tick = "syscall=232 context=interrupt waker_stack=1";
    let asked = "syscall=232 context=thread waker_pid=1 waker_tid=1 waker_family=2 waker_local_port=4001 waker_remote_port=5432";
    let of_peer = |at, ms, rest: &str| wait(9, at, ms, rest).replace("pid=1 tid=9 comm=t9", "pid=9 tid=9 comm=chat");
    let within = |row: &str, ms: u32| row.replace("syscall=232", &format!("syscall=232 args=[5,1,64,{ms}]"));
    let with = |last: &str| {
        let answered = within(answered, 46); // the loop's own timer does not take the answer away from whoever gave it
        let rows = [request(1), made.into(), wait(1, 101.0, 50.0, PACKET), wait(1, 148.0, 45.5, &answered)];
        let peer = [of_peer(102.4, 40.0, asked), of_peer(125.0, 22.0, tick), of_peer(147.8, 22.5, last)];
        told(&[rows.concat(), peer.concat()].concat())
    };
    let passed_on = with(asked);
    let of = |told: &[(String, f64)], words: &str| -> f64 {
        told.iter().filter(|(what, _)| what.contains(words)).map(|(_, ms)| ms).sum()
    };
    assert!(of(&passed_on, "< chat/9: nothing to do until it is asked something else") > 22.0, "{passed_on:?}");
    assert!(of(&passed_on, "its own timer") < 23.0, "{passed_on:?}");
    assert!(of(&with(tick), "its own timer") > 40.0, "{:?}", with(tick));
    let is_due = |ms| of(&with(&within(asked, ms)), "its own timer") > 40.0;
    assert!(is_due(23) && !is_due(25) && !is_due(u32::MAX), "{:?}", with(&within(asked, 23)));
}

/// The rest of what was asked comes at 140 ms.
#[test]
fn a_client_that_had_not_sent_all_of_it() {
    let rest = request(1).replace("ended_tid", "rest_ns=140e6 ended_tid");
    let poll = PACKET.replace("syscall=0", "syscall=232");
    let asked = |apart: u32| {
        let exchanges = format!(
            "exchange role=accepted port=80 stage=response count=9 more=9 sum_ns=45e7 length_ns=[50000000] counts=[9] apart={apart}
             exchange role=accepted port=80 stage=rest count=9 sum_ns=36e7 length_ns=[40000000] counts=[9]\n"
        );
        told(&format!("{exchanges}{rest}{}{}", wait(1, 100.5, 50.0, &poll), wait(1, 140.0, 38.9, &poll)))
    };
    assert_eq!(asked(0)[0], ("t1/1: until the client had sent the rest of it".to_string(), 39.0), "{:?}", asked(0));
    // Several questions on one connection: another one came then.
    assert!(asked(9)[0].0.starts_with("inside t1/1"), "{:?}", asked(9));
}

#[test]
fn a_sleep_that_begins_before_the_answer_was_read_by_counters_alone() {
    let made =
        "request t_ns=110e6 role=made peer=10.0.0.9:5432 pid=1 began_ns=102e6 began_tid=1 read_ns=110e6 ended_tid=1\n";
    let read = "syscall=0 family=2 local_port=4000 remote_port=5432 peer=10.0.0.9 context=interrupt waker_stack=2";
    let rows = [request(1), made.to_string(), wait(1, 109.9, 5.0, read), wait(1, 149.0, 39.05, TIMER)];
    let told = told(&rows.concat());
    assert_eq!((told[0].0.as_str(), told[0].1), ("t1/1 in nanosleep", 39.0));
    assert_eq!((told[1].0.contains("10.0.0.9:5432"), told[1].1), (true, 8.0), "{told:?}");
}

#[test]
fn an_answer_that_came_while_the_loop_computed_for_others() {
    let made =
        "request t_ns=130e6 role=made peer=10.0.0.9:5432 pid=1 began_ns=110e6 began_tid=1 read_ns=149e6 ended_tid=1\n";
    // What ended its only wait meanwhile was a client.
    let told = told(&format!("{}{made}{}", request(1), wait(1, 120.0, 5.0, PACKET)));
    assert_eq!(told[0].1, 20.0, "{told:?}");
    assert_eq!(told[0].0, "t1/1 in a question to 10.0.0.9:5432 < not recorded any further");
    assert!(told[1].0.starts_with("before its turn: t1/1") && told[1].1 == 19.0, "{told:?}");
}

#[test]
fn who_was_awake_when_it_came_has_answered() {
    let made = |began: u32, came: u32, read: u32| {
        format!(
            "request t_ns={came}e6 role=made peer=10.0.0.9:5432 pid=1 began_ns={began}e6 began_tid=1 read_ns={read}e6 ended_tid=1\n"
        )
    };
    let by = |tid: u32| {
        format!(
            "syscall=232 family=2 local_port=4000 remote_port=5432 peer=10.0.0.9 context=thread waker_pid=9 waker_tid={tid} waker_comm=store waker_syscall=1"
        )
    };
    // Two of the store's threads have answered before; when this answer comes, while the loop computes, one of them sleeps.
    let store =
        |tid: u32, at: f64, ms: f64| wait(tid, at, ms, TIMER).replace("pid=1", "pid=9").replace("comm=t", "comm=s");
    let rows = |asleep: f64| {
        let rows = [
            request(1),
            made(103, 130, 149),
            wait(1, 50.0, 5.0, &by(21)),
            wait(1, 60.0, 5.0, &by(22)),
            wait(1, 120.0, 5.0, PACKET),
            store(21, 129.9, 20.0),
            store(22, 140.0, asleep),
        ];
        rows.concat()
    };
    let one = told(&rows(30.0));
    assert!(
        one.iter().any(|(words, ms)| words.contains("a question to 10.0.0.9:5432 < s21/9") && *ms > 15.0),
        "{one:?}"
    );
    let both = told(&rows(5.0));
    assert!(both[0].0.contains("a question to 10.0.0.9:5432 < not recorded"), "{both:?}");
}

#[test]
fn a_loop_that_never_waits_is_on_a_cpu() {
    let told = told(&format!("{}thread t_ns=1e9 pid=1 tid=1 comm=t1 wall_ns=1e9 cpu_ns=1e9\nwakeup\n", request(1)));
    assert_eq!((told[0].0.as_str(), told[0].1), ("t1/1 on a CPU", 49.0), "{told:?}");
}

#[test]
fn a_loop_whose_requests_stand_before_a_pool_of_one_connection() {
    let made = |began: u32, end: u32| {
        format!(
            "request t_ns={end}e6 role=made peer=10.0.0.9:5432 pid=1 began_ns={began}e6 began_tid=1 read_ns={end}e6 ended_tid=1\n"
        )
    };
    let other =
        "request t_ns=120500e3 role=accepted port=80 pid=1 began_ns=90e6 began_tid=1 read_ns=91e6 ended_tid=1\n";
    let poll = "syscall=232 family=2 local_port=4000 remote_port=5432 peer=10.0.0.9 context=interrupt waker_stack=2";
    // Somebody else's answer came at 120 ms, and with its connection this request's question could go out.
    let rows = [
        request(1),
        other.to_string(),
        made(103, 120),
        made(121, 149),
        wait(1, 119.9, 17.0, poll),
        wait(1, 148.9, 27.0, poll),
    ];
    let group = all(&rows.concat());
    let of = |words: &str| {
        group.parts.iter().filter(|part| part.words().contains(words)).map(|part| part.ns / 1e6).sum::<f64>()
    };
    let parts: Vec<_> = group.parts.iter().map(|part| (part.words(), part.ns)).collect();
    // Of both requests: the first one's question took 17 ms, the second one's 28, before which it stood for 19.
    assert!((of("10.0.0.9:5432") - 45.0).abs() < 0.5 && (of("sees no wait") - 19.0).abs() < 0.5, "{parts:?}");
}

#[test]
fn the_reader_was_asleep_when_it_came() {
    let late = "request t_ns=150e6 role=accepted port=80 pid=1 began_ns=100e6 began_tid=1 read_ns=149e6 ended_tid=1\n";
    let told = told(&format!("{late}{}", wait(1, 148.0, 60.0, TIMER)));
    assert_eq!(told[0], ("before its turn: t1/1 in nanosleep".to_string(), 48.0));
}

#[test]
fn a_timer_of_a_loop_with_several_requests_may_be_for_another() {
    let poll = "syscall=232 context=interrupt waker_stack=1";
    let other = "request t_ns=130e6 role=accepted port=80 pid=1 began_ns=90e6 began_tid=1 read_ns=91e6 ended_tid=1\n";
    let alone = told(&format!("{}{}", request(1), wait(1, 149.0, 40.0, poll)));
    assert!(alone[0].0.contains("t1/1 in epoll_wait (a timer of its loop)") && alone[0].1 == 48.0, "{alone:?}");
    let both = all(&format!("{}{other}{}{}", request(1), wait(1, 129.0, 30.0, poll), wait(1, 149.0, 15.0, poll)));
    assert!(both.parts[0].words().contains("where the kernel sees no wait"), "{:?}", both.parts[0]);
    // It had nothing else to do: its timer is what both waited for.
    let idle = all(&format!("{}{other}{}{}", request(1), wait(1, 129.9, 39.0, poll), wait(1, 149.9, 19.0, poll)));
    assert!(idle.parts[0].words().contains("a timer of its loop"), "{:?}", idle.parts[0]);
}

/// A worker looks for work now and then, and sleeps in between: whoever reads hands it over without waking anybody.
#[test]
fn a_worker_that_sleeps_until_it_looks_again() {
    let told = told(&[request(2), wait(1, 100.0, 50.0, PACKET), wait(2, 149.0, 100.0, TIMER)].concat());
    assert_eq!((told[0].0.as_str(), told[0].1), ("t2/1 in nanosleep", 48.0), "{told:?}");
}

#[test]
fn a_request_that_no_burst_holds_is_left_out() {
    let text =
        format!("{HEAD}wakeup\n{}", request(1)).replace("burst t_ns=1e9 length_ns=1e9", "burst t_ns=1e9 length_ns=8e8");
    let recording = parse(&text).unwrap();
    assert!(Case::new(&recording).fact::<RequestPaths>().unwrap().main().is_none());
}

/// Anything in any order, by chance.
fn random(seed: u64) -> String {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut text = HEAD.to_string();
    for _ in 0..rng.u32(0..40) {
        let thread = format!(
            "syscall=202 args=[7,128,2,0] context=thread waker_pid=1 waker_tid={} waker_syscall=202",
            rng.u32(1..5)
        );
        let why = [PACKET, TIMER, &thread, "syscall=232 context=interrupt waker_stack=1"][rng.usize(0..4)];
        text += &wait(rng.u32(1..5), 1.0 + rng.f64() * 200.0, 0.1 + rng.f64() * 60.0, why);
    }
    for _ in 0..rng.u32(1..20) {
        let (role, port) = if rng.bool() { ("accepted", 80) } else { ("made", 0) };
        let began = rng.u64(1..150);
        let read = began + rng.u64(0..20);
        let (end, from, by) = (read + rng.u64(0..60), rng.u32(1..5), rng.u32(1..5));
        writeln!(
            text,
            "request t_ns={end}e6 role={role} port={port} peer=10.0.0.9:1 pid=1 began_ns={began}e6 began_tid={from} read_ns={read}e6 ended_tid={by}"
        )
        .unwrap();
    }
    text
}

#[test]
fn parts_add_up_whatever_happened() {
    for seed in 0..300 {
        let recording = parse(&random(seed)).unwrap();
        let case = Case::new(&recording);
        let Ok(paths) = case.fact::<RequestPaths>() else { continue };
        for group in paths.ports.iter().flat_map(|p| [&p.all, &p.half, &p.slow, &p.tail, &p.worst]) {
            let sum: f64 = group.parts.iter().map(|part| part.ns).sum();
            assert!((sum - group.ns).abs() <= group.ns * 1e-6 + 1.0, "seed {seed}: {sum} {}", group.ns);
        }
        for one in paths.ports.iter().flat_map(|p| &p.exemplars) {
            let sum: f64 = one.steps.iter().map(Step::ns).sum();
            let (ns, within) =
                (one.answered_ns, |step: &Step| step.from_ns >= -1.0 && step.until_ns <= one.answered_ns + 1.0);
            assert!((sum - ns).abs() <= ns * 1e-6 + 1.0, "seed {seed}: {sum} {ns}");
            assert!(one.steps.iter().all(within), "seed {seed}: {one:?}");
        }
    }
}

#[test]
fn steps_of_one_request_add_up_and_follow_on_each_other() {
    let rows = format!("{}{}{}", request(1), wait(1, 100.0, 50.0, PACKET), wait(1, 149.0, 40.0, TIMER));
    let recording = parse(&format!("{HEAD}{rows}")).unwrap();
    let paths = Case::new(&recording).fact::<RequestPaths>().unwrap();
    let [one] = &paths.main().unwrap().exemplars[..] else { panic!("not one") };
    assert_eq!((one.is_usual, one.began_ns, one.read_ns, one.answered_ns), (false, 100e6, 1e6, 50e6));
    let told: Vec<(f64, f64, String)> =
        one.steps.iter().map(|s| (s.from_ns / 1e6, s.until_ns / 1e6, s.parts[0].words())).collect();
    let words = ["before its turn: t1/1 on a CPU", "t1/1 on a CPU", "t1/1 in nanosleep", "t1/1 on a CPU"];
    assert_eq!(told.iter().map(|step| step.2.as_str()).collect::<Vec<_>>(), words, "{told:?}");
    assert_eq!((told[2].0, told[2].1), (9.0, 49.0));
}

/// Two threads with a request each, of which one waits for the other, or for a third that has none and sleeps.
#[test]
fn a_lock_between_requests_and_work_given_to_a_helper() {
    let own = |tid: u32, from: u32, until: u32| {
        format!(
            "request t_ns={until}e6 role=accepted port=80 pid=1 began_ns={from}e6 began_tid={tid} read_ns={from}e6 ended_tid={tid}\n"
        )
    };
    let by = |tid: u32| {
        format!(
            "syscall=202 args=[7,128,9,0] context=thread waker_pid=1 waker_tid={tid} waker_comm=t9 waker_syscall=202"
        )
    };
    let helps = |more: &str| {
        let asleep = wait(9, 148.0, 30.0, TIMER);
        let rows = [request(1), wait(1, 101.0, 50.0, PACKET), wait(1, 149.0, 40.0, &by(9)), asleep, more.to_string()];
        let told = told(&rows.concat());
        assert!(
            told.iter().any(|(words, ms)| words.contains("t9/1 in ") && words.contains("sleep") && *ms >= 30.0),
            "{told:?}"
        );
        !told.iter().any(|(words, _)| words.starts_with("t1/1 in futex"))
    };
    assert!(helps(""), "a thread that serves nobody");
    assert!(!helps(&own(9, 90, 160)), "the holder of what it waits for has a request too");
    assert!(!helps(&own(9, 90, 149)), "and gives it back after its answer");
    assert!(!helps(&(own(9, 90, 160) + &own(9, 150, 155))), "whatever it answers before");
    let written_by_another = own(9, 90, 160).replace("ended_tid=9", "ended_tid=2");
    assert!(!helps(&written_by_another), "another thread writes its answer");
    let done = own(9, 20, 40) + &wait(9, 105.0, 50.0, &by(1));
    assert!(helps(&done), "one of the same pool that had nothing to do and was given a part");
}
