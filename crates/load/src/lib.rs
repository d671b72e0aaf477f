// SPDX-License-Identifier: Apache-2.0
//! An open-loop load generator: it sends by a plan, whether or not answers come, counts each answer from the moment at
//! which its request should have been sent, and says what its own numbers are worth. Beside it an endpoint that answers and does
//! nothing, to stand where a hop stood.

mod address;
mod answer;
mod arrivals;
mod beside;
mod body;
mod by_second;
mod client;
mod connection;
mod engine;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod judge;
mod keeping_up;
mod lengths;
mod limits;
mod observed;
mod omitted;
mod opening;
mod phases;
mod plan;
mod ports;
mod queued;
mod reason;
mod reasons;
mod reply;
mod requests;
mod run;
mod saved;
mod serve;
mod slices;
mod sweep;
mod taken;
mod verdict;

use std::time::Duration;

use anyhow::Result;

pub use address::{Address, Protocol, is_here};
pub use answer::{Answer, has_no_body};
pub use arrivals::Spread;
pub use beside::{Answerable, Beside, Effect, Estimate, Pair, beside, replaced_first};
pub use by_second::Moment;
pub use client::{Spent, Taken, Threads};
pub use judge::judge;
pub use lengths::{Lengths, Percentiles};
pub use observed::{cpus, observed};
pub use opening::Opening;
pub use plan::{Plan, Rate, Request};
pub use ports::{Ports, run_out_of_ports};
pub use reason::Reason;
pub use reasons::{is_between, is_between_at_service, rounded, words};
pub use run::{EndedBy, Failure, Run, Second};
pub use saved::save;
pub use serve::{Endpoint, Served, serve};
pub use sweep::{CpuLine, Knee, Pool, Step, Sweep, Tried, sweep, sweep_over};
pub use verdict::{Client, Meanwhile, Phase, Promise, Verdict, Word};

/// Loads a service by a plan. `stop` ends it early; `tell` hears ten times a second how far it is.
///
/// # Errors
/// The address is not known, this host cannot open as many connections, or nobody answered at all.
pub fn run(plan: &Plan, stop: &dyn Fn() -> bool, tell: &mut dyn FnMut(Duration, &Run)) -> Result<Run> {
    limits::allow(plan)?;
    let engine = engine::Engine::new(plan)?;
    let before = Spent::now();
    let mut run = engine.run(stop, tell)?;
    run.spent = Spent::now().since(before);
    if !plan.may_be_silent {
        limits::somebody_answered(plan, &run)?;
    }
    Ok(run)
}
