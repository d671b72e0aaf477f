// SPDX-License-Identifier: Apache-2.0
//! Loads whose truth is known: what `wakewalk load` has to say of a benchmark that is sound, and of one that is not. One is a
//! file of `lab/loads/` and two lines here.

mod judge;
mod run;

use std::time::Duration;

use anyhow::Result;

use crate::builds::Build;
use crate::cell::Cell;
use crate::loader::Place;
use crate::paths::Paths;
use crate::scenario::Side;
use crate::scenarios::LOAD_CPU;

pub use judge::Truth;
pub use run::{LoadsArgs, run};

#[path = "../loads/alvin_sweep.rs"]
pub mod alvin_sweep;
#[path = "../loads/busy_poll_sweep.rs"]
mod busy_poll_sweep;
#[path = "../loads/ceiling.rs"]
pub mod ceiling;
#[path = "../loads/errors_fast.rs"]
mod errors_fast;
#[path = "../loads/freeze.rs"]
mod freeze;
#[path = "../loads/held_answers.rs"]
mod held_answers;
#[path = "../loads/knee.rs"]
pub mod knee;
#[path = "../loads/nat_ceiling.rs"]
pub mod nat_ceiling;
#[path = "../loads/one_client.rs"]
mod one_client;
#[path = "../loads/starved_client.rs"]
mod starved_client;

/// A load and the truth about it.
pub struct LoadScenario {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// What has to be built first.
    pub builds: &'static [Build],
    /// Whether there is a side without the fault.
    pub has_twin: bool,
    /// Starts the service in a cell, and says how it is loaded.
    pub stage: fn(&mut Cell, &Paths, Side) -> Result<Given>,
}

/// What tells the true percentiles of a load that is over, by their names, s.
pub type Measure = fn(&Cell) -> Result<Vec<(&'static str, f64)>>;

/// How a service is loaded, and what has to be said.
#[derive(Debug)]
pub struct Given {
    /// Where `wakewalk load` runs.
    pub place: Place,
    /// Its arguments but `--json`.
    pub args: Vec<String>,
    /// What the load takes.
    pub length: Duration,
    /// What has to be said.
    pub truth: Truth,
    /// Percentiles that only the load's end tells.
    pub measured: Option<Measure>,
}

impl Given {
    /// A load from the CPU that loads come from, of words apart by blanks.
    pub fn new(args: &str, length: Duration, truth: Truth) -> Self {
        let place = Place { far: false, cpus: LOAD_CPU.to_vec() };
        Self { place, args: args.split(' ').map(String::from).collect(), length, truth, measured: None }
    }
}

/// All of them.
pub static ALL: &[&LoadScenario] = &[
    &freeze::OWN,
    &freeze::NEW_CONNECTIONS,
    &freeze::FOREIGN,
    &starved_client::BUSY,
    &starved_client::QUOTA,
    &one_client::SCENARIO,
    &errors_fast::OWN,
    &errors_fast::FOREIGN,
    &held_answers::LOAD,
    &ceiling::SCENARIO,
    &nat_ceiling::SCENARIO,
    &alvin_sweep::SCENARIO,
    &busy_poll_sweep::SCENARIO,
    &knee::LOCK,
    &knee::POOL,
    &knee::COMPUTING,
    &knee::RATE_LIMIT,
    &knee::UPSTREAM,
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn each_has_a_name_of_its_own_and_what_it_is_built_of() {
        let names: BTreeSet<&str> = ALL.iter().map(|load| load.name).collect();
        assert_eq!(names.len(), ALL.len());
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for build in ALL.iter().flat_map(|load| load.builds) {
            assert!(repository.join(build.source()).exists(), "{build:?}");
        }
    }
}
