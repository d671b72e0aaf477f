// SPDX-License-Identifier: Apache-2.0
//! The service of story 002: a reactor thread that polls with a timeout of 0 whatever its load.

use std::time::Duration;

use anyhow::Result;

use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const STORY: &str = "stories/002-go-epoll";
/// Where viewers connect.
pub const VIEWER_PORT: u16 = 19002;
/// Where the service shows its counts.
pub const STATUS_PORT: u16 = 19003;

/// The streaming service and its viewers.
pub const BUILDS: &[Build] = &[Build::Go(STORY, "./streamd", "streamd"), Build::Go(STORY, "./viewers", "viewers")];

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "busy-poll",
    about: "a Go streaming service whose C reactor calls epoll_wait with timeout 0",
    expected: Expected { comm: Some("mio-reactor"), syscall: Some("epoll_"), ..Expected::cause(&["busy-poll"]) },
    twin: Some(NEUTRAL),
    builds: BUILDS,
    folders: &[STORY],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let poll = if side == Side::Fault { "eager" } else { "deadline" };
    let pid = serve(cell, poll)?;
    // A viewer acknowledges each frame, and the next one goes out by the clock: from many viewers on that looks like answers
    // that come late, and what for cannot be told from outside.
    let most = if side == Side::Fault { 12 } else { 4 };
    let viewers = cell.draw.number("viewers", 4, 2..=most);
    watch(cell, viewers as usize, Duration::from_secs(120))?;
    cell.stop.sleep(Duration::from_secs(1))?;
    Ok(Aim::Pid(pid))
}

/// Starts the service with a `-poll` mode; returns its process id once it accepts viewers.
pub fn serve(cell: &mut Cell, poll: &str) -> Result<u32> {
    let listen = format!("127.0.0.1:{VIEWER_PORT}");
    let status = format!("127.0.0.1:{STATUS_PORT}");
    let pid = cell.start(Program::built("streamd").args(["-listen", &listen, "-status", &status, "-poll", poll]))?;
    cell.wait_for_port(VIEWER_PORT)?;
    Ok(pid)
}

/// Starts `count` viewers; returns the process id of the program that plays them.
pub fn watch(cell: &mut Cell, count: usize, length: Duration) -> Result<u32> {
    let connect = format!("127.0.0.1:{VIEWER_PORT}");
    let length = format!("{}s", length.as_secs_f64());
    let viewers =
        Program::built("viewers").args(["-connect", &connect, "-viewers", &count.to_string(), "-for", &length]);
    cell.start(viewers.in_group("load"))
}
