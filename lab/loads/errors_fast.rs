// SPDX-License-Identifier: Apache-2.0
//! A service that refuses many requests, which is quick: a refusal is no fast answer. The twin answers all.

use std::time::Duration;

use anyhow::Result;

use super::{Given, LoadScenario, Truth};
use crate::cell::{Cell, Program};
use crate::paths::Paths;
use crate::scenario::Side;
use crate::scenarios::SERVICE_CPU;

const PORT: u16 = 19504;

/// Refuses so many in a hundred at once, and answers the others after 5 ms.
const SERVICE: &str = "const [port, refused] = process.argv.slice(2).map(Number);
let nth = 0;
require('node:http').createServer((_, response) => {
  nth = (nth + 37) % 100;
  if (nth < refused) { response.statusCode = 503; response.end('busy'); }
  else setTimeout(() => response.end('done'), 5);
}).listen(port, '127.0.0.1');
";

/// Our own load.
pub static OWN: LoadScenario = LoadScenario {
    name: "errors-fast",
    about: "a service that quickly refuses a part of the requests",
    builds: &[],
    has_twin: true,
    stage: stage_own,
};

/// That of another generator.
pub static FOREIGN: LoadScenario = LoadScenario {
    name: "errors-fast-wrk",
    about: "a service that quickly refuses a part of the requests of wrk",
    builds: &[],
    has_twin: true,
    stage: stage_foreign,
};

fn stage_own(cell: &mut Cell, _: &Paths, side: Side) -> Result<Given> {
    let truth = service(cell, side)?;
    let verdict = if side == Side::Twin { "valid" } else { truth.verdict };
    let truth = Truth { verdict, ..truth };
    let rate = cell.draw.number("rate", 500, 300..=800);
    let args = format!("http://127.0.0.1:{PORT}/ --rate {rate} --for 6s");
    Ok(Given::new(&args, Duration::from_secs(16), truth))
}

fn stage_foreign(cell: &mut Cell, _: &Paths, side: Side) -> Result<Given> {
    let truth = service(cell, side)?;
    let connections = cell.draw.number("connections", 8, 4..=32);
    let args = format!("-- wrk -t1 -c{connections} -d8s http://127.0.0.1:{PORT}/");
    Ok(Given::new(&args, Duration::from_secs(20), truth))
}

fn service(cell: &mut Cell, side: Side) -> Result<Truth> {
    let program = cell.write("service.js", SERVICE)?;
    let refused = if side == Side::Fault { cell.draw.number("refused", 40, 5..=95) } else { 0 };
    let service = Program::installed("node").args([program.into_os_string()]);
    cell.start(service.args([PORT.to_string(), refused.to_string()]).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let errors: &[&str] = &["errors"];
    Ok(match side {
        Side::Fault => Truth { verdict: "misleading", has: errors, ..Truth::default() },
        Side::Twin => Truth { has_not: errors, ..Truth::default() },
    })
}
