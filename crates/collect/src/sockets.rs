// SPDX-License-Identifier: Apache-2.0
//! Who listens where, in any network namespace: by sock_diag, for TCP and UDP else from `/proc/PID/net/{tcp,udp}{,6}`.

mod diag;
mod unix;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use crate::proc::Proc;
use diag::Diag;
pub use unix::UnixListener;

/// `TCP_LISTEN` and, of an unconnected UDP socket, `TCP_CLOSE` (include/net/tcp_states.h).
const TCP_LISTEN: &str = "0A";
const TCP_CLOSE: &str = "07";

/// The number of `TCP_TIME_WAIT`.
pub const TIME_WAIT: u8 = 6;

/// The kernel's names of the states of a TCP socket, by their numbers; empty = there is no such state.
pub fn tcp_state(number: u8) -> &'static str {
    const STATES: [&str; 13] = [
        "",
        "ESTABLISHED",
        "SYN_SENT",
        "SYN_RECV",
        "FIN_WAIT1",
        "FIN_WAIT2",
        "TIME_WAIT",
        "CLOSE",
        "CLOSE_WAIT",
        "LAST_ACK",
        "LISTEN",
        "CLOSING",
        "NEW_SYN_RECV",
    ];
    STATES.get(usize::from(number)).copied().unwrap_or_default()
}

/// States in which a connection holds its local port, a bit each.
pub const HOLDING: u32 = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5 | 1 << TIME_WAIT | 1 << 8 | 1 << 9 | 1 << 11;
/// All states but that of listeners, a bit each.
pub const CONNECTED: u32 = 0x1fff & !diag::LISTENING;

/// A socket that waits for peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// `tcp` or `udp`.
    pub protocol: &'static str,
    /// Local address.
    pub address: SocketAddr,
    /// Inode, by which descriptors refer to it.
    pub inode: u64,
    /// TCP: finished handshakes that wait for accept(2). UDP: bytes that wait to be read.
    pub receive_queue: u64,
    /// TCP: how many may wait for accept(2); unknown from text files.
    pub backlog: Option<u64>,
    /// What the kernel counts in the socket itself; unknown from text files.
    pub memory: Option<Memory>,
}

/// A TCP socket that is, or was, one end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket {
    /// Local port.
    pub port: u16,
    /// The other end.
    pub other: SocketAddr,
    /// As the kernel numbers it.
    pub state: u8,
    /// A process has it, or had it: it stands in no accept queue.
    pub held: bool,
}

/// What a socket holds and has dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes of memory that what was received takes.
    pub received: u64,
    /// Bytes that this may take.
    pub receive_buffer: u64,
    /// Handshakes (TCP) or datagrams (UDP) that the socket dropped since it was made.
    pub drops: u64,
}

/// `tcp 0.0.0.0:8080`, `tcp [::]:8080`.
impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.protocol, self.address)
    }
}

/// Where listeners of one network namespace are read.
#[derive(Debug)]
pub enum Source {
    /// sock_diag, opened inside the namespace.
    Diag(Diag),
    /// The text files of a process in the namespace: no backlog, and some ms for each reading.
    Text {
        /// Folder with `tcp`, `tcp6`, `udp` and `udp6`.
        dir: PathBuf,
    },
}

impl Source {
    /// For the namespace that `pid` (a number or `self`) is in.
    pub fn of(proc: &Proc, pid: &str) -> Self {
        Diag::of(proc, pid).map_or_else(|_| Self::Text { dir: proc.path(format!("{pid}/net")) }, Self::Diag)
    }

    /// TCP listeners.
    pub fn tcp(&mut self) -> io::Result<Vec<Listener>> {
        match self {
            Self::Diag(diag) => diag.tcp(),
            Self::Text { dir } => Ok(both_families(dir, "tcp", tcp_line)),
        }
    }

    /// TCP sockets in some states, a bit each, that do not listen.
    ///
    /// # Errors
    /// Only sock_diag is asked: the text is too much work.
    pub fn sockets(&mut self, states: u32, each: impl FnMut(Socket)) -> io::Result<()> {
        match self {
            Self::Diag(diag) => diag.sockets(states, each),
            Self::Text { .. } => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Unix sockets that listen.
    ///
    /// # Errors
    /// Only sock_diag knows their queues.
    pub fn unix(&mut self) -> io::Result<Vec<UnixListener>> {
        match self {
            Self::Diag(diag) => diag.unix(),
            Self::Text { .. } => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Bound UDP sockets without a peer.
    pub fn udp(&mut self) -> io::Result<Vec<Listener>> {
        match self {
            Self::Diag(diag) => diag.udp(),
            Self::Text { dir } => Ok(both_families(dir, "udp", udp_line)),
        }
    }
}

/// Listeners of the network namespace that `pid` (a number or `self`) is in: TCP, then bound UDP.
pub fn listeners(proc: &Proc, pid: &str) -> Vec<Listener> {
    let (mut source, dir) = (Source::of(proc, pid), proc.path(format!("{pid}/net")));
    let mut all = tcp_of(&mut source, &dir);
    all.extend(source.udp().unwrap_or_else(|_| both_families(&dir, "udp", udp_line)));
    all
}

/// Those of TCP.
pub fn tcp_listeners(proc: &Proc, pid: &str) -> Vec<Listener> {
    tcp_of(&mut Source::of(proc, pid), &proc.path(format!("{pid}/net")))
}

/// Where a kernel lacks one of the diag modules, the text still tells: once, and not each second, as it has all connections.
fn tcp_of(source: &mut Source, dir: &Path) -> Vec<Listener> {
    source.tcp().unwrap_or_else(|_| both_families(dir, "tcp", tcp_line))
}

/// Network namespaces and the processes in them that can still be asked, ascending.
pub fn namespaces(proc: &Proc) -> BTreeMap<String, Vec<u32>> {
    let mut found: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for pid in proc.pids() {
        if let Some(name) = proc.namespace(&pid.to_string(), "net") {
            found.entry(name).or_default().push(pid);
        }
    }
    found
}

/// Listeners by network namespace. A process may vanish before it is asked: then the next one is.
pub fn listeners_by_namespace(proc: &Proc) -> BTreeMap<String, Vec<Listener>> {
    let ask = |pids: Vec<u32>| {
        let alive = pids.iter().find(|pid| proc.of(**pid, "net/tcp").exists());
        alive.map(|pid| listeners(proc, &pid.to_string())).unwrap_or_default()
    };
    namespaces(proc).into_iter().map(|(name, pids)| (name, ask(pids))).collect()
}

/// What a line is to its reader.
enum Line {
    Wanted(Listener),
    Other,
    /// Nothing of interest follows.
    End,
}

fn both_families(dir: &Path, protocol: &str, parse: fn(&str) -> Line) -> Vec<Listener> {
    ["", "6"].iter().flat_map(|family| read(&dir.join(format!("{protocol}{family}")), parse)).collect()
}

/// Reads up to the first line after which nothing of interest follows.
fn read(path: &Path, parse: fn(&str) -> Line) -> Vec<Listener> {
    let mut found = Vec::new();
    let Ok(file) = File::open(path) else { return found };
    for line in BufReader::new(file).lines().skip(1).map_while(Result::ok) {
        match parse(&line) {
            Line::Wanted(listener) => found.push(listener),
            Line::Other => {}
            Line::End => break,
        }
    }
    found
}

fn tcp_line(line: &str) -> Line {
    match socket(line, "tcp") {
        Some((listener, TCP_LISTEN)) => Line::Wanted(listener),
        Some(_) => Line::End, // the kernel walks the listeners first, then all connections
        None => Line::Other,
    }
}

fn udp_line(line: &str) -> Line {
    match socket(line, "udp") {
        Some((listener, TCP_CLOSE)) if listener.address.port() != 0 => Line::Wanted(listener),
        _ => Line::Other,
    }
}

/// `sl local remote state tx:rx …  inode …` -> the socket and its state.
fn socket<'a>(line: &'a str, protocol: &'static str) -> Option<(Listener, &'a str)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_, local, _, state, queues, _, _, _, _, inode, ..] = fields[..] else { return None };
    let (_, receive_queue) = queues.split_once(':')?;
    let listener = Listener {
        protocol,
        address: address(local)?,
        inode: inode.parse().ok()?,
        receive_queue: u64::from_str_radix(receive_queue, 16).ok()?,
        backlog: None,
        memory: None,
    };
    Some((listener, state))
}

/// `0100007F:1F90`: the address as words of the machine's own byte order, the port as a number.
fn address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let words: Vec<u8> = (0..address.len() / 8)
        .map(|i| u32::from_str_radix(address.get(i * 8..i * 8 + 8)?, 16).ok())
        .collect::<Option<Vec<u32>>>()?
        .into_iter()
        .flat_map(u32::to_ne_bytes)
        .collect();
    let ip = match words.len() {
        4 => IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(words).ok()?)),
        16 => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(words).ok()?)),
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

/// For fuzzing: one answer of netlink.
#[cfg(any(test, fuzzing))]
pub(crate) fn decode(bytes: &[u8]) {
    diag::read(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_root::FakeRoot;

    const HEAD: &str =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

    fn line(local: &str, state: &str, rx: u32, inode: u64) -> String {
        format!("   0: {local} 00000000:0000 {state} 00000000:{rx:08X} 00:00000000 00000000  0  0 {inode} 1 0\n")
    }

    #[test]
    fn listeners_of_both_families_and_protocols() {
        let root = FakeRoot::new();
        let v6 = "00000000000000000000000000000000:0050";
        root.file("proc/7/net/tcp", HEAD.to_string() + &line("0100007F:1F90", "0A", 3, 11))
            .file("proc/7/net/tcp6", HEAD.to_string() + &line(v6, "0A", 0, 12))
            .file(
                "proc/7/net/udp",
                HEAD.to_string() + &line("00000000:0035", "07", 0, 13) + &line("00000000:9999", "01", 0, 14),
            );
        let all = listeners(&Proc::new(root.path()), "7");
        let names: Vec<String> = all.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["tcp 127.0.0.1:8080", "tcp [::]:80", "udp 0.0.0.0:53"]);
        assert_eq!((all[0].receive_queue, all[0].inode), (3, 11));
    }

    #[test]
    fn reading_ends_with_the_listeners() {
        let root = FakeRoot::new();
        let text =
            [line("00000000:0050", "0A", 0, 1), line("00000000:0050", "01", 0, 2), line("00000000:0051", "0A", 0, 3)];
        root.file("proc/self/net/tcp", HEAD.to_string() + &text.concat());
        assert_eq!(listeners(&Proc::new(root.path()), "self").len(), 1);
    }

    #[test]
    fn torn_lines_are_skipped() {
        assert!(socket("   0: 0100007F:1F90 00000000:0000 0A", "tcp").is_none());
        assert!(address("01:zz").is_none() && address("0100007F").is_none() && address("é100007F:1").is_none());
    }
}
