// SPDX-License-Identifier: Apache-2.0
//! Python's servers of applications: uvicorn's event loop, gunicorn's processes and its threads.

use anyhow::Result;

use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::zoo::animal::{Animal, CONNECTIONS, PORT, Staged, Visitors, by_port};

const PYTHON: &str = "/usr/bin/python3";
const BUILDS: &[Build] = &[Build::Script("lab/zoo/python/shop.py", "shop.py")];
const NEEDS_GUNICORN: &[&str] = &["/usr/bin/gunicorn"];

/// uvicorn.
pub static UVICORN: Animal = Animal {
    name: "uvicorn",
    about: "uvicorn, JSON of thirty goods",
    needs: &["/usr/bin/uvicorn"],
    builds: BUILDS,
    stage: |cell, _| {
        start(cell, &["-m", "uvicorn", "--port", "8080", "--log-level", "warning", "shop:events"], CONNECTIONS)
    },
};

/// gunicorn's processes.
pub static GUNICORN_SYNC: Animal = Animal {
    name: "gunicorn-sync",
    about: "gunicorn with four processes, each request a connection, JSON of thirty goods",
    needs: NEEDS_GUNICORN,
    builds: BUILDS,
    // A process that has a connection takes no other one until a request has come in it.
    stage: |cell, _| start(cell, &["/usr/bin/gunicorn", "-b", "127.0.0.1:8080", "-w", "4", "shop:wsgi"], 4),
};

/// gunicorn's threads.
pub static GUNICORN_THREADS: Animal = Animal {
    name: "gunicorn-gthread",
    about: "gunicorn with two processes of sixteen threads, JSON of thirty goods",
    needs: NEEDS_GUNICORN,
    builds: BUILDS,
    stage: |cell, _| {
        let args = ["/usr/bin/gunicorn", "-b", "127.0.0.1:8080", "-w", "2", "-k", "gthread", "--threads", "16"];
        // A thread has one connection until its client closes it, and the two processes do not share evenly.
        start(cell, &[&args[..], &["--keep-alive", "300", "shop:wsgi"]].concat(), 8)
    },
};

fn start(cell: &mut Cell, args: &[&str], connections: usize) -> Result<Staged> {
    cell.bring("shop.py")?;
    cell.start(Program::installed(PYTHON).named("service").args(args.iter().copied()))?;
    cell.wait_for_port(PORT)?;
    by_port(Visitors::web("/").over(connections))
}
