// SPDX-License-Identifier: Apache-2.0
use super::super::asking::{found, gap, silent};
use super::*;

/// A thread `reactor` of a Go service: CPU seconds of 10, and its switches.
fn reactor(cpu: f64, switches: u64) -> String {
    format!(
        "meta host.arch=x86_64 length_ns=10e9 target.comm=streamd target.sample_hz=100
         thread t_ns=10e9 pid=1 tid=7 comm=reactor wall_ns=10e9 cpu_ns={} blocked_ns={} voluntary_switches={switches}
         frame id=1 symbol=do_syscall_64 module=kernel kind=kernel
         frame id=2 symbol=epoll_wait module=libc.so.6 kind=native
         frame id=3 symbol=sp_run module=libsp.so kind=native
         frame id=4 symbol=_cgo_12_Cfunc_sp_run module=streamd kind=native
         frame id=5 symbol=runtime.asmcgocall module=streamd kind=native
         frame id=6 symbol=main.reactor module=streamd kind=native
         frame id=7 symbol=handle_event module=libsp.so kind=native
         stack id=1 frames=[1,2,3,4,5,6]
         stack id=2 frames=[2,3,4,5,6]
         stack id=3 frames=[3,4,5,6]
         stack id=4 frames=[7,3,4,5,6]
         stack id=5 frames=[1,7,3,4,5,6]\n",
        (cpu * 1e9).round(),
        ((10.0 - cpu) * 1e9).round()
    )
}

/// Samples: inside epoll_wait(timeout), in the loop, in the handler.
fn samples(timeout: u64, inside: u32, around: u32, handler: u32) -> String {
    let mut text = String::new();
    let mut add = |line: String, n: u32| {
        if n > 0 {
            text += &format!("sample pid=1 tid=7 comm=reactor weight={n} {line}\n");
        }
    };
    add(format!("kernel=true syscall=232 args=[4,99,1,{timeout},0,0] stack=1"), inside);
    add("syscall=-1 stack=2".into(), around / 2);
    add("syscall=-1 stack=3".into(), around - around / 2);
    add("syscall=-1 stack=4".into(), handler);
    text
}

/// A window of 0.5 s: epoll_wait by timeout bucket (ns) and result, and receives.
fn window(polls: &[(i64, i64, u64)], received: u64) -> String {
    let mut text = "call_window id=1 kind=results length_ns=5e8 calls=1000\n".to_string();
    for (timeout, result, count) in polls {
        text += &format!(
            "call window=1 pid=1 tid=7 syscall=232 fd=4 argument_kind=timeout argument={timeout} result={result} count={count}\n"
        );
    }
    text + &format!(
        "call window=1 pid=1 tid=7 syscall=45 fd=9 argument_kind=size argument=1024 result=64 count={received}\n"
    )
}

#[test]
fn the_story_windows_and_registers_agree() {
    let text = reactor(9.3, 53)
        + &samples(0, 700, 200, 30)
        + &window(&[(0, 0, 325_000), (16_777_216, 0, 1), (0, 1, 200)], 208);
    let f = found(&RULE, &text);
    assert_eq!(f.confidence, "high");
    assert_eq!(
        (f.subject.tid, f.subject.syscall.as_deref(), f.subject.function.as_deref()),
        (Some(7), Some("epoll_wait"), Some("sp_run"))
    );
    assert!(
        f.summary.contains("reactor (tid 7) of streamd") && f.summary.contains("called from sp_run <- main.reactor"),
        "{}",
        f.summary
    );
    assert!((0.9..=1.0).contains(&f.explains.share), "{}", f.explains.share);
    let value = |fact: &str| f.evidence.iter().find(|e| e.fact.contains(fact)).unwrap().value;
    assert!((1_500.0..1_700.0).contains(&value("for each that found")), "{}", value("for each that found"));
    assert!(value("counted calls with timeout 0") > 99.9 && value("sampled calls with timeout 0") > 99.9);
    assert!(
        f.remedy.contains("-1") && f.remedy.contains("1 ms of added delay") && f.remedy.contains("1000"),
        "{}",
        f.remedy
    );
    assert!(f.evidence.iter().any(|e| e.see_yourself.contains("strace") && e.see_yourself.contains("hundred times")));
}

#[test]
fn no_clients_at_all() {
    // Nothing was ever found: whatever else the loop calls is the branch for nothing.
    let f = found(&RULE, &(reactor(9.0, 0) + &samples(0, 200, 100, 600) + &window(&[(0, 0, 300_000)], 0)));
    assert!(f.explains.share > 0.99, "{}", f.explains.share);
}

#[test]
fn a_lightly_loaded_host() {
    // 6 % of a core, spent by a loop that sleeps now and then.
    let f = found(
        &RULE,
        &(reactor(0.6, 400) + &samples(0, 40, 15, 5) + &window(&[(0, 0, 20_000), (16_777_216, 0, 20)], 30)),
    );
    assert!(f.summary.contains("of the target's 0.06 cores"), "{}", f.summary);
}

#[test]
fn a_mix_counts_only_the_empty_part() {
    // Half of the samples handle events; one call in eleven finds one.
    let f = found(
        &RULE,
        &(reactor(8.0, 10) + &samples(0, 300, 100, 400) + &window(&[(0, 0, 100_000), (0, 1, 10_000)], 10_000)),
    );
    assert!((0.4..0.55).contains(&f.explains.share), "{}", f.explains.share);
}

#[test]
fn windows_alone_and_registers_alone_are_medium() {
    let counted = reactor(9.3, 53) + &window(&[(0, 0, 325_000), (0, 1, 200)], 208);
    assert_eq!(found(&RULE, &counted).confidence, "medium");
    let sampled =
        reactor(9.3, 53) + &samples(0, 700, 200, 0) + "sample pid=1 tid=7 syscall=-1 result=0 stack=2 weight=30\n";
    let f = found(&RULE, &sampled);
    assert_eq!(f.confidence, "medium");
    assert!(f.summary.contains("100 % of the epoll_wait results that samples saw were empty"), "{}", f.summary);
}

#[test]
fn loss_lowers_confidence() {
    let text = reactor(9.3, 53) + &samples(0, 700, 200, 30) + &window(&[(0, 0, 325_000)], 8);
    assert_eq!(found(&RULE, &(text + "loss what=call kept=90 count=10\n")).confidence, "medium");
}

#[test]
fn timeout_zero_without_results_is_a_gap() {
    let why = gap(&RULE, &(reactor(9.3, 53) + &samples(0, 700, 200, 30))).why;
    assert!(why.contains("timeout 0") && why.contains("record again"), "{why}");
}

#[test]
fn the_fix_is_silent() {
    // A 1 ms floor: 69 % empty, 2 % of a core.
    silent(
        &RULE,
        &(reactor(0.2, 9_000) + &samples(1, 14, 4, 2) + &window(&[(524_288, 0, 430), (524_288, 1, 200)], 208)),
    );
    // The same where wake-ups are dear: still a wait, never a spin.
    silent(
        &RULE,
        &(reactor(0.8, 9_000) + &samples(1, 60, 10, 10) + &window(&[(524_288, 0, 430), (524_288, 1, 50)], 52)),
    );
}

#[test]
fn many_empty_calls_that_cost_nothing() {
    silent(
        &RULE,
        &(reactor(0.15, 30_000) + &samples(0, 10, 4, 1) + &window(&[(0, 0, 14_000), (16_777_216, 0, 40)], 20)),
    );
}

#[test]
fn a_poll_loop_that_finds_work() {
    silent(
        &RULE,
        &(reactor(9.9, 100) + &samples(0, 200, 100, 690) + &window(&[(0, 1, 40_000), (0, 0, 2_000)], 40_000)),
    );
    // Busy polling by choice at full use: every second call finds something.
    silent(&RULE, &(reactor(9.9, 0) + &samples(0, 500, 200, 290) + &window(&[(0, 0, 60_000), (0, 1, 50_000)], 50_000)));
}

#[test]
fn an_endless_wait_is_idle_not_empty() {
    silent(&RULE, &(reactor(0.5, 9_000) + &samples(0xffff_ffff, 30, 10, 10) + &window(&[(-1, 1, 4_000)], 4_000)));
}

#[test]
fn go_schedules_between_useful_work() {
    let go = reactor(5.0, 20_000)
        + "frame id=8 symbol=runtime.netpoll module=streamd kind=native
           frame id=9 symbol=runtime.findRunnable module=streamd kind=native
           frame id=10 symbol=internal/runtime/syscall.EpollWait module=streamd kind=native
           stack id=8 frames=[1,10,8,9]
           sample pid=1 tid=7 kernel=true syscall=281 args=[4,99,128,0,0,0] stack=8 weight=200
           sample pid=1 tid=7 stack=4 weight=300
           call_window id=1 kind=results length_ns=5e8
           call window=1 pid=1 tid=7 syscall=281 argument_kind=timeout argument=0 result=0 count=9000
           call window=1 pid=1 tid=7 syscall=281 argument_kind=timeout argument=0 result=1 count=900\n";
    silent(&RULE, &go);
}

#[test]
fn an_idle_pool() {
    let text = "meta host.arch=x86_64 length_ns=10e9 target.sample_hz=100
        thread pid=1 tid=1 comm=worker wall_ns=10e9 cpu_ns=1e7 blocked_ns=999e7
        sample pid=1 tid=1 kernel=true syscall=202 stack=1";
    assert!(silent(&RULE, text).contains("no thread spends CPU time"));
}

/// One thread in one call, by windows and registers: number, kind, argument, empty result.
fn spin(number: i32, kind: &str, argument: i64, result: i64, args: &str) -> String {
    format!(
        "{}sample pid=1 tid=7 kernel=true syscall={number} args={args} stack=1 weight=600
         sample pid=1 tid=7 stack=3 weight=300
         sample pid=1 tid=7 syscall=-1 result={result} stack=3 weight=30
         call_window id=1 kind=results length_ns=5e8
         call window=1 pid=1 tid=7 syscall={number} fd=3 argument_kind={kind} argument={argument} result={result} count=300000\n",
        reactor(9.3, 3)
    )
}

#[test]
fn other_calls_spin_too() {
    let cases = [
        ("recvfrom", spin(45, "size", 1024, -11, "[3,0,1024,64,0,0]"), "readiness"),
        ("read", spin(0, "size", 1024, 0, "[3,0,1024,0,0,0]"), "peer is gone"),
        ("poll", spin(7, "timeout", 0, 0, "[9,1,0,0,0,0]"), "deadline"),
        ("ppoll", spin(271, "none", 0, 0, "[9,1,9,0,0,0]"), "deadline"),
        ("select", spin(23, "none", 0, 0, "[9,1,1,1,9,0]"), "deadline"),
        ("sched_yield", spin(24, "none", 0, 0, "[0,0,0,0,0,0]"), "futex"),
        ("clock_nanosleep", spin(230, "timeout", 1024, 0, "[0,0,9,9,0,0]"), "event itself"),
        ("accept4", spin(288, "none", 0, -11, "[3,0,0,0,0,0]"), "readiness"),
    ];
    for (name, text, remedy) in cases {
        let f = found(&RULE, &text);
        assert_eq!(f.subject.syscall.as_deref(), Some(name));
        assert!(f.remedy.contains(remedy), "{name}: {}", f.remedy);
    }
}

#[test]
fn a_worker_that_sleeps_a_little_between_rounds_is_a_timer() {
    for number in [24, 230] {
        let worker = spin(number, "none", 0, 0, "[0,0,9,9,0,0]") + "sample pid=1 tid=7 stack=4 weight=500\n";
        silent(&RULE, &worker);
    }
}

#[test]
fn reading_until_eagain_is_no_spin() {
    let edge = spin(45, "size", 1024, -11, "[3,0,1024,64,0,0]")
        + "call window=1 pid=1 tid=7 syscall=45 fd=3 argument_kind=size argument=1024 result=512 count=280000\n";
    silent(&RULE, &edge);
}

#[test]
fn events_that_nobody_takes() {
    let ready = reactor(9.9, 0) + &samples(0xffff_ffff, 600, 300, 0) + &window(&[(-1, 1, 250_000)], 10);
    let f = found(&RULE, &ready);
    assert_eq!(f.confidence, "medium");
    assert!(f.summary.contains("events that nobody takes") && f.remedy.contains("EPOLLOUT"), "{}", f.summary);
    // Another thread takes them: a dispatcher at work.
    let taken =
        ready + "call window=1 pid=1 tid=8 syscall=0 fd=5 argument_kind=size argument=8 result=8 count=200000\n";
    silent(&RULE, &taken);
}

#[test]
fn one_wasted_core_in_a_large_service() {
    let mut text = reactor(9.9, 0) + &samples(0, 700, 290, 0) + &window(&[(0, 0, 300_000), (0, 1, 10)], 10);
    for tid in 20..30 {
        text += &format!("thread t_ns=10e9 pid=1 tid={tid} comm=w wall_ns=10e9 cpu_ns=9e9 blocked_ns=1e9\n");
    }
    assert!(found(&RULE, &text).explains.share < 0.15);
}

#[test]
fn many_spinning_threads_are_one_finding() {
    let second = (samples(0, 700, 200, 0) + &window(&[(0, 0, 300_000)], 0)).replace("tid=7", "tid=8");
    let text = reactor(9.0, 0)
        + &samples(0, 700, 200, 0)
        + &window(&[(0, 0, 300_000)], 0)
        + &second
        + "thread t_ns=10e9 pid=1 tid=8 comm=reactor wall_ns=10e9 cpu_ns=8e9 blocked_ns=2e9\n";
    let f = found(&RULE, &text);
    assert!(f.summary.contains("(and 1 thread like it)"), "{}", f.summary);
    assert!(f.explains.seconds > 16.0);
}

#[test]
fn a_simulation_that_glances_at_a_socket() {
    // Nothing is ever found, but the rounds are work: a hundred glances a second.
    silent(&RULE, &(reactor(9.9, 0) + &samples(0, 5, 5, 980) + &window(&[(0, 0, 150)], 0)));
    // The same without samples.
    silent(&RULE, &(reactor(9.9, 0) + &window(&[(0, 0, 150)], 0)));
}

#[test]
fn an_interpreted_loop() {
    let python = reactor(9.9, 0)
        + "frame id=11 symbol=select_epoll_poll module=select.so kind=native
           frame id=12 symbol=_PyEval_EvalFrameDefault module=python3.11 kind=native
           stack id=11 frames=[1,2,11,12,12]\nstack id=12 frames=[12,12]
           sample pid=1 tid=7 kernel=true syscall=232 args=[4,9,1,0,0,0] stack=11 weight=200
           sample pid=1 tid=7 syscall=-1 stack=12 weight=700\n"
        + &window(&[(0, 0, 200_000), (0, 1, 100)], 100);
    let f = found(&RULE, &python);
    assert!(f.explains.share > 0.9 && f.summary.contains("select_epoll_poll"), "{}", f.summary);
    assert!(f.remedy.contains("call_soon") && f.remedy.contains("poll(0)"), "{}", f.remedy);
}

#[test]
fn an_event_loop_that_never_waits_points_at_the_program() {
    let node = |timeout: u64| {
        reactor(9.9, 0)
            + &format!(
                "frame id=21 symbol=uv__io_poll module=node kind=native\nframe id=22 symbol=uv_run module=node kind=native
                 frame id=23 symbol=node::Start module=node kind=native
                 stack id=21 frames=[1,2,21,22,23]\nstack id=22 frames=[22,23]
                 sample pid=1 tid=7 kernel=true syscall=232 args=[4,9,1,{timeout},0,0] stack=21 weight=500
                 sample pid=1 tid=7 syscall=-1 stack=22 weight=400\n"
            )
            + &window(&[(timeout as i64 * 1_000_000, 0, 200_000)], 0)
    };
    let f = found(&RULE, &node(0));
    assert!(
        f.summary
            .ends_with("libuv asks with timeout 0 because the program always has work queued that is to run at once")
    );
    assert!(f.remedy.starts_with("uv__io_poll is not the place to mend") && f.remedy.contains("setImmediate"));
    assert_eq!(f.subject.function, None, "what keeps queueing does not make the call");
    assert!(f.explains.share > 0.99, "the queueing handlers are part of it: {}", f.explains.share);
}

#[test]
fn nothing_recorded() {
    gap(&RULE, "");
    gap(&RULE, "thread pid=1 tid=1 wall_ns=10e9 cpu_ns=9e9");
    assert!(silent(&RULE, "thread pid=1 tid=1 wall_ns=10e9 cpu_ns=1e7").contains("0.00 cores"));
}

#[test]
fn many_threads_that_ask_a_little_are_summed_up() {
    let crowd = |threads: u32, timeout: i64, cpu_ns: u64, found: u64| {
        let mut text = reactor(0.001, 3) + "call_window id=1 kind=results length_ns=1e8\n";
        for tid in 100..100 + threads {
            text += &format!(
                "thread t_ns=10e9 pid=1 tid={tid} comm=reader wall_ns=10e9 cpu_ns={cpu_ns} blocked_ns=9e9 voluntary_switches=17000
                 sample pid=1 tid={tid} comm=reader kernel=true syscall=232 args=[4,9,1,1,0,0] stack=1 weight=9
                 call window=1 pid=1 tid={tid} syscall=232 fd=3 argument_kind=timeout argument={timeout} result=0 count=170
                 call window=1 pid=1 tid={tid} syscall=232 fd=3 argument_kind=timeout argument={timeout} result=1 count={found}\n"
            );
        }
        text
    };
    let f = found(&RULE, &crowd(80, 524_288, 90_000_000, 0));
    assert!(f.summary.starts_with("80 threads like reader") && f.explains.share > 0.9, "{}", f.summary);
    assert!(f.remedy.contains("longer") && f.subject.tid.is_none(), "{}", f.remedy);
    silent(&RULE, &crowd(8, 524_288, 90_000_000, 0)); // 0.07 cores
    silent(&RULE, &crowd(80, 524_288, 90_000_000, 60)); // a third of them find something
    silent(&RULE, &crowd(80, 1 << 29, 90_000_000, 0)); // half a second is a wait
}

/// A scheduler of Erlang's that yields for so many cores, of a target that has used `all` CPU seconds.
pub(super) fn erlang(cores: f64, all: f64) -> String {
    reactor(all - cores * 10.0, 5)
        + &format!(
            "thread t_ns=10e9 pid=1 tid=9 comm=erts_dcpus_1 wall_ns=10e9 cpu_ns={} blocked_ns=1e9
             frame id=31 symbol=\"\" module=beam.smp kind=native offset=64\nframe id=32 symbol=sched_yield module=libc.so.6 kind=native
             stack id=31 frames=[1,32,31]
             sample pid=1 tid=9 comm=erts_dcpus_1 kernel=true syscall=24 args=[0,0,0,0,0,0] stack=31 weight=90
             sample pid=1 tid=9 comm=erts_dcpus_1 syscall=-1 stack=31 weight=5
             call_window id=1 kind=results length_ns=5e8
             call window=1 pid=1 tid=9 syscall=24 argument_kind=none result=0 count=6000\n",
            (cores * 10e9).round()
        )
}

#[test]
fn a_runtimes_own_spin_is_a_remark_until_it_matters() {
    let why = silent(&RULE, &erlang(0.05, 1.6));
    assert!(why.contains("Erlang's scheduler waits") && why.contains("+sbwt none"), "{why}");
    let f = found(&RULE, &erlang(0.9, 10.0));
    assert!(f.remedy.contains("+sbwt none") && f.summary.contains("This is how Erlang"), "{}", f.remedy);
}

#[test]
fn a_loop_in_go_is_no_honest_work_by_its_name() {
    let go = reactor(9.5, 20)
        + "frame id=8 symbol=runtime.netpoll module=streamd kind=native
           frame id=9 symbol=runtime.findRunnable module=streamd kind=native
           stack id=8 frames=[1,8,9]
           sample pid=1 tid=7 kernel=true syscall=281 args=[4,99,128,0,0,0] stack=8 weight=700
           sample pid=1 tid=7 stack=9 weight=250
           call_window id=1 kind=results length_ns=5e8
           call window=1 pid=1 tid=7 syscall=281 argument_kind=timeout argument=0 result=0 count=90000\n";
    let f = found(&RULE, &go);
    assert!(f.remedy.contains("short sleeps, tickers"), "{}", f.remedy);
}

#[test]
fn a_ring_that_is_asked_tells_nothing() {
    silent(&RULE, &spin(426, "none", 0, 0, "[4,0,1,1,0,8]"));
}

/// The compiler has put the handlers into the loop: one round answers sixty requests, and a hundred empty ones follow at once.
#[test]
fn work_in_the_loop_s_own_function_is_no_waste() {
    let sends = "sample pid=1 tid=7 comm=reactor kernel=true syscall=44 args=[9,1,973,0,0,0] stack=1";
    let empty = reactor(9.9, 0) + &samples(0, 60, 560, 0) + &window(&[(0, 0, 30_000), (0, 64, 600)], 600);
    silent(&RULE, &format!("{empty}{sends} weight=370\n"));
    found(&RULE, &format!("{empty}{sends} weight=10\n"));
}
