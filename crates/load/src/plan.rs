// SPDX-License-Identifier: Apache-2.0
//! What is to be sent, how often and for how long.

use std::net::IpAddr;
use std::time::Duration;

use crate::address::{Address, Protocol};
use crate::arrivals::Spread;

/// How often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// So many requests a second, whether or not answers come (an open loop).
    PerSecond(f64),
    /// Each connection sends its next request as soon as the answer to its last one is there (a closed loop): finds a
    /// limit, and measures no response time that clients would see.
    Max,
}

/// A load.
#[derive(Clone, Debug)]
pub struct Plan {
    /// To whom.
    pub to: Address,
    /// What a request is.
    pub request: Request,
    /// How often.
    pub rate: Rate,
    /// How requests are spread.
    pub spread: Spread,
    /// For how long requests are sent.
    pub length: Duration,
    /// At most so many are open at a time; a request that finds none free waits, and that counts as its latency.
    pub connections: usize,
    /// Each request opens a connection of its own and closes it.
    pub new_connections: bool,
    /// Addresses of our own that connections begin at, in turns; empty = the kernel chooses.
    pub sources: Vec<IpAddr>,
    /// A request without an answer for so long has failed.
    pub timeout: Duration,
    /// It is known to answer: that it answers nobody says something of this load.
    pub may_be_silent: bool,
}

/// The bytes of a request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Each is one write.
    pub writes: Vec<Vec<u8>>,
    /// Pause before each further write.
    pub think: Duration,
    /// Bytes of a reply; none = HTTP says where it ends.
    pub reply: Option<u64>,
    /// Whether nothing is done twice where it is sent twice, as HTTP promises of some methods (RFC 9110, 9.2.2).
    pub may_repeat: bool,
}

impl Request {
    /// An HTTP/1.1 request; `headers` are whole lines.
    pub fn http(to: &Address, method: &str, headers: &[String], body: &[u8], new_connections: bool) -> Self {
        let named = |name: &str| {
            headers.iter().any(|line| line.split(':').next().is_some_and(|it| it.trim().eq_ignore_ascii_case(name)))
        };
        let mut head = format!("{method} {} HTTP/1.1\r\n", to.path);
        let mut add = |name: &str, value: &str| {
            if !named(name) {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
        };
        add("Host", &to.authority());
        add("User-Agent", concat!("wakewalk/", env!("CARGO_PKG_VERSION")));
        add("Accept", "*/*");
        if !body.is_empty() || matches!(method, "POST" | "PUT" | "PATCH") {
            add("Content-Length", &body.len().to_string());
        }
        if new_connections {
            add("Connection", "close");
        }
        headers.iter().for_each(|line| head.push_str(&format!("{line}\r\n")));
        head.push_str("\r\n");
        let may_repeat = matches!(method, "GET" | "OPTIONS" | "PUT" | "DELETE");
        Self { writes: vec![[head.as_bytes(), body].concat()], think: Duration::ZERO, reply: None, may_repeat }
    }

    /// A message of plain bytes in several writes, answered by `reply` bytes.
    pub fn tcp(writes: Vec<Vec<u8>>, think: Duration, reply: u64) -> Self {
        Self { writes, think, reply: Some(reply), may_repeat: false }
    }
}

impl Plan {
    /// Whether replies have a status.
    pub fn is_http(&self) -> bool {
        self.to.protocol == Protocol::Http
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_say_what_http_wants_once() {
        let to: Address = "http://[::1]:81/x?y=1".parse().unwrap();
        let text = |request: Request| String::from_utf8(request.writes.concat()).unwrap();
        let get = text(Request::http(&to, "GET", &[], b"", false));
        assert!(get.starts_with("GET /x?y=1 HTTP/1.1\r\nHost: [::1]:81\r\n") && get.ends_with("\r\n\r\n"), "{get}");
        assert!(!get.contains("Content-Length") && !get.contains("close"));
        let post = text(Request::http(&to, "POST", &["host: other".into()], b"ab", true));
        assert!(post.contains("host: other\r\n") && !post.contains("Host: ["), "{post}");
        assert!(
            post.contains("Content-Length: 2\r\n")
                && post.contains("Connection: close")
                && post.ends_with("\r\n\r\nab")
        );
    }
}
