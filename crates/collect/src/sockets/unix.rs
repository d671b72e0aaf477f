// SPDX-License-Identifier: Apache-2.0
//! Unix sockets that wait for connections, by sock_diag(7): their accept queues, which no file of `/proc` has.

use super::diag::LISTENING;
use crate::netlink::{attribute, word};

/// sizeof(struct unix_diag_msg), and what is asked for beside it (include/uapi/linux/unix_diag.h).
const MESSAGE: usize = 16;
const SHOW_NAME_AND_QUEUE: u32 = 1 | 1 << 4;
const UNIX_DIAG_NAME: u16 = 0;
const UNIX_DIAG_RQLEN: u16 = 4;

/// A Unix socket that waits for connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixListener {
    /// `unix /run/app.sock`; of an abstract name `unix @name`.
    pub name: String,
    /// Inode, by which descriptors refer to it.
    pub inode: u64,
    /// Connections that wait for accept(2), and how many may.
    pub queue: u64,
    /// How many may; one more waits in connect(2).
    pub backlog: u64,
}

/// struct unix_diag_req: all that listen.
pub(super) fn request() -> [u8; 24] {
    let mut bytes = [0; 24];
    bytes[0] = u8::try_from(libc::AF_UNIX).unwrap_or(0);
    bytes[4..8].copy_from_slice(&LISTENING.to_ne_bytes());
    bytes[12..16].copy_from_slice(&SHOW_NAME_AND_QUEUE.to_ne_bytes());
    bytes
}

/// struct unix_diag_msg and its attributes; one without a name was not bound, and nobody finds it.
pub(super) fn listener(message: &[u8]) -> Option<UnixListener> {
    let attributes = message.get(MESSAGE..)?;
    let name = attribute(attributes, UNIX_DIAG_NAME)?;
    let lengths = attribute(attributes, UNIX_DIAG_RQLEN)?;
    let name = match name {
        [0, rest @ ..] => format!("unix @{}", String::from_utf8_lossy(rest)),
        path => format!("unix {}", String::from_utf8_lossy(path).trim_end_matches('\0')),
    };
    let inode = u64::from(word(message, 4)?);
    Some(UnixListener { name, inode, queue: word(lengths, 0)?.into(), backlog: word(lengths, 4)?.into() })
}

#[cfg(test)]
mod tests {
    use super::super::Source;
    use super::*;
    use crate::proc::Proc;
    use std::os::unix::net::{UnixListener as Socket, UnixStream};
    use std::path::Path;

    #[test]
    fn one_that_was_asked_three_times_and_took_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("app.sock");
        let _listener = Socket::bind(&path).unwrap();
        let clients: Vec<UnixStream> = (0..3).map(|_| UnixStream::connect(&path).unwrap()).collect();
        let all = Source::of(&Proc::new(Path::new("/")), "self").unix().unwrap();
        let found = all.iter().find(|listener| listener.name == format!("unix {}", path.display())).unwrap();
        assert_eq!(found.queue, clients.len() as u64);
        let own = Proc::new(Path::new("/")).socket_inodes(std::process::id());
        assert!(found.backlog >= 100 && own.contains(&found.inode), "{found:?}");
    }

    #[test]
    fn what_is_torn_is_no_listener() {
        let attribute = |kind: u16, body: &[u8]| {
            let length = u16::try_from(4 + body.len()).unwrap();
            let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
            bytes.extend_from_slice(body);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        let lengths = attribute(UNIX_DIAG_RQLEN, &[7, 0, 0, 0, 9, 0, 0, 0]);
        let whole = [vec![0; MESSAGE], attribute(UNIX_DIAG_NAME, b"\0app"), lengths].concat();
        let found = listener(&whole).unwrap();
        assert_eq!((found.name.as_str(), found.queue, found.backlog), ("unix @app", 7, 9));
        assert!((0..whole.len() - 4).all(|length| listener(&whole[..length]).is_none()));
    }
}
