// SPDX-License-Identifier: Apache-2.0
//! Can `wakewalk diff` be believed? Many recordings of one real service, as it is and with a tenth more
//! CPU work for each request, made in mixed order; then every pair of equal runs is judged, which should
//! raise no alarm, and every pair of unequal ones, which should.
//!
//! Each recording is of a process of its own: what differs between two starts of one program (where
//! its memory lies, which connection meets which thread) is part of what must not raise an alarm.

mod judge;
mod services;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::builds;
use crate::cell::Cell;
use crate::paths::Paths;
use crate::probe::Probe;
use crate::stop::Stop;
pub use judge::judge;
pub use services::Service;
use services::Staged;

/// What is recorded.
pub struct Plan {
    /// Which service.
    pub service: Service,
    /// Recordings of each side.
    pub runs: usize,
    /// Length of each, seconds.
    pub seconds: u64,
    /// Only the service as it is: how much two runs of one thing differ.
    pub same_only: bool,
}

/// Folder of the recordings of a service.
pub fn folder(paths: &Paths, service: Service) -> PathBuf {
    paths.target.join("bench/diff").join(service.name())
}

/// Makes the recordings `a0`, `b0`, `a1`, …
///
/// # Errors
/// The service cannot be run or recorded.
pub fn record(plan: &Plan, paths: &Paths, stop: &Stop) -> Result<()> {
    ensure!(plan.same_only || plan.service == Service::Go, "only the Go service's work can be set; add --same-only");
    builds::build(services::BUILDS, paths)?;
    let dir = folder(paths, plan.service);
    let _ = fs::remove_dir_all(&dir); // those of the run before
    fs::create_dir_all(&dir).with_context(|| format!("failed to make `{}`", dir.display()))?;
    let more = if plan.same_only { 0 } else { more_work(plan.service, paths, stop)? };
    for run in 0..plan.runs {
        // Alternating which side comes first: a host that slowly changes must not look like a side.
        let mut sides = vec![("a", 0), ("b", more)];
        sides.truncate(if plan.same_only { 1 } else { 2 });
        if run % 2 == 1 {
            sides.reverse();
        }
        for (side, extra) in sides {
            let name = format!("{side}{run}");
            eprintln!("{name}: {} s of {}", plan.seconds, plan.service.name());
            record_one(plan, extra, &dir.join(&name), paths, stop)?;
        }
    }
    Ok(())
}

fn record_one(plan: &Plan, extra: u64, save: &Path, paths: &Paths, stop: &Stop) -> Result<()> {
    let mut cell = Cell::open("diff-bench", paths, stop)?;
    let Staged { pid, .. } = plan.service.stage(&mut cell, extra)?;
    let group = cell.group("observer")?.path().to_path_buf();
    let probe = Probe { paths, stop, seconds: plan.seconds, save: Some(save.to_path_buf()), group };
    probe.diagnose(&crate::scenario::Aim::Pid(pid))?;
    cell.check_running()
}

/// How much extra work is a tenth of what a request costs, by the service's own CPU time at two sizes. The second is
/// far from the first, and each is measured twice: what a round costs must be known better than the machine is steady.
fn more_work(service: Service, paths: &Paths, stop: &Stop) -> Result<u64> {
    const STEP: u64 = 2000;
    let cost = |extra: u64| -> Result<f64> {
        let mut cell = Cell::open("diff-bench", paths, stop)?;
        let staged = service.stage(&mut cell, extra)?;
        let before = staged.cpu_seconds()?;
        stop.sleep(Duration::from_secs(5))?;
        Ok((staged.cpu_seconds()? - before) / 5.0 / staged.rate)
    };
    let (plain, heavy) = (cost(0)?, cost(STEP)?);
    let (plain, heavy) = ((plain + cost(0)?) / 2.0, (heavy + cost(STEP)?) / 2.0);
    let each = (heavy - plain) / STEP as f64;
    let rounds = (0.1 * plain / each).round().max(1.0);
    eprintln!("a request costs {:.1} us, a round {:.3} us: {rounds} rounds are a tenth", plain * 1e6, each * 1e6);
    Ok(rounds as u64)
}
