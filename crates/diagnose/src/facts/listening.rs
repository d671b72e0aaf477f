// SPDX-License-Identifier: Apache-2.0
//! Where the target listens: its sockets as the capture found them, `tcp 0.0.0.0:80`, and what their names say.

use recording::tables::Process;

use crate::answer::Gap;
use crate::case::{Case, Fact};

/// A socket that it listens on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Socket {
    /// As it was found.
    pub name: String,
    /// Whether clients make connections to it.
    pub is_tcp: bool,
    /// Whether it takes datagrams.
    pub is_udp: bool,
    /// Its port; none = it has none, as a Unix socket.
    pub port: Option<u32>,
}

impl Socket {
    fn new(name: &str) -> Self {
        let end = name.rsplit(':').next().and_then(|end| end.split_whitespace().next());
        Self {
            name: name.to_string(),
            is_tcp: name.starts_with("tcp "),
            is_udp: name.starts_with("udp"),
            port: end.and_then(|port| port.parse().ok()),
        }
    }
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listening {
    /// Those of the target when the capture began.
    pub own: Vec<Socket>,
    /// Those that were found at its processes.
    pub of_processes: Vec<Socket>,
}

impl Fact for Listening {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let processes = case.recording.rows::<Process>().iter().flat_map(|process| &process.listen);
        Ok(Self {
            own: case.recording.meta.target.listen.iter().map(|name| Socket::new(name)).collect(),
            of_processes: processes.map(|name| Socket::new(name)).collect(),
        })
    }
}

impl Listening {
    /// Whether clients may make connections to it.
    pub fn on_tcp(&self) -> bool {
        self.own.iter().any(|socket| socket.is_tcp)
    }

    /// Whether it listens, and for connections only.
    pub fn on_tcp_only(&self) -> bool {
        !self.own.is_empty() && self.own.iter().all(|socket| socket.is_tcp)
    }

    /// Ports at which clients make connections.
    pub fn tcp_ports(&self) -> Vec<u32> {
        self.own.iter().filter(|socket| socket.is_tcp).filter_map(|socket| socket.port).collect()
    }

    /// What its listener at a port is called.
    pub fn name_at(&self, port: u32) -> String {
        let at_port = |socket: &&Socket| socket.is_tcp && socket.port == Some(port);
        self.own.iter().find(at_port).map_or_else(|| format!("tcp port {port}"), |socket| socket.name.clone())
    }

    /// All, wherever they were found.
    pub fn all(&self) -> impl Iterator<Item = &Socket> {
        self.of_processes.iter().chain(&self.own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_say() {
        let text = "meta target.listen=[\"tcp 0.0.0.0:80\",\"udp [::]:53\"]\nprocess pid=1 listen=[\"tcp [::1]:8080\"]";
        let recording = recording::text::parse(text).unwrap();
        let listening = Case::new(&recording).fact::<Listening>().unwrap();
        assert!(listening.on_tcp() && !listening.on_tcp_only());
        assert_eq!(listening.tcp_ports(), [80]);
        assert_eq!(listening.all().filter_map(|socket| socket.port).collect::<Vec<_>>(), [8080, 80, 53]);
        assert_eq!((listening.name_at(80).as_str(), listening.name_at(53).as_str()), ("tcp 0.0.0.0:80", "tcp port 53"));
    }
}
