// SPDX-License-Identifier: Apache-2.0
//! A full thread whose event loop asks with timeout 0 and finds nothing, while most of its time goes into what the
//! loop runs in between. Whether that is work or a loop of callbacks that queue each other cannot be told from
//! outside: no accusation, but nobody should take it for honest work unasked.

use super::Remark;
use crate::case::Case;
use crate::facts::limits::Limits;
use crate::facts::polling::{Polling, Spin};
use crate::statistics::{ratio, share};

/// Samples that must show timeouts, and results.
const MIN_GLIMPSES: f64 = 10.0;

/// Of these, with timeout 0, and empty.
const NEARLY_ALL: f64 = 0.8;

/// Of the target's CPU time: a side job is not what the verdict is about.
const MOST: f64 = 0.5;

/// What there is to say about the event loop of the busiest thread.
pub(crate) fn remark(case: &Case) -> Option<Remark> {
    let (polling, limits) = (case.fact::<Polling>().ok()?, case.fact::<Limits>().ok()?);
    let all_ns = limits.cores * case.length_ns();
    let spin = polling.threads.iter().find(|s| ratio(s.cpu_ns, all_ns) >= MOST && asks_in_vain(s))?;
    let l = spin.event_loop?;
    Some(Remark {
        headline: format!("the event loop ({}) never waits", l.name),
        advice: Some(format!("see whether its queued work is real: look for {}", l.briefly)),
        detail: format!(
            "{} asks with timeout 0 {}, and {} finds nothing each time. If what it runs in between is work, the thread is \
             at capacity: spread it over more threads or processes. If not, it polls in vain: look for {}; {}.",
            l.name, l.because, spin.syscall, l.look_for, l.found_by
        ),
    })
}

fn asks_in_vain(s: &Spin) -> bool {
    let g = &s.sampled;
    let nearly_all = |part: f64, of: f64| of >= MIN_GLIMPSES && share(part, of) >= NEARLY_ALL;
    let found_little = s.counted.as_ref().is_none_or(|a| a.empty_share() >= NEARLY_ALL && a.unconsumed == 0.0);
    nearly_all(g.zero, g.timeouts) && nearly_all(g.empty, g.results) && found_little
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    /// A thread of 100 % that spends 4 % of it in epoll_wait, the rest in the interpreter.
    fn asyncio(timeout: u32, result: u32, caller: &str) -> Option<Remark> {
        let text = format!(
            "meta host.arch=x86_64 length_ns=10e9 target.sample_hz=100
             thread t_ns=10e9 pid=1 tid=1 comm=app wall_ns=10e9 cpu_ns=10e9
             frame id=1 symbol=ep_poll module=kernel kind=kernel\nframe id=2 symbol=epoll_wait module=libc.so.6 kind=native
             frame id=3 symbol={caller} module=app kind=native
             stack id=1 frames=[1,2,3]\nstack id=2 frames=[3]
             sample pid=1 tid=1 kernel=true syscall=232 args=[4,9,1,{timeout},0,0] stack=1 weight=40
             sample pid=1 tid=1 syscall=232 result={result} stack=2 weight=20
             sample pid=1 tid=1 syscall=-1 stack=2 weight=940"
        );
        remark(&Case::new(&parse(&text).unwrap()))
    }

    #[test]
    fn a_loop_that_never_waits_is_asked_about() {
        let r = asyncio(0, 0, "_PyEval_EvalFrameDefault").unwrap();
        assert_eq!(r.headline, "the event loop (Python) never waits");
        assert!(r.detail.contains("finds nothing each time"), "{}", r.detail);
        assert!(r.advice.is_some_and(|advice| advice.contains("call_soon") && advice.len() < 110));
    }

    #[test]
    fn one_that_waits_or_finds_is_not() {
        assert!(asyncio(1000, 0, "_PyEval_EvalFrameDefault").is_none(), "it waits");
        assert!(asyncio(0, 3, "_PyEval_EvalFrameDefault").is_none(), "it finds events");
        assert!(asyncio(0, 0, "own_loop").is_none(), "no loop in general use");
    }
}
