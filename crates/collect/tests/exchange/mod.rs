// SPDX-License-Identifier: Apache-2.0
//! Exchanges of this process with itself, as the probe sees them.

use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::process::id;
use std::thread::{scope, sleep};
use std::time::Duration;

use wakewalk_collect::probes::exchanges::{Exchanges, Group};
use wakewalk_collect::probes::ledger::Ledger;

/// Where not even a probe load works there is nothing to test; that is said, not hidden.
pub fn kernel_allows() -> anyhow::Result<()> {
    Ledger::load(&mut MaybeUninit::uninit()).map(drop)
}

/// A connection on this host: the end that asked, and the one that was accepted.
pub fn pair(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let asking = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    asking.set_nodelay(true).unwrap();
    (asking, listener.accept().unwrap().0)
}

/// What is seen of `work` at a listener: as the server, and as the client.
pub fn seen(listener: &TcpListener, work: impl FnOnce()) -> [Group; 2] {
    let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let ledger = Ledger::load(&mut a).unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut exchanges = Exchanges::load(&mut b, &ledger, None, [port], false).unwrap();
    ledger.seed(&[id()]).unwrap();
    work();
    let all = exchanges.fresh().unwrap();
    let accepted = all.iter().find(|group| group.accepted && group.port == port);
    let made = all.iter().find(|group| group.peer == listener.local_addr().ok());
    let again = exchanges.fresh().unwrap();
    assert!(!again.iter().any(|group| group.port == port), "each is told once: {again:?}");
    [accepted, made].map(|group| group.cloned().unwrap_or_default())
}

pub const MS: u64 = 1_000_000;

#[allow(dead_code, reason = "not every test that includes this asks")]
/// Asks `times` times; the server reads after one time, and answers after another, ms.
pub fn ask(listener: &TcpListener, times: usize, (unread, service): (u64, u64)) {
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
