// SPDX-License-Identifier: Apache-2.0
//! Dropped packets, against ones that this test provokes in a network namespace of its own. Needs root and `ip`; see
//! `kernel_allows`.

#![allow(clippy::unwrap_used, unsafe_code)]

use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use recording::tables::Drop;
use stacks::Stacks;
use testing::{given, need};
use wakewalk_collect::collectors::drops::Drops;
use wakewalk_collect::probes::ledger::Ledger;

mod apart;

use apart::{apart, network};

/// What is counted of `work` in a namespace of its own, in which somebody listens at port 80, until it is all.
fn counted(
    work: impl FnOnce(&TcpListener) + Send + 'static,
    is_all: impl Fn(&[Drop]) -> bool + Send + 'static,
) -> Result<Vec<Drop>> {
    apart(move || {
        let (mut slot, mut stacks) = (MaybeUninit::uninit(), Stacks::new());
        let mut probe = Drops::load(&mut slot, network(), [80])?;
        let listener = TcpListener::bind("127.0.0.1:80")?;
        work(&listener);
        // On a loaded host packets are delivered a little later.
        let until = Instant::now() + Duration::from_secs(20);
        let mut rows = Vec::new();
        loop {
            let fresh = probe.rows(7, &mut stacks)?;
            if fresh.is_empty() && is_all(&rows) || Instant::now() > until {
                return Ok(rows);
            }
            rows.extend(fresh); // each is told once
            thread::sleep(Duration::from_millis(20));
        }
    })
}

fn kernel_allows() -> Result<()> {
    apart(|| Ledger::load(&mut MaybeUninit::uninit()).map(drop))
}

/// How many of a protocol have this role and port.
fn count(rows: &[Drop], protocol: &str, role: &str, port: u32) -> u64 {
    let of = |row: &&Drop| (&*row.protocol, &*row.role, row.port) == (protocol, role, port);
    rows.iter().filter(of).map(|row| row.count).sum()
}

#[test]
fn what_comes_where_nobody_is() {
    need!(kernel_allows());
    let work = |_: &TcpListener| {
        for _ in 0..3 {
            assert!(TcpStream::connect("127.0.0.1:81").is_err(), "nobody listens there");
        }
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..5 {
            socket.send_to(b"hello", "127.0.0.1:82").unwrap();
        }
    };
    let counts = |rows: &[Drop]| (count(rows, "tcp", "none", 81), count(rows, "udp", "none", 82));
    let rows = counted(work, move |rows| counts(rows) == (3, 5)).unwrap();
    assert_eq!(counts(&rows), (3, 5), "{rows:?}");
    assert!(rows.iter().all(|row| row.begins == (row.protocol == "tcp")), "{rows:?}");
    let told = rows.iter().find(|row| row.port == 82).unwrap();
    assert!(told.stack != 0 && told.t_ns == 7 && told.peer.is_empty(), "{told:?}");
    assert!(told.reason == "NO_SOCKET" || told.reason.is_empty(), "{told:?}");
}

#[test]
fn a_full_buffer_of_datagrams() {
    need!(kernel_allows());
    let work = |_: &TcpListener| {
        let reader = UdpSocket::bind("127.0.0.1:83").unwrap();
        let writer = UdpSocket::bind("127.0.0.1:0").unwrap();
        (0..20_000).for_each(|_| drop(writer.send_to(&[0; 1024], "127.0.0.1:83")));
        drop(reader);
    };
    // A part of them is told by others; what is read by nobody any more when the socket is closed is no drop.
    let all = |rows: &[Drop]| count(rows, "udp", "none", 83);
    let rows = counted(work, move |rows| all(rows) > 10_000).unwrap();
    assert!((10_000..=20_064).contains(&all(&rows)), "{rows:?}");
}

#[test]
fn what_a_filter_takes_from_a_listener_and_its_clients() {
    need!(kernel_allows());
    need!(given(Command::new("nft").arg("--version").output().is_ok(), "no nft here"));
    let work = |listener: &TcpListener| {
        let rules = "table inet t {\nchain c {\ntype filter hook prerouting priority -300;\ntcp dport 80 drop\n}\n}";
        assert!(Command::new("nft").arg(rules).status().unwrap().success());
        let patience = Duration::from_millis(300);
        assert!(TcpStream::connect_timeout(&listener.local_addr().unwrap(), patience).is_err());
    };
    let rows = counted(work, |rows| count(rows, "tcp", "accepted", 80) >= 1).unwrap();
    assert!(count(&rows, "tcp", "accepted", 80) >= 1 && rows.iter().all(|row| row.begins || row.port != 80));
    let told = rows.iter().find(|row| row.port == 80).unwrap();
    assert!(told.reason == "NETFILTER_DROP" || told.reason.is_empty(), "{told:?}");
}

#[test]
fn other_network_namespaces_do_not_count() {
    need!(kernel_allows());
    let rows = apart(|| {
        let (mut slot, mut stacks) = (MaybeUninit::uninit(), Stacks::new());
        let mut probe = Drops::load(&mut slot, 1, [])?;
        assert!(TcpStream::connect("127.0.0.1:81").is_err());
        probe.rows(1, &mut stacks)
    });
    assert_eq!(rows.unwrap(), []);
}

/// Has one CPU for itself and its children, so that what it sends is counted with what others send there.
fn on_one_cpu() {
    // SAFETY: a set of CPUs is plain bits, of which zero is an empty one; it is alive for the call.
    let done = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(libc::sched_getcpu().unsigned_abs() as usize, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set)
    };
    assert_eq!(done, 0);
}

#[test]
fn a_flood_elsewhere_hides_none_of_ours() {
    need!(kernel_allows());
    let work = |_: &TcpListener| {
        on_one_cpu(); // for the thread below, too
        let (begun, flood) = channel();
        let elsewhere = thread::spawn(move || {
            apart(move || {
                let socket = UdpSocket::bind("127.0.0.1:0")?;
                for sent in 0..100_000 {
                    socket.send_to(b"hello", "127.0.0.1:82").ok();
                    if sent == 10_000 {
                        begun.send(())?;
                    }
                }
                Ok(())
            })
        });
        flood.recv().unwrap();
        for _ in 0..20 {
            assert!(TcpStream::connect("127.0.0.1:81").is_err(), "nobody listens there");
        }
        elsewhere.join().unwrap().unwrap();
    };
    let ours = |rows: &[Drop]| count(rows, "tcp", "none", 81);
    let rows = counted(work, move |rows| ours(rows) == 20).unwrap();
    assert_eq!((ours(&rows), count(&rows, "udp", "none", 82)), (20, 0), "{rows:?}");
}
