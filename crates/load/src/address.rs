// SPDX-License-Identifier: Apache-2.0
//! Whom to load. Only what the user names is ever connected to: no redirect is followed.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use anyhow::{Context, Result};

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
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
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
            (Protocol::Http, path) if path.starts_with('/') => path.split('#').next().unwrap_or("/").into(),
            (Protocol::Http, path) => format!("/{path}"),
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
    /// The host's addresses, asked once: a name that changes meanwhile would make two runs of one.
    ///
    /// # Errors
    /// The name is not known.
    pub fn resolve(&self) -> Result<SocketAddr> {
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let mut found =
            found.with_context(|| format!("`{}` is not known here; `getent hosts` shows what is", self.host))?;
        found.next().with_context(|| format!("`{}` has no address", self.host))
    }

    /// What HTTP/1.1 wants in `Host:`.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == 80 && self.protocol == Protocol::Http { host } else { format!("{host}:{}", self.port) }
    }
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
}
