// SPDX-License-Identifier: Apache-2.0
//! A service that stands still for a second: whoever counts from when a request was due finds it in the p99, whoever waits for
//! answers before asking again does not, and has to be told. The twin goes on.

use std::time::Duration;

use anyhow::{Result, bail};

use super::{Given, LoadScenario, Truth};
use crate::cell::{Cell, Program};
use crate::paths::Paths;
use crate::scenario::Side;
use crate::scenarios::{PYTHON, SERVICE_CPU, THREADED};

const PORT: u16 = 19501;
/// For how long it is loaded: a tenth of that is half of the second.
const LOADED: u64 = 5;
const FOREIGN_SECONDS: u64 = 8;
/// An answer takes so long: enough for what a network adds to be little of it.
const ANSWER_MS: u64 = 20;

/// By our own generator.
pub static OWN: LoadScenario = LoadScenario {
    name: "freeze",
    about: "a service that stands still for a second, under an open loop",
    builds: &[],
    has_twin: true,
    stage: |cell, paths, side| own(cell, paths, side, ""),
};

/// The same with a connection a request.
pub static NEW_CONNECTIONS: LoadScenario = LoadScenario {
    name: "freeze-new-connections",
    about: "a service that stands still for a second, under an open loop with a connection a request",
    builds: &[],
    has_twin: true,
    stage: |cell, paths, side| own(cell, paths, side, " --new-connections"),
};

fn own(cell: &mut Cell, paths: &Paths, side: Side, more: &str) -> Result<Given> {
    // Answers by a timer, with little work for each: what waited is answered at once when it goes on.
    let (address, delay) = (format!("http://127.0.0.1:{PORT}/"), format!("{ANSWER_MS}ms"));
    let service = Program::installed(&paths.wakewalk.to_string_lossy()).named("serve");
    freeze(cell, side, service.args(["load", "--serve", &address, "--delay", &delay, "--for", "10m"]))?;
    let rate = cell.draw.number("rate", 1000, 250..=1200);
    let (verdict, has_not): (_, &[&str]) = match side {
        Side::Fault => ("", &[]),
        Side::Twin => ("valid", &["coordinated-omission"]),
    };
    let args = format!("{address} --rate {rate} --for {LOADED}s --arrivals uniform --connections 2000{more}");
    let given = Given::new(&args, Duration::from_secs(LOADED), Truth { verdict, has_not, ..Truth::default() });
    Ok(if side == Side::Fault { Given { measured: Some(percentiles), ..given } } else { given })
}

/// The truth about requests at equal distances: those due while it stood still waited until it went on, and until it had answered,
/// which took from what the first waited for from then on to what the last did; those asked within an answer's time before that waited
/// until it went on.
fn percentiles(cell: &Cell) -> Result<Vec<(&'static str, f64)>> {
    let printed = cell.printed("stopper");
    let lengths: Vec<f64> = printed.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let &[stood_still, first, last] = lengths.as_slice() else { bail!("the stopper printed no three lengths") };
    let answer = ANSWER_MS as f64 / 1e3;
    let all = stood_still + answer;
    let waited = |above: f64| {
        // When those that wait longer are taken away, this one was due so long after the first of those who waited was.
        let due = above * LOADED as f64;
        if due < all { all - due + first + (last - first) * due / all } else { answer }
    };
    // Twice an answer's time is less than what is above the p99.
    Ok(vec![("p50", waited(0.5)), ("p90", waited(0.1)), ("p99", waited(0.01))])
}

/// By one that waits for answers.
pub static FOREIGN: LoadScenario = LoadScenario {
    name: "freeze-wrk",
    about: "a service that stands still for a second, under a generator that waits for it",
    builds: &[THREADED],
    has_twin: true,
    stage: foreign,
};

fn foreign(cell: &mut Cell, _: &Paths, side: Side) -> Result<Given> {
    let service = Program::built("threaded").args([PORT.to_string().as_str(), "unlocked", "2000"]);
    freeze(cell, side, service)?;
    let connections = cell.draw.number("connections", 8, 2..=32);
    let omission: &[&str] = &["coordinated-omission"];
    let truth = match side {
        // What wrk prints of it is less than a hundredth of what others wait for.
        Side::Fault => Truth { verdict: "misleading", has: omission, ..Truth::default() },
        Side::Twin => Truth { has_not: omission, ..Truth::default() },
    };
    let args = format!("-- wrk -t1 -c{connections} -d{FOREIGN_SECONDS}s http://127.0.0.1:{PORT}/");
    Ok(Given::new(&args, Duration::from_secs(FOREIGN_SECONDS + 4), truth))
}

/// Starts the service, and what stops it for a second after some. It prints for how long that was, and for how long two waited from
/// then on, who asked at its begin and at its end, by the kernel's clock at the arrival: on a busy host the script runs later.
fn freeze(cell: &mut Cell, side: Side, service: Program) -> Result<()> {
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    if side == Side::Fault {
        let script = "import os, signal, socket, struct, sys, time
SO_TIMESTAMPNS = 35
def ask():
    asked = socket.create_connection(('127.0.0.1', int(sys.argv[2])))
    asked.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    asked.sendall(b'GET / HTTP/1.1\\r\\nHost: last\\r\\n\\r\\n')
    return asked
def arrived(asked):
    (_, _, stamp), *_ = asked.recvmsg(1, 64)[1]
    seconds, nanoseconds = struct.unpack('@ll', stamp)
    return seconds + nanoseconds / 1e9
time.sleep(2.5)
os.kill(int(sys.argv[1]), signal.SIGSTOP)
stopped = time.monotonic()
first = ask()
time.sleep(0.99)
last = ask()
time.sleep(max(0, stopped + 1 - time.monotonic()))
os.kill(int(sys.argv[1]), signal.SIGCONT)
stood_still, going = time.monotonic() - stopped, time.time()
print(stood_still, *(arrived(asked) - going for asked in (first, last)), flush=True)
time.sleep(600)";
        let stopper = Program::installed(PYTHON).named("stopper");
        let args = ["-c".into(), script.into(), pid.to_string(), PORT.to_string()];
        cell.start(stopper.args(args).in_group("load"))?;
    }
    Ok(())
}
