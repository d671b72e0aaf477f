// SPDX-License-Identifier: Apache-2.0
//! Looks at connections, against ones of this process whose state is known. Needs root; see `kernel_allows`.

#![allow(clippy::unwrap_used, unsafe_code)]

use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::id;
use std::time::{Duration, Instant};

use testing::need;
use wakewalk_collect::probes::connections::{Connection, Connections, option};
use wakewalk_collect::probes::ledger::Ledger;

/// Where not even a probe load works there is nothing to test; that is said, not hidden.
fn kernel_allows() -> anyhow::Result<()> {
    Ledger::load(&mut MaybeUninit::uninit()).map(drop)
}

/// A connection on this host: the end that asked, and the one that was accepted.
fn pair(address: std::net::IpAddr) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((address, 0)).unwrap();
    let asking = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (asking, listener.accept().unwrap().0)
}

fn of(found: &[Connection], stream: &TcpStream) -> Connection {
    let (own, peer) = (stream.local_addr().unwrap().port(), stream.peer_addr().unwrap().port());
    *found.iter().find(|c| (c.local_port, c.remote_port) == (own, peer)).unwrap()
}

/// A thread of its own that waits for something; ended by whoever drops the other end of its connection.
fn waits<T: Send + 'static>(stream: T, wait: impl FnOnce(T) + Send + 'static) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || wait(stream))
}

fn polled(streams: &[&TcpStream]) {
    let fd = |stream: &&TcpStream| libc::pollfd { fd: stream.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut fds: Vec<libc::pollfd> = streams.iter().map(fd).collect();
    // SAFETY: `fds` is as long as is said, and lives through the call.
    unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as u64, 10_000) };
}

/// An epoll that looks after a connection.
fn watched(stream: &TcpStream) -> OwnedFd {
    let mut event = libc::epoll_event { events: libc::EPOLLIN.cast_unsigned(), u64: 0 };
    // SAFETY: a new descriptor that nobody else owns; `event` lives through the call.
    unsafe {
        let epoll = OwnedFd::from_raw_fd(libc::epoll_create1(libc::EPOLL_CLOEXEC));
        assert_eq!(libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, stream.as_raw_fd(), &raw mut event), 0);
        epoll
    }
}

#[test]
fn who_waits_for_the_next_bytes() {
    need!(kernel_allows());
    let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let ledger = Ledger::load(&mut a).unwrap();
    ledger.seed(&[id()]).unwrap();
    let connections = Connections::load(&mut b, &ledger).unwrap();
    let pairs: Vec<_> = (0..7).map(|_| pair(Ipv4Addr::LOCALHOST.into())).collect();
    let ours: Vec<TcpStream> = pairs.iter().map(|(_, accepted)| accepted.try_clone().unwrap()).collect();
    let took = |at: usize| ours[at].try_clone().unwrap();
    let threads = vec![
        waits(took(0), |mut stream| drop(stream.read(&mut [0; 8]))),
        waits(took(1), |stream| polled(&[&stream])),
        // An event loop waits for all of them, whatever it has in hand.
        waits((took(2), took(3), took(4)), |(a, b, c)| polled(&[&a, &b, &c])),
    ];
    let epoll = watched(&ours[5]);
    let expected = [true, true, false, false, false, false, false];
    let seen = || -> Vec<bool> {
        let found = connections.look(&[id()]).unwrap().connections;
        ours.iter().map(|stream| of(&found, stream).awaited).collect()
    };
    // Until the threads stand there.
    let patience = Instant::now() + Duration::from_secs(20);
    while seen() != expected && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(seen(), expected);
    drop((pairs, epoll));
    ours.iter().for_each(|stream| drop(stream.shutdown(std::net::Shutdown::Both)));
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn what_came_and_was_not_read_or_answered() {
    need!(kernel_allows());
    let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let ledger = Ledger::load(&mut a).unwrap();
    ledger.seed(&[id()]).unwrap();
    let connections = Connections::load(&mut b, &ledger).unwrap();
    let (mut asking, mut accepted) = pair(Ipv4Addr::LOCALHOST.into());
    let (quiet, other) = pair(Ipv6Addr::LOCALHOST.into());
    asking.write_all(b"question").unwrap();
    let look = || connections.look(&[id()]).unwrap().connections;
    let found = look();
    assert_eq!((of(&found, &accepted).unread, of(&found, &accepted).heard), (8, true));
    assert_eq!((of(&found, &quiet).unread, of(&found, &quiet).heard), (0, false));
    assert_eq!(of(&found, &accepted).peer, Ipv4Addr::LOCALHOST);
    accepted.read_exact(&mut [0; 8]).unwrap();
    accepted.write_all(b"answer").unwrap();
    let found = look();
    assert_eq!((of(&found, &accepted).unread, of(&found, &accepted).unsaid), (0, 0));
    assert_eq!(of(&found, &asking).unread, 6);
    // By one walk over the whole host as well, and nothing of processes that are not watched.
    // (No process has such a number.)
    let many: Vec<u32> = (1 << 23..(1 << 23) + 100).chain([id()]).collect();
    let found = connections.look(&many).unwrap().connections;
    // Other tests of this process open connections meanwhile: those of this one.
    for stream in [&asking, &accepted, &quiet, &other] {
        assert_eq!(of(&found, stream).unread, of(&look(), stream).unread);
    }
    assert!(connections.look(&[1]).unwrap().connections.is_empty());
}

#[test]
fn why_bytes_stand_unsent() {
    need!(kernel_allows());
    let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let ledger = Ledger::load(&mut a).unwrap();
    ledger.seed(&[id()]).unwrap();
    let connections = Connections::load(&mut b, &ledger).unwrap();
    // An end that reads nothing: its window shuts, and what is more is refused for want of room.
    let (mut writer, _reader) = pair(Ipv4Addr::LOCALHOST.into());
    writer.set_nodelay(true).unwrap();
    writer.set_nonblocking(true).unwrap();
    while writer.write(&[0; 65_536]).is_ok() {}
    let (quiet, _other) = pair(Ipv4Addr::LOCALHOST.into());
    let shut = || of(&connections.look(&[id()]).unwrap().connections, &writer);
    let patience = Instant::now() + Duration::from_secs(20);
    while shut().sums.limited[1] == 0 && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(10));
    }
    let (c, s) = (shut(), shut().sending.unwrap());
    assert!(c.unsent > 0 && c.in_flight + c.unsent.min(s.mss) > s.window && s.packets < s.cwnd, "{c:?}");
    assert!(c.sums.limited[1] > 0 && s.widest >= s.window && s.mss > 500 && s.min_rtt_us < 1_000_000, "{c:?}");
    assert_eq!(s.options & (option::NODELAY | option::NO_ROOM), option::NODELAY | option::NO_ROOM);
    assert_eq!(s.options & (option::CORK | option::OWN_SNDBUF | option::KEEPALIVE), 0);
    assert_eq!(of(&connections.look(&[id()]).unwrap().connections, &quiet).sending, None);
}

/// Connections that nobody has accepted yet, and a look at a listener that is there twice.
#[test]
fn who_stands_in_an_accept_queue() {
    need!(kernel_allows());
    let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let ledger = Ledger::load(&mut a).unwrap();
    ledger.seed(&[id()]).unwrap();
    let connections = Connections::load(&mut b, &ledger).unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let _again = listener.try_clone().unwrap();
    let queued = || -> Vec<u32> {
        let listeners = connections.look(&[id()]).unwrap().listeners;
        listeners.iter().filter(|l| l.port == address.port()).map(|l| l.queued).collect()
    };
    assert_eq!(queued(), [0]);
    let _clients: Vec<_> = (0..3).map(|_| TcpStream::connect(address).unwrap()).collect();
    assert_eq!(queued(), [3]);
    let _taken = listener.accept().unwrap();
    assert_eq!(queued(), [2]);
}

/// The end of what the other one sends counts as a byte in the kernel, and is none.
#[test]
fn who_has_closed_its_side() {
    need!(kernel_allows());
    let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let ledger = Ledger::load(&mut a).unwrap();
    ledger.seed(&[id()]).unwrap();
    let connections = Connections::load(&mut b, &ledger).unwrap();
    let (mut asking, mut accepted) = pair(Ipv4Addr::LOCALHOST.into());
    let same = accepted.try_clone().unwrap();
    let look = || {
        let c = of(&connections.look(&[id()]).unwrap().connections, &same);
        (c.closed, c.unread)
    };
    asking.write_all(b"question").unwrap();
    assert_eq!(look(), (false, 8));
    accepted.read_exact(&mut [0; 8]).unwrap();
    accepted.write_all(b"answer").unwrap();
    asking.read_exact(&mut [0; 6]).unwrap();
    asking.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(look(), (true, 0), "its end was not read yet");
    assert_eq!(accepted.read(&mut [0; 8]).unwrap(), 0);
    assert_eq!(look(), (true, 0));
    // Of one that has said nothing, nothing was heard.
    let (asking, accepted) = pair(Ipv4Addr::LOCALHOST.into());
    drop(asking);
    let c = of(&connections.look(&[id()]).unwrap().connections, &accepted);
    assert_eq!((c.closed, c.unread, c.heard), (true, 0, false));
    // With something before it that is not read.
    let (mut asking, accepted) = pair(Ipv4Addr::LOCALHOST.into());
    asking.write_all(b"question").unwrap();
    asking.shutdown(std::net::Shutdown::Write).unwrap();
    let c = of(&connections.look(&[id()]).unwrap().connections, &accepted);
    assert_eq!((c.closed, c.unread), (true, 8));
}
