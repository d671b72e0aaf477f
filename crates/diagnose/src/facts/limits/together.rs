// SPDX-License-Identifier: Apache-2.0
//! Whether threads of the target ran in the same moments, told by their samples.
//!
//! The clocks of the CPUs tick with one period and were started together, so two of them that tick together do so
//! all the time. Whether they do is told by the samples themselves: those that are whole periods apart. Of those that
//! have such a sample of another CPU nearby, the ones with another thread at the same tick were not alone.
//! Only user mode counts there: under an interpreter's lock, threads are in system calls at the same time, but compute one by one.
//!
//! However the clocks tick, threads that run side by side are met in turn: how often the next sample is of another thread is a bound. It
//! tells of work that moves once in a while, of which few samples have one of another CPU nearby.

use recording::tables::Sample;

use crate::case::Case;
use crate::statistics::ratio;

/// Periods to look for a sample of another CPU in: some, because neither CPU runs the target all the time, and no more
/// than a slow-down of the clocks leaves in step.
const REACH: f64 = 8.0;

/// Clocks whose ticks are within this part of a period tick together: a twentieth of a millisecond each was measured,
/// a thread's turn under an interpreter's lock is milliseconds.
const NEAR: f64 = 1.0 / 16.0;

/// Samples that can tell: of fewer, a tenth is chance.
const ENOUGH: f64 = 50.0;

/// The lower one of both, or the one that can be told.
pub(super) fn together(case: &Case) -> Option<f64> {
    in_step(case).into_iter().chain(changes(case)).reduce(f64::min)
}

/// Of the samples in user mode that can tell, the share in which another thread of the target was sampled on another CPU
/// at the same tick; none where too few can tell.
fn in_step(case: &Case) -> Option<f64> {
    let period = ratio(1e9, f64::from(case.recording.meta.target.sample_hz));
    let mut samples: Vec<&Sample> = case.recording.rows::<Sample>().iter().filter(|s| !s.kernel).collect();
    samples.sort_by_key(|s| (s.t_ns, s.cpu));
    let (mut able, mut paired) = (0.0, 0.0);
    for (at, sample) in samples.iter().enumerate() {
        let near = |other: &&&Sample| other.t_ns.abs_diff(sample.t_ns) as f64 <= REACH * period;
        let later = samples[at + 1..].iter().take_while(near);
        let earlier = samples[..at].iter().rev().take_while(near);
        let mut told = Told::default();
        for other in later.chain(earlier).filter(|other| other.cpu != sample.cpu) {
            told.see(other, sample, period);
        }
        let weight = f64::from(sample.weight.max(1));
        able += if told.in_step { weight } else { 0.0 };
        paired += if told.same_tick { weight } else { 0.0 };
    }
    (able >= ENOUGH).then(|| paired / able)
}

/// Of the samples, those after which the next one is of another thread: threads that run side by side are met in turn. On one CPU
/// alone they cannot.
fn changes(case: &Case) -> Option<f64> {
    let rows = case.recording.rows::<Sample>();
    let first = rows.first()?.cpu;
    if rows.iter().all(|sample| sample.cpu == first) {
        return None;
    }
    let mut samples: Vec<(u64, u32)> = rows.iter().map(|s| (s.t_ns, s.tid)).collect();
    samples.sort_unstable();
    let changes = samples.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
    (samples.len() as f64 >= ENOUGH).then(|| changes as f64 / samples.len() as f64)
}

/// What the samples of other CPUs around one of them tell.
#[derive(Default)]
struct Told {
    in_step: bool,
    same_tick: bool,
}

impl Told {
    fn see(&mut self, other: &Sample, sample: &Sample, period: f64) {
        let apart = ratio(other.t_ns.abs_diff(sample.t_ns) as f64, period);
        if (apart - apart.round()).abs() <= NEAR {
            self.in_step = true;
            self.same_tick |= apart.round() == 0.0 && other.tid != sample.tid;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    /// Samples of two CPUs whose clocks are `shift` ns apart: whether the thread of each runs at tick `i`.
    fn ticks(shift: u64, runs: impl Fn(u64, u64) -> bool, more: &str) -> Option<f64> {
        let mut text = "meta target.sample_hz=200\n".to_string();
        for i in 0..400u64 {
            for cpu in (0..2).filter(|cpu| runs(i, *cpu)) {
                let t_ns = i * 5_000_000 + cpu * shift;
                text += &format!("sample t_ns={t_ns} pid=1 tid={} cpu={cpu} {more}\n", 10 + (i + cpu) % 8);
            }
        }
        in_step(&Case::new(&parse(&text).unwrap()))
    }

    #[test]
    fn a_pool_that_happens_to_use_one_core() {
        // Both CPUs run it, each half of the time, independent of each other.
        let share = ticks(100_000, |i, cpu| (i * 7919 + cpu * 104_729) % 97 < 48, "").unwrap();
        assert!(share > 0.3, "{share}");
    }

    #[test]
    fn threads_that_take_turns() {
        assert_eq!(ticks(100_000, |i, cpu| i / 3 % 2 == cpu, ""), Some(0.0));
    }

    /// A goroutine that computes moves to another thread once in a while.
    #[test]
    fn work_that_moves_between_threads() {
        let of = |tid: fn(u64) -> u64| {
            let row = |nth: u64| format!("sample t_ns={} pid=1 tid={} cpu={}\n", nth * 5_000_000, tid(nth), nth / 70);
            let text: String = (0..100).map(row).collect();
            changes(&Case::new(&parse(&text).unwrap()))
        };
        assert_eq!(of(|nth| 1 + nth / 60), Some(0.01));
        assert_eq!(of(|nth| nth % 2), Some(0.99), "side by side");
    }

    #[test]
    fn what_cannot_be_told() {
        assert_eq!(ticks(2_000_000, |_, _| true, ""), None, "the clocks are out of step");
        assert_eq!(ticks(100_000, |_, cpu| cpu == 0, ""), None, "one CPU only");
        assert_eq!(ticks(100_000, |_, _| true, "kernel=true"), None, "calls run beside each other under any lock");
    }
}
