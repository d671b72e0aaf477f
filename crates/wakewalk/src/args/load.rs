// SPDX-License-Identifier: Apache-2.0
//! What was typed after `wakewalk load`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use load::{Address, Rate, Spread};

use super::length;

/// `wakewalk load`
#[derive(Debug, Args)]
pub struct Load {
    /// Whom to load: http://HOST[:PORT][/PATH], or tcp://HOST:PORT for messages of plain bytes. Nobody else is connected to.
    #[arg(value_name = "URL", required_unless_present = "command", conflicts_with = "command")]
    pub to: Option<Address>,
    /// Requests a second, whether or not answers come; `max` = the next one when an answer is there, to find the limit.
    #[arg(long, value_name = "RATE", value_parser = rate, allow_hyphen_values = true, required_unless_present_any = ["sweep", "command"],
        conflicts_with_all = ["sweep", "command"])]
    pub rate: Option<Rate>,
    /// One load after another, from few requests a second to more than the service can do, such as 5..40000: finds the limit.
    #[arg(long, value_name = "FROM..TO", value_parser = range, conflicts_with = "command")]
    pub sweep: Option<(f64, f64)>,
    /// How long requests are sent, such as 10s or 1m; 10s, of a sweep at each load 5s. COMMAND is ended after 10m at the latest.
    #[arg(long = "for", value_name = "TIME", value_parser = length)]
    pub length: Option<Duration>,
    /// Connections at most; a request that finds none free waits, and that counts.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = connections)]
    pub connections: u32,
    /// A connection of its own for each request.
    #[arg(long)]
    pub new_connections: bool,
    /// Addresses that connections come from, in turns: a list, or for a service on loopback how many (127.0.0.2 and so on).
    #[arg(long, value_name = "N|LIST", value_parser = sources)]
    pub source_addresses: Option<Sources>,
    /// The response time that is promised, such as 50ms: how many requests take longer.
    #[arg(long, value_name = "TIME", value_parser = length)]
    pub slo: Option<Duration>,
    /// A request without an answer for so long has failed.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = length)]
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
    /// File with the body of the request.
    #[arg(long, value_name = "FILE")]
    pub body: Option<PathBuf>,
    /// Sizes of a tcp:// message, one write each, such as 20,80.
    #[arg(long, value_name = "BYTES,…", value_delimiter = ',', value_parser = size)]
    pub writes: Vec<usize>,
    /// Pause between two writes of a message.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = length)]
    pub think: Duration,
    /// Bytes of the answer to a tcp:// message.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    pub reply: Option<u64>,
    /// Also diagnose the service at the same time: whoever listens on the URL's port, or `=PID`, `=port:PORT`.
    #[arg(long, value_name = "WHOM", num_args = 0..=1, require_equals = true, default_missing_value = "", value_parser = whom)]
    pub diagnose: Option<Whom>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Show on the terminal also how it went second by second, of a sweep what the generator took at each load.
    #[arg(long, conflicts_with = "json")]
    pub full: bool,
    /// Also write it as one self-contained page, with curves.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Start this generator (ab, wrk, k6, any) and say what its numbers are worth, from what the kernel saw of it; its output goes
    /// to standard error.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
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

/// Whom to diagnose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    /// Whoever listens on the port of the URL.
    Loaded,
    /// A process.
    Pid(u32),
    /// Whoever listens on this port.
    Port(u16),
}

/// Where connections come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sources {
    /// So many addresses of the loopback network.
    Loopback(u32),
    /// These.
    Named(Vec<IpAddr>),
}

fn whom(text: &str) -> Result<Whom, String> {
    match (text, text.strip_prefix("port:")) {
        ("", _) => Ok(Whom::Loaded),
        (_, Some(port)) => super::port(port).map(Whom::Port),
        (pid, None) => super::pid(pid).map(Whom::Pid),
    }
}

fn rate(text: &str) -> Result<Rate, String> {
    if text == "max" {
        return Ok(Rate::Max);
    }
    number(text).map(Rate::PerSecond)
}

/// Requests a second that can be meant.
fn number(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|rate| (0.1..=1e7).contains(rate));
    number.ok_or_else(|| "a rate is a number of requests a second from 0.1 to 10,000,000, such as 1000".to_string())
}

fn range(text: &str) -> Result<(f64, f64), String> {
    let (from, to) = text.split_once("..").ok_or("write it as FROM..TO, such as 5..40000")?;
    match (number(from)?, number(to)?) {
        (from, to) if from < to => Ok((from, to)),
        _ => Err("it goes up: FROM is less than TO".into()),
    }
}

fn connections(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|n| (1..=1_000_000).contains(n))
        .ok_or_else(|| "a number of connections is 1 or more".into())
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
        "HEAD" | "CONNECT" => Err("its answers do not say where they end".into()),
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
        assert_eq!((rate("max"), rate("0.5")), (Ok(Rate::Max), Ok(Rate::PerSecond(0.5))));
        assert_eq!(range("5..40000"), Ok((5.0, 40000.0)));
        assert_eq!(sources("3"), Ok(Sources::Loopback(3)));
        assert_eq!(sources("::1, 10.0.0.1").map(|it| matches!(it, Sources::Named(all) if all.len() == 2)), Ok(true));
        assert!(rate("0").is_err() && rate("NaN").is_err() && rate("inf").is_err() && range("9..5").is_err());
        assert!(method("get").is_err() && method("HEAD").is_err() && sources("x").is_err() && size("0").is_err());
        assert!(header("A: b").is_ok() && header("A b").is_err() && header("A: b\r\nX: y").is_err());
    }
}
