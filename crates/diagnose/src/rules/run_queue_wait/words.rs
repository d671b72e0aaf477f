// SPDX-License-Identifier: Apache-2.0
//! Waits for a CPU in words: who was in the way, why that is none, and what to do about it.

use super::super::evidence;
use super::{FELT_NS, Felt};
use crate::case::Case;
use crate::facts::cpus::{Cpus, Lengths, Neighbour};
use crate::ledger::threads::Lines;
use crate::remarks::hidden_queues;
use crate::statistics::share;
use crate::verdict::Evidence;
use crate::wording::{cpu_list, percent, seconds};

/// What is said first, and what to do.
pub(super) fn first(cpus: &Cpus, part: f64, is_confined: bool) -> (String, &'static str) {
    let first = cpus.neighbours.first().map_or(String::new(), |n| format!(", behind {}", n.name()));
    let headline = format!("ready, but without a CPU for {} of its CPU demand{first}", percent(part));
    let advice = match is_confined {
        true => "widen its affinity or cpuset: other CPUs have room",
        false => "give it CPUs of its own or more weight, or move the others away",
    };
    (headline, advice)
}

pub(super) fn summary(cpus: &Cpus, lines: &Lines, explained: f64, ceiling: Option<&str>) -> String {
    format!(
        "The target was runnable without a CPU for {}, {} of its CPU demand, {} of it ({}) while {} ran{}",
        seconds(lines.waiting_for_cpu_ns() / 1e9),
        percent(share(lines.waiting_for_cpu_ns(), lines.demand_ns())),
        seconds(explained / 1e9),
        percent(share(explained, lines.demand_ns())),
        names(&cpus.neighbours),
        ceiling.map_or(String::new(), |c| format!("; {c}"))
    )
}

pub(super) fn not_behind_others(lines: &Lines, explained: f64) -> String {
    format!(
        "the target was runnable without a CPU for {}, but behind other processes only for {}, {} of its CPU \
         demand (under 25 %); the rest was behind its own threads or ordinary hand-overs",
        seconds(lines.waiting_for_cpu_ns() / 1e9),
        seconds(explained / 1e9),
        percent(share(explained, lines.demand_ns())),
    )
}

pub(super) fn too_short(felt: &Felt, explained: f64, lines: &Lines) -> String {
    format!(
        "the target was runnable behind other processes for {}, {} of its CPU demand, but half of that in \
         waits of under {}: in waits of 1 ms or more, which a request feels, it was {} (under 20 %)",
        seconds(explained / 1e9),
        percent(share(explained, lines.demand_ns())),
        seconds(2.0 * felt.each_ns.max(65_536.0) / 1e9),
        percent(share(felt.ns, lines.demand_ns())),
    )
}

pub(super) fn not_by_requests(felt: &Felt, (part, ns): (f64, f64)) -> String {
    format!(
        "threads stood behind other processes for {} in waits of 1 ms or more, but requests did not: {} of the answers took {} \
         or less",
        seconds(felt.ns / 1e9),
        percent(part),
        seconds(ns / 1e9)
    )
}

pub(super) fn little_of_requests(behind_others: f64, part: f64) -> String {
    format!(
        "the target was runnable behind other processes for {}, but of the time that its clients waited for answers that is {} \
         at most (under 10 %)",
        seconds(behind_others / 1e9),
        percent(part)
    )
}

pub(super) fn aside(behind_others: f64, part: f64) -> String {
    format!(
        "the target was runnable behind other processes for {}, but {} of its waiting for a CPU is that of threads that take no part in \
         what clients ask",
        seconds(behind_others / 1e9),
        percent(part)
    )
}

pub(super) fn by_chance(felt: &Felt, used: f64) -> String {
    format!(
        "the target was runnable behind other processes for {} in waits of 1 ms or more, but the CPUs that it may use \
         were {} in use meanwhile (under 70 %): they happened to meet",
        seconds(felt.ns / 1e9),
        percent(used)
    )
}

/// That the CPUs which it may use are full, and others of the machine are not.
pub(super) fn ceiling(cpus: &Cpus, others: f64) -> String {
    format!(
        "it may use only {}, which {} full, while the machine's other CPUs are {} busy",
        cpu_list(&cpus.allowed),
        if cpus.allowed.len() == 1 { "is" } else { "are" },
        percent(others)
    )
}

pub(super) fn remedy(cpus: &Cpus, ceiling: Option<String>) -> String {
    match ceiling {
        Some(c) => {
            let allowed = cpu_list(&cpus.allowed);
            format!("Widen the target's affinity or cpuset: {c}. Else move the others off {allowed}.")
        }
        None => format!(
            "Give the target CPUs of its own (cpuset or taskset), or more weight than {} (cpu.weight, nice), or move that \
             away. More weight makes the others wait instead. A load generator on the same CPUs is a neighbour too: run \
             it elsewhere.",
            names(&cpus.neighbours)
        ),
    }
}

pub(super) fn rows(case: &Case, cpus: &Cpus, lines: &Lines, others: f64) -> Vec<Evidence> {
    let pid = hidden_queues::pid_of_who_answers(case);
    let schedstat = format!("cat /proc/{pid}/task/*/schedstat  # second numbers: ns runnable without a CPU");
    let mut rows = vec![
        evidence("runnable after a wake-up, without a CPU", lines.run_queue_ns / 1e9, "s", "near 0", schedstat),
        evidence("runnable after a preemption, without a CPU", lines.preempted_ns / 1e9, "s", "near 0", ""),
        evidence(
            "of its waits for a CPU: behind other processes",
            others * 100.0,
            "%",
            "under 25",
            "top -H; ps -eo pid,psr,pcpu,comm",
        ),
        evidence(
            "periods throttled by a quota",
            cpus.quota.as_ref().map_or(0.0, |q| q.throttled_periods),
            "periods",
            "0",
            "",
        ),
    ];
    rows.extend(cpus.lengths.as_ref().map(|lengths| long_waits(lengths, &pid)));
    rows.extend(cpus.allowed_time.map(|t| {
        evidence(
            &format!("{} in use", cpu_list(&cpus.allowed)),
            t.utilization() * 100.0,
            "%",
            "under 90",
            "mpstat -P ALL 1",
        )
    }));
    rows
}

/// How much was waited behind others for so long that a request feels it.
fn long_waits(lengths: &Lengths, pid: &str) -> Evidence {
    let fact = format!(
        "behind others in waits of 1 ms or more (half of all in waits of {} or more)",
        seconds(lengths.half() / 1e9)
    );
    let see = format!("perf sched record -- sleep 5 && perf sched timehist -p {pid}");
    evidence(&fact, lengths.over(FELT_NS) / 1e9, "s", "near 0", see)
}

/// The processes most in the way, at most three.
pub(super) fn names(neighbours: &[Neighbour]) -> String {
    let all: f64 = neighbours.iter().map(|n| n.delayed_ns).sum();
    let named: Vec<String> = neighbours
        .iter()
        .filter(|n| n.delayed_ns > 0.0)
        .take(3)
        .map(|n| format!("{} (pid {}, {} of it)", n.name(), n.pid, percent(share(n.delayed_ns, all))))
        .collect();
    if named.is_empty() { "other processes".to_string() } else { named.join(", ") }
}
