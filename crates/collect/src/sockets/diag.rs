// SPDX-License-Identifier: Apache-2.0
//! Listening sockets by sock_diag(7), which walks the listeners alone and knows their backlog.
//!
//! `/proc/net/tcp` has neither: its reader pays for a walk over the whole hash of connections, some ms on an idle
//! machine, too much for each second.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::unix::{self, UnixListener};
use super::{Listener, Memory, Socket};
use crate::netlink::{Netlink, attribute, word};
use crate::proc::Proc;

const SOCK_DIAG_BY_FAMILY: u16 = 20; // include/uapi/linux/sock_diag.h
/// sizeof(struct inet_diag_msg).
const MESSAGE: usize = 72;
/// Attribute with the socket's memory, and which of its words are asked for (SK_MEMINFO_*, include/uapi/linux/sock_diag.h).
const INET_DIAG_SKMEMINFO: u16 = 7;
const RMEM_ALLOC: usize = 0;
const RCVBUF: usize = 1;
const DROPS: usize = 8;
/// Bits of TCP_LISTEN, which Unix sockets share, and, for unconnected UDP sockets, TCP_CLOSE.
pub(super) const LISTENING: u32 = 1 << 10;
const UNCONNECTED: u32 = 1 << 7;

/// A socket that answers for the network namespace in which it was opened.
#[derive(Debug)]
pub struct Diag {
    netlink: Netlink,
}

impl Diag {
    /// Opens it in the network namespace that `pid` (a number or `self`) is in.
    ///
    /// # Errors
    /// The kernel has no sock_diag, or the namespace cannot be entered.
    pub fn of(proc: &Proc, pid: &str) -> io::Result<Self> {
        Ok(Self { netlink: Netlink::of(proc, pid, libc::NETLINK_SOCK_DIAG)? })
    }

    /// TCP listeners, of IPv4 and IPv6.
    ///
    /// # Errors
    /// The kernel has no tcp_diag.
    pub fn tcp(&mut self) -> io::Result<Vec<Listener>> {
        self.listening(libc::IPPROTO_TCP, LISTENING, "tcp")
    }

    /// Bound, unconnected UDP sockets, of IPv4 and IPv6.
    ///
    /// # Errors
    /// The kernel has no udp_diag.
    pub fn udp(&mut self) -> io::Result<Vec<Listener>> {
        let mut all = self.listening(libc::IPPROTO_UDP, UNCONNECTED, "udp")?;
        all.retain(|listener| listener.address.port() != 0);
        Ok(all)
    }

    /// TCP sockets in some states, a bit each, that do not listen. This walks all sockets of the namespace.
    ///
    /// # Errors
    /// The kernel has no tcp_diag.
    pub fn sockets(&mut self, states: u32, mut each: impl FnMut(Socket)) -> io::Result<()> {
        self.dump(libc::IPPROTO_TCP, states, &mut |message| {
            if let (Some(local), Some(other), Some(inode)) = (local(message), remote(message), word(message, 68)) {
                each(Socket { port: local.port(), other, state: message[1], held: inode != 0 });
            }
        })
    }

    /// Unix sockets that listen.
    ///
    /// # Errors
    /// The kernel has no unix_diag.
    pub fn unix(&mut self) -> io::Result<Vec<UnixListener>> {
        let mut all = Vec::new();
        let kinds = (SOCK_DIAG_BY_FAMILY, SOCK_DIAG_BY_FAMILY);
        self.netlink.dump(kinds, &unix::request(), &mut |message| all.extend(unix::listener(message)))?;
        Ok(all)
    }

    fn listening(&mut self, protocol: i32, states: u32, name: &'static str) -> io::Result<Vec<Listener>> {
        let mut all = Vec::new();
        self.dump(protocol, states, &mut |message| all.extend(listener(message, name)))?;
        Ok(all)
    }

    /// Of IPv4 and IPv6.
    fn dump(&mut self, protocol: i32, states: u32, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        let kinds = (SOCK_DIAG_BY_FAMILY, SOCK_DIAG_BY_FAMILY);
        [libc::AF_INET, libc::AF_INET6]
            .into_iter()
            .try_for_each(|family| self.netlink.dump(kinds, &request(family, protocol, states), each))
    }
}

/// struct inet_diag_req_v2 with an empty socket id: all sockets.
fn request(family: i32, protocol: i32, states: u32) -> [u8; 56] {
    let mut bytes = [0; 56];
    bytes[0] = u8::try_from(family).unwrap_or(0);
    bytes[1] = u8::try_from(protocol).unwrap_or(0);
    // Of connections nobody wants it, and there may be very many.
    bytes[2] = if matches!(states, LISTENING | UNCONNECTED) { 1 << (INET_DIAG_SKMEMINFO - 1) } else { 0 };
    bytes[4..8].copy_from_slice(&states.to_ne_bytes());
    bytes
}

/// For fuzzing: all that is read of one answer. A torn one is an error.
#[cfg(any(test, fuzzing))]
pub(super) fn read(bytes: &[u8]) {
    let _ = crate::netlink::parse(bytes, SOCK_DIAG_BY_FAMILY, &mut |message| {
        let _ = (listener(message, "tcp"), remote(message), unix::listener(message));
    });
}

/// struct inet_diag_msg. Of a listener, `rqueue` is the accept queue and `wqueue` the backlog.
fn listener(message: &[u8], protocol: &'static str) -> Option<Listener> {
    Some(Listener {
        protocol,
        address: local(message)?,
        inode: u64::from(word(message, 68)?),
        receive_queue: u64::from(word(message, 56)?),
        backlog: word(message, 60).filter(|_| protocol == "tcp").map(u64::from),
        memory: memory(&message[MESSAGE..]),
    })
}

/// Of a message that is whole, the end here and the other one.
fn local(message: &[u8]) -> Option<SocketAddr> {
    address(message, 4, 8)
}

fn remote(message: &[u8]) -> Option<SocketAddr> {
    address(message, 6, 24)
}

fn address(message: &[u8], port: usize, ip: usize) -> Option<SocketAddr> {
    if message.len() < MESSAGE {
        return None;
    }
    let address = if i32::from(message[0]) == libc::AF_INET {
        IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(&message[ip..ip + 4]).ok()?))
    } else {
        IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(&message[ip..ip + 16]).ok()?))
    };
    Some(SocketAddr::new(address, u16::from_be_bytes([message[port], message[port + 1]])))
}

/// What the socket holds, in the attributes behind a message.
fn memory(attributes: &[u8]) -> Option<Memory> {
    let words = attribute(attributes, INET_DIAG_SKMEMINFO)?;
    let at = |field: usize| word(words, field * 4).map(u64::from);
    Some(Memory { received: at(RMEM_ALLOC)?, receive_buffer: at(RCVBUF)?, drops: at(DROPS)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::parse;
    use crate::netlink::tests::{done, message};

    #[test]
    fn a_listener_is_read_and_the_end_seen() {
        let mut body = vec![0; MESSAGE];
        body[0] = 2;
        body[4..6].copy_from_slice(&8080u16.to_be_bytes());
        body[8..12].copy_from_slice(&[127, 0, 0, 1]);
        body[56..60].copy_from_slice(&3u32.to_ne_bytes());
        body[60..64].copy_from_slice(&128u32.to_ne_bytes());
        body[68..72].copy_from_slice(&77u32.to_ne_bytes());
        let mut found = Vec::new();
        let memory: Vec<u8> = [5u32, 6, 0, 0, 0, 0, 0, 0, 9].iter().flat_map(|word| word.to_ne_bytes()).collect();
        body.extend([[40, 0, 7, 0].as_slice(), &memory].concat());
        let bytes = [message(SOCK_DIAG_BY_FAMILY, &body), done()].concat();
        assert!(parse(&bytes, SOCK_DIAG_BY_FAMILY, &mut |message| found.extend(listener(message, "tcp"))).unwrap());
        assert_eq!(found[0].memory, Some(Memory { received: 5, receive_buffer: 6, drops: 9 }));
        assert_eq!((found[0].to_string().as_str(), found[0].inode), ("tcp 127.0.0.1:8080", 77));
        assert_eq!((found[0].receive_queue, found[0].backlog), (3, Some(128)));
    }

    #[test]
    fn a_connection_has_two_ends() {
        let mut body = vec![0; MESSAGE];
        (body[0], body[1]) = (2, 6);
        body[4..8].copy_from_slice(&[0x9c, 0x40, 0, 80]);
        body[24..28].copy_from_slice(&[10, 0, 0, 9]);
        assert_eq!(local(&body).map(|end| end.port()), Some(40_000));
        assert_eq!(remote(&body).map(|end| end.to_string()), Some("10.0.0.9:80".to_string()));
        assert!(remote(&body[..MESSAGE - 1]).is_none());
        assert!(memory(&[3, 0, 7, 0]).is_none() && memory(&[8, 0, 7, 0, 1, 0, 0, 0]).is_none(), "torn");
    }
}
