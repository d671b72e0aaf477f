// SPDX-License-Identifier: Apache-2.0
//! nginx before a ticker in Node.js that sends an event each time its timer fires: clients wait for the first one as for all others,
//! and nobody is slow. In the twin the timer delays answers that come all at once, and is a delay.

use std::time::Duration;

use anyhow::Result;

use super::churn::nginx;
use super::{LOAD_CPU, PYTHON, SERVICE_CPU};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19499;
const TICKER: u16 = 19500;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "event-streams",
    about: "nginx before a ticker in Node.js that sends events by its timer",
    expected: Expected { verdicts: &["healthy"], says: Some("late answers are streams"), ..NEUTRAL },
    twin: Some(Expected::cause(&["slow-dependency"])),
    builds: &[
        Build::Script("lab/scenarios/event-streams/events.js", "events.js"),
        Build::Script("lab/scenarios/event-streams/listen.py", "listen.py"),
    ],
    folders: &["lab/scenarios/churn"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("events.js")?;
    cell.bring("listen.py")?;
    let (every, events) = (cell.draw.number("every", 200, 60..=250), cell.draw.number("events", 8, 6..=10));
    let mode = if side == Side::Fault { "apart" } else { "at-once" };
    let ticker = [u64::from(TICKER), every, events].map(|number| number.to_string());
    let ticker = Program::installed("node").args(["events.js".to_string()]).args(ticker).args([mode]);
    cell.start(ticker.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(TICKER)?;
    let passes = format!("location / {{ proxy_pass http://127.0.0.1:{TICKER}; proxy_buffering off; }}");
    nginx(cell, "proxy", (PORT, SERVICE_CPU), "", &passes)?;
    let (subscribers, rate) = (cell.draw.number("subscribers", 30, 20..=60), cell.draw.number("rate", 10, 5..=20));
    let listen = [u64::from(PORT), subscribers, rate].map(|number| number.to_string());
    let clients = Program::installed(PYTHON).args(["listen.py".to_string()]).args(listen);
    cell.start(clients.on_cpus(LOAD_CPU).in_group("load"))?;
    cell.stop.sleep(Duration::from_secs(3))?;
    Ok(Aim::Port(PORT))
}
