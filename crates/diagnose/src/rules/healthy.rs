// SPDX-License-Identifier: Apache-2.0
//! Nothing above a threshold explains lost time. Accuses nobody; names the next limit.

use super::{Check, Rule, Statement};
use crate::answer::Gap;
use crate::case::Case;
use crate::facts::limits::Limits;
use crate::facts::resources::{Resource, Resources};
use crate::facts::waiting::Waiting;
use crate::judgement::full::FULL;
use crate::ledger::threads::Threads;
use crate::phrases::resources::name;
use crate::remarks::{
    self, Remark, children, churn, collecting, deadlocked, each_other, goes_on, hints, idle, in_line, in_parts,
    many_questions, neighbours, never_closed, own_work, response_times, standing, stood_still, streams,
};
use crate::statistics::share;
use crate::wording::{cores, percent, seconds};

pub(super) static RULE: Rule = Rule { cause: "healthy", explain: explain!("healthy"), check: Check::Neutral(check) };

const REMARKS: [fn(&Case) -> Option<Remark>; 17] = [
    hints::spent_on_a_lock,
    children::remark,
    in_parts::remark,
    many_questions::remark,
    each_other::remark,
    in_line::remark,
    own_work::remark,
    response_times::tail,
    goes_on::remark,
    collecting::remark,
    standing::remark,
    stood_still::remark,
    streams::remark,
    churn::remark,
    never_closed::remark,
    deadlocked::remark,
    neighbours::remark,
];

fn check(case: &Case, _: &[Gap]) -> Option<Statement> {
    let limits = case.fact::<Limits>().ok()?;
    let ledger = case.fact::<Threads>().ok()?;
    let held = match ledger.total.throttled_ns {
        ns if ns > 0.0 => format!("{} throttled", seconds(ns / 1e9)),
        _ => "none throttled".to_string(),
    };
    let remarks: Vec<Remark> = REMARKS.iter().filter_map(|remark| remark(case)).collect();
    let is_idle = idle::is_idle(case);
    let found = if is_idle { idle::headline(case) } else { "no cause of lost time was found".to_string() };
    let advised = remarks.iter().find_map(|remark| remark.advice.clone());
    Some(Statement {
        headline: format!("{found}{}", remarks::headlines(&remarks)),
        advice: advised.unwrap_or_else(|| match is_idle {
            true => idle::advice(case),
            false => advice(next_limit(case, &limits), &limits),
        }),
        detail: format!(
            "It used {}, was runnable without a CPU for {}, {held}. {}{}",
            cores(limits.cores),
            seconds(ledger.total.waiting_for_cpu_ns() / 1e9),
            waits(case, &ledger),
            remarks::details(&remarks),
        ),
    })
}

/// What is not known about blocked threads is said where somebody may rely on it.
fn waits(case: &Case, ledger: &Threads) -> String {
    let blocked: f64 = ledger.total.blocked_ns.values().sum();
    let most = ledger.total.blocked_ns.iter().max_by(|a, b| a.1.total_cmp(b.1));
    let kind = most.map_or("", |(kind, _)| kind.line()).trim_start_matches("blocked_").replace('_', " ");
    let waiting = match case.fact::<Waiting>() {
        Ok(waiting) => {
            let untold = share(waiting.untold_ns, blocked);
            let untold = if untold < 0.01 { String::new() } else { format!(", {} cannot be told", percent(untold)) };
            format!("{} of that was waiting for somebody{untold}", percent(share(waiting.waiting_ns, blocked)))
        }
        Err(_) => "whether idle or waiting for somebody was not recorded".to_string(),
    };
    let part = percent(share(blocked, ledger.total.wall_ns));
    format!("Its threads were blocked for {part} of their time, mostly on {kind}; {waiting}.")
}

/// Something that fills up.
struct Next {
    what: String,
    used: f64,
    /// How much of that use is the target's.
    by_target: f64,
}

fn advice(next: Option<Next>, limits: &Limits) -> String {
    // Somebody set it, so it is named however little of it is used.
    let next = next.filter(|n| n.used > 0.0);
    let quota = quota(limits).filter(|q| next.as_ref().is_none_or(|n| n.what != q.what));
    let quota = quota.map_or(String::new(), |q| format!("; {}, {} used", q.what, percent(q.used)));
    let Some(Next { what, used, by_target }) = next else {
        return format!("it was idle: look again while it is under load{quota}");
    };
    // No multiple of this load is promised: a service that waits for a lock has no room at all.
    match by_target {
        part if part >= 0.5 => format!("nothing now; what fills up first is {what}, {} used{quota}", percent(used)),
        part if used >= FULL => {
            format!("nothing here; others fill {what}: {} used, {} of that by it{quota}", percent(used), percent(part))
        }
        part => format!(
            "nothing now; what fills up first is {what}, {} used, {} of that by it{quota}",
            percent(used),
            percent(part)
        ),
    }
}

fn quota(limits: &Limits) -> Option<Next> {
    let what = format!("its CPU quota of {:.2} CPUs", limits.quota_cpus?);
    Some(Next { what, used: limits.quota?, by_target: 1.0 })
}

/// What is fullest: of the CPU limits, and of the resources that were read.
fn next_limit(case: &Case, limits: &Limits) -> Option<Next> {
    let own = |what: String, used: f64| Next { what, used, by_target: 1.0 };
    let mut all = Vec::new();
    // A thread can be the limit only of work that is in it.
    let busiest = limits.threads.iter().filter(|t| t.of_target >= 0.3).max_by(|a, b| a.on_cpu.total_cmp(&b.on_cpu));
    all.extend(busiest.map(|t| own(format!("thread {} (tid {})", t.comm, t.tid), t.on_cpu)));
    all.extend(limits.allowed_cpus.map(|used| Next {
        what: "the CPUs it may use".to_string(),
        used,
        by_target: limits.target_share.unwrap_or(1.0),
    }));
    all.extend(quota(limits));
    if let Ok(resources) = case.fact::<Resources>() {
        // Memory and caches fill up by design; descriptors, links and tracking tables do not.
        let is_limit = |resource: &Resource| {
            matches!(
                resource,
                Resource::HostFiles
                    | Resource::ProcessFiles(_)
                    | Resource::Tracking
                    | Resource::Interface(_)
                    | Resource::CgroupTasks(_)
            )
        };
        let rows = resources.rows.iter().filter(|r| is_limit(&r.resource));
        all.extend(rows.filter_map(|r| Some(own(name(&r.resource), r.utilization?))));
    }
    all.into_iter().max_by(|a, b| a.used.total_cmp(&b.used))
}

#[cfg(test)]
mod tests {
    use super::super::asking::stated;
    use super::*;

    #[test]
    fn the_next_limit_is_named() {
        let text = "meta length_ns=1e9
            thread t_ns=1e9 pid=1 tid=1 comm=loop wall_ns=1e9 cpu_ns=25e7 run_queue_ns=1e6 blocked_ns=749e6";
        let s = stated(&RULE, text, &[]).unwrap();
        assert!(
            s.detail.contains("It used 0.25 cores, was runnable without a CPU for 1 ms, none throttled"),
            "{}",
            s.detail
        );
        assert_eq!(s.advice, "nothing now; what fills up first is thread loop (tid 1), 25 % used");
    }

    #[test]
    fn descriptors_may_be_the_next_limit() {
        let text = "meta length_ns=1e9
            thread t_ns=1e9 pid=1 tid=1 wall_ns=1e9 cpu_ns=1e8 blocked_ns=9e8
            counter source=proc/pid entity=\"1\" name=open_files value=900
            counter source=proc/pid entity=\"1\" name=open_files_limit value=1000";
        assert!(stated(&RULE, text, &[]).unwrap().advice.contains("open files, process 1, 90 % used"));
    }

    #[test]
    fn cpus_that_others_fill_are_no_multiple_of_this_load() {
        let text = "meta length_ns=1e9
            thread t_ns=1e9 pid=1 tid=1 wall_ns=1e9 cpu_ns=1e7 blocked_ns=99e7
            counter source=proc/stat entity=cpu0 name=user_ns value=0\ncounter t_ns=9 source=proc/stat entity=cpu0 name=user_ns value=8e8
            counter source=proc/stat entity=cpu0 name=idle_ns value=0\ncounter t_ns=9 source=proc/stat entity=cpu0 name=idle_ns value=2e8";
        let advice = stated(&RULE, text, &[]).unwrap().advice;
        assert_eq!(advice, "nothing now; what fills up first is the CPUs it may use, 80 % used, 1.2 % of that by it");
    }

    #[test]
    fn a_quota_is_named_however_light_the_load() {
        let text = |cpu_ns: f64| {
            format!(
                "meta length_ns=1e9 target.quota_cpus=2
                 thread t_ns=1e9 pid=1 tid=1 comm=loop wall_ns=1e9 cpu_ns={cpu_ns} blocked_ns={}",
                1e9 - cpu_ns
            )
        };
        assert_eq!(
            stated(&RULE, &text(2e7), &[]).unwrap().advice,
            "nothing now; what fills up first is thread loop (tid 1), 2.0 % used; its CPU quota of 2.00 CPUs, 1.0 % used"
        );
        assert!(stated(&RULE, &text(0.0), &[]).unwrap().advice.ends_with("; its CPU quota of 2.00 CPUs, 0 % used"));
    }

    #[test]
    fn idle_or_unknown() {
        let idle = "thread t_ns=1e9 pid=1 tid=1 wall_ns=1e9 blocked_ns=1e9";
        assert!(stated(&RULE, idle, &[]).unwrap().advice.contains("idle"));
        let named = format!("meta length_ns=1e9 target.named=\"--port 80\"\n{idle}\nwakeup");
        let said = stated(&RULE, &named, &[]).unwrap();
        assert!(said.headline.starts_with("idle, so there was nothing to judge: no request was seen"), "{said:?}");
        assert!(said.advice.contains("`sudo wakewalk diagnose --port 80 --for 60s`"), "{said:?}");
        assert_eq!(stated(&RULE, "", &[]), None);
    }
}
