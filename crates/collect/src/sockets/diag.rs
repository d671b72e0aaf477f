// SPDX-License-Identifier: Apache-2.0
//! Listening sockets by sock_diag(7), which walks the listeners alone and knows their backlog.
//!
//! `/proc/net/tcp` has neither: its reader pays for a walk over the whole hash of connections, some ms on an idle
//! machine, too much for each second.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::FromRawFd;

use super::{Listener, Memory};

const SOCK_DIAG_BY_FAMILY: u16 = 20; // include/uapi/linux/sock_diag.h
const NLM_F_REQUEST_DUMP: u16 = 0x301;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// sizeof(struct nlmsghdr) and sizeof(struct inet_diag_msg).
const HEADER: usize = 16;
const MESSAGE: usize = 72;
/// Attribute with the socket's memory, and which of its words are asked for (SK_MEMINFO_*, include/uapi/linux/sock_diag.h).
const INET_DIAG_SKMEMINFO: u16 = 7;
const RMEM_ALLOC: usize = 0;
const RCVBUF: usize = 1;
const DROPS: usize = 8;
/// Bits of TCP_LISTEN and, for unconnected UDP sockets, TCP_CLOSE.
const LISTENING: u32 = 1 << 10;
const UNCONNECTED: u32 = 1 << 7;
/// Bits of all states in which a connection holds its local port, and the number of TCP_TIME_WAIT.
const HOLDING: u32 = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5 | 1 << TIME_WAIT | 1 << 8 | 1 << 9 | 1 << 11;
const TIME_WAIT: u8 = 6;

/// A socket that answers for the network namespace in which it was opened.
#[derive(Debug)]
pub struct Diag {
    socket: File,
}

impl Diag {
    /// Opens it in the calling thread's network namespace.
    ///
    /// # Errors
    /// The kernel has no sock_diag.
    #[allow(unsafe_code, reason = "the standard library has no netlink sockets")]
    pub fn open() -> io::Result<Self> {
        // SAFETY: socket(2) takes no pointers; its result is checked before it is owned.
        let fd =
            unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_SOCK_DIAG) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` was just made by us and nobody else owns it. A netlink socket can be read and
        // written like a file: without an address, a message goes to the kernel.
        Ok(Self { socket: unsafe { File::from_raw_fd(fd) } })
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

    /// TCP connections that hold a local port, each with its local port, its other end, and whether it is in TIME_WAIT. This
    /// walks all connections of the namespace.
    ///
    /// # Errors
    /// The kernel has no tcp_diag.
    pub fn connections(&mut self, mut each: impl FnMut(u16, SocketAddr, bool)) -> io::Result<()> {
        self.dump(libc::IPPROTO_TCP, HOLDING, &mut |message| {
            if let (Some(local), Some(remote)) = (local(message), remote(message)) {
                each(local.port(), remote, message[1] == TIME_WAIT);
            }
        })
    }

    fn listening(&mut self, protocol: i32, states: u32, name: &'static str) -> io::Result<Vec<Listener>> {
        let mut all = Vec::new();
        self.dump(protocol, states, &mut |message| all.extend(listener(message, name)))?;
        Ok(all)
    }

    /// Of IPv4 and IPv6.
    fn dump(&mut self, protocol: i32, states: u32, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        let mut buffer = vec![0; 32 << 10];
        for family in [libc::AF_INET, libc::AF_INET6] {
            self.socket.write_all(&request(family, protocol, states))?;
            loop {
                let length = self.socket.read(&mut buffer)?;
                if length == 0 || parse(&buffer[..length], each)? {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// struct nlmsghdr, then struct inet_diag_req_v2 with an empty socket id: all sockets.
fn request(family: i32, protocol: i32, states: u32) -> [u8; 72] {
    let mut bytes = [0; 72];
    bytes[0..4].copy_from_slice(&72u32.to_ne_bytes());
    bytes[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&NLM_F_REQUEST_DUMP.to_ne_bytes());
    bytes[16] = u8::try_from(family).unwrap_or(0);
    bytes[17] = u8::try_from(protocol).unwrap_or(0);
    bytes[18] = 1 << (INET_DIAG_SKMEMINFO - 1);
    bytes[20..24].copy_from_slice(&states.to_ne_bytes());
    bytes
}

/// Messages of one read; true = the answer is complete.
pub(super) fn parse(mut bytes: &[u8], each: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
    while bytes.len() >= HEADER {
        let length = word(bytes, 0) as usize;
        let kind = u16::from_ne_bytes([bytes[4], bytes[5]]);
        let Some(message) = bytes.get(HEADER..length) else { return Err(io::ErrorKind::InvalidData.into()) };
        match kind {
            NLMSG_DONE => return Ok(true),
            NLMSG_ERROR if message.len() >= 4 => {
                return Err(io::Error::from_raw_os_error(word(message, 0).cast_signed().saturating_neg()));
            }
            SOCK_DIAG_BY_FAMILY => each(message),
            _ => {}
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// struct inet_diag_msg. Of a listener, `rqueue` is the accept queue and `wqueue` the backlog.
fn listener(message: &[u8], protocol: &'static str) -> Option<Listener> {
    Some(Listener {
        protocol,
        address: local(message)?,
        inode: u64::from(word(message, 68)),
        receive_queue: u64::from(word(message, 56)),
        backlog: (protocol == "tcp").then(|| u64::from(word(message, 60))),
        memory: memory(&message[MESSAGE..]),
    })
}

/// For fuzzing: all that is read of one message.
#[cfg(any(test, fuzzing))]
pub(super) fn read(message: &[u8]) {
    let _ = (listener(message, "tcp"), remote(message));
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

/// Attributes behind a message: struct rtattr, then its bytes, padded to words.
fn memory(mut attributes: &[u8]) -> Option<Memory> {
    while attributes.len() >= 4 {
        let length = usize::from(u16::from_ne_bytes([attributes[0], attributes[1]]));
        let kind = u16::from_ne_bytes([attributes[2], attributes[3]]);
        let body = attributes.get(4..length)?;
        if kind == INET_DIAG_SKMEMINFO {
            let at = |field: usize| (body.len() >= (field + 1) * 4).then(|| u64::from(word(body, field * 4)));
            return Some(Memory { received: at(RMEM_ALLOC)?, receive_buffer: at(RCVBUF)?, drops: at(DROPS)? });
        }
        attributes = attributes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    None
}

/// A word in the machine's byte order; the caller has checked the length.
fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of one kind with a body.
    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(HEADER + body.len()).unwrap();
        [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 10], body].concat()
    }

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
        let bytes = [message(SOCK_DIAG_BY_FAMILY, &body), message(NLMSG_DONE, &[0; 4])].concat();
        assert!(parse(&bytes, &mut |message| found.extend(listener(message, "tcp"))).unwrap());
        assert_eq!(found[0].memory, Some(Memory { received: 5, receive_buffer: 6, drops: 9 }));
        assert_eq!((found[0].to_string().as_str(), found[0].inode), ("tcp 127.0.0.1:8080", 77));
        assert_eq!((found[0].receive_queue, found[0].backlog), (3, Some(128)));
    }

    #[test]
    fn a_connection_has_two_ends() {
        let mut body = vec![0; MESSAGE];
        (body[0], body[1]) = (2, TIME_WAIT);
        body[4..8].copy_from_slice(&[0x9c, 0x40, 0, 80]);
        body[24..28].copy_from_slice(&[10, 0, 0, 9]);
        assert_eq!(local(&body).map(|end| end.port()), Some(40_000));
        assert_eq!(remote(&body).map(|end| end.to_string()), Some("10.0.0.9:80".to_string()));
        assert!(remote(&body[..MESSAGE - 1]).is_none());
        assert!(memory(&[3, 0, 7, 0]).is_none() && memory(&[8, 0, 7, 0, 1, 0, 0, 0]).is_none(), "torn");
    }

    #[test]
    fn errors_and_torn_messages_are_errors() {
        let refused = message(NLMSG_ERROR, &(-2i32).to_ne_bytes());
        assert_eq!(parse(&refused, &mut |_| ()).unwrap_err().kind(), io::ErrorKind::NotFound);
        let torn = &message(SOCK_DIAG_BY_FAMILY, &[0; MESSAGE])[..40];
        assert!(parse(torn, &mut |_| ()).is_err());
        assert!(parse(&[0; HEADER], &mut |_| ()).is_err(), "a length of 0 must not loop");
    }
}
