// SPDX-License-Identifier: Apache-2.0
//! Apache with a process for each connection, and with threads behind an event loop.

use anyhow::Result;

use crate::cell::{Cell, Program};
use crate::zoo::animal::{Animal, PORT, Staged, Visitors, by_port, configure};

/// Processes.
pub static PREFORK: Animal = Animal {
    name: "apache-prefork",
    about: "Apache with a process for each connection, a small page",
    needs: &["apache2"],
    builds: &[],
    stage: |cell, _| start(cell, "prefork"),
};

/// Threads.
pub static EVENT: Animal = Animal {
    name: "apache-event",
    about: "Apache with threads behind an event loop, a small page",
    needs: &["apache2"],
    builds: &[],
    stage: |cell, _| start(cell, "event"),
};

fn start(cell: &mut Cell, kind: &str) -> Result<Staged> {
    super::web::write_page(cell)?;
    let conf = include_str!("../../../zoo/apache/apache.conf").replace("@MPM@", kind);
    let conf = configure(cell, "apache.conf", &conf)?;
    cell.start(Program::installed("apache2").args(["-D", "FOREGROUND", "-f"]).args([conf]))?;
    cell.wait_for_port(PORT)?;
    by_port(Visitors::web("/index.html"))
}
