// SPDX-License-Identifier: Apache-2.0
//! A target whose threads queue behind each other: more of them are ready than there are CPUs, and each waits longer for
//! its turn than it runs.

use super::Remark;
use crate::case::Case;
use crate::facts::cpus::Cpus;
use crate::ledger::threads::Threads;
use crate::statistics::{ratio, share};
use crate::wording::{percent, plural};

/// Of CPU demand, without a CPU: more waiting than running.
const MIN_WAITING: f64 = 0.5;

/// Of that waiting, behind threads of the target itself.
const MOSTLY_OWN: f64 = 0.5;

/// Threads for each CPU that are ready on average.
const MANY: f64 = 4.0;

/// What there is to say about the target's own queue.
pub(crate) fn remark(case: &Case) -> Option<Remark> {
    let (ledger, cpus) = (case.fact::<Threads>().ok()?, case.fact::<Cpus>().ok()?);
    let lines = &ledger.total;
    let waiting = share(lines.waiting_for_cpu_ns(), lines.demand_ns());
    let ready = ratio(lines.demand_ns() - lines.throttled_ns, case.length_ns());
    let room = cpus.quota_cpus(case).unwrap_or(f64::MAX).min(cpus.allowed_count());
    let others = cpus.others_in_the_way().or_else(|| cpus.others_by_counters())?;
    if waiting < MIN_WAITING || ready < MANY * room || room <= 0.0 || others > 1.0 - MOSTLY_OWN {
        return None;
    }
    let of = plural(room.round().max(1.0) as usize, "CPU");
    Some(Remark {
        headline: format!("{ready:.0} threads want {of}"),
        advice: None,
        detail: format!(
            "{ready:.0} threads were ready on average for {of}, and waited behind each other for {} of their CPU demand: whoever is served waits for its turn. Fewer at once (a pool of about as many threads as CPUs, and a \
             queue before it) answer each sooner at the same throughput.",
            percent(waiting)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    fn of(threads: u32, cpu_ns: f64, queue_ns: f64, own: bool) -> Option<Remark> {
        let mut text = format!(
            "meta length_ns=10e9 host.cpus=2 target.allowed_cpus=[0,1]\nneighbour pid=9 own={own} delayed_ns=9e9\n"
        );
        for tid in 1..=threads {
            let blocked = 10e9 - cpu_ns - queue_ns;
            text += &format!(
                "thread t_ns=10e9 pid=1 tid={tid} wall_ns=10e9 cpu_ns={cpu_ns} run_queue_ns={queue_ns} blocked_ns={blocked}\n"
            );
        }
        remark(&Case::new(&parse(&text).unwrap()))
    }

    #[test]
    fn many_ready_threads_are_said() {
        let r = of(64, 3e8, 96e8, true).unwrap();
        assert_eq!(r.headline, "63 threads want 2 CPUs");
        assert!(r.detail.contains("97 % of their CPU demand"), "{}", r.detail);
    }

    #[test]
    fn few_or_behind_others_are_not() {
        assert!(of(3, 60e8, 40e8, true).is_none(), "more running than waiting");
        assert!(of(64, 3e8, 96e8, false).is_none(), "others are in the way");
        assert!(of(4, 1e8, 4e8, true).is_none(), "hardly anything is ready");
    }
}
