// SPDX-License-Identifier: Apache-2.0
//! `wakewalk load` inside a cell, as somebody on that host would run it.

use std::time::Duration;

use anyhow::Result;

use crate::cell::{Cell, Program};
use crate::paths::Paths;

/// What a load may take beyond its own time.
const OVERHEAD: Duration = Duration::from_secs(60);

/// Where in a cell it runs, and on which CPUs.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// At the far end of the cell's second network.
    pub far: bool,
    /// All where there is none.
    pub cpus: Vec<usize>,
}

impl Place {
    /// Runs `wakewalk load ARGS` to its end; what it prints. `length` is what it takes by itself.
    ///
    /// # Errors
    /// It failed, or does not end.
    pub fn run(&self, cell: &mut Cell, paths: &Paths, args: &[&str], length: Duration) -> Result<String> {
        let load = cell.start(self.program(paths, args))?;
        cell.finish(load, length + OVERHEAD)
    }

    /// Starts it, to go on for as long as it likes, or the cell is there.
    ///
    /// # Errors
    /// It could not be started.
    pub fn start(&self, cell: &mut Cell, paths: &Paths, args: &[&str]) -> Result<u32> {
        cell.start(self.program(paths, args))
    }

    fn program(&self, paths: &Paths, args: &[&str]) -> Program {
        let wakewalk = paths.wakewalk.to_string_lossy();
        let program = Program::installed(&wakewalk).named("load").in_group("load").on_cpus(&self.cpus);
        let program = program.args(["load"]).args(args.iter().copied());
        if self.far { program.far() } else { program }
    }
}
