// SPDX-License-Identifier: Apache-2.0
//! Services whose limit is known, by a lock, a pool, their only thread, a rate limiter, and a service that they ask: a sweep finds
//! it. The twins are asked up to half of that, where there is none to tell.

use std::time::Duration;

use anyhow::Result;

use super::{Given, LoadScenario, Truth};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::Side;
use crate::scenarios::{LOAD_CPU, SERVICE_CPU, THREADED};

const PORT: u16 = 19510;
const STORE: u16 = 19511;

/// A sweep around the limit, or below it.
fn sweep(side: Side, limit: f64, more: &str) -> Given {
    let none: &[&str] = &["not-reached"];
    let (most, truth) = match side {
        Side::Fault => (limit * 3.0, Truth { limit: Some(limit), ..Truth::default() }),
        Side::Twin => (limit / 2.0, Truth { has: none, ..Truth::default() }),
    };
    let from = (limit / 8.0).max(1.0);
    let args = format!("http://127.0.0.1:{PORT}/ --sweep {from:.0}..{most:.0} --for 3s --timeout 2s{more}");
    Given::new(&args, Duration::from_secs(180), truth)
}

/// All wait for one lock.
pub static LOCK: LoadScenario = LoadScenario {
    name: "knee-lock",
    about: "a threaded C service whose threads wait for one mutex",
    builds: &[THREADED],
    has_twin: true,
    stage: |cell, _, side| {
        let held_us = cell.draw.number("held_us", 4000, 3000..=10_000);
        start(cell, Program::built("threaded").args([PORT.to_string(), "locked".into(), held_us.to_string()]))?;
        Ok(sweep(side, 1e6 / (held_us + WAKING_US) as f64, ""))
    },
};

/// What a sleep takes longer than asked, and the hand-over of a lock to a thread that sleeps before it, us.
pub const WAKING_US: u64 = 120;

/// All wait for one of a few permits.
pub static POOL: LoadScenario = LoadScenario {
    name: "knee-pool",
    about: "a Node service whose requests need one of a few permits",
    builds: &[Build::Script("lab/bench/pool.js", "pool.js")],
    has_twin: true,
    stage: |cell, _, side| {
        cell.bring("pool.js")?;
        let (permits, ms) = (cell.draw.number("permits", 8, 2..=12), cell.draw.number("ms", 20, 10..=50));
        let args = ["pool.js".to_string(), PORT.to_string(), permits.to_string(), ms.to_string()];
        start(cell, Program::installed("node").args(args))?;
        // A timer of Node.js goes by whole milliseconds, and rings within the next one.
        Ok(sweep(side, permits as f64 * 1e3 / (ms as f64 + 0.5), ""))
    },
};

/// Its one thread computes.
pub static COMPUTING: LoadScenario = LoadScenario {
    name: "knee-cpu",
    about: "a Node service whose one thread computes for each request",
    builds: &[Build::Script("lab/scenarios/loop-held/reports.js", "reports.js")],
    has_twin: true,
    stage: |cell, _, side| {
        cell.bring("reports.js")?;
        let ms = cell.draw.number("ms", 5, 4..=20);
        let args = ["reports.js".to_string(), PORT.to_string(), "1".into(), ms.to_string(), "at-once".into()];
        start(cell, Program::installed("node").args(args))?;
        Ok(sweep(side, 1e3 / (ms as f64 + 0.15), ""))
    },
};

/// It refuses what comes too fast.
pub static RATE_LIMIT: LoadScenario = LoadScenario {
    name: "knee-rate-limit",
    about: "an nginx that refuses what is beyond a rate",
    builds: &[],
    has_twin: true,
    stage: |cell, _, side| {
        let rate = cell.draw.number("rate", 200, 100..=400);
        // A `return` would come before the limit is asked.
        cell.write("index.html", "ok\n")?;
        nginx(
            cell,
            &format!(
                "limit_req_zone $server_name zone=all:1m rate={rate}r/s;
                 server {{ listen 127.0.0.1:{PORT}; server_name lab; limit_req zone=all burst=5 nodelay; root .;
                 location / {{ try_files /index.html =404; }} }}"
            ),
        )?;
        Ok(sweep(side, rate as f64, " --arrivals uniform"))
    },
};

/// It asks a service that does one at a time.
pub static UPSTREAM: LoadScenario = LoadScenario {
    name: "knee-upstream",
    about: "an nginx before a service whose threads wait for one mutex",
    builds: &[THREADED],
    has_twin: true,
    stage: |cell, _, side| {
        let held_us = cell.draw.number("held_us", 5000, 3000..=10_000);
        let store = Program::built("threaded").named("store");
        let store = store.args([STORE.to_string(), "locked".into(), held_us.to_string()]);
        cell.start(store.on_cpus(LOAD_CPU))?;
        cell.wait_for_port(STORE)?;
        nginx(
            cell,
            &format!(
                "upstream store {{ server 127.0.0.1:{STORE}; keepalive 64; }}
                 server {{ listen 127.0.0.1:{PORT}; location / {{ proxy_http_version 1.1; proxy_set_header Connection '';
                 proxy_pass http://store; }} }}"
            ),
        )?;
        Ok(sweep(side, 1e6 / (held_us + WAKING_US) as f64, ""))
    },
};

fn nginx(cell: &mut Cell, http: &str) -> Result<()> {
    let nginx = Program::nginx(cell, http)?;
    start(cell, nginx)
}

fn start(cell: &mut Cell, program: Program) -> Result<()> {
    cell.start(program.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)
}
