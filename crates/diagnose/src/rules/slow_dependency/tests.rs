// SPDX-License-Identifier: Apache-2.0
use super::super::asking::{found, gap, silent};
use super::RULE;

fn recording(store_waits: &str, thread: &str) -> String {
    format!(
        "meta host.arch=x86_64 length_ns=1e9 target.pids=[1]
         process pid=1 comm=proxy listen=[\"tcp [::]:80\"]
         frame id=1 symbol=hrtimer_wakeup module=kernel kind=kernel
         stack id=1 frames=[1]
         {thread}
         {}
         {ASKED}
         {store_waits}",
        ANSWER.repeat(5)
    )
}

const ANSWER: &str = "wakeup t_ns=900e6 since_ns=0 pid=1 tid=1 comm=proxy wait_ns=20e6 blocked_ns=160e6 syscall=232 context=thread waker_pid=2 waker_tid=2 waker_comm=store waker_syscall=1 waker_local_port=90 waker_remote_port=555\n";

const ASKED: &str = "wakeup t_ns=880e6 since_ns=0 pid=2 tid=2 comm=store asked=1 wait_ns=1e6 blocked_ns=1e6 syscall=232 context=thread waker_pid=1 waker_tid=1 waker_local_port=555 waker_remote_port=90";
const BUSY: &str = "thread pid=1 tid=1 comm=proxy wall_ns=1e9 cpu_ns=1e8 blocked_ns=9e8";
const TIMER: &str = "wakeup t_ns=899e6 since_ns=0 pid=2 tid=2 comm=store wait_ns=19e6 blocked_ns=19e6 syscall=232 context=interrupt waker_stack=1";

#[test]
fn a_store_with_a_timer() {
    let finding = found(&RULE, &recording(TIMER, BUSY));
    assert!(finding.summary.contains("waited for store/2") && finding.summary.contains("its own timer"), "{finding:?}");
    assert_eq!(finding.chain.len(), 3);
    assert_eq!((finding.confidence.as_str(), finding.subject.pid), ("high", Some(2)));
}

#[test]
fn a_store_that_computes() {
    let computes = "wakeup t_ns=100e6 since_ns=0 pid=2 tid=2 comm=store wait_ns=1e6 blocked_ns=1e6 cpu_ns=99e6 context=thread waker_tid=1";
    let finding = found(&RULE, &recording(computes, BUSY));
    assert!(finding.remedy.contains("store/2 computes"), "{}", finding.remedy);
}

#[test]
fn a_target_that_works_as_long_as_it_waits() {
    let busy = "thread pid=1 tid=1 comm=proxy wall_ns=2e9 cpu_ns=8e8 blocked_ns=8e8";
    assert!(silent(&RULE, &recording(TIMER, busy)).contains("50 %"));
}

/// Waiting for a CPU is a cause of its own, and no alibi for who was asked.
#[test]
fn a_target_without_a_cpu_waits_all_the_same() {
    let starved = "thread pid=1 tid=1 comm=proxy wall_ns=2e9 cpu_ns=1e8 preempted_ns=7e8 blocked_ns=8e8";
    let finding = found(&RULE, &recording(TIMER, starved));
    assert!((finding.explains.share - 0.5).abs() < 0.01, "{:?}", finding.explains);
}

#[test]
fn one_that_only_brings_something_is_no_dependency() {
    assert!(silent(&RULE, &recording(TIMER, BUSY).replace(ASKED, "")).contains("no wait"));
}

/// The same over a connection that the target made.
fn over_connection(more: &str) -> String {
    let socket = "context=thread waker_pid=2 waker_tid=2 waker_comm=store";
    let with_peer = format!("family=2 local_port=555 remote_port=90 peer=127.0.0.1 {socket}");
    recording(TIMER, BUSY).replace(socket, &with_peer) + more
}

const CLIENT: &str = "\nwakeup t_ns=50e6 pid=1 tid=1 comm=proxy wait_ns=9e6 blocked_ns=9e6 syscall=232 context=thread waker_pid=8 waker_tid=8 waker_comm=wrk waker_remote_port=80";

#[test]
fn a_consumer_that_nobody_asks_may_have_nothing_to_do() {
    assert!(gap(&RULE, &over_connection("")).why.contains("no client asked for anything"));
    let finding = found(&RULE, &over_connection(CLIENT));
    assert_eq!(finding.subject.socket.as_deref(), Some("127.0.0.1:90"));
}

#[test]
fn a_peer_that_is_known_by_its_answer_alone() {
    let gone = |text: String| text.replace("waker_pid=2 waker_tid=2", "waker_pid=7 waker_tid=7");
    let why = gap(&RULE, &gone(over_connection(CLIENT))).why;
    assert!(why.contains("waited for store/7") && why.contains("diagnose --pid 7"), "{why}");
}

#[test]
fn a_question_that_was_never_sent_is_nobodys_fault_there() {
    let held = "\nconnection t_ns=1 role=made peer=127.0.0.1:90 looks=20 open=80 unanswered=60 unsent=40
        connection t_ns=1 role=accepted port=80 looks=20 open=80 unanswered=60";
    let why = gap(&RULE, &over_connection(&format!("{CLIENT}{held}"))).why;
    assert!(why.contains("67 % of the connections") && why.contains("ss -tino dst 127.0.0.1:90"), "{why}");
    found(&RULE, &over_connection(&format!("{CLIENT}{}", held.replace("unsent=40", "unsent=2"))));
}

/// A client that asks again at once never wakes anybody; long polls stand as well, but get no answers.
#[test]
fn clients_that_always_have_a_request_there() {
    let text = |late_ns: &str| {
        let owed = format!("open=100 unanswered=100 late=90 late_ns={late_ns}");
        over_connection(&format!("\nconnection t_ns=1 role=accepted port=80 looks=100 {owed}"))
    };
    found(&RULE, &text("1e9"));
    assert!(gap(&RULE, &text("90e9")).why.contains("cannot be told"));
}

#[test]
fn a_subscription_beside_quick_requests_holds_none_of_them() {
    let quick = "\nconnection t_ns=1 role=accepted port=80 looks=100 open=100 unanswered=1";
    assert!(silent(&RULE, &over_connection(&format!("{CLIENT}{quick}"))).contains("it was not for those"));
    let slow = quick.replace("unanswered=1", "unanswered=90");
    found(&RULE, &over_connection(&format!("{CLIENT}{slow}")));
}

#[test]
fn a_database_that_takes_a_millisecond_is_no_culprit() {
    let quick = |text: String| text.replace("wait_ns=20e6", "wait_ns=1e6").replace("wait_ns=19e6", "wait_ns=9e5");
    assert!(silent(&RULE, &quick(recording(TIMER, BUSY))).contains("1 ms at a time (under 5 ms)"));
}

/// Answers of a millisecond, of which each request needs one after the other.
#[test]
fn many_quick_answers_for_one_request() {
    let quick = over_connection(CLIENT).replace("wait_ns=20e6", "wait_ns=1e6").replace("wait_ns=19e6", "wait_ns=9e5");
    let sockets = |asked: u32| {
        format!(
            "{quick}\nexchange role=accepted port=80 stage=response count=40 sum_ns=800e6 length_ns=[20000000] counts=[40] began=40
             exchange role=made peer=127.0.0.1:90 stage=response count={asked} sum_ns={asked}e6 length_ns=[1000000] counts=[{asked}] began={asked}"
        )
    };
    let finding = found(&RULE, &sockets(760));
    assert!(finding.summary.contains("waited for store/2"), "{}", finding.summary);
    assert!(silent(&RULE, &sockets(300)).contains("1 ms at a time (under 5 ms)"));
}

#[test]
fn clients_are_no_dependency() {
    let text = recording("", BUSY).replace("waker_remote_port=555", "waker_remote_port=80");
    assert!(silent(&RULE, &text).contains("no wait"));
}

/// A peer that is asked beside the requests: the sockets tell that clients do not wait for it.
#[test]
fn nobody_waits_for_what_is_asked_beside_the_requests() {
    let sockets = |made_ns: u64| {
        format!(
            "\nexchange role=accepted port=80 stage=response count=100 sum_ns=800e6 length_ns=[8000000] counts=[100] began=100
             exchange role=made peer=127.0.0.1:90 stage=response count=40 sum_ns={made_ns} length_ns=[1000000] counts=[40] began=40"
        )
    };
    let text = |made_ns| over_connection(&format!("{CLIENT}{}", sockets(made_ns)));
    let finding = found(&RULE, &text(780_000_000));
    assert!(finding.evidence.iter().any(|row| row.fact.contains("by the sockets") && row.value > 0.97), "{finding:?}");
    assert!(silent(&RULE, &text(40_000_000)).contains("5.0 % of the time that its clients waited"));
}
