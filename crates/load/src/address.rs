// SPDX-License-Identifier: Apache-2.0
//! Whom to load. Only what the user names is ever connected to: no redirect is followed.

use std::fmt;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result};

/// How long one of several addresses has time to let connect.
const PATIENCE: Duration = Duration::from_secs(1);

/// How requests and replies are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http,
    /// Bytes: so many are sent, so many come back.
    Tcp,
}

/// `http://host[:port][/path]` or `tcp://host:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Protocol.
    pub protocol: Protocol,
    /// Name or number, without the brackets of IPv6.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Path and query; empty for `tcp`.
    pub path: String,
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (protocol, rest) = match text.split_once("://") {
            Some(("http", rest)) => (Protocol::Http, rest),
            Some(("tcp", rest)) => (Protocol::Tcp, rest),
            Some(("https", _)) => {
                return Err("TLS is not spoken; name the port behind it, or run a generator that speaks it: \
                            wakewalk load -- COMMAND"
                    .into());
            }
            _ => return Err("an address is such as http://127.0.0.1:8080/ or tcp://127.0.0.1:6379".into()),
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (host, port) = authority_of(authority)?;
        let port = match (port, protocol) {
            (Some(port), _) => port,
            (None, Protocol::Http) => 80,
            (None, Protocol::Tcp) => return Err("name the port, such as tcp://127.0.0.1:6379".into()),
        };
        if path.bytes().any(|byte| byte <= b' ' || byte == 0x7f || !byte.is_ascii()) {
            return Err("a path has no spaces and only ASCII; write others as %20 and so on".into());
        }
        let path = match (protocol, path) {
            (Protocol::Tcp, "" | "/") => String::new(),
            (Protocol::Tcp, _) => return Err("tcp:// has no path".into()),
            (Protocol::Http, path) => {
                let sent = path.split('#').next().unwrap_or_default();
                if sent.starts_with('/') { sent.into() } else { format!("/{sent}") }
            }
        };
        Ok(Self { protocol, host, port, path })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.protocol {
            Protocol::Http => write!(f, "http://{}{}", self.authority(), self.path),
            Protocol::Tcp => write!(f, "tcp://{}", self.authority()),
        }
    }
}

/// Host and port of `host`, `host:port`, `[v6]` or `[v6]:port`.
fn authority_of(text: &str) -> Result<(String, Option<u16>), String> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or("an IPv6 address ends with `]`")?;
            (host, after.strip_prefix(':').or((!after.is_empty()).then_some("")))
        }
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:%".contains(&byte);
    if host.is_empty() || !host.bytes().all(is_name) {
        return Err(format!("`{host}` is no name of a host"));
    }
    let port = port.map(|port| match port.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("`{port}` is no port; one is a number from 1 to 65535")),
    });
    Ok((host.into(), port.transpose()?))
}

impl Address {
    /// The host's addresses, asked once: a name that changes meanwhile would make two runs of one. Where it is both loopbacks, as
    /// `localhost` often is, IPv4's comes first: most services listen there.
    ///
    /// # Errors
    /// Its name is not known.
    pub fn all(&self) -> Result<Vec<SocketAddr>> {
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let found =
            found.with_context(|| format!("`{}` is not known here; `getent hosts` shows what is", self.host))?;
        Ok(loopback_first(found.collect()))
    }

    /// The first of the host's addresses.
    ///
    /// # Errors
    /// The name is not known.
    pub fn resolve(&self) -> Result<SocketAddr> {
        self.all()?.into_iter().next().with_context(|| format!("`{}` has no address", self.host))
    }

    /// The first of the host's addresses that lets connect, or the first of all if none does; of those that connections from some
    /// addresses of our own can reach. Who has one address only is not asked.
    pub(crate) fn reachable(&self, sources: &[IpAddr]) -> Result<SocketAddr> {
        let can = |at: &SocketAddr| sources.first().is_none_or(|from| from.is_ipv4() == at.is_ipv4());
        let all: Vec<SocketAddr> = self.all()?.into_iter().filter(can).collect();
        first_that_accepts(&all).with_context(|| format!("`{}` has no address", self.host))
    }

    /// What HTTP/1.1 wants in `Host:`.
    pub fn authority(&self) -> String {
        // The zone of an address, `fe80::1%eth0`, means something on this host only.
        let host = self.host.split_once('%').map_or(self.host.as_str(), |(host, _)| host);
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_string() };
        if self.port == 80 && self.protocol == Protocol::Http { host } else { format!("{host}:{}", self.port) }
    }
}

/// Whether an address is one of this host's, in this network namespace.
pub fn is_here(address: IpAddr) -> bool {
    TcpListener::bind((address, 0)).is_ok()
}

fn loopback_first(mut found: Vec<SocketAddr>) -> Vec<SocketAddr> {
    if found.iter().all(|at| at.ip().is_loopback()) {
        found.sort_by_key(SocketAddr::is_ipv6);
    }
    found
}

fn first_that_accepts(all: &[SocketAddr]) -> Option<SocketAddr> {
    let accepts = |at: &&SocketAddr| TcpStream::connect_timeout(at, PATIENCE).is_ok();
    let [_, _, ..] = all else { return all.first().copied() };
    all.iter().find(accepts).or(all.first()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (String, u16, String) {
        let address: Address = text.parse().unwrap();
        (address.host, address.port, address.path)
    }

    #[test]
    fn addresses() {
        let expect = |host: &str, port, path: &str| (host.to_string(), port, path.to_string());
        assert_eq!(parts("http://localhost"), expect("localhost", 80, "/"));
        assert_eq!(parts("http://10.0.0.1:8080/a?b=c#d"), expect("10.0.0.1", 8080, "/a?b=c"));
        assert_eq!(parts("http://[::1]:81?x"), expect("::1", 81, "/?x"));
        assert_eq!(parts("tcp://[::1]:6379"), expect("::1", 6379, ""));
        assert_eq!("http://[::1]:81/".parse::<Address>().unwrap().authority(), "[::1]:81");
        assert_eq!("http://h/".parse::<Address>().unwrap().authority(), "h");
    }

    #[test]
    fn what_is_no_address_is_told() {
        for (text, why) in [
            ("localhost:80", "such as"),
            ("https://h/", "TLS"),
            ("tcp://h", "port"),
            ("tcp://h:1/x", "no path"),
            ("http://h:0/", "no port"),
            ("http://h:99999/", "no port"),
            ("http:///x", "no name"),
            ("http://h/a b", "spaces"),
            ("http://h/a\r\nX: y", "spaces"),
            ("http://[::1/", "`]`"),
            ("http://user@h/", "no name"),
        ] {
            let error = text.parse::<Address>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    /// `localhost` may be both, and a service listens at one of them.
    #[test]
    fn one_of_several_addresses_is_the_one_that_accepts() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let [v6, v4, other] = ["[::1]", "127.0.0.1", "192.0.2.1"].map(|host| format!("{host}:{port}").parse().unwrap());
        assert_eq!(first_that_accepts(&[v6, v4]), Some(v4));
        drop(listener);
        assert_eq!((first_that_accepts(&[v6, v4]), first_that_accepts(&[v6])), (Some(v6), Some(v6)), "nobody is there");
        assert_eq!(loopback_first(vec![v6, v4]), [v4, v6]);
        assert_eq!(loopback_first(vec![v6, other]), [v6, other], "as the resolver says");
    }
}
