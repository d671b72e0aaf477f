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

/// A connection on which a hello was answered: both ends.
fn greeted(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let (mut client, mut server) = pair(listener);
    server.set_nodelay(true).unwrap();
    say(&mut client, &mut server, &record(HANDSHAKE, 200));
    say(&mut server, &mut client, &record(HANDSHAKE, 250));
    (client, server)
}

/// What is seen at both ends of some connections; `talk` goes on after the hello was answered.
fn shaken(talk: impl Fn(&mut TcpStream, &mut TcpStream)) -> [Group; 2] {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    seen(&listener, || {
        for _ in 0..CONNECTIONS {
            let (mut client, mut server) = greeted(&listener);
            talk(&mut client, &mut server);
        }
    })
}

fn answered_after(client: &mut TcpStream, server: &mut TcpStream, ms: u64) {
    sleep(Duration::from_millis(ms));
    say(server, client, &record(DATA, 90));
}

fn ask(client: &mut TcpStream, server: &mut TcpStream, ms: u64) {
    say(client, server, &record(DATA, 100));
    answered_after(client, server, ms);
}

/// A client's end with a question behind it.
fn end_and_question() -> Vec<u8> {
    [finished(), record(DATA, 100)].concat()
}

/// A client's end, and the tickets for it, before anything is asked.
fn end(client: &mut TcpStream, server: &mut TcpStream) {
    say(client, server, &finished());
    say(server, client, &record(DATA, 230));
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
        say(client, server, &end_and_question());
        say(server, client, &record(DATA, 230));
        answered_after(client, server, 30);
    }));
}

#[test]
fn a_request_after_the_tickets() {
    need!(kernel_allows());
    one_each_of_30_ms(&shaken(|client, server| {
        end(client, server);
        ask(client, server, 30);
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
        say(client, server, &end_and_question());
        answered_after(client, server, 30);
    }));
}

#[test]
fn a_handshake_of_tls_1_2() {
    need!(kernel_allows());
    one_each_of_30_ms(&shaken(|client, server| {
        say(client, server, &[&record(HANDSHAKE, 66)[..], &CHANGE, &record(HANDSHAKE, 40)].concat());
        say(server, client, &[&CHANGE[..], &record(HANDSHAKE, 40)].concat());
        ask(client, server, 30);
    }));
}

#[test]
fn a_handshake_of_tls_1_2_that_is_read_record_by_record() {
    need!(kernel_allows());
    one_each_of_30_ms(&shaken(|client, server| {
        say_record(client, server, &[&record(HANDSHAKE, 66)[..], &CHANGE, &record(HANDSHAKE, 40)].concat());
        say_record(server, client, &[&CHANGE[..], &record(HANDSHAKE, 40)].concat());
        say_record(client, server, &record(DATA, 100));
        answered_after(client, server, 30);
    }));
}

/// All that a client has to say in one record, of a length that nobody knows.
#[test]
fn a_certificate_in_one_record_with_the_end() {
    need!(kernel_allows());
    one_each_of_30_ms(&shaken(|client, server| {
        say(client, server, &[&CHANGE[..], &record(DATA, 200)].concat());
        say(server, client, &record(DATA, 230));
        ask(client, server, 30);
    }));
}

/// Tickets and a small answer behind them are two packets, and taken by one read.
#[test]
fn an_answer_behind_tickets() {
    need!(kernel_allows());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let [_, made] = seen(&listener, || {
        for _ in 0..CONNECTIONS {
            let (mut client, mut server) = greeted(&listener);
            end(&mut client, &mut server);
            drop((client, server));
            let (mut client, mut server) = greeted(&listener);
            say(&mut client, &mut server, &end_and_question());
            server.write_all(&record(DATA, 230)).unwrap();
            sleep(Duration::from_millis(10));
            server.write_all(&record(DATA, 90)).unwrap();
            sleep(Duration::from_millis(10));
            client.read_exact(&mut [0; 235 + 95]).unwrap();
        }
    });
    assert_eq!((made.response.count, made.unanswered), (CONNECTIONS, 0), "{made:?}");
}

/// Two of them, each written by itself; the client reads them after it has asked, record by record.
#[test]
fn tickets_that_come_after_the_question() {
    need!(kernel_allows());
    one_each_of_30_ms(&shaken(|client, server| {
        say(client, server, &end_and_question());
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
        ask(client, server, 30);
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
        ask(client, server, 30);
    });
    for group in groups {
        assert_eq!((group.handshake.count, group.response.count, group.began), (8, 4, 4), "{group:?}");
    }
}

#[test]
fn goodbyes_are_no_questions() {
    need!(kernel_allows());
    one_each_of_30_ms(&shaken(|client, server| {
        end(client, server);
        ask(client, server, 30);
        say_record(client, server, &record(DATA, 19));
        say_record(server, client, &record(DATA, 19));
    }));
}

/// As those do who only look whether somebody is there, whatever reads it.
#[test]
fn goodbyes_when_nothing_was_asked() {
    need!(kernel_allows());
    for say_it in [say, say_record] {
        let groups = shaken(|client, server| {
            end(client, server);
            say_it(client, server, &record(DATA, 19));
        });
        for group in groups {
            assert_eq!((group.handshake.count, group.began, group.unanswered), (4, 0, 0), "{group:?}");
        }
    }
}

/// Either end says it when the answer came as soon as tickets do: at once, or when it has waited for another question.
#[test]
fn goodbyes_after_an_answer_that_looks_like_tickets() {
    need!(kernel_allows());
    for (by_client, after_ms) in [(true, 0), (false, 0), (false, 300)] {
        let groups = shaken(|client, server| {
            say(client, server, &end_and_question());
            answered_after(client, server, 0);
            sleep(Duration::from_millis(after_ms));
            let (from, to) = if by_client { (client, server) } else { (server, client) };
            say(from, to, &record(DATA, 19));
        });
        for group in groups {
            assert_eq!((group.response.count, group.began, group.unanswered), (4, 4, 0), "{group:?}");
            assert!(group.response.sum_ns < 300 * MS, "{group:?}");
        }
    }
}

/// Of a server that has none, answers are known at once, when it was seen that none came.
#[test]
fn a_stream_of_a_server_without_tickets() {
    need!(kernel_allows());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let [accepted, _] = seen(&listener, || {
        for together in [false, true] {
            let (mut client, mut server) = greeted(&listener);
            if together {
                say(&mut client, &mut server, &end_and_question());
            } else {
                say(&mut client, &mut server, &finished());
                sleep(Duration::from_millis(5));
                say(&mut client, &mut server, &record(DATA, 100));
            }
            answered_after(&mut client, &mut server, 0);
            answered_after(&mut client, &mut server, 200); // the next part
        }
    });
    assert_eq!((accepted.response.count, accepted.unanswered), (2, 0), "{accepted:?}");
    assert!(accepted.response.sum_ns < 100 * MS, "{accepted:?}");
}

/// Where the length of tickets is known, answers that do not come are missed, quick ones are seen, and a question goes on.
#[test]
fn what_follows_tickets() {
    need!(kernel_allows());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let ticketed = || {
        let (mut client, mut server) = greeted(&listener);
        say(&mut client, &mut server, &end_and_question());
        say(&mut server, &mut client, &record(DATA, 230));
        (client, server)
    };
    let groups = seen(&listener, || {
        let (mut client, mut server) = greeted(&listener);
        say(&mut client, &mut server, &finished());
        say(&mut server, &mut client, &[record(DATA, 230), record(DATA, 230)].concat());
        drop((client, server));
        let (mut client, mut server) = ticketed();
        answered_after(&mut client, &mut server, 0);
        let (mut client, mut server) = ticketed();
        say(&mut client, &mut server, &record(DATA, 200));
        answered_after(&mut client, &mut server, 30);
        let (mut client, mut server) = greeted(&listener);
        say(&mut client, &mut server, &end_and_question());
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
        say(client, server, &end_and_question());
        answered_after(client, server, 0);
        ask(client, server, 30);
    });
    for group in groups {
        assert_eq!((group.response.count, group.began, group.unanswered), (8, 8, 0), "{group:?}");
        assert!(group.response.sum_ns >= CONNECTIONS * 29 * MS, "{group:?}");
    }
    let [accepted, _] = shaken(|client, server| {
        say(client, server, &end_and_question());
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
