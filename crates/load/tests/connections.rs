// SPDX-License-Identifier: Apache-2.0
//! How many connections there are is the client's, and no limit of a service.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use load::{Answer, Endpoint, Plan, Pool, Rate, Request, Spread, Sweep, Tried, Verdict, Word, judge};

/// A service that answers each request so long after it came, whatever others ask.
fn delayed(delay: Duration) -> SocketAddr {
    let (ready, at) = mpsc::channel();
    thread::spawn(move || {
        let at = format!("http://127.0.0.1:{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port());
        let endpoint = Endpoint {
            at: at.parse().unwrap(),
            request: None,
            answer: Answer::http(200, &[], b"ok"),
            delay,
            nodelay: true,
            timeout: Duration::from_secs(10),
            length: Duration::from_secs(600),
        };
        load::serve(&endpoint, &|| false, &mut |at| ready.send(at).unwrap()).unwrap();
    });
    at.recv().unwrap()
}

/// One that answers one request at a time.
fn one_at_a_time(takes: Duration) -> SocketAddr {
    let (listener, one) = (TcpListener::bind("127.0.0.1:0").unwrap(), Arc::new(Mutex::new(())));
    let at = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let one = Arc::clone(&one);
            thread::spawn(move || {
                while stream.read(&mut [0; 4096]).is_ok_and(|got| got > 0) {
                    let turn = one.lock().unwrap();
                    thread::sleep(takes);
                    drop(turn);
                    if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
                        break;
                    }
                }
            });
        }
    });
    at
}

/// One whose two workers each take a connection and keep it: others stand in its queue.
fn two_workers(takes: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    for _ in 0..2 {
        let listener = listener.try_clone().unwrap();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                while stream.read(&mut [0; 4096]).is_ok_and(|got| got > 0) {
                    thread::sleep(takes);
                    if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
                        break;
                    }
                }
            }
        });
    }
    at
}

fn plan(at: SocketAddr, rate: Rate, connections: usize) -> Plan {
    let to: load::Address = format!("http://{at}/").parse().unwrap();
    Plan {
        request: Request::http(&to, "GET", &[], b"", false),
        to,
        rate,
        spread: Spread::Uniform,
        length: Duration::from_secs(1),
        connections,
        new_connections: false,
        sources: Vec::new(),
        timeout: Duration::from_secs(10),
        may_be_silent: false,
    }
}

fn loaded(plan: &Plan) -> Verdict {
    judge(&load::run(plan, &|| false, &mut |_, _| {}).unwrap(), None)
}

fn swept(at: SocketAddr, (from, to): (f64, f64), pool: Pool) -> Sweep {
    let mut load = |rate, connections| {
        let verdict = loaded(&plan(at, Rate::PerSecond(rate), connections));
        thread::sleep(verdict.left_over());
        Ok(Some(Tried { verdict, service: None }))
    };
    load::sweep_over(from, to, pool, &mut load).unwrap()
}

fn codes(sweep: &Sweep) -> Vec<&str> {
    sweep.findings.iter().map(|finding| finding.code.as_str()).collect()
}

/// 16 connections carry 160 requests a second of 100 ms each. On a host that is full, a load or two may fail for another reason.
#[test]
fn a_sweep_takes_more_connections_before_it_tells_of_a_limit() {
    let at = delayed(Duration::from_millis(100));
    let sweep = swept(at, (100.0, 800.0), Pool { connections: 16, most: 256 });
    assert!(codes(&sweep).contains(&"more-connections"), "{:?}", sweep.findings);
    let most = sweep.steps.iter().filter(|step| step.sustained).map(|step| step.rate).fold(0.0, f64::max);
    assert!(most >= 400.0 && sweep.knee.is_none_or(|knee| knee.sustained >= 190.0), "{most} {:?}", sweep.findings);

    let sweep = swept(at, (100.0, 800.0), Pool { connections: 16, most: 32 });
    let out = sweep.findings.iter().find(|finding| finding.code == "connections").unwrap();
    assert!(sweep.knee.is_none() && out.sentence.contains("all of 32 connections"), "{:?}", sweep.findings);
}

#[test]
fn a_service_that_takes_two_connections_at_a_time() {
    let at = two_workers(Duration::from_millis(5));
    let mut load = |rate, connections| {
        let plan = plan(at, Rate::PerSecond(rate), connections);
        // As visitors do, several come at once now and then.
        let plan = Plan { spread: Spread::Poisson, timeout: Duration::from_secs(1), ..plan };
        let verdict = loaded(&Plan { length: Duration::from_secs(2), ..plan });
        thread::sleep(verdict.left_over());
        Ok(Some(Tried { verdict, service: None }))
    };
    let sweep = load::sweep_over(100.0, 1000.0, Pool { connections: 16, most: 64 }, &mut load).unwrap();
    let few = sweep.findings.iter().find(|finding| finding.code == "few-connections");
    assert!(few.is_some_and(|few| few.sentence.contains("it takes 2 connections at a time")), "{:?}", sweep.findings);
    let first = &sweep.steps[0].verdict.reasons;
    assert!(first.iter().any(|reason| reason.code == "not-taken"), "{first:?}");
    assert!(sweep.knee.is_some_and(|knee| (150.0..410.0).contains(&knee.answered)), "{:?}", sweep.knee);
}

#[test]
fn a_service_that_is_full_is_not_given_more_connections() {
    let sweep = swept(one_at_a_time(Duration::from_millis(5)), (50.0, 800.0), Pool { connections: 8, most: 256 });
    let (knee, codes) = (sweep.knee.unwrap(), codes(&sweep));
    assert!((100.0..250.0).contains(&knee.sustained), "{knee:?} {:?}", sweep.findings);
    assert!(!codes.contains(&"more-connections") && !codes.contains(&"connections"), "{:?}", sweep.findings);
}

#[test]
fn one_load_says_that_its_connections_limit_it() {
    let at = delayed(Duration::from_millis(100));
    for rate in [Rate::PerSecond(400.0), Rate::Max] {
        let verdict = loaded(&Plan { length: Duration::from_secs(3), ..plan(at, rate, 20) });
        let why = verdict.reasons.iter().find(|reason| reason.code == "connections");
        assert!(why.is_some_and(|why| why.sentence.contains("20 connections were all taken")), "{:?}", verdict.reasons);
        assert!(verdict.reasons.iter().all(|reason| reason.code != "over-capacity"), "{:?}", verdict.reasons);
    }
    let many = loaded(&Plan { length: Duration::from_secs(3), ..plan(at, Rate::Max, 64) });
    assert_eq!((many.verdict, many.reasons[0].code.as_str()), (Word::Misleading, "connections"));
    let full = loaded(&plan(one_at_a_time(Duration::from_millis(5)), Rate::Max, 20));
    assert!(full.reasons.iter().all(|reason| reason.code != "connections"), "{:?}", full.reasons);
}

/// It reads from one connection until that is closed, as servers with few workers do: each has to be asked over in its turn.
#[test]
fn a_service_that_takes_one_connection_at_a_time() {
    for closes in [true, false] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                while stream.read(&mut [0; 4096]).is_ok_and(|got| got > 0) {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
                    if closes {
                        break;
                    }
                }
            }
        });
        let verdict = loaded(&plan(at, Rate::PerSecond(20.0), 8));
        assert!(verdict.answered >= 10, "{closes}: {} of {} answered", verdict.answered, verdict.due);
    }
}
