// SPDX-License-Identifier: Apache-2.0
//! Everything that the service may use is full of its own, spread-out work. Accuses nobody.

use recording::counters::snmp;
use recording::tables;

use super::{Check, Rule, Statement};
use crate::answer::Gap;
use crate::case::Case;
use crate::facts::calls::Calls;
use crate::facts::limits::Limits;
use crate::facts::profile::Profile;
use crate::facts::stacks::Stacks;
use crate::judgement::full::{Full, at_capacity};
use crate::judgement::idle_worker;
use crate::remarks;
use crate::runtimes::Part;
use crate::runtimes::interpreters::Interpreter;
use crate::statistics::{ratio, share};
use crate::wording::{count, percent, seconds};

pub(super) static RULE: Rule =
    Rule { cause: "at-capacity", explain: explain!("at-capacity"), check: Check::Neutral(check) };

fn check(case: &Case, _: &[Gap]) -> Option<Statement> {
    let limits = case.fact::<Limits>().ok()?;
    let full = at_capacity(&limits)?;
    let costs = costs(case);
    let top = if costs.is_empty() { String::new() } else { format!(" Largest costs: {}.", costs.join(", ")) };
    let operation = per_operation(case, limits.cores).map_or(String::new(), |o| format!(" That is {o}."));
    let remarks = remarks::at_capacity(case);
    let way = way_out(case, &full);
    let advice = remarks.iter().find_map(|r| r.advice.clone());
    // Where something else is known to be in the way, the usual way out is none.
    let more = if advice.is_some() { String::new() } else { way.detail + " " };
    let detail =
        format!("{more}{operation}{top}{}{}", remarks::details(&remarks), interpreted(case).unwrap_or_default());
    Some(Statement {
        headline: format!(
            "at its CPU limit, {} {} busy{}{}",
            full.what,
            percent(full.utilization),
            way.besides,
            remarks::headlines(&remarks)
        ),
        advice: advice.unwrap_or(way.advice),
        detail: detail.trim().replace("  ", " "),
    })
}

/// How more work could be done.
struct WayOut {
    /// For the headline.
    besides: &'static str,
    advice: String,
    /// The same in sentences.
    detail: String,
}

/// Of a full thread that reads and writes nothing.
fn beside_others(interpreter: Option<&Interpreter>) -> WayOut {
    let lock = interpreter.map_or(String::new(), |i| {
        format!(" {} runs one thread of a process at a time, so the others have to wait for it.", i.language)
    });
    WayOut {
        besides: ", and it reads and writes nothing itself",
        advice: "make what that thread computes cheaper, or move it to a process of its own".into(),
        detail: format!(
            "The full thread was not seen to read or write anything: it works for the threads that do, or beside them.{lock} \
             If what it computes belongs to no request, move it to a process of its own; else make it cheaper."
        ),
    }
}

fn way_out(case: &Case, full: &Full) -> WayOut {
    let way = |advice: String, detail: String| WayOut { besides: "", advice, detail };
    let interpreter = full.interpreter(case);
    let idle = full.thread().and_then(|(pid, _)| idle_worker::beside(case, pid));
    match interpreter {
        _ if let Some((pid, comm)) = &idle => way(
            format!("spread its connections: its other worker {comm}/{pid} has next to nothing to do"),
            format!(
                "{comm} (pid {pid}) listens at the same place and is idle, and more workers would be as well: connections stay with whoever \
                 took them. Have clients close theirs now and then, or deal them out by who is free (SO_REUSEPORT, fewer accepts at once)."
            ),
        ),
        _ if full.does_not_serve(case) => beside_others(interpreter),
        Some(i) if !full.certain || !full.threads.is_empty() => way(
            format!("spread the work over {}, or make it cheaper", i.spread),
            format!(
                "{} runs one thread of a process at a time: more threads or CPUs for it will not help. Spread the work over \
                 {}, or make each operation cheaper.",
                i.language, i.spread
            ),
        ),
        _ if !full.certain => way(
            "more CPUs will not help: it seems to run one thread at a time".into(),
            "More CPUs will not help while one thread runs at a time: a lock, or an interpreter's, may be why, or a runtime that may use one CPU \
             (GOMAXPROCS=1).".into(),
        ),
        _ if full.is_quota => way(
            "raise the CPU quota, or make each operation cheaper".into(),
            "Raise the CPU quota of its cgroup, or make each operation cheaper.".into(),
        ),
        _ if full.threads.is_empty() => more_cpus(case),
        _ => way(
            "spread the work over more threads, or make it cheaper".into(),
            "Spread the work over more threads or processes, or make each operation cheaper.".into(),
        ),
    }
}

fn more_cpus(case: &Case) -> WayOut {
    let (advice, detail) = match is_of_one_thread(case) {
        true => (
            "add CPUs and threads or processes that use them, or make each operation cheaper",
            "One thread does nearly all of the work: more CPUs help where others share it, as a runtime's do once they may use more. Or make \
             each operation cheaper.",
        ),
        false => (
            "add CPUs, or make each operation cheaper",
            "Add CPUs, or make each operation cheaper; no quota or other process was found in the way.",
        ),
    };
    WayOut { besides: "", advice: advice.into(), detail: detail.into() }
}

/// Of the target's CPU time, in one thread: the others are no help.
const NEARLY_ALL: f64 = 0.9;

fn is_of_one_thread(case: &Case) -> bool {
    case.fact::<Limits>().is_ok_and(|limits| limits.threads.iter().any(|thread| thread.of_target >= NEARLY_ALL))
}

/// Where an interpreter's loop is a good part of the time, its own language can see further.
fn interpreted(case: &Case) -> Option<String> {
    let (profile, stacks) = (case.fact::<Profile>().ok()?, case.fact::<Stacks>().ok()?);
    let total = profile.total.samples as f64;
    let functions = profile.functions(&stacks, |_| true);
    let hot = functions.iter().find(|f| f.part == Part::Interpreter && f.credited as f64 >= 0.2 * total)?;
    Some(format!(
        " {} runs the program's own functions: look into it in its own language (py-spy, python -X perf, node --perf-basic-prof).",
        hot.name
    ))
}

/// CPU time of one useful call, else of one packet (TCP segment) received in the target's network namespace.
fn per_operation(case: &Case, cores: f64) -> Option<String> {
    let calls = case.fact::<Calls>().ok()?;
    let received: f64 = calls
        .counted
        .values()
        .filter(|c| matches!(c.family, crate::syscall::Family::Receive | crate::syscall::Family::Accept))
        .map(|c| c.found as f64)
        .sum();
    let each = ratio(received * 1e9, calls.windows.counted_ns);
    if each >= 1.0 {
        return Some(format!(
            "{} of CPU time for each call that received something, {} a second",
            seconds(cores / each),
            count(each)
        ));
    }
    let counters = case.fact::<crate::facts::counters::Counters>().ok()?;
    let segments = ratio(counters.grew(snmp::IN_SEGS)?, case.seconds());
    (segments >= 1.0).then(|| {
        format!(
            "{} of CPU time for each packet that arrived by TCP, {} a second by the kernel's counter InSegs (its network \
             namespace's, acknowledgements included: a small request is one or two)",
            seconds(cores / segments),
            count(segments)
        )
    })
}

/// The five largest costs: functions by credited samples, kernel work by system call.
fn costs(case: &Case) -> Vec<String> {
    let (Ok(profile), Ok(stacks)) = (case.fact::<Profile>(), case.fact::<Stacks>()) else { return Vec::new() };
    let mut all: Vec<(String, u64)> =
        profile.functions(&stacks, |_| true).into_iter().map(|f| (f.name, f.credited)).collect();
    let mut kernel = std::collections::BTreeMap::<i32, u64>::new();
    for row in case.recording.rows::<tables::Sample>().iter().filter(|s| s.kernel) {
        *kernel.entry(row.syscall).or_default() += u64::from(row.weight.max(1));
    }
    all.extend(kernel.into_iter().map(|(number, samples)| {
        (
            if number < 0 { "kernel outside calls".to_string() } else { format!("kernel in {}", case.syscall(number)) },
            samples,
        )
    }));
    all.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    let total = profile.total.samples as f64;
    let costs = all.into_iter().take(5).filter(|(_, n)| *n > 0);
    costs.map(|(name, n)| format!("{name} {}", percent(share(n as f64, total)))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::asking::stated;
    use super::*;

    fn cpus(busy: f64) -> String {
        let mut text =
            "meta host.arch=x86_64 length_ns=1e9 target.allowed_cpus=[0,1] target.sample_hz=1000\n".to_string();
        for cpu in ["cpu0", "cpu1"] {
            for (name, value) in [("user_ns", (busy * 1e9).round()), ("idle_ns", ((1.0 - busy) * 1e9).round())] {
                text += &format!(
                    "counter source=proc/stat entity={cpu} name={name} value=0\ncounter t_ns=1e9 source=proc/stat entity={cpu} name={name} value={value}\n"
                );
            }
        }
        text
    }

    fn thread(tid: u32, cpu: f64, queue: f64) -> String {
        format!(
            "thread t_ns=1e9 pid=1 tid={tid} comm=worker wall_ns=1e9 cpu_ns={} run_queue_ns={} blocked_ns={}\n",
            (cpu * 1e9).round(),
            (queue * 1e9).round(),
            ((1.0 - cpu - queue) * 1e9).round()
        )
    }

    #[test]
    fn allowed_cpus_are_full() {
        let text = cpus(0.98)
            + &thread(1, 0.85, 0.03)
            + &thread(2, 0.85, 0.03)
            + "call_window id=1 kind=results length_ns=1e8\ncall window=1 pid=1 tid=1 syscall=45 result=64 count=10000
               sample pid=1 tid=1 kernel=true syscall=44 weight=30\nsample pid=1 tid=1 stack=9 weight=70
               frame id=1 symbol=parse module=svc kind=native\nstack id=9 frames=[1]";
        let s = stated(&RULE, &text, &[]).unwrap();
        assert!(s.headline.contains("the CPUs it may use are 98 % busy"), "{}", s.headline);
        assert!(
            s.detail.contains("17 µs of CPU time for each call that received something, 100 thousand a second"),
            "{}",
            s.detail
        );
        assert!(s.detail.contains("Largest costs: parse 70 %, kernel in sendto 30 %."), "{}", s.detail);
    }

    #[test]
    fn more_cpus_alone_do_not_help_one_thread() {
        let pinned = cpus(0.98).replace("[0,1]", "[0]");
        let s = stated(&RULE, &(pinned.clone() + &thread(1, 0.95, 0.03) + &thread(2, 0.02, 0.0)), &[]).unwrap();
        assert!(s.advice.starts_with("add CPUs and threads or processes"), "{s:?}");
        let two = stated(&RULE, &(pinned + &thread(1, 0.45, 0.4) + &thread(2, 0.45, 0.4)), &[]).unwrap();
        assert!(two.advice.starts_with("add CPUs"), "{two:?}");
    }

    #[test]
    fn one_thread_is_the_service() {
        let s = stated(&RULE, &(cpus(0.5) + &thread(1, 0.93, 0.05) + &thread(2, 0.02, 0.0)), &[]).unwrap();
        assert!(s.headline.contains("thread worker (tid 1) is 98 % busy"), "{}", s.headline);
        assert!(s.advice.contains("more threads"));
    }

    #[test]
    fn not_full_not_ours_or_mostly_waiting() {
        assert_eq!(stated(&RULE, &(cpus(0.7) + &thread(1, 0.6, 0.0)), &[]), None);
        assert_eq!(stated(&RULE, &(cpus(1.0) + &thread(1, 0.3, 0.0)), &[]), None);
        assert_eq!(stated(&RULE, &(cpus(1.0) + &thread(1, 0.3, 0.7)), &[]), None);
        // A full background thread of a service that does its work elsewhere.
        let spread: String = (2..6).map(|t| thread(t, 0.5, 0.0)).collect();
        assert_eq!(stated(&RULE, &(cpus(0.8) + &thread(1, 0.95, 0.0) + &spread), &[]), None);
        assert_eq!(stated(&RULE, "", &[]), None);
    }

    #[test]
    fn full_workers_on_a_machine_with_room() {
        let s = stated(&RULE, &(cpus(0.6) + &thread(1, 0.97, 0.0) + &thread(2, 0.96, 0.0)), &[]).unwrap();
        assert!(s.headline.contains("its 2 busiest threads are each 96 % busy"), "{}", s.headline);
    }

    #[test]
    fn code_without_names_makes_it_less_certain() {
        let full = cpus(0.98) + &thread(1, 0.95, 0.03) + &thread(2, 0.95, 0.03);
        let jit =
            "frame id=1 module=\"[jit]\" kind=jit offset=4096\nframe id=2 symbol=node::Start module=node kind=native
            stack id=1 frames=[1,2]\nsample pid=1 tid=1 stack=1 weight=100\n";
        let s = stated(&RULE, &(full.clone() + jit), &[]).unwrap();
        assert!(s.headline.ends_with("; 100 % of it in JIT-compiled code without names"), "{}", s.headline);
        assert!(s.detail.contains("less certain than usual") && s.detail.contains("--perf-basic-prof"), "{}", s.detail);
        let named = full + &jit.replace("kind=jit offset=4096", "kind=jit symbol=rank");
        let s = stated(&RULE, &named, &[]).unwrap();
        assert!(!s.headline.contains("names") && !s.detail.contains("certain"), "{}", s.detail);
    }

    #[test]
    fn children_that_are_the_work_are_named() {
        let text = cpus(0.98)
            + &thread(1, 0.5, 0.0)
            + "thread t_ns=1e9 comm=expr instances=700 wall_ns=2e9 cpu_ns=14e8 blocked_ns=6e8
               process comm=expr instances=700";
        let s = stated(&RULE, &text, &[]).unwrap();
        assert!(s.headline.ends_with("; it starts 700 processes a second, 74 % of its CPU time"), "{}", s.headline);
        assert!(s.advice.starts_with("start fewer processes") && s.detail.contains("(expr)"), "{}", s.detail);
    }

    #[test]
    fn the_unit_of_work_is_in_words() {
        let packets = "counter source=proc/net/snmp entity=Tcp name=InSegs value=0
            counter t_ns=1e9 source=proc/net/snmp entity=Tcp name=InSegs value=20000\n";
        let s = stated(&RULE, &(cpus(0.98) + packets + &thread(1, 0.95, 0.0) + &thread(2, 0.95, 0.0)), &[]).unwrap();
        let words = "That is 95 µs of CPU time for each packet that arrived by TCP, 20 thousand a second by the kernel's counter InSegs";
        assert!(s.detail.contains(words), "{}", s.detail);
    }

    #[test]
    fn a_full_quota() {
        let quota = "counter source=cgroup/cpu entity=/a name=quota_ns value=5e7\ncounter source=cgroup/cpu entity=/a name=period_ns value=1e8
            counter source=cgroup/cpu entity=/a name=usage_ns value=0\ncounter t_ns=1e9 source=cgroup/cpu entity=/a name=usage_ns value=48e7\n";
        let s = stated(&RULE, &(cpus(0.3) + quota + &thread(1, 0.48, 0.0)), &[]).unwrap();
        assert!(s.headline.contains("its CPU quota is 96 % busy"), "{}", s.headline);
        assert!(s.advice.starts_with("raise the CPU quota"), "{s:?}");
        assert_eq!(
            stated(&RULE, &(cpus(0.3) + quota + &thread(1, 0.1, 0.0)), &[]),
            None,
            "others of its group fill it"
        );
    }
}
