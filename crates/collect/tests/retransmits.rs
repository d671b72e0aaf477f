// SPDX-License-Identifier: Apache-2.0
//! Retransmissions and resets, against ones that this test provokes in a network namespace of its own. Needs root and `ip`;
//! see `kernel_allows`.

#![allow(clippy::unwrap_used, unsafe_code)]

use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use recording::tables::Retransmit;
use testing::need;
use wakewalk_collect::collectors::retransmits::Retransmits;

mod apart;

use apart::{apart, ip, network};

/// Makes a device behind which nobody is.
fn beside_nobody() -> Result<()> {
    ip("link add away type veth peer name nobody")?;
    ip("address add 10.9.9.1/24 dev away")?;
    ip("link set away up")?;
    ip("link set nobody up")?;
    ip("neighbour add 10.9.9.2 lladdr 02:00:00:00:00:02 dev away")
}

/// What is counted of `work` in a namespace of its own, in which somebody listens at port 80.
fn counted(work: impl FnOnce(&TcpListener) + Send + 'static) -> Result<Vec<Retransmit>> {
    apart(move || {
        beside_nobody()?;
        let mut slot = MaybeUninit::uninit();
        let mut probe = Retransmits::load(&mut slot, network(), [80])?;
        let listener = TcpListener::bind("127.0.0.1:80")?;
        work(&listener);
        let rows = probe.rows(7)?;
        assert!(probe.rows(8)?.is_empty(), "each is told once");
        Ok(rows)
    })
}

fn kernel_allows() -> Result<()> {
    counted(|_| ()).map(drop)
}

fn of<'r>(rows: &'r [Retransmit], kind: &str, state: &str, role: &str) -> &'r Retransmit {
    let found = rows.iter().find(|row| (&*row.kind, &*row.state, &*row.role) == (kind, state, role));
    found.unwrap_or_else(|| panic!("no {kind} in {state}, {role}: {rows:?}"))
}

#[test]
fn a_connection_that_nobody_answers() {
    need!(kernel_allows());
    let rows = counted(|_| {
        let nobody = "10.9.9.2:5432".parse().unwrap();
        assert!(TcpStream::connect_timeout(&nobody, Duration::from_millis(3500)).is_err());
    });
    let rows = rows.unwrap();
    let again = of(&rows, "retransmit", "SYN_SENT", "made");
    assert_eq!((again.peer.as_str(), again.port, again.failed, again.t_ns), ("10.9.9.2:5432", 0, false, 7));
    assert!((1..=3).contains(&again.count) && rows.len() == 1, "{rows:?}");
}

#[test]
fn what_cannot_be_sent_again() {
    need!(kernel_allows());
    let rows = counted(|listener| {
        let mut asking = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (_accepted, _) = listener.accept().unwrap();
        ip("link set lo down").unwrap();
        asking.write_all(b"question").unwrap();
        thread::sleep(Duration::from_millis(900));
    });
    let rows = rows.unwrap();
    let again = of(&rows, "retransmit", "ESTABLISHED", "made");
    assert!(again.peer == "127.0.0.1:80" && again.count >= 1, "{rows:?}");
}

#[test]
fn resets_by_port_and_reason() {
    need!(kernel_allows());
    let rows = counted(|listener| {
        for _ in 0..3 {
            assert!(TcpStream::connect("127.0.0.1:81").is_err(), "nobody listens there");
        }
        let mut asking = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        asking.write_all(b"question").unwrap();
        let (accepted, _) = listener.accept().unwrap();
        accepted.peek(&mut [0; 1]).unwrap();
        drop(accepted); // unread
        assert!(asking.read(&mut [0; 1]).is_err());
    });
    let rows = rows.unwrap();
    let refused = of(&rows, "reset_sent", "", "none");
    assert_eq!((refused.port, refused.count), (81, 3), "{rows:?}");
    let told = of(&rows, "reset_received", "SYN_SENT", "made");
    assert_eq!((told.peer.as_str(), told.count), ("127.0.0.1:81", 3), "{rows:?}");
    let cut = of(&rows, "reset_sent", "CLOSE", "accepted");
    assert_eq!((cut.port, cut.count, cut.unanswered), (80, 1, true), "{rows:?}");
    let felt = of(&rows, "reset_received", "ESTABLISHED", "made");
    assert_eq!((felt.peer.as_str(), felt.count), ("127.0.0.1:80", 1), "{rows:?}");
    if !cut.reason.is_empty() {
        assert_eq!((refused.reason.as_str(), cut.reason.as_str()), ("NO_SOCKET", "TCP_ABORT_ON_CLOSE"));
    }
}

#[test]
fn other_network_namespaces_do_not_count() {
    need!(kernel_allows());
    let rows = apart(|| {
        let mut slot = MaybeUninit::uninit();
        let mut probe = Retransmits::load(&mut slot, network() + 1, [])?;
        assert!(TcpStream::connect("127.0.0.1:81").is_err());
        probe.rows(1)
    });
    assert_eq!(rows.unwrap(), []);
}
