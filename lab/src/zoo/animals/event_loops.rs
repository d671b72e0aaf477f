// SPDX-License-Identifier: Apache-2.0
//! Event loops that are written in the language of the service: Node.js, alone and as a cluster, and Python's asyncio
//! with timers of its own.

use anyhow::Result;

use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::zoo::animal::{Animal, PORT, Staged, Visitors, by_port};

const NODE_SERVER: Build = Build::Script("lab/zoo/node/menu.js", "menu.js");

/// Node.js.
pub static NODE: Animal = Animal {
    name: "node",
    about: "Node.js, JSON of forty dishes",
    needs: &[],
    builds: &[NODE_SERVER],
    stage: |cell, _| script(cell, "node", &["menu.js", "1"]),
};

/// Node.js with a process a CPU.
pub static NODE_CLUSTER: Animal = Animal {
    name: "node-cluster",
    about: "Node.js as a cluster of two processes, JSON of forty dishes",
    needs: &[],
    builds: &[NODE_SERVER],
    stage: |cell, _| script(cell, "node", &["menu.js", "2"]),
};

/// Python's event loop with timers.
pub static ASYNCIO: Animal = Animal {
    name: "asyncio",
    about: "Python's asyncio with twenty timers of its own, each due every 50 ms",
    needs: &[],
    builds: &[Build::Script("lab/zoo/python/timers.py", "timers.py")],
    stage: |cell, _| script(cell, "/usr/bin/python3", &["timers.py"]),
};

fn script(cell: &mut Cell, interpreter: &str, args: &[&str]) -> Result<Staged> {
    cell.bring(args[0])?;
    cell.start(Program::installed(interpreter).named("service").args(args.iter().copied()))?;
    cell.wait_for_port(PORT)?;
    by_port(Visitors::web("/"))
}
