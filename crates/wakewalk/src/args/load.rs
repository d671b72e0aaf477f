// SPDX-License-Identifier: Apache-2.0
//! What was typed after `wakewalk load`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use load::{Address, Rate};

use super::message::Message;
use super::serve::Serve;
use super::{Part, length, part, promise};

/// `wakewalk load`
#[derive(Debug, Args)]
pub struct Load {
    /// Whom to load: http://HOST[:PORT][/PATH], or tcp://HOST:PORT for messages of plain bytes. Nobody else is connected to.
    #[arg(value_name = "URL", required_unless_present_any = ["command", "serve"], conflicts_with = "command")]
    pub to: Option<Address>,
    /// Requests a second, whether or not answers come; `max` = the next one when an answer is there, to find the limit.
    #[arg(long, value_name = "RATE", value_parser = rate, allow_hyphen_values = true, conflicts_with_all = ["sweep", "command"])]
    pub rate: Option<Rate>,
    /// One load after another, from few requests a second to more than the service can do, such as 5..40000: finds the limit.
    #[arg(long, value_name = "FROM..TO", value_parser = range, conflicts_with = "command")]
    pub sweep: Option<(f64, f64)>,
    /// How long requests are sent, such as 10s or 1m; 10s, of a sweep at each load 5s. COMMAND and --serve end after 10m, or after this.
    #[arg(long = "for", value_name = "TIME", value_parser = length)]
    pub length: Option<Duration>,
    /// The response time that is promised, such as 50ms: how many requests take longer.
    #[arg(long, value_name = "TIME", value_parser = promise)]
    pub slo: Option<Duration>,
    /// What is sent, and over what.
    #[command(flatten)]
    pub message: Message,
    /// Load nobody, but be loaded.
    #[command(flatten)]
    pub serve: Serve,
    /// Also diagnose the service at the same time: whoever listens on the URL's port, or `=PID`, `=port:PORT`.
    #[arg(long, value_name = "WHOM", num_args = 0..=1, require_equals = true, default_missing_value = "", value_parser = whom)]
    pub diagnose: Option<Whom>,
    /// Also say whether it comes as clients do in production: DIR is a recording of the service there (`diagnose --save DIR`, with
    /// `--requests` also what is asked).
    #[arg(long, value_name = "DIR", requires = "diagnose", conflicts_with_all = ["sweep", "serve"])]
    pub like: Option<PathBuf>,
    /// Only this part of that recording, such as 20s..30s or 10s.. .
    #[arg(long, value_name = "FROM..TO", value_parser = part, requires = "like")]
    pub like_at: Option<Part>,
    /// Keep what came of it, second by second, as Parquet: tables `load_second` and `load_latency` (SCHEMA.md).
    #[arg(long, value_name = "DIR", conflicts_with = "serve")]
    pub save: Option<PathBuf>,
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
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["Message", "Serve"])]
    pub command: Vec<String>,
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
pub fn number(text: &str) -> Result<f64, String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        assert_eq!((rate("max"), rate("0.5")), (Ok(Rate::Max), Ok(Rate::PerSecond(0.5))));
        assert_eq!(range("5..40000"), Ok((5.0, 40000.0)));
        assert!(rate("0").is_err() && rate("NaN").is_err() && rate("inf").is_err() && range("9..5").is_err());
    }
}
