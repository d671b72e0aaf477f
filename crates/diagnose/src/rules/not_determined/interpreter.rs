// SPDX-License-Identifier: Apache-2.0
//! Requests that stand before the lock of their interpreter. Who holds it is known, and whether what that thread computes
//! belongs to requests is not: nobody is accused.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::Statement;
use crate::case::Case;
use crate::facts::limits::Limits;
use crate::facts::profile::Profile;
use crate::facts::requests::LATE_NS;
use crate::facts::serving::Serving;
use crate::facts::stacks::Stacks;
use crate::judgement::full::is_at_capacity;
use crate::judgement::hung;
use crate::judgement::paths::{SEVERAL, before_interpreter, telling};
use crate::remarks::hidden_queues;
use crate::runtimes::{Part, is_glue};
use crate::statistics::{ratio, share};
use crate::walk::Walk;
use crate::walk::paths::RequestPaths;
use crate::wording::{count, percent, seconds};

/// Of the time of requests: with less, the rest of it is the question.
const A_THIRD: f64 = 1.0 / 3.0;

/// Of the CPU time while threads stood before it, and of a thread's samples: then one holder, and one function, stands out.
const MOST: f64 = 0.5;

/// Functions through which an interpreter calls others.
const CALLS: &[&str] = &["ectorcall", "PyObject_Call", "_PyObject_", "_PyFunction", "PyEval_", "vm_call", "vm_sendish"];

/// The statement about them, if those that are felt stood there for a good part of their time.
pub(super) fn check(case: &Case) -> Option<Statement> {
    if is_at_capacity(case) {
        return None;
    }
    let (walk, paths) = (case.fact::<Walk>().ok()?, telling(case).or_else(|| standing(case))?);
    let (lock, main) = (walk.interpreter_lock()?, paths.main()?);
    let mean = |requests: u64, ns: f64| ratio(ns, requests as f64);
    let all_long = mean(main.half.requests, main.half.ns) >= LATE_NS;
    let (whose, group) = if all_long { ("requests", &main.all) } else { ("slow requests", &main.slow) };
    let (mean_ns, part) = (mean(group.requests, group.ns), before_interpreter(&walk, group));
    if group.requests < SEVERAL || mean_ns < LATE_NS || part < A_THIRD {
        return None;
    }
    let holder = holder(case, &walk);
    let pid = hidden_queues::who_answers(case).map_or("PID".to_string(), |pid| pid.to_string());
    let look = lock.look.replace("PID", &pid);
    Some(Statement {
        headline: format!("{whose} stand before {} for {} of their time; {}", lock.name, percent(part), holder.words),
        advice: format!(
            "look at what runs meanwhile: `{look}`; {}",
            if holder.is_one {
                "move that to a process of its own"
            } else {
                "more processes, not threads, share that load"
            }
        ),
        detail: format!(
            "Of {} requests that were followed from end to end, {whose} ({}) took {} on average; for {} of that their thread was \
             ready to go on, but had to stand before {}, which lets one thread of a process run at a time. {}{} Whether what it \
             computes meanwhile belongs to requests is not seen: nobody is accused.",
            count(main.all.requests as f64),
            count(group.requests as f64),
            seconds(mean_ns / 1e9),
            percent(part),
            lock.name,
            holder.detail,
            queued(case)
        ),
    })
}

/// The paths, although many took longer than any that was followed to its end: where about as many threads stand in futex as requests
/// stand in the target, the others stand there too.
fn standing(case: &Case) -> Option<Arc<RequestPaths>> {
    hung::as_many_in_futex(case)?;
    case.fact::<RequestPaths>().ok()
}

/// Who held it while others stood before it.
struct Holder {
    /// For the headline.
    words: String,
    /// In sentences.
    detail: String,
    /// One thread, most of the time.
    is_one: bool,
}

fn holder(case: &Case, walk: &Walk) -> Holder {
    let all: f64 = walk.had_interpreter.values().sum();
    let most = walk.had_interpreter.iter().max_by(|a, b| a.1.total_cmp(b.1));
    let Some((&thread, part)) = most.map(|(thread, ns)| (thread, share(*ns, all))).filter(|(_, part)| *part >= MOST)
    else {
        let place = hottest(case, None).map_or(String::new(), |name| format!(", most of all in {name}"));
        return Holder {
            words: format!("its threads hold it in turn{place}"),
            detail: format!("Its threads held it in turn, on a CPU{place}."),
            is_one: false,
        };
    };
    let limits = case.fact::<Limits>().ok();
    let comm = limits.and_then(|l| l.threads.iter().find(|t| (t.pid, t.tid) == thread).map(|t| t.comm.clone()));
    let name = format!("thread {} (tid {})", comm.unwrap_or_default(), thread.1);
    let place = hottest(case, Some(thread)).map_or(String::new(), |name| format!(", in {name}"));
    let idle_handed = case.fact::<Serving>().is_ok_and(|serving| !serving.has(thread));
    let beside = if idle_handed { ", and it was not seen to read or write anything" } else { "" };
    Holder {
        words: format!("mostly {name} ran meanwhile{place}"),
        detail: format!("While threads stood there, {} of its CPU time was of {name}{place}{beside}.", percent(part)),
        is_one: true,
    }
}

/// The function that the interpreter called and in which a thread, or all of them, mostly were.
fn hottest(case: &Case, thread: Option<(u32, u32)>) -> Option<String> {
    let (profile, stacks) = (case.fact::<Profile>().ok()?, case.fact::<Stacks>().ok()?);
    let (mut all, mut by) = (0, BTreeMap::<&str, u64>::new());
    for (place, weight) in profile.places.iter().filter(|(p, _)| thread.is_none_or(|t| t == (p.pid, p.tid))) {
        all += weight;
        if let Some(name) = called(&stacks, place.stack) {
            *by.entry(name).or_default() += weight;
        }
    }
    let (name, samples) = by.into_iter().max_by_key(|(_, samples)| *samples)?;
    (share(samples as f64, all as f64) >= MOST).then(|| name.to_string())
}

fn called(stacks: &Stacks, stack: u32) -> Option<&str> {
    let inner: Vec<_> = stacks.user(stack).take_while(|code| code.part != Part::Interpreter).collect();
    let is_call = |symbol: &str| symbol.is_empty() || is_glue(symbol) || CALLS.iter().any(|call| symbol.contains(call));
    inner.into_iter().rev().map(|code| code.symbol.as_str()).find(|symbol| !is_call(symbol))
}

/// That the holder itself had no CPU for a part of the time, if so: then every thread before the lock waited for that too.
fn queued(case: &Case) -> String {
    const WORTH: f64 = 0.25;
    let Ok(waiting) = case.fact::<crate::facts::waiting::Waiting>() else { return String::new() };
    let part = share(waiting.queued_ns, waiting.demand_ns);
    if part < WORTH {
        return String::new();
    }
    format!(" For {} of its CPU demand the target had no CPU: so long the lock stood still as well.", percent(part))
}

#[cfg(test)]
mod tests {
    use super::super::super::asking::stated;
    use super::super::RULE;

    /// 60 requests of 20 ms each, 15 of which their thread stood before a lock while thread 9 computed in `sum`.
    fn requests(lock: &str) -> String {
        let mut text = format!(
            "meta host.arch=x86_64 length_ns=10e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
            process pid=1 listen=[\"tcp 0.0.0.0:80\"]
            thread t_ns=10e9 pid=1 tid=1 comm=web wall_ns=10e9 cpu_ns=2e8 blocked_ns=98e8
            thread t_ns=10e9 pid=1 tid=9 comm=web wall_ns=10e9 cpu_ns=5e9 blocked_ns=5e9
            frame id=1 symbol=pthread_cond_timedwait module=libc.so.6 kind=native
            frame id=2 symbol={lock} module=libpython3.11.so.1.0 kind=native
            frame id=3 symbol=builtin_sum module=libpython3.11.so.1.0 kind=native
            frame id=4 symbol=_PyEval_EvalFrameDefault module=libpython3.11.so.1.0 kind=native
            stack id=1 frames=[1,2,4]\nstack id=2 frames=[3,4]
            sample pid=1 tid=9 stack=2 weight=500
            wait_stack t_ns=1 pid=1 tid=1 comm=web syscall=202 args=[1000,137,0,7] stack=1
            burst t_ns=10e9 length_ns=10e9\n"
        );
        for nth in 0..60 {
            let at = 100 + nth * 50;
            let given = at + 16;
            text += &format!(
                "request t_ns={}e6 role=accepted port=80 pid=1 began_ns={at}e6 began_tid=1 read_ns={at}e6 ended_tid=1
                 wakeup t_ns={}e6 pid=1 tid=1 comm=web wait_ns=30e6 blocked_ns=30e6 since_ns=0 waits=1 syscall=0 family=2 local_port=80 remote_port=5 context=interrupt
                 wakeup t_ns={given}e6 pid=1 tid=1 comm=web wait_ns=15e6 blocked_ns=15e6 since_ns={at}e6 waits=1 syscall=202 args=[1004,137,0,7] context=thread waker_pid=1 waker_tid=9 waker_comm=web waker_syscall=202\n",
                at + 20,
                at - 1,
            );
            // The one that computes sleeps from then on for a while.
            text += &format!(
                "wakeup t_ns={}e6 pid=1 tid=9 comm=web wait_ns=20e6 blocked_ns=20e6 since_ns={}e6 waits=1 cpu_ns=30e6 syscall=230 context=interrupt\n",
                given + 20,
                given - 30,
            );
        }
        text + "exchange role=accepted port=80 stage=response count=60 sum_ns=1200e6 length_ns=[20000000] counts=[60]"
    }

    #[test]
    fn requests_before_the_interpreters_lock() {
        let said = stated(&RULE, &requests("take_gil"), &[]).unwrap();
        let begins =
            "requests stand before Python's GIL for 75 % of their time; mostly thread web (tid 9) ran meanwhile";
        assert!(said.headline.starts_with(begins) && said.headline.ends_with("in builtin_sum"), "{said:?}");
        assert!(said.advice.contains("`py-spy dump --pid 1`; move that to a process of its own"), "{said:?}");
    }

    #[test]
    fn another_lock_is_another_thing() {
        let other = stated(&RULE, &requests("PyThread_acquire_lock"), &[]);
        assert!(other.is_none_or(|said| !said.headline.contains("GIL")));
    }
}
