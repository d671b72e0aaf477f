// SPDX-License-Identifier: Apache-2.0
use super::*;
use recording::text::parse;

/// Twenty requests that have hung for six seconds and lie unread but one, beside threads as they come: name and ledger line.
pub(crate) fn text(threads: &[(&str, &str)], more: &str) -> String {
    let mut text = format!(
        "meta host.arch=x86_64 length_ns=4e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
         process pid=1 comm=svc listen=[\"tcp 0.0.0.0:80\"]
         exchange_window t_ns=4e9 length_ns=4e9
         connection t_ns=4e9 role=accepted port=80 looks=40 open=800 unread=760 unanswered=800 late=800 late_ns=480e10
         {more}\n"
    );
    for (nth, (comm, line)) in (1..).zip(threads) {
        let (spent, wait) = match *line {
            "cpu" => ("cpu_ns=4e9", String::new()),
            call => ("blocked_ns=4e9", format!("wait t_ns=4e9 pid=1 tid={nth} syscall={call} state=1 total_ns=4e9\n")),
        };
        text += &format!("thread t_ns=4e9 pid=1 tid={nth} comm={comm} wall_ns=4e9 {spent}\n{wait}");
    }
    text
}

/// System calls of x86-64.
pub(crate) const SLEEP: &str = "230";
pub(crate) const FUTEX: &str = "202";
pub(crate) const EPOLL: &str = "232";
pub(crate) const READ: &str = "45 fd_kind=socket";

fn reader(threads: &[(&str, &str)], more: &str) -> Option<Stuck> {
    let recording = parse(&text(threads, more)).unwrap();
    let case = Case::new(&recording);
    super::reader(&case, &look(&case)?).map(|(_, stuck)| stuck)
}

#[test]
fn the_one_thread_that_neither_waits_nor_is_parked() {
    assert_eq!(reader(&[("loop", SLEEP)], ""), Some(Stuck::Sleeps));
    assert_eq!(reader(&[("loop", "cpu"), ("pool", FUTEX), ("timer", EPOLL)], ""), Some(Stuck::Computes));
    assert_eq!(reader(&[("loop", EPOLL), ("pool", FUTEX)], ""), None, "it would have been woken");
    assert_eq!(reader(&[("loop", FUTEX), ("flush", SLEEP)], ""), None, "locked out, beside the household");
    let read = |text: &str| text.replace("unread=760", "unread=780");
    let first = parse(&read(&text(&[("loop", SLEEP), ("pool", FUTEX)], ""))).unwrap();
    let case = Case::new(&first);
    assert!(super::reader(&case, &look(&case).unwrap()).is_some(), "the first thread, with one in hand at most");
    assert_eq!(reader(&[("one", SLEEP), ("two", SLEEP)], ""), None, "one of them is somebody's clock");
    let read = |text: &str| text.replace("open=800 unread=760", "open=800 unread=400");
    let at_work = parse(&read(&text(&[("loop", "cpu")], ""))).unwrap();
    let case = Case::new(&at_work);
    assert!(super::reader(&case, &look(&case).unwrap()).is_none(), "it has half of them in hand");
    let queued = read(&text(&[("loop", "cpu")], "")).replace("unread=400", "unread=400 queued=40000");
    let queued = parse(&queued).unwrap();
    let case = Case::new(&queued);
    assert!(super::reader(&case, &look(&case).unwrap()).is_some(), "in the accept queue nobody has read anything");
    assert_eq!(reader(&[("loop", SLEEP), ("worker", READ)], ""), None);
    let answered = "exchange role=accepted port=80 stage=response count=9 sum_ns=1 length_ns=[1000000] counts=[9]";
    assert_eq!(reader(&[("loop", SLEEP)], answered), None);
}

#[test]
fn clients_that_want_no_answer() {
    let one_way = |connection: &str, more: &str| {
        let text = text(&[("loop", EPOLL)], more).replace("open=800 unread=760 unanswered=800", connection);
        is_one_way(&Case::new(&parse(&text).unwrap()))
    };
    let went_on = "open=800 unread=0 unanswered=800 went_on=700";
    assert!(one_way(went_on, "") && !one_way("open=800 unread=760 unanswered=800 went_on=700", ""));
    assert!(!one_way("open=800 unread=0 unanswered=800", ""), "they wait");
    let answered = "exchange role=accepted port=80 stage=response count=9 sum_ns=1 length_ns=[1000000] counts=[9]";
    assert!(!one_way(went_on, answered));
}

#[test]
fn as_many_threads_before_a_lock_as_requests() {
    let stand = |threads: usize| {
        let recording = parse(&text(&vec![("w", FUTEX); threads], "")).unwrap();
        as_many_in_futex(&Case::new(&recording))
    };
    assert_eq!((stand(20), stand(3), stand(60)), (Some(20.0), None, None));
    let answers = "exchange role=accepted port=80 stage=response count=20\n".to_string()
        + &"request role=accepted port=80 pid=1 began_tid=99 ended_tid=99\n".repeat(20);
    let of_loop = parse(&text(&vec![("w", FUTEX); 20], &answers)).unwrap();
    assert_eq!(as_many_in_futex(&Case::new(&of_loop)), None, "one thread reads all, and answers others");
}

#[test]
fn what_threads_stand_in() {
    let recording = parse(&text(&[("a", FUTEX), ("b", FUTEX), ("c", EPOLL)], "")).unwrap();
    let said = where_threads_stand(&Case::new(&recording)).unwrap();
    assert_eq!(said, "All the time 2 threads stood in futex, 1 in poll.");
}

#[test]
fn one_worker_that_stands_still_beside_others() {
    let stands = |threads: &[(&str, &str)]| {
        let recording = parse(&text(threads, "")).unwrap();
        one_that_stands(&Case::new(&recording)).map(|(thread, line)| (thread.tid, line))
    };
    // flock
    assert_eq!(stands(&[("w", EPOLL), ("w", "73"), ("w", EPOLL)]), Some((2, Blocked::FileLock)));
    assert_eq!(stands(&[("w", EPOLL), ("pool", FUTEX), ("clock", SLEEP)]), None, "that is how work is waited for");
}

/// Each worker a process of one thread, which was started by pid 1.
#[test]
fn one_process_of_several_that_stands_still() {
    // accept, read of a pipe, wait4
    let (accept, pipe, child) = ("43", "0 fd_kind=pipe", "61");
    let stands = |lines: &[&str]| {
        let mut text =
            "meta host.arch=x86_64 length_ns=4e9 target.pids=[1,2,3] target.listen=[\"tcp 0.0.0.0:80\"]\n".to_string();
        for (pid, line) in (1..).zip(lines) {
            text += &format!(
                "process pid={pid} ppid={} comm=svc listen=[\"tcp 0.0.0.0:80\"]
                 thread t_ns=4e9 pid={pid} tid={pid} comm=svc wall_ns=4e9 blocked_ns=4e9
                 wait t_ns=4e9 pid={pid} tid={pid} syscall={line} state=1 total_ns=4e9\n",
                if pid == 1 { 900 } else { 1 }
            );
        }
        one_that_stands(&Case::new(&parse(&text).unwrap())).map(|(thread, line)| (thread.pid, line))
    };
    assert_eq!(stands(&[child, pipe, accept]), Some((2, Blocked::Pipe)));
    assert_eq!(stands(&[child, accept, SLEEP]), Some((3, Blocked::Sleep)));
    assert_eq!(stands(&[SLEEP, accept, accept]), None, "the one that minds the others");
    assert_eq!(stands(&[child, FUTEX, accept]), None, "before the lock that one of them has while it accepts");
    assert_eq!(stands(&[accept, pipe, pipe]), None, "workers that are given their work");
}

/// The same where exchanges were not followed: what has hung since before is known, and not whether anybody was answered.
#[test]
fn nobody_knows_whether_others_were_answered() {
    let hung = |text: &str| {
        let recording = parse(text).unwrap();
        let case = Case::new(&recording);
        let hung = look(&case).unwrap();
        let is_told = super::reader(&case, &hung).is_some();
        (hung.others, is_told)
    };
    let text = text(&[("loop", "cpu")], "");
    assert_eq!(hung(&text), (Others::Nobody, true));
    let unseen = text.lines().filter(|line| !line.contains("exchange_window")).collect::<Vec<_>>().join("\n");
    assert_eq!(hung(&unseen), (Others::Untold, false));
}
