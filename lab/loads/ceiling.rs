// SPDX-License-Identifier: Apache-2.0
//! A benchmark with a connection for each request before a table of connection tracking that fills up: fast for a moment, then
//! each connection stands for TCP's timer of a second, and the ceiling is the number of connections. The twin's table is large.

use std::time::Duration;

use anyhow::Result;

use super::{Given, LoadScenario, Truth};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::paths::Paths;
use crate::scenario::Side;
use crate::scenarios::SERVICE_CPU;

/// Where the service listens.
pub const PORT: u16 = 19505;
/// Files that it is made of.
pub const BUILDS: &[Build] = &[Build::Script("stories/001-clumsy-kernel/hello.js", "hello.js")];
/// How many connections the host may track.
const MAX: &str = "/proc/sys/net/netfilter/nf_conntrack_max";

/// For how many seconds it keeps one that was closed.
const KEPT: &str = "/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_time_wait";

/// Lets in what belongs to a connection, for which the kernel has to know all of them.
const RULES: &str = "table inet lab {
  chain input { type filter hook input priority 0; policy accept; ct state established,related accept; }
}
";

/// The load.
pub static SCENARIO: LoadScenario = LoadScenario {
    name: "ceiling",
    about: "ab before a table of connection tracking that fills up",
    builds: BUILDS,
    has_twin: true,
    stage,
};

fn stage(cell: &mut Cell, _: &Paths, side: Side) -> Result<Given> {
    let entries = cell.draw.number("entries", 6000, 3000..=12_000);
    let pid = serve(cell, if side == Side::Fault { Some(entries) } else { None })?;
    let clients = cell.draw.number("clients", 100, 50..=333);
    let truth = match side {
        Side::Fault => Truth {
            verdict: "misleading",
            has: &["conntrack-full", "ceiling"],
            service: Some("conntrack-full"),
            ..Truth::default()
        },
        Side::Twin => Truth { has_not: &["conntrack-full", "ceiling"], ..Truth::default() },
    };
    let args = format!("--diagnose={pid} -- ab -q -c {clients} -t 9 -n 9999999 http://127.0.0.1:{PORT}/");
    Ok(Given::new(&args, Duration::from_secs(60), truth))
}

/// Starts the service, behind a packet filter; with so many entries for connections that there can be. Its process.
///
/// # Errors
/// There is no connection tracking, or no Node.js.
pub fn serve(cell: &mut Cell, entries: Option<u64>) -> Result<u32> {
    cell.bring("hello.js")?;
    cell.filter(RULES)?;
    let pid = cell.start(Program::installed("node").args(["hello.js", &PORT.to_string()]).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    // So that room comes while ab still waits for it, which gives up after half a minute and prints nothing.
    cell.write_inside(KEPT, "10")?;
    if let Some(entries) = entries {
        cell.set_host(MAX, &entries.to_string())?;
    }
    Ok(pid)
}
