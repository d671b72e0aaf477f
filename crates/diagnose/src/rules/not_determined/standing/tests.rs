// SPDX-License-Identifier: Apache-2.0

use super::super::super::asking::stated;

/// Three requests at a time stand for 15 ms, and threads stand before the lock of the memory map, for `each_ms` at a time.
fn standing(each_ms: u64) -> Option<super::Statement> {
    let text = format!(
        "meta host.arch=x86_64 length_ns=1e9 target.pids=[1]
         frame id=1 symbol=rwsem_down_write_slowpath module=kernel kind=kernel
         frame id=2 symbol=down_write_killable module=kernel kind=kernel
         frame id=3 symbol=vm_mmap_pgoff module=kernel kind=kernel
         stack id=1 frames=[1,2,3] complete=true
         thread t_ns=1e9 pid=1 tid=1 wall_ns=8e9 cpu_ns=8e8 blocked_ns=72e8
         wait t_ns=1e9 pid=1 tid=1 syscall=9 state=2 stack=1 count={} total_ns=3e9 max_ns=2e7
         connection t_ns=1e9 role=accepted port=80 looks=10 open=160 late=30 late_ns=45e7",
        3000 / each_ms
    );
    stated(&super::super::RULE, &text, &[])
}

#[test]
fn requests_behind_a_lock_of_the_kernel() {
    let said = standing(10).unwrap();
    assert!(
        said.headline.contains("3.0 threads at a time were standing before a lock of the process's memory map"),
        "{said:?}"
    );
    assert!(said.detail.contains("wanted in vm_mmap_pgoff, for 10 ms at a time"), "{}", said.detail);
    let short = standing(1).map(|said| said.headline).unwrap_or_default();
    assert!(!short.contains("memory map"), "a millisecond is not what they stand for: {short}");
}

/// A thread waits for each request for 58 ms, until its own timer ends that; it had it in hand, or began so much earlier, and another
/// one had read it.
fn naps(earlier: u64) -> String {
    let mut text = "meta host.arch=x86_64 length_ns=10e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
        process pid=1 listen=[\"tcp 0.0.0.0:80\"]
        thread t_ns=10e9 pid=1 tid=1 comm=worker wall_ns=10e9 cpu_ns=5e8 blocked_ns=95e8
        burst t_ns=10e9 length_ns=10e9
        frame id=1 symbol=hrtimer_wakeup module=kernel kind=kernel
        stack id=1 frames=[1]
        connection t_ns=10e9 role=accepted port=80 looks=100 open=400 late=300 late_ns=9e9
        exchange role=accepted port=80 stage=response count=60 sum_ns=36e8 length_ns=[60000000] counts=[60]\n"
        .to_string();
    for at in (0..60).map(|nth| 10 + nth * 70) {
        let (end, woken, since) = (at + 60, at + 58, at - earlier);
        let (length, reader) = (woken - since, 1 + u64::from(earlier > 0));
        text += &format!(
            "request t_ns={end}e6 role=accepted port=80 pid=1 began_ns={at}e6 began_tid={reader} read_ns={at}e6 ended_tid=1
             wakeup t_ns={woken}e6 pid=1 tid=1 comm=worker wait_ns={length}e6 blocked_ns={length}e6 since_ns={since}e6 waits=1 syscall=202 args=[4096,128,0,1] context=interrupt waker_stack=1\n"
        );
    }
    text
}

#[test]
fn requests_that_wait_until_a_time_runs_out() {
    let few = naps(0).replace("late=300 late_ns=9e9", "late=30 late_ns=9e8");
    // Whoever reads on seems to owe nothing.
    let handed = naps(8).replace("late=300 late_ns=9e9", "");
    for text in [naps(0), few, handed] {
        let said = stated(&super::super::RULE, &text, &[]).unwrap();
        assert!(said.headline.starts_with("requests wait 97 % of their time for a timer"), "{said:?}");
    }
}

/// Twenty long polls of three seconds among quick answers; then the same time in answers of all lengths.
#[test]
fn requests_that_stand_for_the_same_time() {
    let text = |lengths: &str, counts: &str| {
        format!(
            "meta host.arch=x86_64 length_ns=10e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
             process pid=1 listen=[\"tcp 0.0.0.0:80\"]
             thread t_ns=10e9 pid=1 tid=1 comm=worker wall_ns=10e9 cpu_ns=1e8 blocked_ns=99e8
             connection t_ns=10e9 role=accepted port=80 looks=100 open=400 late=600 late_ns=9e11
             exchange_window t_ns=10e9 length_ns=10e9
             exchange t_ns=10e9 role=accepted port=80 stage=response count=220 sum_ns=60e9 length_ns=[{lengths}] counts=[{counts}]"
        )
    };
    let said = |text: String| stated(&super::super::RULE, &text, &[]).unwrap();
    let alike = said(text("300000,2936000000,3019898880", "200,8,12"));
    assert!(alike.headline.starts_with("6 requests at a time stand unanswered, for 3.0 s each, and"), "{alike:?}");
    assert!(alike.detail.contains(super::SAME), "{}", alike.detail);
    let spread = said(text("300000,1500000000,2000000000,4000000000", "200,8,6,6"));
    assert!(spread.headline.starts_with("6 requests at a time stand unanswered, and what"), "{spread:?}");
}

/// Quicker requests, of which most of the time is before the lock, a few ms at a time.
#[test]
fn most_of_the_time_of_requests_that_are_not_late() {
    let text = |requests: u64, sum: &str| {
        format!(
            "meta host.arch=x86_64 length_ns=1e9 target.pids=[1]
             frame id=1 symbol=rwsem_down_write_slowpath module=kernel kind=kernel
             frame id=2 symbol=vm_mmap_pgoff module=kernel kind=kernel
             stack id=1 frames=[1,2] complete=true
             thread t_ns=1e9 pid=1 tid=1 wall_ns=8e9 cpu_ns=8e8 blocked_ns=72e8
             wait t_ns=1e9 pid=1 tid=1 syscall=9 state=2 stack=1 count=1000 total_ns=2e9 max_ns=2e7
             connection t_ns=1e9 role=accepted port=80 looks=10 open=160 late=1 late_ns=1e7
             exchange_window t_ns=1e9 length_ns=1e9
             exchange t_ns=1e9 role=accepted port=80 stage=response count={requests} sum_ns={sum} length_ns=[6000000] counts=[{requests}]"
        )
    };
    let said = |text: String| stated(&super::super::RULE, &text, &[]).map(|said| said.headline).unwrap_or_default();
    let most = said(text(400, "24e8"));
    assert!(most.starts_with("requests are in hand while 2.0 threads at a time were standing before"), "{most}");
    assert!(!said(text(4000, "240e8")).contains("memory map"), "a small part of theirs");
    assert!(!said(text(4000, "24e8")).contains("memory map"), "half a millisecond each");
}

/// A loop answers 60 requests after 60 ms each, while it waits for other clients; others owe it so many answers of those.
#[test]
fn time_inside_that_somebody_feels() {
    let said = |upstream: u32| {
        let mut text = format!(
            "meta host.arch=x86_64 length_ns=10e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
             process pid=1 listen=[\"tcp 0.0.0.0:80\"]
             thread t_ns=10e9 pid=1 tid=1 comm=loop wall_ns=10e9 cpu_ns=1e8 blocked_ns=99e8
             burst t_ns=10e9 length_ns=10e9
             exchange_window t_ns=10e9 length_ns=10e9
             frame id=2 symbol=net_rx_action module=kernel kind=kernel
             stack id=2 frames=[2]
             connection t_ns=10e9 role=accepted port=80 looks=100 open=400 late=36 late_ns=1e9
             connection t_ns=10e9 role=made peer=10.0.0.9:1 looks=100 open=100 late={upstream} late_ns=1e9
             exchange role=accepted port=80 stage=response count=60 sum_ns=36e8 length_ns=[60000000] counts=[60]\n"
        );
        for at in (0..60).map(|nth| 10 + nth * 150) {
            let end = at + 60;
            text += &format!(
                "request t_ns={end}e6 role=accepted port=80 pid=1 began_ns={at}e6 began_tid=1 read_ns={at}e6 ended_tid=1
                 wakeup t_ns={}e6 pid=1 tid=1 comm=loop since_ns={at}e6 wait_ns=58e6 blocked_ns=58e6 waits=1 syscall=232 family=2 local_port=80 remote_port=9 context=interrupt waker_stack=2\n",
                end - 1
            );
        }
        stated(&super::super::RULE, &text, &[]).map(|said| said.headline).unwrap_or_default()
    };
    let hidden = said(0);
    assert!(hidden.starts_with("requests take 60 ms, 5") && hidden.contains("inside the process"), "{hidden}");
    assert!(!said(34).contains("inside the process"), "others owe the answers");
}
