// SPDX-License-Identifier: Apache-2.0
//! The floor: by how much two runs of the same thing differ beyond what their slices can show.
//!
//! One run a side cannot tell, so it was measured: seven runs of nginx at full speed, each a process of
//! its own (`lab bench-diff --service nginx --runs 7 --same-only`, Linux 6.18, two CPUs of a virtual machine,
//! 2026-11-21). Standard deviations over the runs, in brackets what the slices alone account for: CPU time per
//! request 2.0 % (1.4 %), requests a second 2.4 % (1.5 %), calls 0.6 % (more), context switches 30 %, waiting for a
//! CPU 50 to 80 %, one function's time 2 to 5 %, others' share of the CPUs 0.5 points.
//! The floor is what is missing. That it is enough, and not too much, is tested on another
//! service, a Go program at a steady rate: `make bench-diff`.

/// Standard deviations between runs, relative to the value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Floors {
    /// CPU time for an operation, in all and by mode.
    pub cpu: f64,
    /// Operations a second.
    pub load: f64,
    /// Polls per useful event, calls per operation.
    pub calls: f64,
    /// Waiting for a CPU, being blocked or interrupted.
    pub waiting: f64,
    /// Context switches.
    pub switches: f64,
    /// Faults, bytes, drops.
    pub counters: f64,
    /// One function's CPU time.
    pub function: f64,
    /// Share of the machine that others use, not relative.
    pub machine: f64,
}

/// Between two runs.
pub(super) const BETWEEN_RUNS: Floors = Floors {
    cpu: 0.015,
    load: 0.018,
    calls: 0.01,
    waiting: 0.6,
    switches: 0.3,
    counters: 0.01,
    function: 0.03,
    machine: 0.005,
};

/// Between two parts of one run: the process, its memory and its connections are the same.
pub(super) fn within_a_run() -> Floors {
    Floors::default()
}
