// SPDX-License-Identifier: Apache-2.0
//! The hypervisor ran somebody else while this machine wanted its CPUs.

use super::{Check, Checked, Rule, evidence, explained, found, not_it, too_little};
use crate::answer::{Gap, Measured, Reason, Unit};
use crate::case::Case;
use crate::facts::cpus::{CpuTime, Cpus};
use crate::facts::requests::{LATE_NS, Requests};
use crate::judgement::enough::{little_of_requests, wants_little};
use crate::ledger::threads::{Lines, Threads};
use crate::statistics::{ratio, share};
use crate::verdict::{Explains, Finding};
use crate::wording::{cpu_list, percent, seconds};

pub(super) static RULE: Rule =
    Rule { cause: "cpu-steal", explain: explain!("cpu-steal"), check: Check::Accuses(check) };

/// One part in ten: less than that is the usual noise of shared hosts, and interrupts of the
/// hypervisor itself are counted as steal too.
const MIN_SHARE: f64 = 0.10;

/// A target that lost less than this part of its CPU demand has other worries.
const MIN_OF_DEMAND: f64 = 0.05;

/// Nor is it worth a finding below 2 % of one CPU.
const MIN_CORES: f64 = 0.02;

/// Answers, of which the length of nearly all says something.
const ENOUGH: f64 = 100.0;

/// Of what the target's share of the stolen time would be, as seen by the scheduler: a kernel that does not see it charges it to whoever
/// runs, and sees next to nothing.
const SEEN: f64 = 0.05;

/// Delays of less than this are not felt, as in waits for a CPU behind others (`docs/cpu.md`).
const FELT_NS: f64 = 1e6;

fn check(case: &Case) -> Checked {
    let cpus = case.fact::<Cpus>()?;
    let ledger = case.fact::<Threads>().ok();
    let Some(time) = cpus.allowed_time else {
        return unseen(ledger.as_deref());
    };
    let stolen = share(time.steal_ns, time.steal_ns + time.busy_ns());
    if stolen < MIN_SHARE {
        let why = format!("{} of the time that the allowed CPUs had work was stolen (under 10 %)", percent(stolen));
        return too_little(Measured::new(stolen, MIN_SHARE, Unit::Share), why);
    }
    let Some(ledger) = ledger else {
        return Err(Gap::not_recorded(
            "cpu-steal",
            "CPU time was stolen, but without the thread ledger nobody knows from whom",
        ));
    };
    let lines = &ledger.total;
    // Stolen from a running thread shows as interrupted; what stands behind it in the queue waits too.
    let wanted = lines.demand_ns() + lines.interrupted_ns;
    let suffered = (lines.interrupted_ns + lines.waiting_for_cpu_ns() * stolen).min(time.steal_ns);
    let estimate = time.steal_ns * cpus.target_share_of_busy().unwrap_or(0.0);
    // Steal hits a CPU that wakes up as well, and then nobody who runs: where the scheduler sees it, it knows from whom it was taken.
    let is_seen = lines.interrupted_ns >= estimate * SEEN;
    let unseen = if is_seen || are_short_delays(case, &ledger, estimate) { 0.0 } else { estimate };
    let lost = suffered.max(unseen).min(wanted);
    if let Some(ruled_out) = hardly(case, stolen, (lost, wanted)) {
        return ruled_out;
    }
    // The scheduler sees stolen time as running without being charged: an independent witness.
    let agrees = suffered >= estimate / 2.0;
    found(
        finding(case, &cpus, &time, lines, lost, if agrees { 2 } else { 1 }),
        format!("the hypervisor ran somebody else for {} of its CPU demand", percent(share(lost, wanted))),
        "move the machine to a host with CPUs to spare; nothing inside helps",
    )
}

/// Whether a target that hardly wants a CPU would have had so much, ns, taken from it in pieces that nobody feels: CPUs that are mostly
/// idle have most of their steal as they wake up, and the target waits for one at most once for each time that it wakes up itself.
fn are_short_delays(case: &Case, ledger: &Threads, stolen_ns: f64) -> bool {
    let switches = ledger.switches();
    wants_little(case) && switches > 0 && ratio(stolen_ns, switches as f64) < FELT_NS
}

/// Why nobody felt it, if so: of this share of CPU time that was stolen, the target lost so much of what it wanted, ns.
fn hardly(case: &Case, stolen: f64, (lost, wanted): (f64, f64)) -> Option<Checked> {
    let part = share(lost, wanted);
    let cores = Measured::new(ratio(lost, case.length_ns()), MIN_CORES, Unit::Cores);
    let needed = [Measured::new(part, MIN_OF_DEMAND, Unit::Share), cores];
    if let Some(seen) = Measured::farthest(needed) {
        let why = format!(
            "{} of CPU time was stolen, but {} of it from the target, {} of its CPU demand (a finding needs 5 % of it, and 2 % of a CPU)",
            percent(stolen),
            seconds(lost / 1e9),
            percent(part)
        );
        return Some(not_it(Reason::TooLittle, Some(seen), true, why));
    }
    if let Some(p99_ns) = quick_answers(case) {
        return Some(explained(format!(
            "{} of CPU time was stolen, {} of it from the target, which wants little; 99 % of its answers came within {}",
            percent(stolen),
            seconds(lost / 1e9),
            seconds(p99_ns / 1e9)
        )));
    }
    let of_requests = percent(little_of_requests(case, lost)?);
    Some(explained(format!(
        "{} of CPU time was stolen, {} of it from the target: {of_requests} at most of the time that clients waited",
        percent(stolen),
        seconds(lost / 1e9)
    )))
}

/// What nearly all answers of a target that wants little take at most, ns, if nobody feels that.
fn quick_answers(case: &Case) -> Option<f64> {
    let requests = case.fact::<Requests>().ok().filter(|_| wants_little(case))?;
    let main = requests.main().filter(|endpoint| endpoint.response.count >= ENOUGH)?;
    Some(main.response.quantile_ns(0.99)).filter(|p99_ns| *p99_ns < LATE_NS)
}

fn finding(case: &Case, cpus: &Cpus, time: &CpuTime, lines: &Lines, lost_ns: f64, sources: usize) -> Finding {
    let stolen = share(time.steal_ns, time.steal_ns + time.busy_ns());
    let part = share(lost_ns, lines.demand_ns() + lines.interrupted_ns);
    Finding {
        summary: format!(
            "The hypervisor ran somebody else for {} of the time that {} had work; that cost the target {}, {} of \
             its CPU demand",
            percent(stolen),
            cpu_list(&cpus.allowed),
            seconds(lost_ns / 1e9),
            percent(part)
        ),
        explains: Explains { share: part, of: "CPU demand".into(), seconds: lost_ns / 1e9 },
        evidence: vec![
            evidence("steal time of the allowed CPUs", time.steal_ns / 1e9, "s", "0", "vmstat 1  # column st"),
            evidence("share of the time that they had work", stolen * 100.0, "%", "under 10", "mpstat -P ALL 1"),
            evidence("on a CPU but not charged to the target", lines.interrupted_ns / 1e9, "s", "near 0", ""),
        ],
        remedy:
            "Move the machine to a host with less overcommitment or to dedicated CPUs; nothing inside it helps. On \
                 burstable instance types, look at the CPU credits first."
                .into(),
        check: "After the move column st of vmstat 1 stays under 1 under the same load.".into(),
        ..RULE.finding(case, sources)
    }
}

fn unseen(ledger: Option<&Threads>) -> Checked {
    // Steal shows as interrupted time or as waiting; without either there is nothing to explain.
    match ledger.map(|l| (l.total.interrupted_ns + l.total.waiting_for_cpu_ns(), l.total.demand_ns())) {
        Some((lost, wanted)) if share(lost, wanted) < MIN_OF_DEMAND && wanted > 0.0 => {
            let part = share(lost, wanted);
            let seen = Measured::new(part, MIN_OF_DEMAND, Unit::Share);
            too_little(seen, format!("it waited for a CPU for {} of its CPU demand (under 5 %)", percent(part)))
        }
        _ => Err(Gap::not_recorded("cpu-steal", "the CPU times of /proc/stat were not recorded")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::asking::{found, gap, silent};
    use super::*;

    fn cpu(user: f64, idle: f64, steal: f64) -> String {
        let mut text = "meta length_ns=1e9 target.allowed_cpus=[0]\n".to_string();
        for (name, value) in [("user_ns", user), ("idle_ns", idle), ("steal_ns", steal)] {
            text += &format!("counter source=proc/stat entity=cpu0 name={name} value=0\n");
            text += &format!("counter t_ns=1e9 source=proc/stat entity=cpu0 name={name} value={value}\n");
        }
        text
    }

    #[test]
    fn stolen_from_the_target() {
        let f = found(
            &RULE,
            &format!("{}thread pid=1 tid=1 wall_ns=1e9 cpu_ns=6e8 interrupted_ns=4e8", cpu(6e8, 0.0, 4e8)),
        );
        assert_eq!((f.confidence.as_str(), f.explains.seconds, f.explains.share), ("high", 0.4, 0.4));
        assert!(f.summary.contains("40 % of the time that CPU 0 had work"), "{}", f.summary);
    }

    #[test]
    fn one_witness_is_medium() {
        let f =
            found(&RULE, &format!("{}thread pid=1 tid=1 wall_ns=1e9 cpu_ns=6e8 blocked_ns=4e8", cpu(6e8, 0.0, 4e8)));
        assert_eq!(f.confidence, "medium");
    }

    /// A CPU that is mostly idle, of which three quarters of its work are stolen: the scheduler saw how little of that the target ran into.
    #[test]
    fn stolen_from_a_cpu_that_wakes_up() {
        let thread = |interrupted: &str| {
            let cpu = cpu(19e7, 5e9, 57e7).replace("length_ns=1e9", "length_ns=6e9");
            format!("{cpu}thread pid=1 tid=1 wall_ns=6e9 cpu_ns=15e7 blocked_ns=57e8 {interrupted}")
        };
        assert!(silent(&RULE, &thread("interrupted_ns=25e6")).contains("of it from the target"));
        assert!(found(&RULE, &thread("")).explains.share > 0.9, "a kernel that cannot tell");
        // A stream that sends something every 20 ms: half a millisecond each, or 5 ms.
        let woken = |often: u32| thread(&format!("interrupted_ns=4e6 voluntary_switches={often}"));
        assert!(silent(&RULE, &woken(1000)).contains("of it from the target"));
        found(&RULE, &woken(100));
    }

    /// Clients wait for 900 ms together, and 42 ms were stolen; or for 100 ms.
    #[test]
    fn stolen_from_one_whose_clients_wait_for_something_else() {
        let thread = "thread pid=1 tid=1 wall_ns=1e9 cpu_ns=6e7 interrupted_ns=3e7 blocked_ns=8e8\n";
        let requests = |count: u32| {
            format!(
                "exchange_window t_ns=1e9 length_ns=1e9\nexchange role=accepted port=80 stage=response count={count} sum_ns={count}e6 \
                 length_ns=[1000000] counts=[{count}]\n"
            )
        };
        let text = |count: u32| format!("{}{thread}{}", cpu(6e8, 0.0, 4e8), requests(count));
        let late = |text: String| text.replace("[1000000]", "[20000000]");
        assert!(silent(&RULE, &late(text(900))).contains("of the time that clients waited"));
        found(&RULE, &late(text(100)));
        assert!(silent(&RULE, &text(100)).contains("99 % of its answers came within 1 ms"));
    }

    #[test]
    fn noise_and_bystanders() {
        silent(&RULE, &format!("{}thread pid=1 tid=1 wall_ns=1e9 cpu_ns=9e8", cpu(9e8, 5e7, 5e7)));
        // Somebody else's CPU time was stolen; the target slept.
        silent(&RULE, &format!("{}thread pid=1 tid=1 wall_ns=1e9 cpu_ns=1e7 blocked_ns=99e7", cpu(6e8, 0.0, 4e8)));
        let noisy_neighbour = "thread pid=1 tid=1 wall_ns=1e9 cpu_ns=3e8 run_queue_ns=7e8";
        assert!(silent(&RULE, &format!("{}{noisy_neighbour}", cpu(1e9, 0.0, 0.0))).starts_with("0 % of the time"));
    }

    #[test]
    fn without_counters() {
        gap(&RULE, "");
        gap(&RULE, "thread pid=1 tid=1 wall_ns=1e9 cpu_ns=3e8 run_queue_ns=7e8");
        silent(&RULE, "thread pid=1 tid=1 wall_ns=1e9 cpu_ns=3e8 blocked_ns=7e8");
        gap(&RULE, &cpu(6e8, 0.0, 4e8));
    }
}
