// SPDX-License-Identifier: Apache-2.0
//! Looks at connections, against ones of this process whose state is known. Needs root; see `kernel_allows`.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::process::id;

use testing::need;
use wakewalk_collect::probes::connections::{Connection, Connections};
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

#[test]
fn what_came_and_was_not_read_or_answered() {
    need!(kernel_allows());
    let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let ledger = Ledger::load(&mut a).unwrap();
    ledger.seed(&[id()]).unwrap();
    let connections = Connections::load(&mut b, &ledger).unwrap();
    let (mut asking, mut accepted) = pair(Ipv4Addr::LOCALHOST.into());
    let (quiet, _other) = pair(Ipv6Addr::LOCALHOST.into());
    asking.write_all(b"question").unwrap();
    let look = || connections.look(&[id()]).unwrap();
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
    let many: Vec<u32> = (0..100).chain([id()]).collect();
    assert_eq!(connections.look(&many).unwrap().len(), look().len());
    assert!(connections.look(&[1]).unwrap().is_empty());
}
