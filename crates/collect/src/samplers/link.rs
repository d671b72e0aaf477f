// SPDX-License-Identifier: Apache-2.0
//! `/sys/class/net/*/speed`: what a network interface can carry, where the driver knows.

use std::fs;
use std::path::Path;

use recording::counters::link;

use super::{Readings, Sampler, Scope};
use crate::proc::text;

/// Interfaces of our own network namespace; sysfs shows no other.
#[derive(Default)]
pub struct Link {
    /// Asked once: some drivers take long to answer, and the answer hardly ever changes.
    speeds: Option<Vec<(String, f64)>>,
}

impl Sampler for Link {
    fn name(&self) -> &'static str {
        link::SOURCE
    }

    fn needs(&self) -> &'static str {
        "sysfs; without it the share of a link's speed is unknown"
    }

    fn sample(&mut self, scope: &Scope, out: &mut Readings) -> Result<(), String> {
        if !scope.own_network {
            return Ok(()); // veth has no speed: the USE table then shows bytes without a share
        }
        if self.speeds.is_none() {
            self.speeds = Some(speeds(&scope.proc.root().join(link::SOURCE))?);
        }
        for (interface, mbit) in self.speeds.iter().flatten() {
            out.put(link::SPEED, interface, mbit * 1e6);
        }
        Ok(())
    }
}

/// Mbit/s by interface. Reading fails, or gives -1, where there is no link or no notion of speed.
fn speeds(dir: &Path) -> Result<Vec<(String, f64)>, String> {
    let entries = fs::read_dir(dir).map_err(|error| format!("cannot read {} ({error})", dir.display()))?;
    let speed = |entry: fs::DirEntry| {
        let mbit: f64 = text(&entry.path().join("speed"))?.trim().parse().ok()?;
        (mbit > 0.0).then(|| (entry.file_name().to_string_lossy().into_owned(), mbit))
    };
    Ok(entries.flatten().filter_map(speed).collect())
}
