// SPDX-License-Identifier: Apache-2.0
//! What a load sends, and over which connections.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use load::Spread;

use super::length;

/// The message of a load.
#[derive(Debug, Args)]
pub struct Message {
    /// Connections at most; a request that finds none free waits, and that counts. A sweep takes more where their number
    /// is the limit.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = connections)]
    pub connections: u32,
    /// A connection of its own for each request.
    #[arg(long)]
    pub new_connections: bool,
    /// Addresses that connections come from, in turns: a list, or for a service on loopback how many (127.0.0.2 and so on).
    #[arg(long, value_name = "N|LIST", value_parser = sources)]
    pub source_addresses: Option<Sources>,
    /// A request without an answer for so long has failed.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = timeout)]
    pub timeout: Duration,
    /// How requests are spread over time.
    #[arg(long, value_enum, default_value_t = Arrivals::Poisson, value_name = "HOW")]
    pub arrivals: Arrivals,
    /// HTTP method.
    #[arg(long, value_name = "METHOD", value_parser = method, default_value = "GET")]
    pub method: String,
    /// A line of the HTTP head, such as 'Accept: text/html'; may be given several times.
    #[arg(long, value_name = "LINE", value_parser = header)]
    pub header: Vec<String>,
    /// File with the body of the request, or with the bytes of a tcp:// message.
    #[arg(long, value_name = "FILE")]
    pub body: Option<PathBuf>,
    /// Sizes of the writes of a tcp:// message, such as 20,80; without --body they are of any bytes.
    #[arg(long, value_name = "BYTES,…", value_delimiter = ',', value_parser = size)]
    pub writes: Vec<usize>,
    /// Pause between two writes of a message.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = length)]
    pub think: Duration,
    /// Bytes of the answer to a tcp:// message.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    pub reply: Option<u64>,
}

/// How requests are spread over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Arrivals {
    /// As visitors come who do not know of each other.
    Poisson,
    /// All gaps are the same.
    Uniform,
}

impl From<Arrivals> for Spread {
    fn from(arrivals: Arrivals) -> Self {
        match arrivals {
            Arrivals::Poisson => Self::Poisson,
            Arrivals::Uniform => Self::Uniform,
        }
    }
}

/// Where connections come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sources {
    /// So many addresses of the loopback network.
    Loopback(u32),
    /// These.
    Named(Vec<IpAddr>),
}

fn connections(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|n| (1..=1_000_000).contains(n))
        .ok_or_else(|| "a number of connections is 1 to 1,000,000".into())
}

fn timeout(text: &str) -> Result<Duration, String> {
    length(text).and_then(|time| if time.is_zero() { Err("no answer comes within no time".into()) } else { Ok(time) })
}

fn sources(text: &str) -> Result<Sources, String> {
    if let Ok(count) = text.parse::<u32>() {
        let is_possible = (1..=1 << 16).contains(&count);
        return if is_possible {
            Ok(Sources::Loopback(count))
        } else {
            Err("1 to 65536 addresses can be taken".into())
        };
    }
    let addresses = text.split(',').map(|address| address.trim().parse());
    let addresses: Result<Vec<IpAddr>, _> = addresses.collect();
    addresses
        .map(Sources::Named)
        .map_err(|_| "name addresses such as 10.0.0.2,10.0.0.3, or how many of loopback".into())
}

fn method(text: &str) -> Result<String, String> {
    let is_method = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase());
    match text {
        "HEAD" | "CONNECT" => Err("its answers do not say where they end: use GET".into()),
        _ if is_method => Ok(text.into()),
        _ => Err("a method is such as GET or POST".into()),
    }
}

fn header(text: &str) -> Result<String, String> {
    let is_line = text.split_once(':').is_some_and(|(name, _)| !name.is_empty() && !name.contains(' '));
    let is_safe = text.bytes().all(|byte| byte >= b' ' && byte != 0x7f);
    if is_line && is_safe { Ok(text.into()) } else { Err("a line of a head is such as 'Accept: text/html'".into()) }
}

fn size(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|size| (1..=1 << 24).contains(size)).ok_or_else(|| "a size is 1 to 16777216 bytes".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        assert_eq!(sources("3"), Ok(Sources::Loopback(3)));
        assert_eq!(sources("::1, 10.0.0.1").map(|it| matches!(it, Sources::Named(all) if all.len() == 2)), Ok(true));
        assert!(timeout("0s").is_err() && timeout("1s").is_ok() && connections("0").is_err());
        assert!(method("get").is_err() && method("HEAD").is_err() && sources("x").is_err() && size("0").is_err());
        assert!(header("A: b").is_ok() && header("A b").is_err() && header("A: b\r\nX: y").is_err());
    }
}
