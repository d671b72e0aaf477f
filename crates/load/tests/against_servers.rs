// SPDX-License-Identifier: Apache-2.0
//! The generator against servers that do what servers do on bad days.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use load::{EndedBy, Failure, Plan, Rate, Request, Run, Spread, Verdict, Word, judge};

/// A server that does `each` with a connection; its port.
fn server(each: impl Fn(TcpStream) + Send + Sync + Clone + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let each = each.clone();
            thread::spawn(move || each(stream));
        }
    });
    port
}

/// Answers each request by `answer`, until the client is gone.
fn answering(answer: impl Fn() -> &'static str + Send + Sync + Clone + 'static) -> u16 {
    server(move |mut stream| {
        let mut buffer = [0; 4096];
        while let Ok(got) = stream.read(&mut buffer) {
            if got == 0 || stream.write_all(answer().as_bytes()).is_err() {
                return;
            }
        }
    })
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn plan(port: u16, rate: Rate, seconds: f64) -> Plan {
    let to: load::Address = format!("http://127.0.0.1:{port}/").parse().unwrap();
    Plan {
        request: Request::http(&to, "GET", &[], b"", false),
        to,
        rate,
        spread: Spread::Uniform,
        length: Duration::from_secs_f64(seconds),
        connections: 32,
        new_connections: false,
        sources: Vec::new(),
        timeout: Duration::from_secs(10),
        may_be_silent: false,
    }
}

fn run(plan: &Plan) -> (Run, Verdict) {
    let run = load::run(plan, &|| false, &mut |_, _| {}).unwrap();
    let verdict = judge(&run, None);
    (run, verdict)
}

#[test]
fn every_request_of_the_plan_is_sent_and_answered_once() {
    let port = answering(|| OK);
    let kept = plan(port, Rate::PerSecond(500.0), 1.9);
    let own = Plan { new_connections: true, request: Request::http(&kept.to, "GET", &[], b"", true), ..kept.clone() };
    for (plan, connections) in [(kept, 1..=32), (own, 949..=951)] {
        let (run, verdict) = run(&plan);
        assert!((949..=951).contains(&run.due), "{}", run.due);
        assert_eq!((run.sent, run.answered(), run.failed()), (run.due, run.due, 0), "{:?}", run.failures);
        assert!(connections.contains(&run.connections), "{}", run.connections);
        assert_eq!(verdict.statuses.get(&200), Some(&run.due));
        assert!(verdict.seconds.p99.is_none(), "so many answers are too few for it");
        assert_eq!(verdict.sizes, Some((OK.len() as u64, OK.len() as u64)));
    }
}

#[test]
fn a_closed_loop_sends_when_answers_come() {
    let (run, verdict) = run(&plan(answering(|| OK), Rate::Max, 1.0));
    assert!(run.answered() > 1000 && verdict.planned.is_none(), "{}", run.answered());
    assert!(verdict.reasons.iter().any(|reason| reason.code == "closed-loop"));
    assert_eq!(run.lag.count(), 0);
}

#[test]
fn who_waits_through_a_freeze_is_counted() {
    for new_connections in [false, true] {
        let start = Instant::now();
        let frozen = Duration::from_millis(1000)..Duration::from_millis(2000);
        let port = answering(move || {
            let now = start.elapsed();
            if frozen.contains(&now) {
                thread::sleep(frozen.end - now);
            }
            OK
        });
        let (run, verdict) = run(&Plan { new_connections, ..plan(port, Rate::PerSecond(400.0), 3.0) });
        // Those due in the freeze wait until it ends; those due in its last tenth less than that.
        let long = Duration::from_millis(100);
        let waited = run.seconds.iter().map(|second| second.latency.longer_than(long)).sum::<u64>();
        assert!((300..=460).contains(&waited), "{waited} waited, of some 360");
        let sent = run.seconds.iter().map(|second| second.service.longer_than(long)).sum::<u64>();
        assert!(sent <= 32, "{sent}: only one for each connection was sent then");
        assert!(verdict.reasons.iter().any(|reason| reason.code == "coordinated-omission"), "{:?}", verdict.reasons);
        // A host that stands still itself may make it longer.
        let stood = run.stood;
        assert!(stood.length >= Duration::from_millis(900) && stood.waiting >= 300, "{stood:?}");
        assert!(codes(&verdict).contains(&"stood-still"), "{:?}", verdict.reasons);
    }
}

#[test]
fn a_refusal_is_no_quick_answer() {
    let port = answering(|| "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
    let (run, verdict) = run(&plan(port, Rate::PerSecond(300.0), 1.0));
    assert_eq!((run.answered(), run.failures.get(&Failure::Status)), (0, Some(&run.due)));
    assert_eq!((verdict.corrected.p50, verdict.verdict), (None, Word::Misleading));
    assert!(verdict.refusals.p50.is_some() && verdict.reasons.iter().any(|reason| reason.code == "errors"));
}

#[test]
fn connections_that_a_service_closes_are_opened_anew() {
    let port = answering(|| "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    let (run, _) = run(&plan(port, Rate::PerSecond(300.0), 1.0));
    assert_eq!((run.answered(), run.failed()), (run.due, 0), "{:?}", run.failures);
    // Without saying so: the next request crosses the end of the connection, and is sent again.
    let port = server(|mut stream| {
        let _ = stream.read(&mut [0; 4096]).and_then(|_| stream.write_all(OK.as_bytes()));
    });
    let (run, _) = self::run(&plan(port, Rate::PerSecond(300.0), 1.0));
    assert_eq!((run.answered(), run.failed()), (run.due, 0), "{:?}", run.failures);
}

/// Services close connections that rest for a few seconds; here it is a tenth of what each would rest in turns.
#[test]
fn few_requests_come_over_few_connections() {
    let port = server(|mut stream| {
        stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let mut buffer = [0; 4096];
        while stream.read(&mut buffer).is_ok_and(|got| got > 0) && stream.write_all(OK.as_bytes()).is_ok() {}
    });
    let (run, _) = run(&plan(port, Rate::PerSecond(20.0), 3.0));
    assert_eq!((run.answered(), run.failed()), (run.due, 0), "{:?}", run.failures);
    // A full host may stand still for as long, once or twice.
    assert!(run.connections <= 24, "{} connections for {} requests", run.connections, run.due);
}

/// Answers the first request of each connection, and closes it so long after the second one has come.
fn dying(after: Duration) -> u16 {
    server(move |mut stream| {
        let mut buffer = [0; 4096];
        let answered = stream.read(&mut buffer).and_then(|_| stream.write_all(OK.as_bytes()));
        if answered.and_then(|()| stream.read(&mut buffer)).is_ok_and(|got| got > 0) {
            thread::sleep(after);
        }
    })
}

#[test]
fn a_request_is_sent_again_only_if_the_close_came_at_once_and_nothing_is_done_twice() {
    let dying = |after_ms| dying(Duration::from_millis(after_ms));
    let get = |after_ms| Plan { connections: 4, ..plan(dying(after_ms), Rate::PerSecond(100.0), 1.0) };
    let (at_once, late, posted, plain) = (get(0), get(50), get(0), get(0));
    let (run, verdict) = run(&at_once);
    // Where the host is full, some of these closes are noticed late, and are failures.
    assert_eq!(run.answered() + run.failed(), run.due, "{:?}", run.failures);
    assert!(run.sent_again > run.due / 4 && verdict.sent_again == run.sent_again, "{}", run.sent_again);
    assert!(verdict.reasons.iter().any(|reason| reason.code == "sent-again"), "{:?}", verdict.reasons);

    let posted = Plan { request: Request::http(&posted.to, "POST", &[], b"x", false), ..posted };
    let to = format!("tcp://{}", plain.to.authority()).parse().unwrap();
    let plain = Plan { to, request: Request::tcp(vec![vec![b'x'; 9]], Duration::ZERO, OK.len() as u64), ..plain };
    for plan in [late, posted, plain] {
        let (run, verdict) = self::run(&plan);
        assert_eq!(run.answered() + run.failed(), run.due, "{:?}", run.failures);
        assert!(run.sent_again == 0 && run.failed() > run.due / 4, "{} {:?}", run.sent_again, run.failures);
        assert!(verdict.reasons.iter().any(|reason| reason.code == "errors"), "{:?}", verdict.reasons);
    }
}

#[test]
fn an_answer_without_end_keeps_nobody_else_waiting() {
    let is_next_endless = Arc::new(AtomicBool::new(true));
    let port = server(move |mut stream| {
        let mut buffer = [0; 4096];
        while stream.read(&mut buffer).is_ok_and(|got| got > 0) {
            let is_endless = is_next_endless.swap(false, Ordering::Relaxed);
            if is_endless && stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").is_ok() {
                while stream.write_all(&[b'x'; 64 << 10]).is_ok() {}
            }
            if stream.write_all(OK.as_bytes()).is_err() {
                break;
            }
        }
    });
    let plan = Plan { connections: 4, timeout: Duration::from_secs(1), ..plan(port, Rate::PerSecond(200.0), 2.0) };
    let (run, _) = run(&plan);
    assert!(run.failures.contains_key(&Failure::Timeout), "{:?}", run.failures);
    assert!(run.answered() > run.due * 9 / 10, "{} of {}", run.answered(), run.due);
}

#[test]
fn what_is_no_answer_is_counted_by_its_kind() {
    let half = server(|mut stream| {
        let _ = stream
            .read(&mut [0; 4096])
            .and_then(|_| stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab"));
    });
    let mute = server(|mut stream| drop(stream.read_to_end(&mut Vec::new())));
    let garbage = answering(|| "SSH-2.0-OpenSSH_9.2\r\n\r\n");
    for (port, failure) in [
        (half, "closed before an answer was whole"),
        (mute, "no answer was whole within"),
        (garbage, "no answer of HTTP/1.1"),
    ] {
        let plan = Plan { timeout: Duration::from_millis(300), ..plan(port, Rate::PerSecond(100.0), 0.5) };
        let error = load::run(&plan, &|| false, &mut |_, _| {}).unwrap_err().to_string();
        assert!(error.contains(failure), "{error}");
    }
}

#[test]
fn nobody_there() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let begun = Instant::now();
    let error = load::run(&plan(port, Rate::PerSecond(1000.0), 60.0), &|| false, &mut |_, _| {}).unwrap_err();
    assert!(error.to_string().contains("nobody listens there"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(30), "it does not go on for a minute");
    let silent = Plan { may_be_silent: true, ..plan(port, Rate::PerSecond(1000.0), 60.0) };
    let (run, verdict) = run(&silent);
    let why = verdict.reasons.iter().find(|reason| reason.code == "ended-early").unwrap();
    assert!(run.ended == Some(EndedBy::Silence) && why.sentence.contains("gave up by itself after 3."), "{why:?}");
    let lost = Plan { to: "http://no-such-host.invalid/".parse().unwrap(), ..plan(1, Rate::Max, 1.0) };
    let error = load::run(&lost, &|| false, &mut |_, _| {}).unwrap_err().to_string();
    assert!(error.contains("is not known here"), "{error}");
}

#[test]
fn waits_without_end_are_none() {
    let plan = plan(answering(|| OK), Rate::PerSecond(100.0), 0.5);
    let error = |plan: &Plan| load::run(plan, &|| false, &mut |_, _| {}).unwrap_err().to_string();
    let late = error(&Plan { timeout: Duration::from_secs(u64::MAX), ..plan.clone() });
    assert!(late.contains("--timeout is an hour at most"), "{late}");
    let request = Request { think: Duration::from_secs(3601), ..plan.request.clone() };
    let thinks = error(&Plan { request, ..plan.clone() });
    assert!(thinks.contains("--think is an hour at most, and not 3601 s"), "{thinks}");
}

#[test]
fn more_than_the_service_can_do_is_told() {
    // One at a time, 2 ms each: 500 a second at most.
    let one = std::sync::Arc::new(std::sync::Mutex::new(()));
    let port = answering(move || {
        let _turn = one.lock().unwrap();
        thread::sleep(Duration::from_millis(2));
        OK
    });
    let plan = plan(port, Rate::PerSecond(1500.0), 2.0);
    let (run, verdict) = run(&plan);
    assert!(verdict.rate < 520.0, "{}", verdict.rate);
    assert!(verdict.verdict == Word::Misleading, "{:?}", verdict.reasons);
    assert!(verdict.reasons.iter().any(|reason| reason.code == "over-capacity"), "{:?}", verdict.reasons);
    assert_eq!(run.answered() + run.failed(), run.due, "none is forgotten");
}

fn codes(verdict: &Verdict) -> Vec<&str> {
    verdict.reasons.iter().map(|reason| reason.code.as_str()).collect()
}

/// A fifth of what was asked is under way at the end, and none of it queues.
#[test]
fn a_slow_service_that_keeps_up_is_not_over_its_capacity() {
    let port = answering(|| {
        thread::sleep(Duration::from_millis(400));
        OK
    });
    let (_, verdict) = run(&plan(port, Rate::PerSecond(50.0), 2.0));
    assert!(!codes(&verdict).contains(&"over-capacity"), "{:?}", verdict.reasons);
}

/// 20 connections of 400 ms each, on average, carry 50 requests a second, however many of them the service could take. Answers that
/// vary may have met a queue in it as well.
#[test]
fn connections_may_be_too_few_for_a_slow_service() {
    let nth = Arc::new(AtomicUsize::new(0));
    let port = answering(move || {
        let is_quick = nth.fetch_add(1, Ordering::Relaxed).is_multiple_of(3);
        thread::sleep(Duration::from_millis(if is_quick { 100 } else { 550 }));
        OK
    });
    let few = Plan { connections: 20, ..plan(port, Rate::PerSecond(150.0), 4.0) };
    let (_, verdict) = run(&few);
    let over = verdict.reasons.iter().find(|reason| reason.code == "over-capacity").unwrap();
    assert!(over.sentence.contains("20 connections were all taken"), "{over:?}");
}

#[test]
fn redirects_are_no_answers_of_what_was_asked_for() {
    let port = answering(|| "HTTP/1.1 301 Moved Permanently\r\nContent-Length: 0\r\n\r\n");
    let (_, verdict) = run(&plan(port, Rate::PerSecond(700.0), 2.0));
    assert!(verdict.verdict == Word::Misleading && codes(&verdict).contains(&"redirects"), "{:?}", verdict.reasons);
}

#[test]
fn messages_of_plain_bytes_in_several_writes() {
    let port = server(|mut stream| {
        let mut message = [0; 100];
        while stream.read_exact(&mut message).is_ok() && stream.write_all(b"1234567").is_ok() {}
    });
    let to: load::Address = format!("tcp://127.0.0.1:{port}").parse().unwrap();
    let request = Request::tcp(vec![vec![b'x'; 20], vec![b'x'; 80]], Duration::from_millis(5), 7);
    let plan = Plan { to, request, ..plan(port, Rate::PerSecond(200.0), 1.0) };
    let (run, _) = run(&plan);
    assert_eq!((run.answered(), run.failed()), (run.due, 0), "{:?}", run.failures);
    // A little less than the pause: lengths within 1 % are not told apart.
    let nearly = Duration::from_micros(4900);
    let quick = run.answered() - run.seconds.iter().map(|s| s.service.longer_than(nearly)).sum::<u64>();
    assert_eq!(quick, 0, "the pause before the second write is part of each");
}

#[test]
fn a_load_can_be_ended_early() {
    let start = Instant::now();
    let plan = plan(answering(|| OK), Rate::PerSecond(200.0), 60.0);
    let run = load::run(&plan, &|| start.elapsed() > Duration::from_millis(700), &mut |_, _| {}).unwrap();
    assert!(run.ended.is_some() && run.length < Duration::from_secs(30) && run.answered() > 50, "{:?}", run.length);
}

#[test]
fn a_load_that_only_waits_can_be_ended_too() {
    let mute = server(|mut stream| drop(stream.read_to_end(&mut Vec::new())));
    // It takes nobody, and has no room for so many: most of them wait for their handshake.
    let full = TcpListener::bind("127.0.0.1:0").unwrap();
    let full = (full.local_addr().unwrap().port(), full);
    for (port, connections) in [(mute, 32), (full.0, 600)] {
        let plan = plan(port, Rate::PerSecond(50.0), 0.2);
        let plan = Plan { connections, timeout: Duration::from_secs(60), may_be_silent: true, ..plan };
        let start = Instant::now();
        let run = load::run(&plan, &|| start.elapsed() > Duration::from_millis(700), &mut |_, _| {}).unwrap();
        assert!(
            run.ended.is_some() && start.elapsed() < Duration::from_secs(30),
            "{connections}: {:?}",
            start.elapsed()
        );
    }
}
