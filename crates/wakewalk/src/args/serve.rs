// SPDX-License-Identifier: Apache-2.0
//! What was typed after `wakewalk load --serve`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use load::Address;

use super::length;

/// `wakewalk load --serve`
#[derive(Debug, Args)]
pub struct Serve {
    /// Load nobody, but answer at this address, alike whatever is asked: http://HOST:PORT, or tcp://HOST:PORT with --request and
    /// --writes. Stands where a hop stood that is to do nothing. --reply, --body, --header and --writes are then the answer's.
    #[arg(long = "serve", id = "serve", value_name = "ADDRESS", conflicts_with_all = ["to", "rate", "sweep", "command", "slo", "diagnose",
        "json", "html", "full", "save", "connections", "new_connections", "source_addresses", "arrivals", "method", "think"])]
    pub at: Option<Address>,
    /// With --serve: how long after a request is whole its answer is sent, such as 5ms. A timer; requests do not wait for each other.
    #[arg(long, value_name = "TIME", value_parser = length)]
    pub delay: Option<Duration>,
    /// With --serve tcp://: bytes of a request.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    pub request: Option<u64>,
    /// With --serve http://: status of the answer, 200 if nothing is said.
    #[arg(long, value_name = "CODE", value_parser = clap::value_parser!(u16).range(200..=599))]
    pub status: Option<u16>,
    /// With --serve: TCP_NODELAY on its connections; `on` if nothing is said; with `off` a small write may wait for
    /// the acknowledgement of the one before.
    #[arg(long, value_enum, value_name = "HOW")]
    pub nodelay: Option<Switch>,
}

impl Serve {
    /// Whether something is said of an endpoint, and not where it is.
    pub fn is_nowhere(&self) -> bool {
        let is_said = self.delay.is_some() || self.request.is_some() || self.status.is_some() || self.nodelay.is_some();
        self.at.is_none() && is_said
    }
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// It is.
    On,
    /// It is not.
    Off,
}
