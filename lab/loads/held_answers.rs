// SPDX-License-Identifier: Apache-2.0
//! A service that holds each answer for a tenth of a second and computes hardly anything: over 64 connections it answers 640 requests
//! a second, which is the client's number and no limit of it. The twin's answers differ much, one in ten is quick and the others are
//! held: what is under way at the end is no capacity that is missing.

use std::time::Duration;

use anyhow::Result;

use super::{Given, LoadScenario, Truth};
use crate::cell::{Cell, Program};
use crate::paths::Paths;
use crate::scenario::Side;
use crate::scenarios::SERVICE_CPU;

const PORT: u16 = 19506;

/// Holds an answer for so many ms, but so many in a hundred not at all.
const SERVICE: &str = "const [port, held, quick] = process.argv.slice(2).map(Number);
let nth = 0;
require('node:http').createServer((_, response) => {
  nth = (nth + 37) % 100;
  setTimeout(() => response.end('done'), nth < quick ? 1 : held);
}).listen(port, '127.0.0.1');
";

/// The load.
pub static LOAD: LoadScenario = LoadScenario {
    name: "held-answers",
    about: "a service that holds its answers for a tenth of a second, and one of which they differ",
    builds: &[],
    has_twin: true,
    stage,
};

fn stage(cell: &mut Cell, _: &Paths, side: Side) -> Result<Given> {
    let program = cell.write("service.js", SERVICE)?;
    let (held, quick) = match side {
        Side::Fault => (cell.draw.number("held_ms", 100, 60..=150), 0),
        Side::Twin => (cell.draw.number("slow_ms", 300, 200..=400), cell.draw.number("quick", 10, 2..=20)),
    };
    let service = Program::installed("node").args([program.into_os_string()]);
    cell.start(service.args([PORT.to_string(), held.to_string(), quick.to_string()]).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let url = format!("http://127.0.0.1:{PORT}/");
    Ok(match side {
        Side::Fault => {
            let truth = Truth { has: &["more-connections"], has_not: &["connections", "promise"], ..Truth::default() };
            Given::new(&format!("{url} --sweep 250..2000 --for 2s"), Duration::from_secs(120), truth)
        }
        Side::Twin => {
            let rate = cell.draw.number("rate", 120, 100..=130);
            let truth = Truth { verdict: "valid", has_not: &["over-capacity", "phases"], ..Truth::default() };
            Given::new(&format!("{url} --rate {rate} --for 12s"), Duration::from_secs(24), truth)
        }
    })
}
