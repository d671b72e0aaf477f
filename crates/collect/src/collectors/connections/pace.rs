// SPDX-License-Identifier: Apache-2.0
//! How often connections are looked at: several times a second, more rarely where a look is dear, and in any case so often that
//! the average of all looks says something.

use std::time::Duration;

use recording::tables::Gap;

use crate::clock;

/// From one look to the next, at least; and at most, where looks are to cost less.
const SPACING_NS: u64 = 100_000_000;
const MOST_SPACING_NS: u64 = 8 * SPACING_NS;
/// A look may take one part in so many of the time until the next: one with 25,000 connections comes more rarely.
const SHARE: u64 = 300;
/// The golden ratio: parts of it are spread evenly, whatever has a rhythm.
const SPREAD: f64 = 0.618_034;
/// A pause is this part of the spacing at least, and a whole one longer at most: with the ticks that looks wait for, the average is one.
const SHORTEST: f64 = 0.25;
/// Looks from which on their average says something.
const ENOUGH: u64 = 10;
/// Looks beyond those, since each waits for a tick.
const SPARE: u64 = 2;
/// However few there are, they take a tenth of the time at most.
const LEAST_PAUSE: u64 = 9;

/// When the next look is due.
pub(super) struct Pace {
    spacing_ns: u64,
    next_ns: u64,
    /// Looks so far, and the most connections that one has found.
    looks: u64,
    most_found: usize,
    /// One took so long that the next had to wait.
    is_slowed: bool,
}

impl Pace {
    pub(super) fn new() -> Self {
        let mut pace = Self { spacing_ns: SPACING_NS, next_ns: 0, looks: 0, most_found: 0, is_slowed: false };
        pace.begin();
        pace
    }

    /// The first look is due soon.
    pub(super) fn begin(&mut self) {
        self.next_ns = clock::monotonic_ns() + SPACING_NS;
    }

    /// Whether one is due.
    pub(super) fn is_due(&self) -> bool {
        clock::monotonic_ns() >= self.next_ns
    }

    /// No further one.
    pub(super) fn stop(&mut self) {
        self.next_ns = u64::MAX;
    }

    /// Half as often; false = they are as rare as they may be.
    pub(super) fn shed(&mut self) -> bool {
        let rarer = (self.spacing_ns * 2).min(MOST_SPACING_NS);
        std::mem::replace(&mut self.spacing_ns, rarer) < rarer
    }

    /// A look has found so many connections.
    pub(super) fn see(&mut self, found: usize) {
        self.looks += 1;
        self.most_found = self.most_found.max(found);
    }

    /// A look that began then is over, in a capture of that length.
    pub(super) fn wait(&mut self, began_ns: u64, capture: Duration) {
        let now_ns = clock::monotonic_ns();
        self.next_ns = now_ns + self.pause_ns(now_ns - began_ns, capture);
    }

    /// From the end of a look that took so long until the next.
    fn pause_ns(&mut self, look_ns: u64, capture: Duration) -> u64 {
        // Dear ones are worth it as long as there are too few.
        let rarest_ns = u64::try_from(capture.as_nanos()).unwrap_or(u64::MAX) / (ENOUGH + SPARE);
        let pace_ns = look_ns.saturating_mul(SHARE).min(rarest_ns.saturating_sub(look_ns).max(look_ns * LEAST_PAUSE));
        self.is_slowed |= pace_ns > self.spacing_ns;
        self.uneven_ns().max(pace_ns)
    }

    /// Never the same twice: clients that ask in a rhythm would be met at the same point of each of their requests.
    fn uneven_ns(&self) -> u64 {
        let part = SHORTEST + (self.looks as f64 * SPREAD).fract();
        (self.spacing_ns as f64 * part) as u64
    }

    /// That fewer looks than say something fitted into a capture that was long enough for them.
    pub(super) fn too_few(&self, what: &str, elapsed: Duration) -> Option<Gap> {
        let (looks, found) = (self.looks, self.most_found);
        // With the ticks that looks wait for.
        let is_long = elapsed >= 2 * Duration::from_nanos(ENOUGH * SPACING_NS);
        let why = format!(
            "{looks} looks at its {found} connections are too few to say whether requests stand unanswered: each takes so \
             long that the next has to wait; capture for longer"
        );
        let part = 1.0 - looks as f64 / ENOUGH as f64;
        (is_long && self.is_slowed && looks < ENOUGH && found > 0).then(|| Gap::partial(what, part, why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_looks_are_a_gap_where_there_was_time() {
        let mut pace = Pace::new();
        (0..9).for_each(|_| pace.see(1));
        let long = Duration::from_secs(5);
        assert_eq!(pace.too_few("connection", long), None, "something else kept it from looking");
        pace.is_slowed = true;
        let gap = pace.too_few("connection", long).unwrap();
        assert!(gap.why.starts_with("9 looks at its 1 connections") && !gap.is_refused(), "{gap:?}");
        assert_eq!(pace.too_few("connection", Duration::from_secs(1)), None, "nor would more have fitted");
        pace.see(0);
        assert_eq!(pace.too_few("connection", long), None);
    }

    #[test]
    fn dear_looks_are_rare_but_not_too_few() {
        let (mut pace, ms) = (Pace::new(), 1_000_000);
        let (ten, hour) = (Duration::from_secs(10), Duration::from_secs(3_600));
        let pauses: Vec<u64> = (0..100).map(|_| (pace.see(1), pace.pause_ns(ms / 20, ten)).1).collect();
        assert!(pauses.iter().all(|pause| (25 * ms..=125 * ms).contains(pause)), "{pauses:?}");
        assert!((70 * ms..80 * ms).contains(&(pauses.iter().sum::<u64>() / 100)), "and a tick of 50 ms on the way");
        assert_eq!(pace.pause_ns(ms, ten), 300 * ms);
        let each_ns = pace.pause_ns(30 * ms, ten) + 30 * ms;
        assert!((ENOUGH..=ENOUGH + SPARE).contains(&(10_000 * ms / each_ns)), "{each_ns}");
        assert_eq!(pace.pause_ns(30 * ms, hour), 9_000 * ms);
        assert_eq!(pace.pause_ns(500 * ms, ten), 4_500 * ms, "half a second each");
    }

    #[test]
    fn looks_become_rarer_to_a_bound() {
        let mut pace = Pace::new();
        assert_eq!([pace.shed(), pace.shed(), pace.shed(), pace.shed()], [true, true, true, false]);
        assert_eq!(pace.spacing_ns, MOST_SPACING_NS);
    }
}
