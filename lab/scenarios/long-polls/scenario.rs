// SPDX-License-Identifier: Apache-2.0
//! nginx before a chat in Python, whose clients poll for what others will say: nobody is slow, neither the chat nor who passes it on,
//! however long answers take. The twin is the chat itself. That it is healthy is not claimed: a chat that forgot to answer would
//! look the same.

use std::time::Duration;

use anyhow::Result;

use super::churn::nginx;
use super::{LOAD_CPU, PYTHON, SERVICE_CPU};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19493;
const CHAT: u16 = 19494;

const TOLD: Expected = Expected {
    verdicts: &["not-determined", "healthy"],
    says: Some("wait until something comes on another connection"),
    ..NEUTRAL
};

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "long-polls",
    about: "nginx before a chat in Python whose clients poll for what others say",
    expected: TOLD,
    twin: Some(TOLD),
    builds: &[
        Build::Script("lab/scenarios/long-polls/chat.py", "chat.py"),
        Build::Script("lab/scenarios/long-polls/talk.py", "talk.py"),
    ],
    folders: &["lab/scenarios/churn"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("chat.py")?;
    cell.bring("talk.py")?;
    let chat = cell.start(Program::installed(PYTHON).args(["chat.py", &CHAT.to_string()]).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(CHAT)?;
    if side == Side::Fault {
        let upstream = format!("upstream chat {{ server 127.0.0.1:{CHAT}; keepalive 300; }}");
        let passes = "location / { proxy_pass http://chat; proxy_http_version 1.1; proxy_set_header Connection \"\"; }";
        nginx(cell, "proxy", (PORT, SERVICE_CPU), &upstream, passes)?;
    }
    let port = if side == Side::Fault { PORT } else { CHAT };
    let (listeners, rooms) = (cell.draw.number("listeners", 60, 30..=120), cell.draw.number("rooms", 10, 5..=12));
    let rate = cell.draw.number("rate", 8, 6..=16);
    let talk = [u64::from(port), listeners, rooms, rate].map(|number| number.to_string());
    cell.start(Program::installed(PYTHON).args(["talk.py".to_string()]).args(talk).on_cpus(LOAD_CPU).in_group("load"))?;
    cell.stop.sleep(Duration::from_secs(3))?;
    Ok(if side == Side::Fault { Aim::Port(PORT) } else { Aim::Pid(chat) })
}
