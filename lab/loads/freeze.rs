// SPDX-License-Identifier: Apache-2.0
//! A service that stands still for a second: whoever counts from when a request was due finds it in the p99, whoever waits for
//! answers before asking again does not, and has to be told. The twin goes on.

use std::time::Duration;

use anyhow::Result;

use super::{Given, LoadScenario, Truth};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::paths::Paths;
use crate::scenario::Side;
use crate::scenarios::{SERVICE_CPU, THREADED};

const PORT: u16 = 19501;
const SECONDS: u64 = 8;
const BUILDS: &[Build] = &[THREADED];

/// By our own generator.
pub static OWN: LoadScenario = LoadScenario {
    name: "freeze",
    about: "a service that stands still for a second, under an open loop",
    builds: BUILDS,
    has_twin: true,
    stage: |cell, _, side| {
        freeze(cell, side)?;
        let rate = cell.draw.number("rate", 1000, 500..=3000);
        let length = Duration::from_secs(SECONDS);
        // A hundredth of all requests waited longer: those that were due in the first hundredths of the second.
        let p99 = (side == Side::Fault).then_some(1.0 - 0.01 * SECONDS as f64);
        let (verdict, has_not): (_, &[&str]) = match side {
            Side::Fault => ("", &[]),
            Side::Twin => ("valid", &["coordinated-omission"]),
        };
        let args = format!("http://127.0.0.1:{PORT}/ --rate {rate} --for {SECONDS}s");
        Ok(Given::new(&args, length, Truth { verdict, p99, has_not, ..Truth::default() }))
    },
};

/// By one that waits for answers.
pub static FOREIGN: LoadScenario = LoadScenario {
    name: "freeze-wrk",
    about: "a service that stands still for a second, under a generator that waits for it",
    builds: BUILDS,
    has_twin: true,
    stage: foreign,
};

fn foreign(cell: &mut Cell, _: &Paths, side: Side) -> Result<Given> {
    freeze(cell, side)?;
    let connections = cell.draw.number("connections", 8, 2..=32);
    let omission: &[&str] = &["coordinated-omission"];
    let truth = match side {
        // What wrk prints of it is less than a hundredth of what others wait for.
        Side::Fault => Truth { verdict: "misleading", has: omission, ..Truth::default() },
        Side::Twin => Truth { has_not: omission, ..Truth::default() },
    };
    let args = format!("-- wrk -t1 -c{connections} -d{SECONDS}s http://127.0.0.1:{PORT}/");
    Ok(Given::new(&args, Duration::from_secs(SECONDS + 4), truth))
}

/// Starts the service, each answer of which takes 2 ms, and what stops it for a second after some.
fn freeze(cell: &mut Cell, side: Side) -> Result<()> {
    let service = Program::built("threaded").args([PORT.to_string().as_str(), "unlocked", "2000"]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    if side == Side::Fault {
        let script = "sleep 4; kill -STOP $0; sleep 1; kill -CONT $0; sleep 600";
        let stopper = Program::installed("sh").named("stopper").args(["-c".into(), script.into(), pid.to_string()]);
        cell.start(stopper.in_group("load"))?;
    }
    Ok(())
}
