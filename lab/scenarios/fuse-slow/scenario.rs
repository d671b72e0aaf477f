// SPDX-License-Identifier: Apache-2.0
//! A Node service that reads a file in each request, from a file system that a Python program serves and that takes 10 ms
//! for each read: no disk holds that file, and the walk goes into the program, to its timer. In the twin the program answers
//! at once.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::{LOAD_CPU, PYTHON, SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19173;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "fuse-slow",
    about: "a Node service that reads a file from a slow file system in user space",
    expected: Expected {
        line: Some("blocked_file_system"),
        end: Some("its own timer"),
        ..Expected::cause(&["slow-dependency"])
    },
    twin: Some(NEUTRAL),
    builds: &[
        Build::Script("lab/scenarios/fuse-slow/slowfs.py", "slowfs.py"),
        Build::Script("lab/scenarios/fuse-slow/terms.js", "terms.js"),
        WEBLOAD,
    ],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("slowfs.py")?;
    cell.bring("terms.js")?;
    fs::create_dir_all(cell.dir().join("mnt")).context("failed to make the folder of the file system")?;
    let ms = if side == Side::Fault { cell.draw.number("read_ms", 10, 8..=30) } else { 0 };
    // A mount namespace of its own, so that nothing stays mounted: it ends with the two programs in it.
    let mounts =
        Program::installed("unshare").named("slowfs").args(["--mount", PYTHON, "slowfs.py", "mnt", &ms.to_string()]);
    let server = cell.start(mounts.on_cpus(LOAD_CPU))?;
    wait_for_mount(cell, server)?;
    let beside = format!("--mount=/proc/{server}/ns/mnt");
    // nsenter starts at the root of that namespace.
    let (script, file) = (cell.dir().join("terms.js"), cell.dir().join("mnt/terms"));
    let service = Program::installed("nsenter").named("terms");
    let service = service.args([beside.as_str(), "node"]).args([script]).args([PORT.to_string()]).args([file]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let connections = cell.draw.number("connections", 8, 4..=16);
    steady_load(cell, PORT, "/", 80, connections)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}

fn wait_for_mount(cell: &Cell, server: u32) -> Result<()> {
    let until = Instant::now() + Duration::from_secs(30);
    let mounts = format!("/proc/{server}/mounts");
    while !fs::read_to_string(&mounts).unwrap_or_default().contains("/mnt fuse") {
        if Instant::now() > until {
            bail!("the file system in user space is not mounted after 30 s: this needs /dev/fuse and python3-fusepy");
        }
        cell.stop.sleep(Duration::from_millis(100))?;
    }
    Ok(())
}
