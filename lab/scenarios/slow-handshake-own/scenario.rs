// SPDX-License-Identifier: Apache-2.0
//! The Go service behind TLS of `slow-handshake`, looked at itself: its answers take no time, and its clients wait for handshakes,
//! in which a goroutine sleeps, of which the kernel sees nothing. Such a service is not healthy.

use super::slow_handshake::{BUILDS, VAULT, stage};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario};

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "slow-handshake-own",
    about: "a Go service behind TLS whose handshakes take 90 ms, and its answers no time",
    expected: Expected { says: Some("of it inside the process"), ..Expected::cause(&["not-determined"]) },
    twin: Some(NEUTRAL),
    builds: BUILDS,
    folders: &["lab/webload", "lab/scenarios/churn", "lab/scenarios/slow-handshake"],
    stage: |cell, side| {
        stage(cell, side)?;
        Ok(Aim::Port(VAULT))
    },
};
