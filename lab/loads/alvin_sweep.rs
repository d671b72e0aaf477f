// SPDX-License-Identifier: Apache-2.0
//! The services of story 004: a web service that asks Alvin, by gRPC, which asks a store. At low load Nagle's algorithm holds each
//! call back. The twin sets TCP_NODELAY.

use std::time::Duration;

use anyhow::Result;

use super::{Given, LoadScenario, Truth};
use crate::builds::Build;
use crate::cell::{Cell, FAR, Program};
use crate::paths::Paths;
use crate::scenario::Side;

const STORY: &str = "stories/004-alvin";
/// Where the web service listens.
pub const FRONT: u16 = 19507;
const ALVIN: u16 = 19508;
const STORE: u16 = 19509;

/// What it is made of.
pub const BUILDS: &[Build] = &[Build::Go(STORY, "./front", "front"), Build::Go(STORY, "./alvin", "alvin")];

/// The load.
pub static SCENARIO: LoadScenario = LoadScenario {
    name: "alvin-sweep",
    about: "a sweep over a web service before a gRPC service, whose calls are held at low load",
    builds: BUILDS,
    has_twin: true,
    stage,
};

/// The two services.
pub struct Services {
    /// The web service, which clients ask.
    pub front: u32,
    /// Alvin.
    pub alvin: u32,
}

fn stage(cell: &mut Cell, _: &Paths, side: Side) -> Result<Given> {
    let services = serve(cell, side == Side::Twin)?;
    let falls: &[&str] = &["latency-falls"];
    let truth = match side {
        Side::Fault => Truth { has: falls, service: Some("nagle-delayed-ack"), ..Truth::default() },
        Side::Twin => Truth { has_not: falls, ..Truth::default() },
    };
    let from = cell.draw.number("from", 10, 5..=20);
    let args = format!("{} --sweep {from}..{} --for 4s --diagnose={}", url(), from * 128, services.front);
    Ok(Given::new(&args, Duration::from_secs(180), truth))
}

/// Whom clients ask.
pub fn url() -> String {
    format!("http://127.0.0.1:{FRONT}/user")
}

/// Starts them, Alvin and its store on another host.
///
/// # Errors
/// A port is in use, or Redis is missing.
pub fn serve(cell: &mut Cell, no_delay: bool) -> Result<Services> {
    let (store, alvin_at) = (format!("{FAR}:{STORE}"), format!("{FAR}:{ALVIN}"));
    let redis = ["--port", &STORE.to_string(), "--bind", &FAR.to_string(), "--protected-mode", "no", "--save", ""];
    cell.start(Program::installed("redis-server").named("store").args(redis).far())?;
    cell.wait_for(FAR, STORE)?;
    let value = "v".repeat(100);
    let set = ["-h", &FAR.to_string(), "-p", &STORE.to_string(), "set", "user", &value];
    let set = cell.start(Program::installed("redis-cli").args(set).far())?;
    cell.finish(set, Duration::from_secs(20))?;
    let alvin = cell.start(Program::built("alvin").args(["-listen", &alvin_at, "-store", &store]).far())?;
    cell.wait_for(FAR, ALVIN)?;
    let listen = format!("127.0.0.1:{FRONT}");
    let how = [format!("-nodelay={no_delay}"), "-write-buffer=0".to_string()];
    let front = Program::built("front").args(["-listen", &listen, "-alvin", &alvin_at]).args(how);
    let front = cell.start(front)?;
    cell.wait_for_port(FRONT)?;
    Ok(Services { front, alvin })
}
