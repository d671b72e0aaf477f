// SPDX-License-Identifier: Apache-2.0
//! Where the target listens: its sockets as the capture found them, `tcp 0.0.0.0:80`, and what their names say. Those that it
//! opened meanwhile count as well: a command that the capture started has none when that begins.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use recording::role;
use recording::tables::{Process, Setting};

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

/// All of them, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listening(Vec<Socket>);

impl Fact for Listening {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let processes = case.recording.rows::<Process>().iter().flat_map(|process| &process.listen);
        let given_by_kernel = local_ports(case.recording.rows::<Setting>());
        // A datagram socket at such a port asks others, as one for names does: nobody would know where to find it.
        let asks = |socket: &Socket| socket.is_udp && socket.port.is_some_and(|port| given_by_kernel.contains(&port));
        let names: BTreeSet<&String> = case.recording.meta.target.listen.iter().chain(processes).collect();
        Ok(Self(names.into_iter().map(|name| Socket::new(name)).filter(|socket| !asks(socket)).collect()))
    }
}

/// Ports that the kernel gives to whoever names none.
fn local_ports(settings: &[Setting]) -> RangeInclusive<u32> {
    let is_range = |setting: &&Setting| setting.name == "net.ipv4.ip_local_port_range";
    let ends = settings.iter().find(is_range).map_or("32768 60999", |setting| &setting.value);
    let mut ends = ends.split_whitespace().filter_map(|end| end.parse().ok());
    ends.next().unwrap_or(u32::MAX)..=ends.next().unwrap_or(0)
}

impl Listening {
    /// Whether clients may make connections to it.
    pub fn on_tcp(&self) -> bool {
        self.0.iter().any(|socket| socket.is_tcp)
    }

    /// Whether datagrams may come to it.
    pub fn on_udp(&self) -> bool {
        self.0.iter().any(|socket| !socket.is_tcp)
    }

    /// Ports at which clients make connections.
    pub fn tcp_ports(&self) -> Vec<u32> {
        self.0.iter().filter(|socket| socket.is_tcp).filter_map(|socket| socket.port).collect()
    }

    /// What its listener at a port is called; port 0 stands for several that are not told apart.
    pub fn name_at(&self, port: u32) -> String {
        if port == 0 {
            return role::OTHERS.to_string();
        }
        let at_port = |socket: &&Socket| socket.is_tcp && socket.port == Some(port);
        self.0.iter().find(at_port).map_or_else(|| format!("tcp port {port}"), |socket| socket.name.clone())
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Socket> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Netty's resolver, or a client of statsd.
    #[test]
    fn sockets_for_questions_are_no_listeners() {
        let listens = |more: &str| {
            let text = format!("meta target.listen=[\"tcp [::]:40000\",\"udp 0.0.0.0:43211\"]\n{more}");
            let recording = recording::text::parse(&text).unwrap();
            let listening = Case::new(&recording).fact::<Listening>().unwrap();
            listening.all().map(|socket| socket.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(listens(""), ["tcp [::]:40000"]);
        let narrow = "setting area=sysctl name=net.ipv4.ip_local_port_range value=\"50000 60999\"";
        assert_eq!(listens(narrow), ["tcp [::]:40000", "udp 0.0.0.0:43211"]);
    }

    #[test]
    fn what_names_say() {
        let text = "meta target.listen=[\"tcp 0.0.0.0:80\",\"udp [::]:53\"]\nprocess pid=1 listen=[\"tcp [::1]:8080\"]";
        let recording = recording::text::parse(text).unwrap();
        let listening = Case::new(&recording).fact::<Listening>().unwrap();
        assert!(listening.on_tcp() && listening.on_udp());
        assert_eq!(listening.tcp_ports(), [80, 8080], "one that a process of it opened later serves too");
        assert_eq!(listening.all().filter_map(|socket| socket.port).collect::<Vec<_>>(), [80, 8080, 53]);
        assert_eq!((listening.name_at(80).as_str(), listening.name_at(53).as_str()), ("tcp 0.0.0.0:80", "tcp port 53"));
    }
}
