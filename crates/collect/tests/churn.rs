// SPDX-License-Identifier: Apache-2.0
//! Very many connections, one after the other. Needs root; see `kernel_allows`.

#![allow(clippy::unwrap_used)]
#![allow(unsafe_code)] // one system call that no safe library here makes

use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::id;

use testing::need;
use wakewalk_collect::probes::Probe;
use wakewalk_collect::probes::exchanges::Exchanges;
use wakewalk_collect::probes::ledger::Ledger;

fn kernel_allows() -> anyhow::Result<()> {
    Ledger::load(&mut MaybeUninit::uninit()).map(drop)
}

/// Connections that live for one request each. `CHURN=1000000` makes a million; that takes half a minute.
const CHURN: u32 = 20_000;

/// A reset instead of TIME_WAIT, which would use the local ports up.
fn reset_at_close(socket: &TcpStream) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let length = u32::try_from(size_of_val(&linger)).unwrap();
    // SAFETY: the struct lives, and is as long as is said.
    let set = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, (&raw const linger).cast(), length)
    };
    assert_eq!(set, 0);
}

/// What is kept of a connection ends with it, whoever gets its memory or its ports next: counts stay exact.
#[test]
fn connections_that_come_and_go() {
    need!(kernel_allows());
    let times = std::env::var("CHURN").map_or(CHURN, |text| text.parse().unwrap());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let ledger = Ledger::load(&mut a).unwrap();
    let mut exchanges = Exchanges::load(&mut b, &ledger, None, [port], false).unwrap();
    ledger.seed(&[id()]).unwrap();
    for _ in 0..times {
        let mut asking = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut accepted = listener.accept().unwrap().0;
        asking.write_all(b"question").unwrap();
        accepted.read_exact(&mut [0; 8]).unwrap();
        accepted.write_all(b"answered").unwrap();
        asking.read_exact(&mut [0; 8]).unwrap();
        reset_at_close(&asking);
    }
    let all = exchanges.fresh().unwrap();
    let accepted = all.iter().find(|group| group.accepted && group.port == port).unwrap();
    let whole = (accepted.began, accepted.response.count, accepted.unanswered);
    assert_eq!(whole, (times.into(), times.into(), 0), "{accepted:?}");
    assert_eq!(accepted.first_read.count, u64::from(times), "each is a connection's first");
    let losses = exchanges.losses().unwrap();
    assert!(losses.iter().all(|kept| kept.lost == 0), "{losses:?}");
}
