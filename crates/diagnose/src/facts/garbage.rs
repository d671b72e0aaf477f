// SPDX-License-Identifier: Apache-2.0
//! What the language runtime's garbage collector takes of the CPU time, by samples.

use std::collections::BTreeMap;

use super::profile::Profile;
use super::stacks::Stacks;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::runtimes::collectors::{Collector, Program};
use crate::statistics::share;

/// A collector at work.
#[derive(Clone, Copy)]
pub struct Collecting {
    /// Whose it is.
    pub collector: &'static Collector,
    /// Its share of the on-CPU samples.
    pub part: f64,
    /// The same with the program stopped, or in the program's own threads.
    pub paused: f64,
}

/// The collector with most samples; none = no sample is inside one that this version knows.
pub struct Garbage(pub Option<Collecting>);

impl Fact for Garbage {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let (profile, stacks) = (case.fact::<Profile>()?, case.fact::<Stacks>()?);
        let mut by: BTreeMap<&str, (&'static Collector, u64, u64)> = BTreeMap::new();
        for (place, samples) in &profile.places {
            let comm = profile.threads.get(&(place.pid, place.tid)).map_or("", |t| t.comm.as_str());
            let names = stacks.user(place.stack).map(|code| code.symbol.as_str());
            let Some((collector, program)) = Collector::at(comm, names) else { continue };
            let (_, all, paused) = by.entry(collector.runtime).or_insert((collector, 0, 0));
            *all += samples;
            *paused += if program == Program::Pauses { *samples } else { 0 };
        }
        let of_all = |samples: u64| share(samples as f64, profile.total.samples as f64);
        let most = by.into_values().max_by_key(|seen| seen.1);
        let told = |(collector, all, paused)| Collecting { collector, part: of_all(all), paused: of_all(paused) };
        Ok(Self(most.map(told)))
    }
}
