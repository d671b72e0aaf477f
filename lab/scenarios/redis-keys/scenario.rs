// SPDX-License-Identifier: Apache-2.0
//! Redis with many keys, of which some client asks for a list by a pattern now and then: that takes long, and all others wait
//! meanwhile. The twin asks how many there are.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, SERVICE_CPU};
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, NONE_APART, Scenario, Side};

const PORT: u16 = 19462;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "redis-keys",
    about: "Redis with 400,000 keys, of which one client lists those of a pattern while others get theirs",
    expected: Expected { slow: Some("KEYS"), ..Expected::cause(&["event-loop-blocked"]) },
    twin: Some(Expected { slow: Some(NONE_APART), ..NEUTRAL }),
    builds: &[],
    folders: &[],
    stage,
};

/// How long filling may take.
const FILLING: Duration = Duration::from_secs(60);

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let port = PORT.to_string();
    let redis = Program::installed("redis-server").args(["--port", &port, "--bind", "127.0.0.1"]);
    let redis = redis.args(["--save", "", "--appendonly", "no", "--daemonize", "no"]);
    let pid = cell.start(redis.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let keys = cell.draw.number("keys", 400_000, 300_000..=600_000);
    let fill = format!("for i=1,{keys} do redis.call('SET','item:'..i,i) end");
    let fill = cell.start(client(&port).args(["EVAL", &fill, "0"]).in_group("load"))?;
    cell.finish(fill, FILLING)?;
    for _ in 0..3 {
        cell.start(
            client(&port).args(["-r", "1000000", "-i", "0.01", "GET", "item:4711"]).on_cpus(LOAD_CPU).in_group("load"),
        )?;
    }
    let pause = format!("0.{}", cell.draw.number("pause_ms", 200, 150..=300));
    let slow = client(&port).args(["-r", "1000000", "-i", &pause]);
    let slow = if side == Side::Fault { slow.args(["KEYS", "basket:*"]) } else { slow.args(["DBSIZE"]) };
    cell.start(slow.on_cpus(LOAD_CPU).in_group("load"))?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}

fn client(port: &str) -> Program {
    Program::installed("redis-cli").args(["-p", port])
}
