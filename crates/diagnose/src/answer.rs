// SPDX-License-Identifier: Apache-2.0
//! What a verdict and a comparison have in common: who was looked at, what was not seen, what a number decided.
//! All of it is part of the JSON contract.

pub(crate) mod about;
pub mod comparison;
mod gap;
mod quality;
mod requests;
mod ruled_out;

pub(crate) use about::length_ns;
pub use about::{Host, Target, Window};
pub(crate) use gap::WORTH_A_WORD;
pub use gap::{Gap, Unseen};
pub use quality::{Cost, Coverage};
pub use requests::{Handshakes, HangingTimes, LabelTimes, PathPart, Quantiles, RequestTimes, Slowest};
pub use ruled_out::{Measured, Reason, RuledOut, Unit};

/// Version of the JSON contract of verdicts, comparisons and looks at a host.
pub const SCHEMA: u32 = 2;

/// Name and version, for each of them.
pub const TOOL: &str = concat!("wakewalk ", env!("CARGO_PKG_VERSION"));
