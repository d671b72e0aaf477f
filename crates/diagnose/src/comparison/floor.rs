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
    /// CPU time for an operation in quiet slices, at equal speed of the machine.
    pub equal_speed: f64,
    /// Operations a second.
    pub load: f64,
    /// Response time, on average. Not from those runs, which kept the service busy: set wide, because queues make little of a
    /// difference a lot.
    pub response: f64,
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
    equal_speed: 0.015,
    load: 0.018,
    response: 0.15,
    calls: 0.01,
    waiting: 0.6,
    switches: 0.3,
    counters: 0.01,
    function: 0.03,
    machine: 0.005,
};

/// How a service's CPU time follows the time of the fixed piece of work that each capture probes the machine with
/// (`collect`, `collectors/speed`): by this power, as regressed on 20 runs of 20 s of a Go service, where the probe's time
/// varied by 10 % (slopes of 0.4 and 0.8 on two halves).
pub(super) const FOLLOWS_SPEED: f64 = 0.6;
/// Standard error of that power, for other services follow by more or less.
const FOLLOWS_SPEED_ERROR: f64 = 0.25;

impl Floors {
    /// The same between two machines, or one at two times, whose speeds differ by this much (the logarithm of their
    /// ratio): CPU time as measured may differ by all of that, CPU time at equal speed by the doubt about it.
    pub fn at_speeds_apart(self, apart: f64) -> Self {
        // A floor counts once for each side.
        let wider = |floor: f64, power: f64| floor.hypot(power * apart / std::f64::consts::SQRT_2);
        Self {
            cpu: wider(self.cpu, FOLLOWS_SPEED),
            function: wider(self.function, FOLLOWS_SPEED),
            equal_speed: wider(self.equal_speed, FOLLOWS_SPEED_ERROR),
            ..self
        }
    }
}

/// Between two parts of one run: the process, its memory and its connections are the same.
pub(super) fn within_a_run() -> Floors {
    Floors::default()
}
