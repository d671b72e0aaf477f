// SPDX-License-Identifier: Apache-2.0
//! Dumps over netlink(7): a question goes to the kernel, and messages come back until it has told all.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::FromRawFd;
use std::path::Path;

use crate::namespace;
use crate::proc::Proc;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// NLM_F_REQUEST and NLM_F_DUMP.
const REQUEST_DUMP: u16 = 0x301;
/// sizeof(struct nlmsghdr).
const HEADER: usize = 16;

/// A socket that answers for the network namespace in which it was opened.
#[derive(Debug)]
pub struct Netlink {
    socket: File,
    buffer: Vec<u8>,
}

impl Netlink {
    /// Opens one for a protocol, `NETLINK_*`, in the network namespace that `pid` (a number or `self`) is in.
    ///
    /// # Errors
    /// The kernel does not have it, the namespace cannot be entered, or `proc` is not this kernel's.
    pub fn of(proc: &Proc, pid: &str, protocol: i32) -> io::Result<Self> {
        if proc.root() != Path::new("/") {
            return Err(io::ErrorKind::Unsupported.into());
        }
        if proc.namespace(pid, "net") == proc.namespace("self", "net") {
            return Self::open(protocol);
        }
        namespace::inside(&proc.path(format!("{pid}/ns/net")), || Self::open(protocol))
    }

    /// Opens one in the calling thread's network namespace.
    ///
    /// # Errors
    /// The kernel does not have it.
    #[allow(unsafe_code, reason = "the standard library has no netlink sockets")]
    fn open(protocol: i32) -> io::Result<Self> {
        // SAFETY: socket(2) takes no pointers; its result is checked before it is owned.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` was just made by us and nobody else owns it. A netlink socket can be read and
        // written like a file: without an address, a message goes to the kernel.
        Ok(Self { socket: unsafe { File::from_raw_fd(fd) }, buffer: vec![0; 32 << 10] })
    }

    /// Asks for all of a kind, with a body; gives the body of each answer of the kind `answers`.
    ///
    /// # Errors
    /// The kernel's, or an answer is torn.
    pub fn dump(&mut self, (kind, answers): (u16, u16), body: &[u8], each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        self.socket.write_all(&request(kind, body))?;
        loop {
            let length = self.socket.read(&mut self.buffer)?;
            if length == 0 || parse(&self.buffer[..length], answers, each)? {
                return Ok(());
            }
        }
    }
}

/// struct nlmsghdr, then the body.
fn request(kind: u16, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEADER + body.len()).unwrap_or(u32::MAX);
    let mut bytes = vec![0; HEADER];
    bytes[0..4].copy_from_slice(&length.to_ne_bytes());
    bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
    bytes[6..8].copy_from_slice(&REQUEST_DUMP.to_ne_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// Messages of one read; true = the answer is complete.
pub fn parse(mut bytes: &[u8], answers: u16, each: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
    while bytes.len() >= HEADER {
        let length = word(bytes, 0).unwrap_or(0) as usize;
        let kind = u16::from_ne_bytes([bytes[4], bytes[5]]);
        let Some(message) = bytes.get(HEADER..length) else { return Err(io::ErrorKind::InvalidData.into()) };
        let code = || word(message, 0).unwrap_or(0).cast_signed();
        match kind {
            // A dump that fails on its way, or that no module answers, ends with the error.
            NLMSG_DONE if code() >= 0 => return Ok(true),
            NLMSG_DONE | NLMSG_ERROR => return Err(io::Error::from_raw_os_error(code().saturating_neg())),
            kind if kind == answers => each(message),
            _ => {}
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// Attributes behind a message, or nested in one: struct rtattr, then its bytes, padded to words.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes([*bytes.first()?, *bytes.get(1)?]));
        let kind = u16::from_ne_bytes([*bytes.get(2)?, *bytes.get(3)?]);
        let body = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, body))
    })
}

/// The body of the first attribute of a kind.
pub fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(of, _)| *of == kind).map(|(_, body)| body)
}

/// Four bytes in the machine's order.
pub fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Eight of them.
pub fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    const KIND: u16 = 20;

    /// A message of one kind with a body.
    pub fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(HEADER + body.len()).unwrap();
        [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 10], body].concat()
    }

    /// The end of a dump.
    pub fn done() -> Vec<u8> {
        message(NLMSG_DONE, &[0; 4])
    }

    #[test]
    fn errors_and_torn_messages_are_errors() {
        let parse = |bytes: &[u8]| parse(bytes, KIND, &mut |_| ());
        let refused = message(NLMSG_ERROR, &(-2i32).to_ne_bytes());
        assert_eq!(parse(&refused).unwrap_err().kind(), io::ErrorKind::NotFound);
        let no_module = message(NLMSG_DONE, &(-2i32).to_ne_bytes());
        assert_eq!(parse(&no_module).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(parse(&done()).unwrap());
        assert!(parse(&message(KIND, &[0; 72])[..40]).is_err());
        assert!(parse(&[0; HEADER]).is_err(), "a length of 0 must not loop");
    }

    #[test]
    fn attributes_end_where_they_are_torn() {
        let bytes = [[5, 0, 1, 0, 7, 0, 0, 0].as_slice(), &[8, 0, 2, 0, 9, 0, 0, 0], &[9, 0, 3, 0]].concat();
        let found: Vec<(u16, usize)> = attributes(&bytes).map(|(kind, body)| (kind, body.len())).collect();
        assert_eq!(found, [(1, 1), (2, 4)]);
        assert_eq!(attribute(&bytes, 2).and_then(|body| word(body, 0)), Some(9));
        assert_eq!((word(&[0; 3], 0), long(&[0; 9], 2), attribute(&[3, 0, 7, 0], 7)), (None, None, None));
    }
}
