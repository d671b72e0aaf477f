// SPDX-License-Identifier: Apache-2.0
//! The connections of the open-loop client: TCP and UDP on loopback, Unix sockets.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

/// How long a service may take to answer a greeting.
const GREETING_LIMIT: Duration = Duration::from_secs(5);
/// After so much silence its answer is whole.
const SILENCE: Duration = Duration::from_millis(30);

/// Where a service listens: `8080`, `udp:53`, `unix:/run/service.sock`.
#[derive(Clone, Debug, PartialEq)]
pub enum Address {
    /// TCP port on loopback.
    Tcp(u16),
    /// UDP port on loopback.
    Udp(u16),
    /// Stream socket in the file system.
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let port = |text: &str| text.parse().map_err(|_| format!("`{text}` is no port"));
        match text.split_once(':') {
            None => port(text).map(Self::Tcp),
            Some(("udp", rest)) => port(rest).map(Self::Udp),
            Some(("unix", rest)) => Ok(Self::Unix(rest.into())),
            Some((kind, _)) => Err(format!("`{kind}` is no kind of address; there are udp and unix")),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(port) => write!(f, "{port}"),
            Self::Udp(port) => write!(f, "udp:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// One connection.
pub enum Wire {
    /// TCP.
    Tcp(TcpStream),
    /// UDP that knows its peer.
    Udp(UdpSocket),
    /// Unix stream.
    Unix(UnixStream),
}

impl Wire {
    /// Connects; reads and writes block.
    pub fn connect(address: &Address) -> Result<Self> {
        let connect = || -> io::Result<Self> {
            Ok(match address {
                Address::Tcp(port) => {
                    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, *port))?;
                    stream.set_nodelay(true)?;
                    Self::Tcp(stream)
                }
                Address::Udp(port) => {
                    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
                    socket.connect((Ipv4Addr::LOCALHOST, *port))?;
                    Self::Udp(socket)
                }
                Address::Unix(path) => Self::Unix(UnixStream::connect(path)?),
            })
        };
        connect().with_context(|| format!("failed to connect to the service at {address}"))
    }

    /// The same, says hello, and does not block from then on.
    pub fn open(address: &Address, hello: &[Vec<u8>]) -> Result<Self> {
        let mut wire = Self::connect(address)?;
        wire.greet(hello)?;
        wire.set_nonblocking()?;
        Ok(wire)
    }

    /// Says each of `hello` (nothing, where the service speaks first) and waits for what is answered.
    pub fn greet(&mut self, hello: &[Vec<u8>]) -> Result<()> {
        for step in hello {
            self.write_all(step).context("failed to greet the service")?;
            self.hear(GREETING_LIMIT, SILENCE).context("the service did not answer the greeting")?;
        }
        Ok(())
    }

    /// Length of what comes within `limit` and until there is silence.
    pub fn hear(&mut self, limit: Duration, silence: Duration) -> Result<usize> {
        let mut buffer = vec![0; 1 << 16];
        self.set_read_timeout(limit)?;
        let mut length = self.read(&mut buffer).context("nothing came")?;
        ensure!(length > 0, "the service closed the connection");
        self.set_read_timeout(silence)?;
        loop {
            match self.read(&mut buffer) {
                Ok(0) => bail!("the service closed the connection after one answer"),
                Ok(more) => length += more,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Ok(length),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("failed to read an answer"),
            }
        }
    }

    fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_nonblocking(true),
            Self::Udp(socket) => socket.set_nonblocking(true),
            Self::Unix(stream) => stream.set_nonblocking(true),
        }
    }

    fn set_read_timeout(&self, limit: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(Some(limit)),
            Self::Udp(socket) => socket.set_read_timeout(Some(limit)),
            Self::Unix(stream) => stream.set_read_timeout(Some(limit)),
        }
    }
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Udp(socket) => socket.recv(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Udp(socket) => socket.send(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Udp(socket) => socket.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_back_as_they_were_written() {
        for text in ["8080", "udp:53", "unix:/run/a:b.sock"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        assert!("tcp:1".parse::<Address>().unwrap_err().contains("udp and unix"));
        assert!("65536".parse::<Address>().is_err());
    }
}
