// SPDX-License-Identifier: Apache-2.0
//! The target was runnable, and another process had its CPU.

mod clients;
mod words;

use super::{COULD_BE, Check, Checked, Rule, explained, found, not_it, too_short};
use crate::answer::{Gap, Measured, Reason, Unit};
use crate::case::Case;
use crate::facts::cpus::Cpus;
use crate::facts::quality::Quality;
use crate::facts::requests::Requests;
use crate::judgement::aside;
use crate::judgement::enough::little_of_requests;
use crate::ledger::threads::{Lines, Threads};
use crate::statistics::{ratio, share};
use crate::verdict::{Explains, Finding, Subject};
use crate::wording::{cores, percent, seconds};

pub(super) static RULE: Rule =
    Rule { cause: "run-queue-wait", explain: explain!("run-queue-wait"), check: Check::Accuses(check) };

/// A quarter of the demand, behind others alone: wake-up latency, fair turns with a client on the
/// same CPUs and the noise of a busy but healthy machine stay below (11 to 23 % were measured on
/// controls without one, 37 % and more next to three busy loops).
const MIN_SHARE: f64 = 0.25;

/// Threads waiting on average: below, the wait is real but worth less than 2 % of one thread's time.
const MIN_WAITING: f64 = 0.02;

/// Share of the used CPU time that must be others' for the counters to bear the scheduler out.
const MIN_OTHERS: f64 = 0.25;

/// A wait that a request feels, ns (2^20): the scheduler lets a thread run for one to a few milliseconds before another
/// one's turn, so whoever stands behind busy processes waits that long, while the hand-over from a waker to its wakee
/// takes tens of microseconds. docs/cpu.md has the runs that the line was drawn from.
const FELT_NS: f64 = 1_048_576.0;

/// A wait longer than a tick (2^22 ns): a CPU that goes idle takes threads from the queues of others at once, so none of
/// those that the thread may use was.
const PAST_A_TICK_NS: f64 = 4_194_304.0;

/// Of the demand, in waits that a request feels. Healthy services were measured at 0 to 2 % (prefork workers behind a
/// proxy, Go, a database, up to 97 % of the machine), saturated Python workers beside their client and proxy at 14 %, those
/// beside busy loops at 22 to 60 %.
const MIN_FELT: f64 = 0.2;

/// Share of the allowed CPUs in use while the target waited, by the second: below, they are not short, and threads only
/// happen to meet. Four loops that ran in bursts of 5 to 20 ms on two CPUs made it 75 to 80 %, full in each burst.
const NEARLY_FULL: f64 = 0.7;

/// CPUs: a target that hardly runs is late now and then on any busy machine, and nobody minds.
const MIN_CORES: f64 = 0.02;

fn check(case: &Case) -> Checked {
    let ledger = case.fact::<Threads>()?;
    let cpus = case.fact::<Cpus>()?;
    let lines = &ledger.total;
    if let Some(little) = little(lines, case.length_ns()) {
        return little;
    }
    let waiting = lines.waiting_for_cpu_ns();
    let throttled = cpus.quota.as_ref().map_or(0.0, |q| q.throttled_periods);
    if throttled >= 3.0 && case.fact::<Quality>()?.is_missing("throttled") {
        return explained("this kernel counts throttled threads as runnable, and a quota throttled the target");
    }
    let Some(others) = cpus.others_in_the_way().or_else(|| cpus.others_by_counters()) else {
        return Err(Gap::not_recorded(
            "run-queue-wait",
            "the target waited for a CPU, but who ran instead was not recorded",
        ));
    };
    let stolen = cpus.allowed_time.map_or(0.0, |t| share(t.steal_ns, t.steal_ns + t.busy_ns()));
    // Waits that were told apart are counted as they are: those too short for it are the usual
    // hand-over from a waker to its wakee, not a queue.
    let behind = cpus.others_delay_ns().unwrap_or(waiting * others).min(waiting);
    let behind_others = behind * (1.0 - stolen);
    if share(behind_others, lines.demand_ns()) < MIN_SHARE {
        let seen = Measured::new(share(behind_others, lines.demand_ns()), MIN_SHARE, Unit::Share);
        return not_it(Reason::TooLittle, Some(seen), true, words::not_behind_others(lines, behind_others));
    }
    if let Some(not_felt) = not_felt(case, &cpus, &ledger, behind_others) {
        return not_felt;
    }
    let (headline, advice) = words::first(&cpus, share(behind_others, lines.demand_ns()), ceiling(&cpus).is_some());
    found(finding(case, &cpus, lines, others, behind_others), headline, advice)
}

/// Why no request feels the waiting behind others, or why it is chance, if so.
fn not_felt(case: &Case, cpus: &Cpus, ledger: &Threads, behind_others: f64) -> Option<Checked> {
    let (lines, felt) = (&ledger.total, Felt::new(cpus, ledger, behind_others));
    let part = share(felt.ns, lines.demand_ns());
    if part < MIN_FELT {
        let why = words::too_short(&felt, behind_others, lines);
        return Some(too_short(Measured::new(part, MIN_FELT, Unit::Share), why));
    }
    if let Some(part) = aside::of_cpu(case, ledger) {
        return Some(explained(words::aside(behind_others, part)));
    }
    if let Some(quick) = quick_answers(case) {
        let seen = Measured::new(quick.1 / 1e9, FELT_NS / 1e9, Unit::Seconds);
        return Some(too_short(seen, words::not_by_requests(&felt, quick)));
    }
    if let Some(part) = little_of_requests(case, behind_others) {
        return Some(explained(words::little_of_requests(behind_others, part)));
    }
    clients::are_the_load(case, cpus).or_else(|| chance(cpus, &felt, lines)).map(explained)
}

/// What of the waiting behind others a request feels.
struct Felt {
    /// Time in waits that are long enough, ns.
    ns: f64,
    /// Time in waits longer than a tick, ns.
    past_a_tick_ns: f64,
    /// How long a wait is that the time was spent in, ns.
    each_ns: f64,
}

impl Felt {
    /// By the lengths of the waits; a recording without them tells only how long one is on average.
    fn new(cpus: &Cpus, ledger: &Threads, explained: f64) -> Self {
        if let Some(lengths) = &cpus.lengths {
            let part = share(explained, lengths.over(0.0));
            let over = |ns: f64| lengths.over(ns) * part;
            return Self { ns: over(FELT_NS), past_a_tick_ns: over(PAST_A_TICK_NS), each_ns: lengths.half() };
        }
        let each_ns = ratio(ledger.total.waiting_for_cpu_ns(), ledger.switches() as f64);
        let if_over = |ns: f64| if each_ns >= ns { explained } else { 0.0 };
        // Most waits are short wherever some are long: an average of half the length is of long ones.
        Self { ns: if_over(FELT_NS / 2.0), past_a_tick_ns: if_over(PAST_A_TICK_NS), each_ns }
    }
}

/// Answers from which on what half of them take says something.
const ENOUGH_ANSWERS: f64 = 100.0;

/// Answers beyond a percentile, if it says something.
const BEYOND: f64 = 10.0;

/// Of the time of all answers, in those that take as long as one wait that a request would feel: with more, these are what clients
/// wait for.
const MOST_OF_TIME: f64 = 0.5;

/// In what time nearly all clients have their answers, where that is less than one wait that a request would feel, and which part of
/// them: those who wait so long have no request in hand then, as a pool's spare threads.
fn quick_answers(case: &Case) -> Option<(f64, f64)> {
    let requests = case.fact::<Requests>().ok()?;
    let response = &requests.main().filter(|main| !main.is_mixed())?.response;
    let part = [0.99, 0.9].into_iter().find(|part| response.count * (1.0 - part) >= BEYOND - 1e-6)?;
    let quick = Some((part, response.quantile_ns(part))).filter(|(_, ns)| *ns < FELT_NS);
    quick.filter(|_| response.share_of_time_from(FELT_NS) < MOST_OF_TIME)
}

/// That CPUs were not short, and threads only happened to meet, if so.
fn chance(cpus: &Cpus, felt: &Felt, lines: &Lines) -> Option<String> {
    let used = cpus.used_while_waiting.or(cpus.allowed_time.map(|time| time.utilization())).unwrap_or(1.0);
    let full = used >= NEARLY_FULL || share(felt.past_a_tick_ns, lines.demand_ns()) >= MIN_FELT;
    (!full).then(|| words::by_chance(felt, used))
}

/// Why the waiting is not worth a finding, if it is not.
fn little(lines: &Lines, length_ns: f64) -> Option<Checked> {
    let waited = seconds(lines.waiting_for_cpu_ns() / 1e9);
    let used = ratio(lines.cpu_ns, length_ns);
    if used < MIN_CORES {
        let why = format!("it used {} only (under {MIN_CORES}); runnable without a CPU for {waited}", cores(used));
        // However long it waited: there is next to nothing that could have.
        return Some(not_it(Reason::TooLittle, Some(Measured::new(used, MIN_CORES, Unit::Cores)), false, why));
    }
    let part = share(lines.waiting_for_cpu_ns(), lines.demand_ns());
    let waiting = ratio(lines.waiting_for_cpu_ns(), length_ns);
    let least = if part < MIN_SHARE { "under 25 %" } else { "but under 2 % of the window" };
    let needed = [Measured::new(part, MIN_SHARE, Unit::Share), Measured::new(waiting, MIN_WAITING, Unit::Share)];
    let why = format!("runnable without a CPU for {waited}, {} of its CPU demand ({least})", percent(part));
    Measured::farthest(needed).map(|seen| not_it(Reason::TooLittle, Some(seen), part >= MIN_SHARE * COULD_BE, why))
}

fn finding(case: &Case, cpus: &Cpus, lines: &Lines, others: f64, explained: f64) -> Finding {
    let first = cpus.neighbours.first().filter(|n| n.delayed_ns > 0.0);
    // The scheduler names who ran; the counters of /proc/stat must show the same work that is not ours.
    let by_switches = cpus.others_in_the_way().is_some();
    let by_counters = cpus.others_by_counters().is_some_and(|o| o >= MIN_OTHERS);
    let part = share(explained, lines.demand_ns());
    let ceiling = ceiling(cpus).map(|others| words::ceiling(cpus, others));
    Finding {
        summary: words::summary(cpus, lines, explained, ceiling.as_deref()),
        subject: Subject {
            pid: first.map(|n| n.pid),
            comm: first.map(|n| n.comm.clone()),
            cgroup: first.map(|n| n.cgroup.clone()).filter(|c| !c.is_empty()),
            ..Subject::default()
        },
        explains: Explains { share: part, of: "CPU demand".into(), seconds: explained / 1e9 },
        evidence: words::rows(case, cpus, lines, others),
        remedy: words::remedy(cpus, ceiling),
        check:
            "After the change the ledger's run_queue and preempted lines fall under a tenth of the demand at the same \
                load."
                .into(),
        ..RULE.finding(case, usize::from(by_switches) + usize::from(by_counters))
    }
}

/// Where affinity or cpuset, not the machine, is full: how busy its other CPUs are.
fn ceiling(cpus: &Cpus) -> Option<f64> {
    let (allowed, other) = (cpus.allowed_time?.utilization(), cpus.other_time?.utilization());
    (allowed >= 0.85 && other < 0.5).then_some(other)
}

#[cfg(test)]
mod tests;
