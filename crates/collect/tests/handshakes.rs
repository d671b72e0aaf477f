// SPDX-License-Identifier: Apache-2.0
//! Handshakes of TLS are told from what is asked after them: by their records, as the libraries write and read them, here of zeros.
//! Needs root; see `kernel_allows`.

#![allow(clippy::unwrap_used)]

mod exchange;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread::sleep;
use std::time::Duration;

use exchange::{MS, kernel_allows, pair, seen};
use testing::need;
use wakewalk_collect::probes::exchanges::Group;

const CONNECTIONS: u64 = 4;
const HANDSHAKE: u8 = 0x16;
const DATA: u8 = 0x17;
/// What TLS 1.3 sends for the sake of what stands between both ends.
const CHANGE: [u8; 6] = [0x14, 3, 3, 0, 1, 1];

/// A record of so many bytes besides its head.
fn record(kind: u8, length: u8) -> Vec<u8> {
    [&[kind, 3, 3, 0, length][..], &vec![0; length.into()]].concat()
}

/// A client's end of TLS 1.3.
fn finished() -> Vec<u8> {
    [&CHANGE[..], &record(DATA, 53)].concat()
}

/// Writes at one end and reads all of it at the other.
fn say(from: &mut TcpStream, to: &mut TcpStream, bytes: &[u8]) {
    from.write_all(bytes).unwrap();
    to.read_exact(&mut vec![0; bytes.len()]).unwrap();
}

/// The same, read as OpenSSL does by itself: the head of each record, then the rest of it.
fn say_record(from: &mut TcpStream, to: &mut TcpStream, bytes: &[u8]) {
    from.write_all(bytes).unwrap();
    let mut head = [0; 5];
    let mut left = bytes.len();
    while left > 0 {
        to.read_exact(&mut head).unwrap();
        to.read_exact(&mut vec![0; head[4].into()]).unwrap();
        left -= 5 + usize::from(head[4]);
    }
}

/// What is seen at both ends of some connections; `talk` goes on after the hello was answered.
fn shaken(talk: impl Fn(&mut TcpStream, &mut TcpStream)) -> [Group; 2] {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    seen(&listener, || {
        for _ in 0..CONNECTIONS {
            let (mut client, mut server) = pair(&listener);
            say(&mut client, &mut server, &record(HANDSHAKE, 200));
            say(&mut server, &mut client, &record(HANDSHAKE, 250));
            talk(&mut client, &mut server);
        }
    })
}

fn answered_after(client: &mut TcpStream, server: &mut TcpStream, ms: u64) {
    sleep(Duration::from_millis(ms));
    say(server, client, &record(DATA, 90));
}

/// Each connection had one request, of 30 ms, whatever stood before it.
fn one_each_of_30_ms(groups: &[Group; 2]) {
    for group in groups {
        assert_eq!((group.handshake.count, group.response.count), (CONNECTIONS, CONNECTIONS), "{group:?}");
        assert!(group.response.sum_ns >= CONNECTIONS * 29 * MS, "{group:?}");
        assert_eq!((group.began, group.unanswered), (CONNECTIONS, 0), "{group:?}");
    }
    assert_eq!((groups[0].first_read.count, groups[0].read_wait.count), (CONNECTIONS, CONNECTIONS), "{groups:?}");
}

#[test]
fn a_request_beside_the_end_of_its_handshake() {
    need!(kernel_allows());
    one_each_of_30_ms(&shaken(|client, server| {
        say(client, server, &[finished(), record(DATA, 100)].concat());
        say(server, client, &record(DATA, 230));
        answered_after(client, server, 30);
    }));
}

#[test]
fn a_request_after_the_tickets() {
    need!(kernel_allows());
    one_each_of_30_ms(&shaken(|client, server| {
        say(client, server, &finished());
        say(server, client, &record(DATA, 230));
        say(client, server, &record(DATA, 100));
        answered_after(client, server, 30);
    }));
}

#[test]
fn a_handshake_that_is_read_record_by_record() {
    need!(kernel_allows());
    one_each_of_30_ms(&shaken(|client, server| {
        say_record(client, server, &finished());
        say_record(server, client, &record(DATA, 230));
        say_record(client, server, &record(DATA, 100));
        answered_after(client, server, 30);
    }));
}

#[test]
fn a_server_without_tickets() {
    need!(kernel_allows());
    one_each_of_30_ms(&shaken(|client, server| {
        say(client, server, &[finished(), record(DATA, 100)].concat());
        answered_after(client, server, 30);
    }));
}

#[test]
fn a_handshake_of_tls_1_2() {
    need!(kernel_allows());
    one_each_of_30_ms(&shaken(|client, server| {
        say(client, server, &[&record(HANDSHAKE, 66)[..], &CHANGE, &record(HANDSHAKE, 40)].concat());
        say(server, client, &[&CHANGE[..], &record(HANDSHAKE, 40)].concat());
        say(client, server, &record(DATA, 100));
        answered_after(client, server, 30);
    }));
}

/// Two of them, each written by itself; the client reads them after it has asked, record by record.
#[test]
fn tickets_that_come_after_the_question() {
    need!(kernel_allows());
    one_each_of_30_ms(&shaken(|client, server| {
        say(client, server, &[finished(), record(DATA, 100)].concat());
        for _ in 0..2 {
            say_record(server, client, &record(DATA, 230));
        }
        answered_after(client, server, 30);
    }));
}

/// The end of the handshake and the request are two packets, and taken by one read.
#[test]
fn a_request_behind_the_end_of_its_handshake() {
    need!(kernel_allows());
    one_each_of_30_ms(&shaken(|client, server| {
        client.write_all(&finished()).unwrap();
        sleep(Duration::from_millis(10));
        client.write_all(&record(DATA, 100)).unwrap();
        server.read_exact(&mut [0; 64 + 105]).unwrap();
        say(server, client, &record(DATA, 230));
        answered_after(client, server, 30);
    }));
}

#[test]
fn a_client_with_a_certificate() {
    need!(kernel_allows());
    one_each_of_30_ms(&shaken(|client, server| {
        say(client, server, &[&CHANGE[..], &record(DATA, 250), &record(DATA, 150), &record(DATA, 69)].concat());
        say(server, client, &record(DATA, 230));
        say(client, server, &record(DATA, 100));
        answered_after(client, server, 30);
    }));
}

/// The server wants another key: the client says hello again.
#[test]
fn a_second_hello() {
    need!(kernel_allows());
    let groups = shaken(|client, server| {
        let mut hello = record(HANDSHAKE, 200);
        hello[5] = 1;
        say(client, server, &[&CHANGE[..], &hello].concat());
        say(server, client, &record(HANDSHAKE, 250));
        say(client, server, &record(DATA, 53));
        say(server, client, &record(DATA, 230));
        say(client, server, &record(DATA, 100));
        answered_after(client, server, 30);
    });
    for group in groups {
        assert_eq!((group.handshake.count, group.response.count, group.began), (8, 4, 4), "{group:?}");
    }
}

#[test]
fn goodbyes_are_no_questions() {
    need!(kernel_allows());
    one_each_of_30_ms(&shaken(|client, server| {
        say(client, server, &finished());
        say(server, client, &record(DATA, 230));
        say(client, server, &record(DATA, 100));
        answered_after(client, server, 30);
        say_record(client, server, &record(DATA, 19));
        say_record(server, client, &record(DATA, 19));
    }));
    let [accepted, made] = shaken(|client, server| {
        say(client, server, &finished());
        say(server, client, &record(DATA, 230));
        say(client, server, &record(DATA, 19));
    });
    for group in [accepted, made] {
        assert_eq!((group.handshake.count, group.began, group.unanswered), (4, 0, 0), "{group:?}");
    }
}

/// Where the length of tickets is known, answers that do not come are missed, quick ones are seen, and a question goes on.
#[test]
fn what_follows_tickets() {
    need!(kernel_allows());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let begin = || {
        let (mut client, mut server) = pair(&listener);
        server.set_nodelay(true).unwrap();
        say(&mut client, &mut server, &record(HANDSHAKE, 200));
        say(&mut server, &mut client, &record(HANDSHAKE, 250));
        (client, server)
    };
    let ticketed = || {
        let (mut client, mut server) = begin();
        say(&mut client, &mut server, &[finished(), record(DATA, 100)].concat());
        say(&mut server, &mut client, &record(DATA, 230));
        (client, server)
    };
    let groups = seen(&listener, || {
        let (mut client, mut server) = begin();
        say(&mut client, &mut server, &finished());
        say(&mut server, &mut client, &[record(DATA, 230), record(DATA, 230)].concat());
        drop((client, server));
        let (mut client, mut server) = ticketed();
        answered_after(&mut client, &mut server, 0);
        let (mut client, mut server) = ticketed();
        say(&mut client, &mut server, &record(DATA, 200));
        answered_after(&mut client, &mut server, 30);
        let (mut client, mut server) = begin();
        say(&mut client, &mut server, &[finished(), record(DATA, 100)].concat());
        say(&mut server, &mut client, &[record(DATA, 230), record(DATA, 90)].concat());
        drop((client, server, ticketed()));
    });
    for group in groups {
        assert_eq!((group.response.count, group.began, group.unanswered), (3, 4, 1), "{group:?}");
        assert!(group.response.sum_ns >= 29 * MS && group.response.sum_ns < 60 * MS, "{group:?}");
    }
}

/// An answer that comes as soon as tickets do is one when nothing else comes: the client asks again, or goes.
#[test]
fn an_answer_that_looks_like_tickets() {
    need!(kernel_allows());
    let groups = shaken(|client, server| {
        say(client, server, &[finished(), record(DATA, 100)].concat());
        answered_after(client, server, 0);
        say(client, server, &record(DATA, 100));
        answered_after(client, server, 30);
    });
    for group in groups {
        assert_eq!((group.response.count, group.began, group.unanswered), (8, 8, 0), "{group:?}");
        assert!(group.response.sum_ns >= CONNECTIONS * 29 * MS, "{group:?}");
    }
    let [accepted, _] = shaken(|client, server| {
        say(client, server, &[finished(), record(DATA, 100)].concat());
        answered_after(client, server, 0);
    });
    assert_eq!((accepted.response.count, accepted.unanswered), (CONNECTIONS, 0), "{accepted:?}");
}

#[test]
fn a_hello_to_which_nobody_says_anything() {
    need!(kernel_allows());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let [accepted, _] = seen(&listener, || {
        let (mut client, mut server) = pair(&listener);
        say(&mut client, &mut server, &record(HANDSHAKE, 200));
        drop((client, server));
        sleep(Duration::from_millis(50));
    });
    assert_eq!((accepted.began, accepted.unanswered, accepted.handshake.count), (1, 1, 0), "{accepted:?}");
}
