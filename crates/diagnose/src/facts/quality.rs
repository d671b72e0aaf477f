// SPDX-License-Identifier: Apache-2.0
//! How good the evidence is: what was lost, what could not be seen, what it cost.

use recording::tables;

use super::calls::Calls;
use super::profile::Profile;
use crate::answer::{Cost, Coverage, Gap, Unseen, WORTH_A_WORD};
use crate::case::{Case, Fact};
use crate::ledger::threads::Threads;
use crate::statistics::{ratio, share};
use crate::wording::percent;

/// The evidence about the evidence.
pub struct Quality {
    /// Shares covered, and events lost.
    pub coverage: Coverage,
    /// The worst share of events that one probe, ring or map lost.
    pub worst_loss: f64,
    /// What lost that share; empty if nothing was lost.
    pub worst_loss_of: String,
    /// What this kernel or these privileges did not let us see.
    pub gaps: Vec<Gap>,
    /// The capture's own cost.
    pub cost: Cost,
}

impl Fact for Quality {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let threads = case.fact::<Threads>().ok();
        let calls = case.fact::<Calls>()?;
        let losses = losses(case);
        let windows = [("call windows", calls.windows.lost, calls.windows.calls)];
        let all = losses.iter().map(|l| (l.what.as_str(), l.count, l.kept)).chain(windows);
        let (worst_loss, worst_loss_of) = all
            .map(|(what, lost, kept)| (share(lost as f64, lost as f64 + kept as f64), what))
            .filter(|(lost, _)| *lost > 0.0)
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map_or((0.0, String::new()), |(lost, what)| (lost, what.to_string()));
        let lost = losses.iter().map(|l| l.count).chain([calls.windows.lost]).fold(0, u64::saturating_add);
        Ok(Quality {
            coverage: Coverage {
                thread_time: threads.as_ref().map_or(0.0, |t| t.coverage),
                cpu_time: case.fact::<Profile>().map_or(0.0, |p| sampled(&p, threads.as_deref())),
                user_share_error: threads.as_ref().map_or(0.0, |t| t.total.user_share_error),
                blocked_time: threads.as_ref().map_or(0.0, |t| t.blocked_with_stack),
                events_lost: lost,
            },
            worst_loss,
            worst_loss_of,
            gaps: gaps(case),
            cost: cost(case, &calls),
        })
    }
}

/// The slices of the table added up.
fn losses(case: &Case) -> Vec<tables::Loss> {
    let mut sums: Vec<tables::Loss> = Vec::new();
    for row in case.recording.rows::<tables::Loss>() {
        match sums.iter_mut().find(|sum| sum.what == row.what) {
            Some(sum) => {
                sum.count = sum.count.saturating_add(row.count);
                sum.kept = sum.kept.saturating_add(row.kept);
            }
            None => sums.push(row.clone()),
        }
    }
    sums
}

/// What the collector said that it could not see, what it lost, and what it could not finish.
fn gaps(case: &Case) -> Vec<Gap> {
    let said = case.recording.rows::<tables::Gap>().iter().map(Gap::from);
    let part = |l: &tables::Loss| share(l.count as f64, l.count as f64 + l.kept as f64);
    let full = |l: &tables::Loss| {
        let why = format!(
            "{} were lost: what the kernel keeps of them was full, or its hook was met on top of itself",
            percent(part(l))
        );
        Gap::new(&l.what, Unseen::Lost, why).of_share(part(l))
    };
    let why =
        "the capture was killed: its last second and names of some functions, which are written last, are missing";
    let cut = (!case.recording.meta.sealed).then(|| Gap::new("the end", Unseen::CutShort, why));
    let losses = losses(case);
    let losses = losses.iter().filter(|l| part(l) >= WORTH_A_WORD).map(full);
    said.chain(losses).chain(cut).collect()
}

impl Quality {
    /// Whether the collector said that it could not see `what`.
    pub fn is_missing(&self, what: &str) -> bool {
        self.gaps.iter().any(|g| g.what == what)
    }
}

/// Share of on-CPU time with a sampled stack that names a function. Too few samples lower it only
/// beyond what chance explains (three standard deviations of a Poisson count).
fn sampled(profile: &Profile, threads: Option<&Threads>) -> f64 {
    let got = profile.total.samples as f64;
    let named = share(got - profile.unnamed as f64, got);
    let expected = threads.map_or(0.0, |t| t.total.cpu_ns * f64::from(profile.hz) / 1e9);
    let weight = ratio(got, profile.weights.effective()).max(1.0);
    let noise = (expected * weight).sqrt();
    let missing = got < expected - 3.0 * noise;
    named * if missing { share(got, expected) } else { 1.0 }
}

fn cost(case: &Case, calls: &Calls) -> Cost {
    let rows = case.recording.rows::<tables::Cost>();
    let bytes = |what: &str| rows.iter().filter(|c| c.what == what).map(|c| c.bytes).max().unwrap_or(0);
    let cpu_seconds = rows.iter().map(|c| c.cpu_ns as f64).sum::<f64>() / 1e9;
    let machine = case.seconds() * f64::from(case.recording.meta.host.cpus);
    Cost {
        cpu_seconds,
        share_of_machine: ratio(cpu_seconds, machine),
        peak_rss_bytes: bytes("rss"),
        kernel_map_bytes: bytes("maps"),
        call_window_share: share(calls.windows.open_ns, case.length_ns()),
        call_window_price_ns: price(case.recording.rows::<tables::CallWindow>()),
    }
}

/// The windows' price by their length.
fn price(windows: &[tables::CallWindow]) -> f64 {
    let length_ns: f64 = windows.iter().map(|w| w.length_ns as f64).sum();
    ratio(windows.iter().map(|w| w.length_ns as f64 * w.price_ns as f64).sum(), length_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn loss_coverage_cost() {
        let recording = parse(
            "meta length_ns=10e9 host.cpus=2 target.sample_hz=100
             thread pid=1 tid=1 wall_ns=10e9 cpu_ns=10e9
             frame id=1 symbol=f\nframe id=2
             stack id=1 frames=[1]\nstack id=2 frames=[2]
             sample pid=1 tid=1 stack=1 weight=300
             sample pid=1 tid=1 stack=2 weight=100
             loss what=ring count=1 kept=999
             loss what=map count=0 kept=10
             loss what=waits count=1 kept=49
             gap what=throttled why=\"old kernel\"
             call_window id=1 kind=results length_ns=4e8 calls=90 lost=10 price_ns=100
             call_window id=2 kind=latency length_ns=1e8 price_ns=200
             cost what=user cpu_ns=2e8\ncost what=bpf:x cpu_ns=2e8\ncost what=rss bytes=77",
        )
        .unwrap();
        let q = Case::new(&recording).fact::<Quality>().unwrap();
        assert_eq!((q.worst_loss, q.worst_loss_of.as_str(), q.coverage.events_lost), (0.1, "call windows", 12));
        // 400 of 1000 samples came, three quarters of them named.
        assert!((q.coverage.cpu_time - 0.3).abs() < 1e-9);
        assert_eq!((q.coverage.thread_time, q.is_missing("throttled"), q.is_missing("sample")), (1.0, true, false));
        assert_eq!((q.cost.cpu_seconds, q.cost.share_of_machine, q.cost.peak_rss_bytes), (0.4, 0.02, 77));
        assert_eq!((q.cost.call_window_share, q.cost.call_window_price_ns), (0.05, 120.0));
        let why = |what: &str| q.gaps.iter().find(|g| g.what == what).map(|g| g.why.clone());
        assert!(why("waits").is_some_and(|w| w.starts_with("2.0 % were lost")), "{:?}", q.gaps);
        assert!(why("ring").is_none() && why("the end").is_none(), "one in a thousand, and a whole recording");
    }

    #[test]
    fn a_capture_that_was_killed_says_what_is_missing() {
        let recording = parse("meta sealed=false length_ns=2e9").unwrap();
        assert!(Case::new(&recording).fact::<Quality>().unwrap().is_missing("the end"));
    }
}
