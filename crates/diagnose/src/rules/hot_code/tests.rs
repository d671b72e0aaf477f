// SPDX-License-Identifier: Apache-2.0
use super::super::asking::{found, gap, silent};
use super::*;

/// A thread that is `busy` of 10 s, and a set of frames to build stacks from.
fn thread(busy: f64) -> String {
    format!(
        "meta host.arch=x86_64 length_ns=10e9 target.comm=svc target.pids=[1] target.sample_hz=100
         thread t_ns=10e9 pid=1 tid=1 comm=svc wall_ns=10e9 cpu_ns={} blocked_ns={}
         frame id=1 symbol=main module=svc kind=native
         frame id=2 symbol=handle module=svc kind=native
         frame id=3 symbol=score module=svc kind=native
         frame id=4 symbol=__memmove_avx_unaligned_erms module=libc.so.6 kind=native
         frame id=5 symbol=parse module=svc kind=native
         frame id=6 symbol=render module=svc kind=native
         frame id=7 symbol=_PyEval_EvalFrameDefault module=python3.11 kind=native
         frame id=8 symbol=runtime.scanobject module=svc kind=native
         frame id=9 symbol=pthread_spin_lock module=libc.so.6 kind=native
         frame id=10 symbol=sendto module=kernel kind=kernel\n",
        (busy * 1e9).round(),
        ((10.0 - busy) * 1e9).round()
    )
}

/// Samples by stack, leaf first.
fn samples(stacks: &[(&str, u32)]) -> String {
    let mut text = String::new();
    for (i, (frames, n)) in stacks.iter().enumerate() {
        let kernel = frames.starts_with("10");
        text += &format!("stack id={} frames=[{frames}] complete=true\n", i + 1);
        text += &format!(
            "sample pid=1 tid=1 comm=svc kernel={kernel} syscall={} weight={n} stack={}\n",
            if kernel { 44 } else { -1 },
            i + 1
        );
    }
    text
}

#[test]
fn one_function_of_a_full_thread() {
    let f = found(&RULE, &(thread(9.8) + &samples(&[("3,2,1", 600), ("5,2,1", 200), ("6,2,1", 200)])));
    assert_eq!((f.confidence.as_str(), f.subject.function.as_deref(), f.subject.tid), ("high", Some("score"), Some(1)));
    assert!(
        f.summary.contains("score in svc takes 60 % of the busy time")
            && f.summary.ends_with("thread svc (tid 1) is 98 % busy; score is called from handle"),
        "{}",
        f.summary
    );
    assert!((f.explains.seconds - 5.88).abs() < 0.01 && f.remedy.contains("30 % of the CPU time is free"));
}

#[test]
fn a_leaf_without_a_frame_is_its_callers() {
    // 18 % of its own and 30 % of a memmove that it calls.
    let f =
        found(&RULE, &(thread(9.8) + &samples(&[("3,2,1", 180), ("4,3,2,1", 300), ("5,2,1", 260), ("6,2,1", 260)])));
    assert_eq!(f.subject.function.as_deref(), Some("score"));
    assert_eq!(f.evidence[1].value, 18.0);
}

#[test]
fn spread_out_work_is_capacity() {
    // The handler is on 82 % of the stacks, its own time is 4 %.
    let text = thread(9.8) + &samples(&[("2,1", 40), ("3,2,1", 250), ("5,2,1", 270), ("6,2,1", 260), ("1", 180)]);
    assert!(silent(&RULE, &text).contains("parse leads with 27 %"));
}

#[test]
fn chance_does_not_decide_about_user_mode() {
    let shown = |user: u32| thread(9.8) + &samples(&[("3,2,1", user), ("10,2,1", 1000 - user)]);
    assert!(silent(&RULE, &shown(590)).contains("59 % of its CPU time is in user mode (under 60 %)"));
    assert!(silent(&RULE, &shown(620)).contains("62 % of its CPU time is in user mode, not clearly over 60 %"));
    assert_eq!(found(&RULE, &shown(800)).subject.function.as_deref(), Some("score"));
}

#[test]
fn nothing_is_full() {
    assert!(
        silent(&RULE, &(thread(3.0) + &samples(&[("3,2,1", 300)])))
            .contains("no thread, CPU or quota is full (90 % or more); the busiest thread, svc (tid 1), is 30 % busy")
    );
}

#[test]
fn kernel_time_is_not_hot_code() {
    assert!(
        silent(&RULE, &(thread(9.8) + &samples(&[("10,2,1", 600), ("3,2,1", 380)])))
            .contains("39 % of its CPU time is in user mode (under 60 %)")
    );
}

#[test]
fn others_are_named_for_what_they_are() {
    let silent = |leaf: &str| silent(&RULE, &(thread(9.8) + &samples(&[(leaf, 700), ("5,2,1", 300)])));
    assert!(silent("7,7,7,1").contains("py-spy"));
    assert!(silent("8,2,1").contains("runtime's collector"));
    assert!(silent("4").contains("callers are not known"));
}

/// A lock that takes most of the CPU time is spun for: to add CPUs, or to spread the work, makes it worse.
#[test]
fn a_lock_that_threads_spin_for() {
    let text = thread(9.8) + &samples(&[("9,2,1", 700), ("5,2,1", 300)]);
    let finding = found(&RULE, &text);
    assert_eq!(finding.subject.function.as_deref(), Some("pthread_spin_lock"));
    assert!(finding.remedy.starts_with("Let pthread_spin_lock block before the lock"), "{}", finding.remedy);
    assert!(finding.summary.contains("pthread_spin_lock"), "{}", finding.summary);
}

#[test]
fn unnamed_code_is_medium_and_needs_one_place() {
    let at = |offsets: &[u64]| {
        let mut text = thread(9.8);
        for (i, o) in offsets.iter().enumerate() {
            text += &format!(
                "frame id={} module=nginx kind=native offset={o}\nstack id={} frames=[{}]\n",
                100 + i,
                100 + i,
                100 + i
            );
            text += &format!("sample pid=1 tid=1 stack={} weight=100\n", 100 + i);
        }
        text
    };
    let f = found(&RULE, &at(&[0x8000, 0x8010, 0x8100, 0x8123, 0x9f000]));
    assert_eq!(f.confidence, "medium");
    assert!(f.summary.starts_with("unnamed code in nginx (+0x8000, 292 bytes) takes 80 %"), "{}", f.summary);
    // A stripped program with many functions is not one function.
    silent(&RULE, &at(&[0x8000, 0x18000, 0x28000, 0x38000, 0x48000]));
    silent(&RULE, &at(&[0, 0, 0]));
}

#[test]
fn a_full_machine_of_many_threads() {
    let mut text = samples(&[("3,2,1", 600), ("5,2,1", 400)]) + "meta target.allowed_cpus=[0]\n";
    for (name, value) in [("user_ns", 97e8), ("idle_ns", 3e8)] {
        text += &format!(
            "counter source=proc/stat entity=cpu0 name={name} value=0\ncounter t_ns=9e9 source=proc/stat entity=cpu0 name={name} value={value}\n"
        );
    }
    // No thread is full by itself.
    text += "thread t_ns=10e9 pid=1 tid=2 wall_ns=10e9 cpu_ns=45e8 blocked_ns=55e8\n";
    let f = found(&RULE, &(thread(4.5) + &text));
    assert!(f.summary.contains("the CPUs it may use are 97 % busy"), "{}", f.summary);
    assert_eq!(f.subject.tid, None);
}

#[test]
fn one_thing_at_a_time_is_medium() {
    let mut text = samples(&[("3,2,1", 1), ("5,2,1", 1)]);
    for (slice, tid) in (1..=10u32).flat_map(|slice| [(slice, 4), (slice, 5)]) {
        text += &format!("thread t_ns={slice}e9 pid=1 tid={tid} wall_ns=1e9 cpu_ns=5e8 blocked_ns=5e8\n");
    }
    let ticks = |who: &dyn Fn(u32) -> Vec<u32>| {
        let mut all = thread(0.0) + &text;
        for tick in 0..200u32 {
            for cpu in who(tick) {
                let (t_ns, tid) = (u64::from(tick) * 10_000_000 + u64::from(cpu), 4 + cpu);
                all += &format!("sample t_ns={t_ns} pid=1 tid={tid} cpu={cpu} syscall=-1 stack=1 weight=4\n");
            }
        }
        all
    };
    assert_eq!(found(&RULE, &ticks(&|tick| vec![tick / 2 % 2])).confidence, "medium");
    // As much work by threads that run beside each other, now both, now none.
    let pool = ticks(&|tick| if tick % 2 == 0 { vec![0, 1] } else { Vec::new() });
    assert!(silent(&RULE, &pool).contains("no thread, CPU or quota is full"));
    // On one CPU nothing tells that only one may run.
    assert!(silent(&RULE, &ticks(&|_| vec![0])).contains("no thread, CPU or quota is full"));
}

/// Two CPUs that may be used; busy seconds of one of them, of 10.
fn room(busy: f64) -> String {
    let mut text = "meta target.allowed_cpus=[0,1]\n".to_string();
    for (name, value) in [("user_ns", busy), ("idle_ns", 10.0 - busy)] {
        text += &format!("counter source=proc/stat entity=cpu0 name={name} value=0\n");
        text += &format!("counter t_ns=9e9 source=proc/stat entity=cpu0 name={name} value={}\n", (value * 1e9).round());
    }
    text
}

#[test]
fn only_work_is_spread_over_threads() {
    let remedy = |text: &str| found(&RULE, text).remedy;
    let honest = samples(&[("3,2,1", 700), ("5,2,1", 300)]);
    assert!(remedy(&(thread(9.8) + &room(5.0) + &honest)).contains("over more threads."));
    assert!(!remedy(&(thread(9.8) + &room(9.9) + &honest)).contains("more threads"), "there is nowhere to run");
    // A select with a default branch in a loop.
    let select = thread(9.8)
        + &room(5.0)
        + "frame id=60 symbol=runtime.selectnbrecv module=svc kind=native\n"
        + &samples(&[("3,2,1", 400), ("60,3,2,1", 300), ("5,2,1", 300)]);
    assert!(remedy(&select).starts_with("Let score block until there is something"), "{}", remedy(&select));
    // A small loop: a spin lock, or a hot one.
    let mut tight = thread(9.8) + &room(5.0);
    for (id, offset) in [(70, 4096), (71, 4100), (72, 4120)] {
        tight += &format!(
            "frame id={id} symbol=take module=svc kind=native offset={offset}\nstack id={id} frames=[{id},2,1]
             sample pid=1 tid=1 syscall=-1 stack={id} weight=300\n"
        );
    }
    assert!(remedy(&tight).contains("let it block instead; more threads would make it worse"), "{}", remedy(&tight));
    // Under an interpreter's lock.
    let ruby = thread(9.8)
        + &room(5.0)
        + "frame id=80 symbol=rb_vm_exec module=libruby-3.1.so kind=native\n"
        + &samples(&[("3,80,1", 700), ("5,80,1", 300)]);
    assert!(remedy(&ruby).contains("spread its work over more processes"), "{}", remedy(&ruby));
}

#[test]
fn a_full_thread_that_serves_nobody_is_said() {
    let f = found(
        &RULE,
        &(thread(9.8)
            + &room(5.0)
            + &samples(&[("3,2,1", 700), ("5,2,1", 300)])
            + "thread t_ns=10e9 pid=1 tid=2 comm=http wall_ns=10e9 cpu_ns=1e8 blocked_ns=99e8
               wait pid=1 tid=2 syscall=0 fd_kind=socket total_ns=99e8"),
    );
    assert!(
        f.summary.contains("though it reads and writes nothing itself") && !f.remedy.contains("threads"),
        "{}",
        f.summary
    );
}

#[test]
fn own_queueing_is_in_the_headline() {
    let mut text = thread(0.1) + "meta host.cpus=2\n" + &room(9.9) + &samples(&[("3,2,1", 900)]);
    text = text.replace("allowed_cpus=[0,1]", "allowed_cpus=[0]") + "neighbour pid=1 own=true delayed_ns=9e9\n";
    for tid in 10..42 {
        text += &format!("thread t_ns=10e9 pid=1 tid={tid} wall_ns=10e9 cpu_ns=3e8 run_queue_ns=97e8\n");
    }
    assert!(found(&RULE, &text).summary.contains("32 threads were ready on average for 1 CPU"));
}

#[test]
fn a_driver_that_polls_by_choice_is_not_hot_code() {
    let driver = thread(9.9)
        + "frame id=60 symbol=ixgbe_recv_pkts_vec module=svc kind=native\n"
        + &samples(&[("60,2,1", 800), ("3,2,1", 200)]);
    assert!(silent(&RULE, &driver).contains("polls by choice"));
}

#[test]
fn what_is_known_about_a_function_is_said() {
    let scan =
        thread(9.8) + "frame id=60 symbol=heapgetpage module=postgres kind=native\n" + &samples(&[("60,2,1", 900)]);
    assert!(found(&RULE, &scan).summary.contains("a sequential scan of a table"));
}

#[test]
fn an_empty_poll_is_not_hot_code() {
    let text = thread(9.8)
        + &samples(&[("3,2,1", 700)])
        + "stack id=50 frames=[10,3,2,1]
           sample pid=1 tid=1 kernel=true syscall=232 args=[4,9,1,0,0,0] weight=300 stack=50
           call_window id=1 kind=results length_ns=5e8
           call window=1 pid=1 tid=1 syscall=232 argument_kind=timeout argument=0 result=0 count=300000\n";
    assert!(silent(&RULE, &text).contains("calls that find nothing"));
}

#[test]
fn too_few_samples_or_none() {
    assert!(silent(&RULE, &(thread(9.8) + &samples(&[("3,2,1", 20)]))).contains("20 samples say too little"));
    gap(&RULE, &thread(9.8));
    silent(&RULE, "");
}

/// Twenty seconds of a service that is a tenth of a CPU busy, `grown` of it beyond the usual in `score`.
fn quiet(score: f64) -> recording::Recording {
    let mut text = "meta host.arch=x86_64 target.comm=svc target.pids=[1] length_ns=20e9\n".to_string();
    text += "frame id=1 symbol=score module=svc kind=native\nframe id=2 symbol=serve module=svc kind=native\n";
    text += "stack id=1 frames=[1,2] complete=true\nstack id=2 frames=[2] complete=true\n";
    text += "counter source=proc/pid entity=p1 name=write_calls value=0\n";
    for i in 1..=20 {
        let ripple = 1.0 + 0.01 * f64::from(i % 3);
        text +=
            &format!("thread t_ns={i}e9 pid=1 tid=1 wall_ns=1e9 cpu_ns={}\n", ((0.1 + score) * ripple * 1e9).round());
        text += &format!("counter t_ns={i}e9 source=proc/pid entity=p1 name=write_calls value={}\n", i * 500);
        for (stack, cores) in [(1, 0.02 + score), (2, 0.08)] {
            let weight = (cores * ripple * 1000.0).round();
            text += &format!("sample t_ns={i}e9 pid=1 tid=1 syscall=-1 stack={stack} weight={weight}\n");
        }
    }
    recording::text::parse(&text).unwrap()
}

fn against(baseline: &recording::Recording, now: &recording::Recording) -> crate::verdict::Verdict {
    let baseline = crate::comparison::Named { recording: baseline, label: "before".into() };
    let compared = Some(crate::comparison::against(&baseline, now, crate::comparison::Per::Auto));
    crate::judge(&crate::Case::asked(now, crate::Question { compared, ..crate::Question::default() }))
}

#[test]
fn growth_against_a_baseline_convicts_though_nothing_is_full() {
    let v = against(&quiet(0.0), &quiet(0.05));
    assert_eq!(v.findings.first().map(|f| f.cause.as_str()), Some("hot-code"), "{:?}", v.ruled_out);
    assert_eq!(v.findings[0].subject.function.as_deref(), Some("score"));
    assert!((v.findings[0].explains.share - 0.333).abs() < 0.02, "{:?}", v.findings[0].explains);
    assert!((v.symptom.baseline.unwrap() - 0.101).abs() < 0.002 && v.comparison.unwrap().verdict == "changed");
}

#[test]
fn a_baseline_that_is_alike_or_dearer_convicts_nobody() {
    for (before, now) in [(0.0, 0.0), (0.05, 0.0), (0.05, 0.05)] {
        let v = against(&quiet(before), &quiet(now));
        assert!(v.findings.is_empty(), "{:?}", v.findings);
        assert!(v.ruled_out.iter().any(|r| r.cause == "hot-code" && r.why.contains("baseline")), "{:?}", v.ruled_out);
    }
}

#[test]
fn a_baseline_that_cannot_be_compared_is_a_gap() {
    let v = against(&recording::text::parse("").unwrap(), &quiet(0.0));
    assert!(v.gaps.iter().any(|g| g.what == "baseline") && v.comparison.is_none());
}

/// Samples in code that was compiled at run time and has no name, by address; half of the time is a builtin's
/// that the code at this address called.
fn jit(addresses: &[(u64, u32)]) -> String {
    let mut text = thread(9.8) + "frame id=50 symbol=Builtins_StringIndexOf module=node kind=native\n";
    for (i, (address, weight)) in addresses.iter().enumerate() {
        let (id, call) = (100 + i, 200 + i);
        text += &format!("frame id={id} module=\"[jit]\" kind=jit offset={address}\n");
        text += &format!("stack id={id} frames=[{id},1]\nstack id={call} frames=[50,{id},1]\n");
        text += &format!(
            "sample pid=1 tid=1 stack={id} weight={weight}\nsample pid=1 tid=1 stack={call} weight={weight}\n"
        );
    }
    text
}

#[test]
fn unnamed_code_compiled_at_run_time_is_told_by_its_address() {
    let f = found(&RULE, &jit(&[(0x7f00_1000, 20), (0x7f00_1020, 20), (0x7f00_1088, 10), (0x7f09_0000, 20)]));
    assert_eq!((f.confidence.as_str(), f.evidence[0].value.round()), ("medium", 71.0));
    assert!(
        f.summary.starts_with("unnamed JIT-compiled function of svc (at 0x7f001000, 137 bytes) takes 71 %"),
        "{}",
        f.summary
    );
    assert!(f.remedy.starts_with("Get its name first: start it with `node --perf-basic-prof`"), "{}", f.remedy);
}

#[test]
fn spread_out_code_compiled_at_run_time_is_capacity() {
    // Functions side by side, as a runtime puts them: the gaps between them tell them apart.
    let neighbours: Vec<(u64, u32)> = (0..5).map(|i| (0x7f00_1000 + i * 0x140, 20)).collect();
    assert!(silent(&RULE, &jit(&neighbours)).contains("unnamed JIT-compiled function"), "20 % each");
    // One stretch without a gap, longer than a function.
    let dense: Vec<(u64, u32)> = (0..200).map(|i| (0x7f00_1000 + i * 0x40, 1)).collect();
    assert!(silent(&RULE, &jit(&dense)).contains("none has a name"));
    // A recording without addresses cannot tell functions apart.
    assert!(silent(&RULE, &jit(&[(0, 100)])).contains("none has a name"));
}

/// In the loop of a server everything happens, also what the C library formats and copies for it.
#[test]
fn helpers_of_a_loop_are_not_one_thing() {
    let at =
        |own: u32, helpers: u32, kernel: u32| thread(9.8) + &samples(&[("1", own), ("4,1", helpers), ("10,1", kernel)]);
    assert!(silent(&RULE, &at(180, 520, 300)).contains("main leads with 18 %"));
    assert_eq!(found(&RULE, &at(450, 250, 300)).subject.function.as_deref(), Some("main"), "its own instructions");
    assert_eq!(found(&RULE, &at(300, 650, 50)).subject.function.as_deref(), Some("main"), "it goes round for nothing");
    // Called from the loop, it is one thing.
    let called = thread(9.8) + &samples(&[("3,1", 180), ("4,3,1", 520), ("10,1", 300)]);
    assert_eq!(found(&RULE, &called).subject.function.as_deref(), Some("score"));
}
