// SPDX-License-Identifier: Apache-2.0
//! Exchanges, against ones of this process whose lengths are known: it is the server and its client. Needs root; see
//! `kernel_allows`.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::process::id;
use std::thread::{scope, sleep};
use std::time::Duration;

use testing::need;
use wakewalk_collect::probes::exchanges::{Exchanges, Group};
use wakewalk_collect::probes::ledger::Ledger;

/// Where not even a probe load works there is nothing to test; that is said, not hidden.
fn kernel_allows() -> anyhow::Result<()> {
    Ledger::load(&mut MaybeUninit::uninit()).map(drop)
}

/// A connection on this host: the end that asked, and the one that was accepted.
fn pair(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let asking = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    asking.set_nodelay(true).unwrap();
    (asking, listener.accept().unwrap().0)
}

/// What is seen of `work` at a listener: as the server, and as the client.
fn seen(listener: &TcpListener, work: impl FnOnce()) -> [Group; 2] {
    let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let ledger = Ledger::load(&mut a).unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut exchanges = Exchanges::load(&mut b, &ledger, None, [port]).unwrap();
    ledger.seed(&[id()]).unwrap();
    work();
    let all = exchanges.fresh().unwrap();
    let accepted = all.iter().find(|group| group.accepted && group.port == port);
    let made = all.iter().find(|group| group.peer == listener.local_addr().ok());
    let again = exchanges.fresh().unwrap();
    assert!(!again.iter().any(|group| group.port == port), "each is told once: {again:?}");
    [accepted, made].map(|group| group.cloned().unwrap_or_default())
}

const MS: u64 = 1_000_000;

/// Asks `times` times; the server reads after one time, and answers after another, ms.
fn ask(listener: &TcpListener, times: usize, (unread, service): (u64, u64)) {
    let (mut asking, mut accepted) = pair(listener);
    scope(|both| {
        both.spawn(move || {
            for _ in 0..times {
                sleep(Duration::from_millis(unread));
                accepted.read_exact(&mut [0; 8]).unwrap();
                sleep(Duration::from_millis(service));
                accepted.write_all(b"answered").unwrap();
            }
        });
        for _ in 0..times {
            asking.write_all(b"question").unwrap();
            asking.read_exact(&mut [0; 8]).unwrap();
        }
    });
}

#[test]
fn lengths_and_their_parts() {
    need!(kernel_allows());
    for address in [Ipv4Addr::LOCALHOST.into(), std::net::IpAddr::from(Ipv6Addr::LOCALHOST)] {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let [accepted, made] = seen(&listener, || ask(&listener, 8, (20, 30)));
        assert_eq!((accepted.response.count, accepted.began, made.response.count), (8, 8, 8), "{accepted:?} {made:?}");
        assert_eq!(accepted.response.sum_ns, accepted.read_wait.sum_ns + accepted.service.sum_ns);
        assert!(accepted.service.sum_ns >= 8 * 30 * MS, "{accepted:?}");
        // The sleep before the first read may have begun before the first question came.
        assert!(accepted.read_wait.sum_ns >= 7 * 19 * MS, "{accepted:?}");
        assert!(made.response.sum_ns >= accepted.service.sum_ns && made.read_wait.count == 8, "{made:?}");
        let middle = accepted.service.bins.iter().map(|(ns, count)| ns * count).sum::<u64>();
        assert!(middle.abs_diff(accepted.service.sum_ns) * 25 < middle, "bins are within 3 %: {accepted:?}");
    }
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
