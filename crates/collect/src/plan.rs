// SPDX-License-Identifier: Apache-2.0
//! What a capture is told: whom to observe, for how long, and in which detail.

use std::path::PathBuf;
use std::time::Duration;

use crate::probes::Room;
use crate::target::Resolved;

/// What to capture.
pub struct Plan {
    /// The service.
    pub target: Resolved,
    /// How long.
    pub length: Duration,
    /// Length of a slice of the recording: after each, what the kernel has gathered is written and its tables are empty again.
    pub slice: Duration,
    /// When to count system calls.
    pub calls: CallCounting,
    /// Whether requests are labelled by their first bytes.
    pub labels: bool,
    /// Whom it observes.
    pub role: Role,
    /// The response time that the owner promises, for whoever reads the recording.
    pub slo: Option<Duration>,
    /// `/`, but for tests.
    pub root: PathBuf,
    /// Name and version of the program, for the recording.
    pub tool: String,
    /// Room in the kernel's tables: all that they were made for, but in tests of what happens when they are full.
    pub room: Room,
}

impl Plan {
    /// One that observes nobody, and for no time: what is tried, and not captured.
    pub(crate) fn of_nobody() -> Self {
        Self {
            target: Resolved::default(),
            length: Duration::ZERO,
            slice: SLICE,
            calls: CallCounting::Never,
            labels: false,
            role: Role::Service,
            slo: None,
            root: "/".into(),
            tool: String::new(),
            room: Room::Whole,
        }
    }
}

/// A slice of everything that nobody asks to be finer.
pub const SLICE: Duration = Duration::from_secs(1);

/// Whom a capture observes, and so what its hooks may cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// A service that people use: nobody may notice.
    #[default]
    Service,
    /// A load generator, of which each second counts.
    Generator,
}

/// When windows on system calls may open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallCounting {
    /// If the samples show a thread that keeps asking (polls, reads, yields, short sleeps).
    #[default]
    Auto,
    /// In any case.
    Always,
    /// Not at all.
    Never,
}
