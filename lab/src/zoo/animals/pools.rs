// SPDX-License-Identifier: Apache-2.0
//! Pools of threads without a runtime of their own language around them: C workers that take turns at an epoll behind a
//! mutex, C++ workers behind a queue with a condition variable, and Rust's tokio.

use anyhow::Result;

use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::zoo::animal::{Animal, PORT, Staged, Visitors, by_port};

/// Leader and followers.
pub static LEADER: Animal = Animal {
    name: "leader-follower",
    about: "sixteen C threads that take turns at an epoll behind a mutex",
    needs: &[],
    builds: &[Build::C("lab/zoo/pools/leader.c", "leader")],
    stage: |cell, _| start(cell, "leader"),
};

/// A queue with a condition variable.
pub static QUEUE: Animal = Animal {
    name: "cpp-queue",
    about: "a C++ event loop that hands requests to eight threads over a queue with a condition variable",
    needs: &[],
    builds: &[Build::Cxx("lab/zoo/pools/queue.cpp", "queue")],
    stage: |cell, _| start(cell, "queue"),
};

/// tokio.
pub static TOKIO: Animal = Animal {
    name: "tokio",
    about: "a Rust service on tokio, four workers",
    needs: &["cargo"],
    builds: &[Build::Cargo("lab/zoo/tokio", "tokio-server")],
    stage: |cell, _| start(cell, "tokio-server"),
};

fn start(cell: &mut Cell, program: &str) -> Result<Staged> {
    cell.start(Program::built(program))?;
    cell.wait_for_port(PORT)?;
    by_port(Visitors::web("/"))
}
