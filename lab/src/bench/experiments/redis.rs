// SPDX-License-Identifier: Apache-2.0
//! Redis under redis-benchmark: one thread, small messages, mostly kernel time.

use std::io::{Read, Write};
use std::time::Duration;

use anyhow::{Context, Result};

use super::{LOAD_CPU, PEER_SECONDS, SECONDS, SERVICE_CPU};
use crate::bench::row::Row;
use crate::bench::service::{self, Service, Wanted};
use crate::bench::{Bench, Experiment};
use crate::cell::{Cell, Program};

const PORT: u16 = 19161;
const WHAT: &str = "Redis at saturation";

/// The experiment.
pub static EXPERIMENT: Experiment = Experiment {
    name: "redis",
    about: "Redis under redis-benchmark with 50 clients, diagnosed for 10 s",
    builds: &[],
    run,
};

fn run(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let mut cell = Cell::open("bench-redis", bench.paths, bench.stop)?;
    let service = start(&mut cell)?;
    load(&mut cell)?;
    let mut rows = service::compare(bench, &mut cell, &service, WHAT, (SECONDS, Some(Wanted::CpuAtMost(1.03))))?;
    rows.extend(service::peers(bench, &mut cell, &service, WHAT, PEER_SECONDS)?);
    Ok(rows)
}

pub(in crate::bench) fn start(cell: &mut Cell) -> Result<Service> {
    let port = PORT.to_string();
    let redis = Program::installed("redis-server").args(["--port", &port, "--bind", "127.0.0.1"]);
    let redis = redis.args(["--save", "", "--appendonly", "no", "--daemonize", "no"]);
    let pid = cell.start(redis.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    Ok(Service { pid, unit: "request", count: commands, cpu_ns: service::process_cpu_ns })
}

pub(in crate::bench) fn load(cell: &mut Cell) -> Result<()> {
    let port = PORT.to_string();
    // One kind of command and no end: a new round of the tool would be a dent in the load.
    let load = Program::installed("redis-benchmark").args(["-p", &port, "-c", "50", "-t", "set", "-r", "100000"]);
    cell.start(load.args(["-n", "2000000000", "-q"]).on_cpus(LOAD_CPU).in_group("load"))?;
    cell.stop.sleep(Duration::from_secs(2))
}

/// Commands answered, by Redis's own count.
fn commands(cell: &Cell) -> Result<u64> {
    let mut stream = cell.connect(PORT)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(b"INFO stats\r\n").context("failed to ask Redis for its counts")?;
    let (mut text, mut buffer) = (String::new(), [0; 8192]);
    loop {
        let got = stream.read(&mut buffer).context("failed to read Redis's counts")?;
        anyhow::ensure!(got > 0, "Redis shows no counts");
        text.push_str(&String::from_utf8_lossy(&buffer[..got]));
        if let Some(count) = parse_commands(&text) {
            return Ok(count);
        }
    }
}

/// None while the line is not whole.
fn parse_commands(info: &str) -> Option<u64> {
    info.split_once("total_commands_processed:")?.1.split_once("\r\n")?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_once_its_line_is_whole() {
        assert_eq!(parse_commands("$9\r\n# Stats\r\ntotal_commands_processed:77\r\nx:1"), Some(77));
        assert_eq!(parse_commands("# Stats\r\ntotal_commands_processed:7"), None);
    }
}
