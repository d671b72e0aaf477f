// SPDX-License-Identifier: Apache-2.0
//! What is known about the functions that the time goes into, and locks that show as system calls.

use std::collections::BTreeMap;

use super::Remark;
use crate::case::Case;
use crate::facts::limits::Limits;
use crate::facts::profile::Profile;
use crate::facts::stacks::Stacks;
use crate::runtimes::code::Code;
use crate::runtimes::hints::{self, Hint};
use crate::runtimes::is_glue;
use crate::statistics::share;
use crate::syscall::{Family, family};
use crate::wording::{cores, percent, short};

/// Of the samples: less is not where the time goes.
const WORTH: f64 = 0.15;

/// Of the samples, for the headline. In futex calls, which give and take locks and queues, every pool that hands requests on
/// spends some time; from a quarter of it on, handing around is what limits.
const MUCH: f64 = 0.25;

/// Samples: fewer do not make a share.
const MIN_SAMPLES: u64 = 50;

/// A hint, the share of the CPU time that it is about, and the function.
struct Seen {
    hint: &'static Hint,
    share: f64,
    function: String,
}

impl Seen {
    fn headline(&self) -> String {
        format!("{} of it: {}", percent(self.share), self.hint.what)
    }

    fn sentence(&self) -> String {
        let Seen { hint, share, function } = self;
        format!("{function} is on {} of the CPU time: {}. To see or to try: {}.", percent(*share), hint.what, hint.look)
    }
}

/// A hint while it is counted: its samples, and those of each of its functions.
struct Counted<'s> {
    hint: &'static Hint,
    samples: u64,
    functions: BTreeMap<&'s str, u64>,
}

/// Hints about the functions of the profile, the largest share first.
fn seen(case: &Case) -> Vec<Seen> {
    let (Ok(profile), Ok(stacks)) = (case.fact::<Profile>(), case.fact::<Stacks>()) else { return Vec::new() };
    if profile.total.samples < MIN_SAMPLES {
        return Vec::new();
    }
    let mut by: BTreeMap<&'static str, Counted> = BTreeMap::new();
    for (place, &weight) in &profile.places {
        let mut on_stack: BTreeMap<&'static str, (&'static Hint, &Code)> = BTreeMap::new();
        for code in stacks.frames(place.stack) {
            if let Some(hint) = hints::of(code) {
                on_stack.entry(hint.what).or_insert((hint, code));
            }
        }
        for (what, (hint, code)) in on_stack {
            let counted = by.entry(what).or_insert(Counted { hint, samples: 0, functions: BTreeMap::new() });
            counted.samples += weight;
            *counted.functions.entry(&code.symbol).or_default() += weight;
        }
    }
    let told = |counted: Counted| Seen {
        hint: counted.hint,
        share: share(counted.samples as f64, profile.total.samples as f64),
        function: counted.functions.into_iter().max_by_key(|f| f.1).map_or("", |f| f.0).to_string(),
    };
    let mut all: Vec<Seen> = by.into_values().map(told).filter(|seen| seen.share >= WORTH).collect();
    all.sort_by(|a, b| b.share.total_cmp(&a.share));
    all
}

/// What there is to say about the functions that the time goes into.
pub(crate) fn remark(case: &Case) -> Option<Remark> {
    let all = seen(case);
    let most = all.first()?;
    let lock = all.iter().find(|seen| seen.hint.is_lock && seen.share >= MUCH);
    let first = lock.or(Some(most).filter(|seen| seen.share >= MUCH));
    Some(Remark {
        headline: first.map_or(String::new(), Seen::headline),
        advice: lock.map(|seen| format!("no CPUs or threads more: see what {} waits for", short(&seen.function))),
        detail: all.iter().take(3).map(Seen::sentence).collect::<Vec<_>>().join(" "),
    })
}

/// CPUs of which a part is lost, if anybody pays for that.
const WORTH_CORES: f64 = 0.1;

/// That much of its CPU time goes into a lock, where requests do not wait for that yet: the more load, the more it will be.
pub(crate) fn spent_on_a_lock(case: &Case) -> Option<Remark> {
    let used = case.fact::<Limits>().ok()?.cores;
    let lock = seen(case).into_iter().find(|seen| seen.hint.is_lock && seen.share >= MUCH)?;
    (used >= WORTH_CORES).then(|| Remark {
        headline: format!("but {} of the {} that it used: {}", percent(lock.share), cores(used), lock.hint.what),
        advice: Some(format!("see who takes that lock, before more load comes: {}", lock.hint.look)),
        detail: lock.sentence(),
    })
}

/// What there is to say about a lock that costs much of the CPU time and is none of those that are known.
pub(crate) fn handed_around(case: &Case) -> Option<Remark> {
    let (profile, stacks) = (case.fact::<Profile>().ok()?, case.fact::<Stacks>().ok()?);
    let in_futex = |syscall: i32| family(&case.syscall(syscall)) == Family::Futex;
    let mut callers: BTreeMap<&str, u64> = BTreeMap::new();
    let mut samples = 0;
    for (place, &weight) in profile.places.iter().filter(|(place, _)| place.kernel && in_futex(place.syscall)) {
        samples += weight;
        let named = |code: &&Code| !code.symbol.is_empty() && !is_glue(&code.symbol);
        if let Some(code) = stacks.callers(place.stack).find(named) {
            *callers.entry(&code.symbol).or_default() += weight;
        }
    }
    let part = share(samples as f64, profile.total.samples as f64);
    if profile.total.samples < MIN_SAMPLES || part < MUCH || seen(case).iter().any(|seen| seen.hint.is_lock) {
        return None;
    }
    let from = callers.into_iter().max_by_key(|c| c.1).map_or(String::new(), |c| format!(", most of it from {}", c.0));
    Some(Remark {
        headline: format!("{} of it hands locks or work from thread to thread", percent(part)),
        advice: Some("see what its threads hand around: more of them, or more CPUs, may make it worse".into()),
        detail: format!(
            "{} of the CPU time is in futex calls{from}: threads put each other to sleep and wake each other before a lock \
             (or a queue) that they share. More CPUs or threads make that worse; fewer threads, a lock that is taken less \
             often, or several locks make it better.",
            percent(part)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    const CODE: &str = "meta host.arch=x86_64 target.sample_hz=100
        frame id=1 symbol=__lll_lock_wait_private module=libc.so.6 kind=native\nframe id=2 symbol=malloc module=libc.so.6 kind=native
        frame id=3 symbol=serve module=svc kind=native\nframe id=4 symbol=heapgetpage module=postgres kind=native
        frame id=5 symbol=ExecScan module=postgres kind=native\nframe id=6 symbol=futex_wait module=kernel kind=kernel
        stack id=1 frames=[6,1,2,3]\nstack id=2 frames=[3]\nstack id=3 frames=[4,5]\nstack id=4 frames=[6,3]\n";

    fn of(ask: fn(&Case) -> Option<Remark>, text: &str) -> Option<Remark> {
        ask(&Case::new(&parse(&(CODE.to_string() + text)).unwrap()))
    }

    #[test]
    fn an_allocators_lock_is_not_short_of_cpus() {
        let text = "sample tid=1 kernel=true syscall=202 stack=1 weight=45\nsample tid=1 stack=2 weight=55";
        let r = of(remark, text).unwrap();
        assert!(r.headline.contains("allocator") && r.advice.unwrap().starts_with("no CPUs or threads more"));
        assert!(r.detail.contains("45 % of the CPU time") && r.detail.contains("MALLOC_ARENA_MAX"), "{}", r.detail);
        assert!(of(handed_around, text).is_none(), "said already");
    }

    /// A proxy at 0.4 cores, half of which spins before a lock of the kernel, and nobody waits yet.
    #[test]
    fn a_lock_that_costs_cpu_time_before_anybody_waits() {
        let of = |cpu_ms: u64, spins: u32| {
            let text = format!(
                "meta length_ns=1e9 host.cpus=4
                 frame id=7 symbol=native_queued_spin_lock_slowpath module=kernel kind=kernel\nstack id=7 frames=[7,3]
                 thread tid=1 wall_ns=1e9 cpu_ns={cpu_ms}000000 blocked_ns=0
                 sample tid=1 kernel=true stack=7 weight={spins}\nsample tid=1 stack=2 weight={}",
                100 - spins
            );
            of(spent_on_a_lock, &text)
        };
        assert!(of(400, 50).unwrap().headline.starts_with("but 50 % of the 0.40 cores that it used: CPUs spin"));
        assert!(of(400, 9).is_none() && of(40, 50).is_none());
    }

    #[test]
    fn a_sequential_scan_is_known() {
        let r = of(remark, "sample tid=1 stack=3 weight=60\nsample tid=1 stack=2 weight=40").unwrap();
        assert!(
            r.headline.contains("sequential scan") && r.advice.is_none() && r.detail.contains("EXPLAIN"),
            "{}",
            r.detail
        );
        let little = of(remark, "sample tid=1 stack=3 weight=20\nsample tid=1 stack=2 weight=80").unwrap();
        assert!(little.headline.is_empty() && little.detail.contains("20 %"), "a fifth is for the details");
        assert!(of(remark, "sample tid=1 stack=3 weight=10\nsample tid=1 stack=2 weight=90").is_none(), "a tenth");
        assert!(of(remark, "sample tid=1 stack=3 weight=9").is_none(), "too few samples");
    }

    #[test]
    fn a_lock_that_is_handed_around() {
        let futex = |weight: u32| {
            let rest = 100 - weight;
            let text = format!(
                "sample tid=1 kernel=true syscall=202 stack=4 weight={weight}\nsample tid=1 stack=2 weight={rest}"
            );
            of(handed_around, &text)
        };
        assert!(futex(30).unwrap().detail.contains("most of it from serve"));
        assert!(futex(9).is_none());
    }
}
