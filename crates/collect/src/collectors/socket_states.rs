// SPDX-License-Identifier: Apache-2.0
//! TCP sockets by state. Who asks for them walks all sockets of the network namespace, which takes long where there are many: so
//! that is done before the watch begins and after it has ended.

use std::collections::{HashMap, HashSet};
use std::io;
use std::mem::take;
use std::net::SocketAddr;

use anyhow::Result;
use recording::tables::SocketState;
use recording::{Tables, role};

use crate::collector::{Collector, Kind, Shared, SliceEnd, Start};
use crate::samplers::Scope;
use crate::sockets::{CONNECTED, Socket, Source, TIME_WAIT, tcp_state};

/// It needs nothing that a kernel could refuse: without it nothing is said of them.
pub const KIND: Kind = Kind {
    gap: "socket_state",
    facility: None,
    tables: |_| (),
    start: |start, _| Ok(Box::new(SocketStates::start(start))),
};

/// Rows of one look, those with most sockets first; what is left is told by its state alone.
const MOST_ROWS: usize = 48;

/// Of each port, clients of which the sockets in TIME_WAIT are told apart.
const MOST_CLIENTS: usize = 4;

/// Who is asked, and what was there at the begin.
struct SocketStates {
    source: Source,
    first: Vec<SocketState>,
}

impl SocketStates {
    fn start(start: &Start<'_, '_>) -> Self {
        let scope = Scope::of(&start.plan.root, &start.plan.target);
        let mut source = Source::of(&scope.proc, &scope.network());
        let first = look(&mut source, 0).unwrap_or_default();
        Self { source, first }
    }
}

impl Collector for SocketStates {
    fn begin(&mut self, _: &mut Shared<'_>, tables: &mut Tables) -> Result<()> {
        tables.extend(take(&mut self.first));
        Ok(())
    }

    fn slice(&mut self, _: &mut Shared<'_>, _: &SliceEnd, _: &mut Tables) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self, _: &mut Shared<'_>, end: &SliceEnd, tables: &mut Tables) -> Result<()> {
        tables.extend(look(&mut self.source, end.t_ns).unwrap_or_default());
        Ok(())
    }
}

/// What sockets have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key {
    state: u8,
    role: &'static str,
    port: u16,
    /// Without a port of a client.
    peer: Option<SocketAddr>,
    held: bool,
}

type Counts = HashMap<Key, u64>;

fn look(source: &mut Source, t_ns: u64) -> io::Result<Vec<SocketState>> {
    Ok(rows(merged(counts(source)?), t_ns))
}

fn counts(source: &mut Source) -> io::Result<Counts> {
    let listening: HashSet<u16> = source.tcp()?.iter().map(|listener| listener.address.port()).collect();
    let mut counts = Counts::new();
    source.sockets(CONNECTED, |socket| *counts.entry(key(&listening, socket)).or_default() += 1)?;
    Ok(counts)
}

fn key(listening: &HashSet<u16>, socket: Socket) -> Key {
    let Socket { port, state, held, .. } = socket;
    let ip = socket.other.ip().to_canonical();
    match listening.contains(&port) {
        true => {
            let peer = (state == TIME_WAIT).then(|| SocketAddr::new(ip, 0));
            Key { state, role: role::ACCEPTED, port, peer, held }
        }
        false => Key { state, role: role::MADE, port: 0, peer: Some(SocketAddr::new(ip, socket.other.port())), held },
    }
}

/// Leaves out the addresses of clients that have few sockets in TIME_WAIT; those sockets still count.
fn merged(counts: Counts) -> Counts {
    let (clients, mut merged): (Counts, Counts) =
        counts.into_iter().partition(|(key, _)| key.role == role::ACCEPTED && key.peer.is_some());
    let mut told: HashMap<u16, usize> = HashMap::new();
    for (key, count) in most_first(clients) {
        let of_port = told.entry(key.port).or_default();
        *of_port += 1;
        let key = if *of_port <= MOST_CLIENTS { key } else { Key { peer: None, ..key } };
        *merged.entry(key).or_default() += count;
    }
    merged
}

fn most_first(counts: Counts) -> Vec<(Key, u64)> {
    let mut sorted: Vec<(Key, u64)> = counts.into_iter().collect();
    sorted.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    sorted
}

fn rows(counts: Counts, t_ns: u64) -> Vec<SocketState> {
    let mut told = most_first(counts);
    let mut others = Counts::new();
    for (key, count) in told.split_off(told.len().min(MOST_ROWS)) {
        *others.entry(Key { role: "others", port: 0, peer: None, held: false, ..key }).or_default() += count;
    }
    let row = |(key, count): (Key, u64)| SocketState {
        t_ns,
        state: tcp_state(key.state).into(),
        role: key.role.into(),
        port: key.port.into(),
        peer: key.peer.map_or_else(String::new, |peer| match peer.port() {
            0 => peer.ip().to_string(),
            _ => peer.to_string(),
        }),
        held: key.held,
        count,
    };
    told.into_iter().chain(most_first(others)).map(row).collect()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::path::Path;

    use super::*;
    use crate::proc::Proc;

    fn told(rows: &[SocketState]) -> Vec<(&str, &str, u32, &str, bool, u64)> {
        rows.iter().map(|r| (r.state.as_str(), r.role.as_str(), r.port, r.peer.as_str(), r.held, r.count)).collect()
    }

    fn counted(sockets: impl IntoIterator<Item = (u16, String, u8, bool)>) -> Vec<SocketState> {
        let mut counts = Counts::new();
        for (port, other, state, held) in sockets {
            let socket = Socket { port, other: other.parse().unwrap(), state, held };
            *counts.entry(key(&HashSet::from([80]), socket)).or_default() += 1;
        }
        rows(merged(counts), 9)
    }

    #[test]
    fn by_listener_by_peer_and_by_the_address_of_clients_that_are_gone() {
        let sockets = [
            (80, "10.0.0.7:40000", 1, true),
            (80, "10.0.0.8:40000", 1, true),
            (80, "10.0.0.8:40001", 1, false),
            (80, "[::ffff:10.0.0.7]:40001", TIME_WAIT, false),
            (80, "10.0.0.7:40002", TIME_WAIT, false),
            (80, "10.0.0.7:40003", TIME_WAIT, false),
            (40_009, "10.0.0.9:5432", 8, true),
        ];
        assert_eq!(
            told(&counted(sockets.map(|(port, other, state, held)| (port, other.to_string(), state, held)))),
            [
                ("TIME_WAIT", "accepted", 80, "10.0.0.7", false, 3),
                ("ESTABLISHED", "accepted", 80, "", true, 2),
                ("ESTABLISHED", "accepted", 80, "", false, 1),
                ("CLOSE_WAIT", "made", 0, "10.0.0.9:5432", true, 1),
            ]
        );
    }

    #[test]
    fn of_very_many_clients_a_few_have_a_name_and_all_are_counted() {
        let rows = counted((0..1000u32).map(|n| (80, format!("10.1.{}.{}:9", n / 250, n % 250), TIME_WAIT, false)));
        assert_eq!((rows.len(), rows.iter().map(|row| row.count).sum::<u64>()), (MOST_CLIENTS + 1, 1000));
        assert_eq!((rows[0].peer.as_str(), rows[0].count), ("", 996));
    }

    #[test]
    fn of_very_many_peers_the_rest_is_one() {
        let peers = (0..1000).map(|n| (40_000, format!("10.0.0.9:{}", n + 1), 1, true));
        let rows = counted(peers.chain([(40_001, "10.0.0.9:7".to_string(), 1, true)]));
        assert_eq!(rows.len(), MOST_ROWS + 1);
        assert_eq!((rows[0].peer.as_str(), rows[0].count), ("10.0.0.9:7", 2));
        assert_eq!((rows[MOST_ROWS].role.as_str(), rows[MOST_ROWS].count), ("others", 952));
    }

    #[test]
    fn sockets_of_this_machine() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let end = listener.local_addr().unwrap();
        let _clients = [TcpStream::connect(end).unwrap(), TcpStream::connect(end).unwrap()];
        let Ok(counts) = counts(&mut Source::of(&Proc::new(Path::new("/")), "self")) else {
            return testing::skip(testing::InCi::Fails, &"no sock_diag here");
        };
        let of = |role, port, peer, held| counts.get(&Key { state: 1, role, port, peer, held }).copied();
        assert_eq!(of("accepted", end.port(), None, false), Some(2), "in the accept queue");
        assert_eq!(of("made", 0, Some(end), true), Some(2));
    }
}
