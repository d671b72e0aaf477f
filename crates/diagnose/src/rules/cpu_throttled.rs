// SPDX-License-Identifier: Apache-2.0
//! A cgroup's CPU quota held the target: it wanted to run, and was not allowed to.

use super::{COULD_BE, Check, Checked, Rule, absent, evidence, explained, found, not_it, too_little};
use crate::answer::{Gap, Measured, Reason, Unit};
use crate::case::Case;
use crate::facts::cpus::{Cpus, Quota};
use crate::facts::quality::Quality;
use crate::judgement::enough::{are_held_up, little_of_requests};
use crate::ledger::threads::Threads;
use crate::statistics::{ratio, share};
use crate::verdict::{Evidence, Explains, Finding, Subject};
use crate::wording::{count, percent, seconds, word};

pub(super) static RULE: Rule =
    Rule { cause: "cpu-throttled", explain: explain!("cpu-throttled"), check: Check::Accuses(check) };

/// From one part in twenty on: with 100 ms periods, every second then has a stop of tens of ms,
/// which every percentile above the median shows.
const MIN_SHARE: f64 = 0.05;

/// One or two throttled periods are a start-up or a single burst.
const MIN_PERIODS: f64 = 3.0;

/// Of the window, periods in which it was throttled. Thread seconds tell too much where many threads that have little to do stop at
/// once, as those of a collector: in an idle service four stops in ten seconds were a third of its demand.
const MIN_OF_WINDOW: f64 = 0.05;

/// The kernel's usual length of a period, ns.
const PERIOD_NS: f64 = 1e8;

fn check(case: &Case) -> Checked {
    let cpus = case.fact::<Cpus>()?;
    let quality = case.fact::<Quality>()?;
    let ledger = case.fact::<Threads>().ok();
    // Whether the scheduler probe could tell throttled from runnable.
    let line = ledger.as_ref().filter(|_| !quality.is_missing("throttled")).map(|l| l.total.throttled_ns);
    let quota = cpus.quota.as_ref();
    let periods = quota.map_or(0.0, |q| q.throttled_periods);
    let (Some(lines), true) = (ledger.as_ref().map(|l| &l.total), line.is_some() || quota.is_some()) else {
        return unseen(case);
    };
    // Where throttled threads count as runnable, the wait for a CPU is the quota's, as far as the
    // group was throttled at all.
    let held = line.unwrap_or_else(|| quota.map_or(0.0, |q| q.throttled_ns.min(lines.waiting_for_cpu_ns())));
    let part = share(held, lines.demand_ns());
    let periods_needed = quota.map(|_| Measured::new(periods, MIN_PERIODS, Unit::Periods));
    let needed = [Measured::new(part, MIN_SHARE, Unit::Share)].into_iter().chain(periods_needed);
    if let Some(seen) = Measured::farthest(needed) {
        let why = innocence(quota, held, part);
        return not_it(Reason::TooLittle, Some(seen), part >= MIN_SHARE * COULD_BE, why);
    }
    if let Some(why) = not_felt(case, quota, held) {
        return why;
    }
    let sources = usize::from(line.is_some()) + usize::from(periods >= MIN_PERIODS);
    let limit = quota.and_then(|q| q.cpus).or(case.recording.meta.target.quota_cpus);
    let named = limit.map_or("a CPU quota".to_string(), |c| format!("its quota of {c:.2} CPUs"));
    found(
        finding(case, quota, held, lines.demand_ns(), sources),
        format!("{named} held it back for {} of its CPU demand", percent(part)),
        if limit.is_none_or(|c| c < 1.0) {
            "raise the quota"
        } else {
            "raise the quota, or run no more threads than it has CPUs"
        },
    )
}

/// Why nobody who waits for an answer can have felt it, if so.
fn not_felt(case: &Case, quota: Option<&Quota>, held_ns: f64) -> Option<Checked> {
    let of_window = |q: &Quota| share(q.throttled_periods * q.period_ns.unwrap_or(PERIOD_NS), case.length_ns());
    let stopped = quota.map(|q| (q.throttled_periods, of_window(q)));
    if let Some((periods, part)) = stopped.filter(|(_, part)| *part < MIN_OF_WINDOW) {
        let seen = Measured::new(part, MIN_OF_WINDOW, Unit::Share);
        let (periods, part) = (count(periods), percent(part));
        let why = format!("{periods} periods were throttled, {part} of the window (under {})", percent(MIN_OF_WINDOW));
        return Some(too_little(seen, why));
    }
    // The kernel adds up what each CPU was held on which something was ready, which all are at once, for a part of the period at most.
    let allowed = case.fact::<Cpus>().map_or(1.0, |cpus| cpus.allowed_count().max(1.0));
    let held =
        |threads: &Threads| threads.threads.iter().filter(|thread| thread.lines.throttled_ns > 0.0).count() as f64;
    let held = case.fact::<Threads>().map_or(0.0, |threads| held(&threads));
    let cpus = if held > 0.0 { allowed.min(held) } else { allowed };
    let stop_ns = |q: &Quota| ratio(q.throttled_ns, q.throttled_periods * cpus).min(q.period_ns.unwrap_or(PERIOD_NS));
    if quota.is_some_and(|q| are_held_up(case, (q.throttled_periods, stop_ns(q)))) {
        return None;
    }
    let part = little_of_requests(case, held_ns)?;
    let (held, part) = (seconds(held_ns / 1e9), percent(part));
    Some(explained(format!("its threads were throttled for {held}, {part} at most of the time that clients waited")))
}

fn innocence(quota: Option<&Quota>, held_ns: f64, part: f64) -> String {
    match quota {
        None if held_ns == 0.0 => "no CPU quota throttled the target".to_string(),
        None => format!("no CPU quota throttled the target: {} throttled (under 5 %)", seconds(held_ns / 1e9)),
        Some(q) => format!(
            "{} of {} periods throttled, {} of its CPU demand (under 5 %, or in under 3 periods)",
            count(q.throttled_periods),
            count(q.periods),
            percent(part)
        ),
    }
}

fn unseen(case: &Case) -> Checked {
    match case.recording.meta.target.quota_cpus {
        None => absent("the target has no CPU quota"),
        Some(_) => Err(Gap::not_recorded(
            "cpu-throttled",
            "the target has a CPU quota, but neither cpu.stat nor the thread ledger was recorded",
        )),
    }
}

fn finding(case: &Case, quota: Option<&Quota>, held_ns: f64, demand_ns: f64, sources: usize) -> Finding {
    let part = share(held_ns, demand_ns);
    let limit = quota.and_then(|q| q.cpus).or(case.recording.meta.target.quota_cpus);
    let group = quota.map_or(case.recording.meta.target.cgroup.as_str(), |q| q.cgroup.as_str());
    let name = limit.map_or("A CPU quota".to_string(), |c| format!("The CPU quota of {c:.2} CPUs"));
    let periods = quota.map_or(String::new(), |q| {
        format!("; it was throttled in {} of {} periods", count(q.throttled_periods), count(q.periods))
    });
    Finding {
        summary: format!(
            "{name} held the target's threads for {}, {} of their CPU demand{periods}",
            seconds(held_ns / 1e9),
            percent(part)
        ),
        subject: Subject { cgroup: Some(group.to_string()), ..Subject::default() },
        explains: Explains { share: part, of: "CPU demand".into(), seconds: held_ns / 1e9 },
        evidence: rows(quota, group, held_ns, part),
        remedy: match limit {
            Some(limit) => format!(
                "Raise the quota of {group} well above {limit:.2} CPUs (cpu.max, or cpu.cfs_quota_us on cgroup v1) until periods are no \
                 longer throttled: how much it wants is not seen while it is held. With several CPUs of quota, running \
                 fewer threads at a time helps too. The price is that much more CPU."
            ),
            None => {
                "Raise the quota (cpu.max, or cpu.cfs_quota_us on cgroup v1), or run fewer threads at a time.".into()
            }
        },
        check:
            "After the change nr_throttled of the group stands still under the same load, and the ledger's throttled \
                line is 0."
                .into(),
        ..RULE.finding(case, sources)
    }
}

fn rows(quota: Option<&Quota>, group: &str, held_ns: f64, part: f64) -> Vec<Evidence> {
    let stat = format!("cat /sys/fs/cgroup{{,/cpu}}{}/cpu.stat 2>/dev/null", word(group));
    let mut rows = vec![
        evidence("throttled time of the target's threads", held_ns / 1e9, "s", "0", stat.as_str()),
        evidence("share of their CPU demand", part * 100.0, "%", "under 5", ""),
    ];
    if let Some(q) = quota {
        rows.push(evidence(
            "periods throttled",
            share(q.throttled_periods, q.periods) * 100.0,
            "%",
            "0",
            stat.as_str(),
        ));
        rows.push(evidence("throttled time by the group's counter", q.throttled_ns / 1e9, "s", "0", stat));
        rows.extend(q.cpus.map(|c| evidence("quota", c, "CPUs", "above the demand", "")));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::super::asking::{found, gap, silent};
    use super::*;

    /// A group with a quota of `quota` CPUs over 5 s, throttled in `throttled` of 50 periods.
    fn group(quota: f64, throttled: u32, throttled_ns: f64) -> String {
        let mut text = "meta length_ns=5e9 target.quota_cpus=0.3 target.cgroup=/svc\n".to_string();
        for (name, last) in [
            ("nr_periods", 50.0),
            ("nr_throttled", f64::from(throttled)),
            ("throttled_ns", throttled_ns),
            ("usage_ns", 1.5e9),
        ] {
            text += &format!("counter source=cgroup/cpu entity=/svc name={name} value=7\n");
            text += &format!("counter t_ns=5e9 source=cgroup/cpu entity=/svc name={name} value={}\n", last + 7.0);
        }
        for (name, value) in [("quota_ns", quota * 1e8), ("period_ns", 1e8)] {
            text += &format!("counter source=cgroup/cpu entity=/svc name={name} value={value}\n");
        }
        text
    }

    const HELD: &str =
        "thread t_ns=5e9 pid=1 tid=1 wall_ns=5e9 cpu_ns=1e9 throttled_ns=3e9 run_queue_ns=1e8 blocked_ns=9e8";

    #[test]
    fn counters_and_ledger_agree() {
        let f = found(&RULE, &format!("{}{HELD}", group(0.3, 48, 3.3e9)));
        assert_eq!(
            (f.confidence.as_str(), f.subject.cgroup.as_deref(), f.explains.seconds),
            ("high", Some("/svc"), 3.0)
        );
        assert!(
            f.summary.contains("0.30 CPUs") && f.summary.contains("48 of 50 periods") && f.summary.contains("73 %"),
            "{}",
            f.summary
        );
        assert!(f.remedy.contains("well above 0.30 CPUs"), "{}", f.remedy);
    }

    #[test]
    fn one_source_is_medium() {
        assert_eq!(found(&RULE, &format!("meta length_ns=5e9\n{HELD}")).confidence, "medium");
        let old_kernel = "gap what=throttled why=\"no prev->throttled\"
            thread t_ns=5e9 pid=1 tid=1 wall_ns=5e9 cpu_ns=1e9 preempted_ns=3e9 blocked_ns=1e9";
        let f = found(&RULE, &format!("{}{old_kernel}", group(0.3, 48, 3.3e9)));
        assert_eq!((f.confidence.as_str(), f.explains.seconds), ("medium", 3.0));
    }

    #[test]
    fn loss_lowers_confidence() {
        let f = found(&RULE, &format!("{}{HELD}\nloss what=sched_switch count=5 kept=95", group(0.3, 48, 3.3e9)));
        assert_eq!(f.confidence, "medium");
    }

    #[test]
    fn a_noisy_neighbour_is_not_a_quota() {
        let waits = "thread pid=1 tid=1 wall_ns=5e9 cpu_ns=1e9 run_queue_ns=3e9 blocked_ns=1e9";
        assert!(silent(&RULE, &format!("{}{waits}", group(2.0, 0, 0.0))).contains("0 of 50 periods"));
        assert!(silent(&RULE, &format!("meta length_ns=5e9\n{waits}")).contains("no CPU quota"));
    }

    #[test]
    fn a_burst_and_a_neighbour_in_the_group_are_innocent() {
        let burst = "thread pid=1 tid=1 wall_ns=5e9 cpu_ns=1e9 throttled_ns=1e8 blocked_ns=39e8";
        silent(&RULE, &format!("{}{burst}", group(0.3, 2, 1e8)));
        // Others in the group were throttled; the ledger knows that the target was not.
        let idle = "thread pid=1 tid=1 wall_ns=5e9 cpu_ns=1e8 blocked_ns=49e8";
        silent(&RULE, &format!("{}{idle}", group(0.3, 48, 3.3e9)));
    }

    /// A few short stops of threads that hardly do anything are a good part of what they want, and nobody feels them.
    #[test]
    fn stops_of_an_idle_service_or_that_requests_do_not_feel() {
        let idle = "thread t_ns=5e9 pid=1 tid=1 wall_ns=5e9 cpu_ns=4e8 throttled_ns=3e8 blocked_ns=43e8";
        let few = group(1.0, 3, 3e8).replace("length_ns=5e9", "length_ns=50e9");
        assert!(silent(&RULE, &format!("{few}{idle}")).contains("3 periods were throttled, 0.6 % of the window"));
        let requests = |each_ms: u32| {
            format!(
                "{}{HELD}\nexchange_window t_ns=5e9 length_ns=5e9
                 exchange role=accepted port=80 stage=response count=1000 sum_ns={each_ms}e9 length_ns=[{each_ms}000000] counts=[1000]",
                group(0.3, 48, 3.3e9)
            )
        };
        found(&RULE, &requests(20));
        found(&RULE, &requests(1));
        let little = requests(20).replace("throttled_ns=3e9", "throttled_ns=1e8").replace("cpu_ns=1e9", "cpu_ns=1e7");
        assert!(silent(&RULE, &little).contains("of the time that clients waited"), "{}", silent(&RULE, &little));
    }

    /// A tenth of the periods, in each of which requests come that then stand in line; and one whose usual answers are as long.
    #[test]
    fn stops_in_which_requests_pile_up() {
        let text = |usual_ms: u32| {
            format!(
                "{}thread t_ns=5e9 pid=1 tid=1 wall_ns=5e9 cpu_ns=12e8 throttled_ns=4e8 blocked_ns=34e8
                 exchange_window t_ns=5e9 length_ns=5e9
                 exchange role=accepted port=80 stage=response count=2500 sum_ns={}e6 length_ns=[{usual_ms}000000,60000000] counts=[2300,200]",
                group(0.6, 5, 4e8),
                2300 * usual_ms + 200 * 60
            )
        };
        found(&RULE, &text(5));
        assert!(silent(&RULE, &text(30)).contains("of the time that clients waited"));
    }

    #[test]
    fn gaps() {
        silent(&RULE, "");
        assert!(gap(&RULE, "meta target.quota_cpus=0.5").why.contains("cpu.stat"));
    }
}
