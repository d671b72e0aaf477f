// SPDX-License-Identifier: Apache-2.0
//! Exchanges, against ones of this process whose lengths are known: it is the server and its client. Needs root; see
//! `kernel_allows`.

#![allow(clippy::unwrap_used)]
#![allow(unsafe_code)] // one system call that no safe library here makes

mod exchange;

use std::fs::File;
use std::io::{IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::process::id;
use std::thread::sleep;
use std::time::Duration;

use exchange::{MS, ask, kernel_allows, pair, seen};
use testing::need;
use wakewalk_collect::probes::exchanges::{Exchanges, Opening, Request};
use wakewalk_collect::probes::ledger::Ledger;

#[test]
fn lengths_and_their_parts() {
    need!(kernel_allows());
    for address in [Ipv4Addr::LOCALHOST.into(), std::net::IpAddr::from(Ipv6Addr::LOCALHOST)] {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let [accepted, made] = seen(&listener, || ask(&listener, 8, (20, 30)));
        assert_eq!((accepted.response.count, accepted.began, made.response.count), (8, 8, 8), "{accepted:?} {made:?}");
        let parts = [&accepted.first_read, &accepted.read_wait, &accepted.service].map(|stage| stage.sum_ns);
        assert_eq!(accepted.response.sum_ns, parts.iter().sum::<u64>());
        assert!(accepted.service.sum_ns >= 8 * 30 * MS, "{accepted:?}");
        // The sleep before the first read may have begun before the first question came.
        assert!(accepted.read_wait.sum_ns >= 7 * 19 * MS, "{accepted:?}");
        assert_eq!((accepted.read_wait.count, accepted.first_read.count), (7, 1), "{accepted:?}");
        assert!(made.response.sum_ns >= accepted.service.sum_ns && made.read_wait.count == 8, "{made:?}");
        let middle = accepted.service.bins.iter().map(|(ns, count)| ns * count).sum::<u64>();
        assert!(middle.abs_diff(accepted.service.sum_ns) * 25 < middle, "bins are within 3 %: {accepted:?}");
    }
}

/// A command that the capture starts listens when all hooks are on: its clients are told from whom it asks by what it does.
#[test]
fn who_begins_to_listen_is_asked() {
    need!(kernel_allows());
    let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let ledger = Ledger::load(&mut a).unwrap();
    let mut exchanges = Exchanges::load(&mut b, &ledger, None, [], false).unwrap();
    ledger.seed(&[id()]).unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    ask(&listener, 4, (0, 20));
    let all = exchanges.fresh().unwrap();
    let accepted = all.iter().find(|group| group.port == port && group.accepted);
    assert_eq!(accepted.map(|group| group.response.count), Some(4), "{all:?}");
}

/// One client at each of more ports than are told apart.
#[test]
fn ports_beyond_those_that_are_told_apart_are_told_together() {
    need!(kernel_allows());
    let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let ledger = Ledger::load(&mut a).unwrap();
    let listeners: Vec<_> = (0..70).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).collect();
    let ports = listeners.iter().map(|listener| listener.local_addr().unwrap().port());
    let mut exchanges = Exchanges::load(&mut b, &ledger, None, ports, false).unwrap();
    ledger.seed(&[id()]).unwrap();
    listeners.iter().for_each(|listener| ask(listener, 2, (0, 0)));
    let all = exchanges.fresh().unwrap();
    let answered = |accepted: bool| {
        let of = all.iter().filter(move |group| group.accepted == accepted);
        of.map(|group| group.response.count).sum::<u64>()
    };
    assert_eq!((answered(true), answered(false)), (140, 140), "{all:?}");
    let together =
        |accepted: bool| all.iter().any(|g| g.accepted == accepted && g.port == 0 && g.peer.is_none() && g.began > 0);
    assert!(together(true) && together(false), "{all:?}");
    assert_eq!(exchanges.has_more(), (true, true));
}

/// Three clients wait while nobody is answered, and are answered one after the other then.
#[test]
fn nobody_is_answered_for_a_while() {
    need!(kernel_allows());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let [accepted, _] = seen(&listener, || {
        let mut pairs: Vec<_> = (0..3).map(|_| pair(&listener)).collect();
        for pause in [0, 200, 0] {
            pairs.iter_mut().for_each(|(asking, _)| asking.write_all(b"question").unwrap());
            sleep(Duration::from_millis(pause));
            for (asking, accepted) in &mut pairs {
                accepted.read_exact(&mut [0; 8]).unwrap();
                accepted.write_all(b"answered").unwrap();
                asking.read_exact(&mut [0; 8]).unwrap();
            }
        }
    });
    assert_eq!((accepted.response.count, accepted.stood), (9, 3), "{accepted:?}");
    assert!(accepted.stood_ns >= 180 * MS && accepted.stood_ns <= accepted.response.sum_ns, "{accepted:?}");
}

/// The rest of a question comes 30 ms after its first bytes were read, or lies there when they are.
#[test]
fn questions_in_parts() {
    need!(kernel_allows());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let in_parts = |before_read: bool| {
        seen(&listener, || {
            let (mut asking, mut accepted) = pair(&listener);
            for _ in 0..5 {
                asking.write_all(b"ques").unwrap();
                if before_read {
                    asking.write_all(b"tion").unwrap();
                }
                accepted.read_exact(&mut [0; 4]).unwrap();
                sleep(Duration::from_millis(30));
                if !before_read {
                    asking.write_all(b"tion").unwrap();
                }
                accepted.read_exact(&mut [0; 4]).unwrap();
                accepted.write_all(b"answered").unwrap();
                asking.read_exact(&mut [0; 8]).unwrap();
            }
        })
    };
    let [later, _] = in_parts(false);
    assert_eq!((later.rest.count, later.more, later.pushed), (5, 5, 0), "{later:?}");
    assert!(later.rest.sum_ns >= 5 * 30 * MS && later.rest.sum_ns <= later.service.sum_ns, "{later:?}");
    let [at_once, _] = in_parts(true);
    assert_eq!((at_once.rest.count, at_once.more), (0, 5), "{at_once:?}");
}

/// A request that stood in the accept queue: it had come before anybody took its connection.
#[test]
fn what_stands_before_accept() {
    need!(kernel_allows());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let [accepted, _] = seen(&listener, || {
        for _ in 0..3 {
            let mut asking = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            asking.write_all(b"question").unwrap();
            sleep(Duration::from_millis(100));
            let (mut taken, _) = listener.accept().unwrap();
            taken.read_exact(&mut [0; 8]).unwrap();
            taken.write_all(b"answered").unwrap();
            asking.read_exact(&mut [0; 8]).unwrap();
        }
    });
    assert_eq!((accepted.first_read.count, accepted.read_wait.count), (3, 0), "{accepted:?}");
    // The kernel keeps the arrival to a jiffy or two where it has acknowledged it late.
    assert!(accepted.first_read.sum_ns >= 270 * MS, "{accepted:?}");
    assert!(accepted.response.sum_ns >= accepted.first_read.sum_ns, "{accepted:?}");
}

/// The kernel's own late acknowledgement, after 40 ms, is taken for no arrival.
#[test]
fn what_lies_unread_for_long() {
    need!(kernel_allows());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let [accepted, _] = seen(&listener, || ask(&listener, 5, (200, 1)));
    assert!(accepted.read_wait.sum_ns >= 4 * 180 * MS, "{accepted:?}");
}

#[test]
fn streams_and_ends_without_an_answer() {
    need!(kernel_allows());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let [accepted, made] = seen(&listener, || {
        let (mut asking, mut accepted) = pair(&listener);
        asking.write_all(b"part one").unwrap();
        accepted.read_exact(&mut [0; 8]).unwrap();
        sleep(Duration::from_millis(5));
        asking.write_all(b"part two").unwrap();
        accepted.read_exact(&mut [0; 8]).unwrap();
        for _ in 0..3 {
            accepted.write_all(b"answered").unwrap();
            asking.read_exact(&mut [0; 8]).unwrap();
        }
        asking.write_all(b"question").unwrap();
        accepted.read_exact(&mut [0; 8]).unwrap();
        drop(accepted);
        assert_eq!(asking.read(&mut [0; 8]).unwrap(), 0);
    });
    assert_eq!((accepted.began, accepted.response.count, accepted.more, accepted.pushed), (2, 1, 1, 2), "{accepted:?}");
    assert_eq!((accepted.unanswered, made.began, made.response.count), (1, 2, 1), "{made:?}");
}

/// A worker that dies in the midst of a request; and a client that says goodbye, for which there is no answer.
#[test]
fn whoever_owes_an_answer_and_closes() {
    need!(kernel_allows());
    let ends = |owes: bool| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let seen = seen(&listener, || {
            let (mut asking, mut accepted) = pair(&listener);
            asking.write_all(b"question").unwrap();
            accepted.read_exact(&mut [0; 8]).unwrap();
            sleep(Duration::from_millis(20));
            let (first, mut second) = if owes { (accepted, asking) } else { (asking, accepted) };
            drop(first);
            assert_eq!(second.read(&mut [0; 8]).unwrap(), 0);
        });
        seen.map(|group| (group.unanswered, group.hung_up))
    };
    assert_eq!(ends(true), [(1, 1), (1, 1)]);
    assert_eq!(ends(false), [(1, 0), (1, 0)]);
}

/// A server that greets has no room for another client, which has not said anything yet.
#[test]
fn whoever_greets_and_closes_sends_a_client_away() {
    need!(kernel_allows());
    let ends = |by_server: bool, client_speaks: bool| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let seen = seen(&listener, || {
            let (mut asking, mut accepted) = pair(&listener);
            accepted.write_all(b"too many").unwrap();
            asking.read_exact(&mut [0; 8]).unwrap();
            if client_speaks {
                asking.write_all(b"question").unwrap();
                accepted.read_exact(&mut [0; 8]).unwrap();
            }
            let (first, mut second) = if by_server { (accepted, asking) } else { (asking, accepted) };
            drop(first);
            assert_eq!(second.read(&mut [0; 8]).unwrap(), 0);
        });
        seen.map(|group| group.dismissed)
    };
    assert_eq!(ends(true, false), [1, 1]);
    assert_eq!(ends(false, false), [0, 0]);
    assert_eq!(ends(true, true), [0, 0]);
}

/// Reads what has come; says how much.
type ReadIt = fn(&TcpStream) -> usize;

/// Ways in which programs read, by the calls that they make.
fn ways() -> [(&'static str, ReadIt); 4] {
    fn read(stream: &TcpStream) -> usize {
        File::from(stream.as_fd().try_clone_to_owned().unwrap()).read(&mut [0; 512]).unwrap()
    }
    fn readv(stream: &TcpStream) -> usize {
        let (mut head, mut rest) = ([0; 200], [0; 300]);
        let mut file = File::from(stream.as_fd().try_clone_to_owned().unwrap());
        file.read_vectored(&mut [IoSliceMut::new(&mut head), IoSliceMut::new(&mut rest)]).unwrap()
    }
    fn recv(mut stream: &TcpStream) -> usize {
        stream.read(&mut [0; 512]).unwrap()
    }
    fn recvmsg(stream: &TcpStream) -> usize {
        let mut bytes = [0_u8; 512];
        let mut piece = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        // SAFETY: an all-zero message is valid; it names one piece of memory, which outlives the call.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        (message.msg_iov, message.msg_iovlen) = (&raw mut piece, 1);
        // SAFETY: as above.
        let read = unsafe { libc::recvmsg(stream.as_raw_fd(), &raw mut message, 0) };
        usize::try_from(read).unwrap()
    }
    [("read", read), ("readv", readv), ("recv", recv), ("recvmsg", recvmsg)]
}

/// What is told of the openings at a listener while `work` goes on: of clients' questions, and of the target's own.
fn openings(listener: &TcpListener, with: bool, work: impl FnOnce()) -> [Vec<String>; 2] {
    told(listener, with, work, |opening| Some(opening.bytes().to_vec()))
}

/// The same of some bytes of each.
fn told(
    listener: &TcpListener,
    with: bool,
    work: impl FnOnce(),
    bytes: fn(&Opening) -> Option<Vec<u8>>,
) -> [Vec<String>; 2] {
    let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let ledger = Ledger::load(&mut a).unwrap();
    let address = listener.local_addr().unwrap();
    let exchanges = Exchanges::load(&mut b, &ledger, None, [address.port()], with).unwrap();
    ledger.seed(&[id()]).unwrap();
    work();
    let all = exchanges.requests().unwrap();
    let of = |accepted: bool| {
        let here = |request: &&Request| {
            request.accepted == accepted && (accepted && request.port == address.port() || request.peer == address)
        };
        let text = |request: &Request| String::from_utf8(bytes(request.opening.as_ref()?)?).ok();
        all.iter().filter(here).filter_map(text).collect()
    };
    [of(true), of(false)]
}

#[test]
fn openings_by_every_way_to_read() {
    need!(kernel_allows());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let question = |way: &str| format!("GET /{way} HTTP/1.1\r\nHost: {}\r\n\r\n", "x".repeat(200));
    let work = || {
        for (way, read) in ways() {
            let (mut asking, mut accepted) = pair(&listener);
            for _ in 0..2 {
                asking.write_all(question(way).as_bytes()).unwrap();
                assert_eq!(read(&accepted), question(way).len());
                accepted.write_all(b"answered").unwrap();
                asking.read_exact(&mut [0; 8]).unwrap();
            }
        }
    };
    let expected: Vec<String> =
        ways().iter().flat_map(|(way, _)| [&question(way)[..128]; 2].map(String::from)).collect();
    assert_eq!(openings(&listener, true, work), [expected.clone(), expected]);
    let none: [Vec<String>; 2] = openings(&listener, false, work);
    assert_eq!(none, [Vec::<String>::new(), Vec::new()], "nothing is read unless it is wanted");
}

/// How answers begin, as they are written and as they are read; of one that is too short for a failure nothing.
#[test]
fn what_answers_say() {
    need!(kernel_allows());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let work = || {
        let (mut asking, mut accepted) = pair(&listener);
        for answer in ["HTTP/1.1 503 Service Unavailable\r\n\r\n", "+OK\r\n", "HTTP/1.1 200 OK\r\n\r\n"] {
            asking.write_all(b"question").unwrap();
            accepted.read_exact(&mut [0; 8]).unwrap();
            accepted.write_all(answer.as_bytes()).unwrap();
            assert_eq!(asking.read(&mut [0; 64]).unwrap(), answer.len());
        }
    };
    let answers = told(&listener, true, work, |opening| opening.answer.map(|answer| answer.to_vec()));
    let expected = ["HTTP/1.1 503", "HTTP/1.1 200"].map(String::from);
    assert_eq!(answers, [expected.to_vec(), expected.to_vec()]);
}

/// A head of a few bytes and then the rest; and a question that comes in two parts into room for more.
#[test]
fn openings_in_parts() {
    need!(kernel_allows());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let [accepted, made] = openings(&listener, true, || {
        let (mut asking, mut accepted) = pair(&listener);
        asking.write_all(b"headrest").unwrap();
        accepted.read_exact(&mut [0; 4]).unwrap();
        accepted.read_exact(&mut [0; 4]).unwrap();
        accepted.write_all(b"answered").unwrap();
        asking.read_exact(&mut [0; 8]).unwrap();
        for part in [b"part one", b"part two"] {
            asking.write_all(part).unwrap();
            assert_eq!(accepted.read(&mut [b'!'; 64]).unwrap(), 8);
        }
        accepted.write_all(b"answered").unwrap();
        asking.read_exact(&mut [0; 8]).unwrap();
    });
    assert_eq!(accepted, ["headrest", "part one"], "only what was read, and never what lies behind it");
    assert_eq!(made, ["headrest", "part one"]);
}

/// Moves what has come into a pipe, without a copy; 0 = the other end has closed its side.
fn spliced(stream: &TcpStream, pipe: &impl AsRawFd) -> isize {
    let none = std::ptr::null_mut();
    // SAFETY: both descriptors live through the call, and no place is named.
    unsafe { libc::splice(stream.as_raw_fd(), none, pipe.as_raw_fd(), none, 64, 0) }
}

/// Who closes its side asks nothing by that, and answers nothing: a splice takes the end as if it were a byte.
#[test]
fn an_end_is_no_question() {
    need!(kernel_allows());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (_out, into) = std::io::pipe().unwrap();
    let [accepted, made] = seen(&listener, || {
        let (mut asking, mut accepted) = pair(&listener);
        asking.write_all(b"question").unwrap();
        assert_eq!(spliced(&accepted, &into), 8);
        accepted.write_all(b"answered").unwrap();
        assert_eq!(spliced(&asking, &into), 8);
        asking.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(spliced(&accepted, &into), 0);
        // Together with the last bytes it takes one more place.
        let (mut asking, mut accepted) = pair(&listener);
        accepted.write_all(b"hello").unwrap();
        asking.write_all(b"question").unwrap();
        asking.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(spliced(&accepted, &into), 8);
        accepted.write_all(b"answered").unwrap();
    });
    assert_eq!((accepted.began, accepted.response.count, accepted.unanswered), (2, 2, 0), "{accepted:?}");
    assert_eq!((made.began, made.unanswered), (2, 1), "the last one was not read: {made:?}");
}
