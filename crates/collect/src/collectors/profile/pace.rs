// SPDX-License-Identifier: Apache-2.0
//! How fast the clock of each CPU ticks. A tick is an interrupt, and in a virtual machine a dear one: where the target is
//! not, it finds nothing, but it costs whoever is there, and through them the target if that is its client.
//!
//! A change starts a clock anew: what had passed of its period stands for nobody, some 20 ms where a target comes to a CPU
//! on which it was not. Clocks change for the slower once a second at most, so that stays within 2 % of a CPU's time.

use std::collections::BTreeMap;
use std::time::Duration;

/// Samples of the target after which half of the rate will do, and after which a quarter: shares are known to 5 % and to
/// 2.5 % by then (standard error). Ten seconds of one full CPU end at 2 %.
const SOME: usize = 100;
const ENOUGH: usize = 400;
/// Without a sample of the target for so long, it is not on a CPU.
const GONE: Duration = Duration::from_secs(1);
/// Samples of the full rate that one on a CPU without the target stands for.
const AWAY: u8 = 8;

/// The pace of every clock.
pub struct Pace {
    clocks: BTreeMap<u32, Clock>,
    sampled: usize,
    /// Samples of the full rate that one stands for at least.
    least: u8,
}

#[derive(Clone, Copy)]
struct Clock {
    /// When the target was last found there; the start of the capture for a CPU on which it has not been found.
    met: Duration,
    weight: u8,
}

impl Pace {
    /// All clocks at the full rate.
    pub fn new(cpus: impl IntoIterator<Item = u32>) -> Self {
        let clock = Clock { met: Duration::ZERO, weight: 1 };
        Self { clocks: cpus.into_iter().map(|cpu| (cpu, clock)).collect(), sampled: 0, least: 1 }
    }

    /// Clocks that were started now, at the full rate.
    pub fn come(&mut self, cpus: impl IntoIterator<Item = u32>, now: Duration) {
        self.clocks.extend(cpus.into_iter().map(|cpu| (cpu, Clock { met: now, weight: 1 })));
    }

    /// Takes note of a sample of the target.
    pub fn see(&mut self, cpu: u32, now: Duration) {
        self.sampled += 1;
        if let Some(clock) = self.clocks.get_mut(&cpu) {
            clock.met = now;
        }
    }

    /// Clocks that are to tick at another pace from now on: the CPU, and how many samples of the full rate one is to stand
    /// for.
    pub fn changes(&mut self, now: Duration) -> Vec<(u32, u8)> {
        let here = match self.sampled {
            ENOUGH.. => 4,
            SOME.. => 2,
            _ => 1,
        };
        let mut changes = Vec::new();
        for (cpu, clock) in &mut self.clocks {
            let weight = if self.sampled >= SOME && now >= clock.met + GONE { AWAY } else { here.max(self.least) };
            if weight != clock.weight {
                clock.weight = weight;
                changes.push((*cpu, weight));
            }
        }
        changes
    }

    /// Halves the rate at which all clocks tick at most; false = they are as slow as they get.
    pub fn shed(&mut self) -> bool {
        let least = (self.least * 2).min(AWAY);
        std::mem::replace(&mut self.least, least) < least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn clocks_slow_down_when_enough_is_known() {
        let mut pace = Pace::new([0, 1]);
        (0..SOME - 1).for_each(|_| pace.see(0, ms(900)));
        assert_eq!(pace.changes(ms(5000)), [], "so little of it was seen that it may be anywhere");
        pace.see(0, ms(5000));
        assert_eq!(pace.changes(ms(5000)), [(0, 2), (1, AWAY)]);
        (SOME..ENOUGH).for_each(|_| pace.see(0, ms(5500)));
        assert_eq!(pace.changes(ms(5500)), [(0, 4)]);
        assert_eq!(pace.changes(ms(5600)), [], "each change once");
    }

    #[test]
    fn clocks_that_are_to_cost_less_are_slow_from_the_start() {
        let mut pace = Pace::new([0]);
        assert!(pace.shed());
        assert_eq!(pace.changes(ms(50)), [(0, 2)]);
        (0..ENOUGH).for_each(|_| pace.see(0, ms(60)));
        assert_eq!(pace.changes(ms(60)), [(0, 4)], "what was slower anyway stays so");
        assert_eq!([pace.shed(), pace.shed(), pace.shed()], [true, true, false]);
        assert_eq!(pace.changes(ms(70)), [(0, AWAY)]);
    }

    #[test]
    fn a_target_that_comes_to_another_cpu_is_met_there() {
        let mut pace = Pace::new([0, 1]);
        (0..SOME).for_each(|_| pace.see(0, ms(1000)));
        assert_eq!(pace.changes(ms(1000)), [(0, 2), (1, AWAY)]);
        pace.see(1, ms(1500));
        assert_eq!(pace.changes(ms(1500)), [(1, 2)]);
        pace.see(1, ms(2100));
        assert_eq!(pace.changes(ms(2100)), [(0, AWAY)], "it has left");
        pace.see(7, ms(2200)); // a CPU that came online just now has no clock
        pace.come([7, 0], ms(2500));
        assert_eq!(pace.changes(ms(2500)), [(0, 2), (7, 2)], "as one on which the target may be");
    }
}
