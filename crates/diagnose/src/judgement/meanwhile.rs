// SPDX-License-Identifier: Apache-2.0
//! What threads do while something that they should take waits for them.

use crate::answer::Gap;
use crate::case::Case;
use crate::facts::stacks::Stacks;
use crate::facts::waiting::Waiting;
use crate::ledger::threads::{ThreadLedger, Threads};
use crate::phrases::chain::links;
use crate::statistics::share;
use crate::verdict::Link;
use crate::wording::percent;

/// Of its time, with a CPU or waiting for one: then that is what it does.
pub(crate) const BUSY: f64 = 0.6;

/// Of its time, in one kind of wait: less does not say what it does.
const TELLS: f64 = 0.1;

/// In words, and as the links of a chain.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meanwhile {
    /// `api/7 had or wanted a CPU for 97 % of its time`; empty = not seen.
    pub words: String,
    /// The same, on to where it ends.
    pub links: Vec<Link>,
}

/// Of the first of these threads; if none is known, of the one that is most at work, or most asleep.
pub(crate) fn of(case: &Case, threads: &[(u32, u32)]) -> Result<Meanwhile, Gap> {
    let (waiting, ledger) = (case.fact::<Waiting>()?, case.fact::<Threads>()?);
    let known = threads.first().and_then(|&(pid, tid)| ledger.thread(pid, tid));
    let sleeper = || waiting.sleepers.first().and_then(|sleeper| ledger.thread(sleeper.pid, sleeper.tid));
    let at_work = || ledger.threads.iter().max_by(|a, b| a.lines.demand_ns().total_cmp(&b.lines.demand_ns()));
    let thread = known.or_else(|| busiest(&ledger)).or_else(sleeper).or_else(at_work);
    let Some(thread) = thread else { return Ok(Meanwhile::default()) };
    let name = format!("{}/{}", thread.comm, thread.pid);
    let part = |ns: f64| percent(share(ns, thread.lines.wall_ns));
    let demand = thread.lines.demand_ns();
    if is_busy(thread) {
        let words = format!("{name} had or wanted a CPU for {} of its time", part(demand));
        return Ok(Meanwhile { words, links: vec![link(name, "has or wants a CPU".into(), demand)] });
    }
    let tells = |ns: f64| share(ns, thread.lines.wall_ns) >= TELLS;
    let chain = waiting.chains.iter().find(|chain| chain.links[0].who.name() == name && tells(chain.ns));
    let asleep = waiting.sleepers.iter().find(|sleeper| sleeper.tid == thread.tid && tells(sleeper.slept_ns));
    match (asleep, chain) {
        (Some(sleeper), chain) if chain.is_none_or(|chain| chain.ns <= sleeper.slept_ns) => {
            let words = format!("{name} slept for {} of its time, in {}", part(sleeper.slept_ns), sleeper.call);
            Ok(Meanwhile { words, links: vec![link(name, format!("{} (asleep)", sleeper.call), sleeper.slept_ns)] })
        }
        (_, Some(chain)) => {
            let call = chain.links[0].who.call_words();
            let words = format!("{name} waited in {call} for {} of its time", part(chain.ns));
            Ok(Meanwhile { words, links: links(chain, &*case.fact::<Stacks>()?) })
        }
        _ => Ok(Meanwhile { words: not_at_work(&name, thread), links: Vec::new() }),
    }
}

fn not_at_work(name: &str, thread: &ThreadLedger) -> String {
    let at_work = share(thread.lines.demand_ns(), thread.lines.wall_ns);
    format!("{name} was at work for {} of its time, and waited for the rest", percent(at_work))
}

fn link(who: String, waits_on: String, ns: f64) -> Link {
    Link { who, waits_on, seconds: ns / 1e9, stack: Vec::new() }
}

fn is_busy(thread: &ThreadLedger) -> bool {
    share(thread.lines.demand_ns(), thread.lines.wall_ns) >= BUSY
}

fn busiest(ledger: &Threads) -> Option<&ThreadLedger> {
    let busy = ledger.threads.iter().filter(|thread| is_busy(thread));
    busy.max_by(|a, b| a.lines.demand_ns().total_cmp(&b.lines.demand_ns()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    fn meanwhile(cpu_ns: u64, threads: &[(u32, u32)]) -> Meanwhile {
        let text = format!(
            "meta host.arch=x86_64 length_ns=1e9 target.pids=[1]
             frame id=1 symbol=hrtimer_wakeup module=kernel kind=kernel
             stack id=1 frames=[1]
             thread t_ns=1e9 pid=1 tid=2 comm=api wall_ns=1e9 cpu_ns={cpu_ns} blocked_ns={}
             wakeup t_ns=900e6 pid=1 tid=2 comm=api wait_ns=20e6 blocked_ns=800e6 syscall=230 context=interrupt waker_stack=1",
            1_000_000_000 - cpu_ns
        );
        of(&Case::new(&parse(&text).unwrap()), threads).unwrap()
    }

    #[test]
    fn on_a_cpu_or_asleep() {
        let asleep = meanwhile(100_000_000, &[(1, 2)]);
        assert_eq!(asleep.words, "api/1 slept for 80 % of its time, in clock_nanosleep");
        assert_eq!(asleep.links[0].waits_on, "clock_nanosleep (asleep)");
        assert_eq!(meanwhile(100_000_000, &[]).words, asleep.words, "nobody is known: the one that sleeps");
        assert!(meanwhile(900_000_000, &[]).words.contains("had or wanted a CPU for 90 %"));
    }
}
