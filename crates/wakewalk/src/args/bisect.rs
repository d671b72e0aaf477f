// SPDX-License-Identifier: Apache-2.0
//! What was typed after `wakewalk bisect`.

use std::time::Duration;

use clap::Args;
use load::Address;

use super::message::Message;
use super::{TargetArgs, length};

/// What names the target of one run, of which nothing is sent.
const OF_ONE_RUN: [&str; 7] = ["pid", "port", "unit", "cgroup", "comm", "from", "command"];

/// `wakewalk bisect`
#[derive(Debug, Args)]
#[command(mut_group("TargetArgs", |group| group.arg("to")))]
#[command(mut_group("Message", |group| group.conflicts_with_all(OF_ONE_RUN)))]
pub struct Bisect {
    /// By experiment instead: load this service and the one of --beside by turns.
    #[arg(value_name = "URL", requires_all = ["beside", "rate"])]
    pub to: Option<Address>,
    /// The same service, started with one hop replaced, such as by `wakewalk load --serve`. Both are loaded, nothing is rerouted.
    #[arg(long, value_name = "URL", requires = "to")]
    pub beside: Option<Address>,
    /// Requests a second, the same for both.
    #[arg(long, value_name = "RATE", value_parser = super::load::number, requires = "to")]
    pub rate: Option<f64>,
    /// How many pairs of loads; more tell smaller differences.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(4..=50), requires = "to")]
    pub pairs: u32,
    /// The service, of which one run is enough.
    #[command(flatten)]
    pub target: TargetArgs,
    /// How long to observe, 10s; of an experiment each load, 5s.
    #[arg(long = "for", value_name = "TIME", value_parser = length)]
    pub length: Option<Duration>,
    /// Of an experiment: what is sent, and over what.
    #[command(flatten)]
    pub message: Message,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
