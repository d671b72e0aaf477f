// SPDX-License-Identifier: Apache-2.0
//! A busy poll in words: who asks, and what to do about it.

use super::{ALL_WASTE, MIN_EMPTY};
use crate::case::Case;
use crate::facts::polling::Spin;
use crate::runtimes::event_loops::EventLoop;
use crate::statistics::share;
use crate::syscall::{Family, family};
use crate::wording::{percent, short};

/// What the threads do, as the verb of a sentence.
pub(super) fn does(unconsumed: bool, threads: usize) -> &'static str {
    match (unconsumed, threads) {
        (true, 1) => "is told of events that nobody takes",
        (true, _) => "are told of events that nobody takes",
        (false, 1) => "asks for events that are not there",
        (false, _) => "ask for events that are not there, each a little",
    }
}

/// What is known about whoever asks.
pub(super) fn besides(s: &Spin) -> String {
    match (not_waiting(s), s.runtime) {
        (Some(l), _) => format!(". {} asks with timeout 0 {}", l.name, l.because),
        (None, Some(r)) => format!(". This is how {} waits", r.runtime),
        (None, None) => String::new(),
    }
}

/// The event loop that asks, where it does not wait because its program always has work queued.
pub(super) fn not_waiting(s: &Spin) -> Option<&'static EventLoop> {
    let counted = s.counted.as_ref();
    let zero = counted.and_then(|a| a.zero_timeout).unwrap_or_else(|| share(s.sampled.zero, s.sampled.timeouts));
    let polls = family(&s.syscall) == Family::Poll && counted.is_none_or(|a| a.unconsumed == 0.0);
    s.event_loop.filter(|_| polls && zero >= MIN_EMPTY)
}

pub(super) fn headline(s: &Spin) -> String {
    match &s.counted {
        Some(a) if s.threads > 1 => format!(
            "{} threads ask in turns: {} of {} calls found nothing",
            s.threads,
            percent(a.empty_share()),
            s.syscall
        ),
        None if s.threads > 1 => format!("{} threads call {} for nothing", s.threads, s.syscall),
        Some(a) if a.unconsumed > 0.0 => format!("{}/{} is told of events that nobody takes", s.comm, s.tid),
        Some(a) => {
            format!("{}/{}: {} of {} calls found nothing", s.comm, s.tid, percent(a.empty_share()), s.syscall)
        }
        None => format!("{}/{} calls {} for nothing", s.comm, s.tid, s.syscall),
    }
}

pub(super) fn advice(s: &Spin) -> String {
    let place = s.callers.first().map_or(String::new(), |c| format!(", see {}", short(c)));
    if s.counted.as_ref().is_some_and(|a| a.unconsumed > 0.0) {
        return format!("take the events or stop asking for them{place}");
    }
    if let Some(l) = not_waiting(s) {
        return format!("find in the program what keeps {} from waiting: {}", l.name, l.briefly);
    }
    if let Some(r) = s.runtime {
        return format!("let {} spin less: see the remedy for the knob", r.runtime);
    }
    if s.threads > 1 {
        return format!("wait for the event itself, or longer{place}");
    }
    match family(&s.syscall) {
        Family::Receive | Family::Accept => format!("wait for readiness instead of asking again{place}"),
        Family::Yield | Family::Sleep => format!("block on the event itself{place}"),
        _ => format!("block until an event or the next deadline{place}"),
    }
}

pub(super) fn name(case: &Case, s: &Spin) -> String {
    let process = &case.recording.meta.target.comm;
    let of = if process.is_empty() || *process == s.comm { String::new() } else { format!(" of {process}") };
    match s.threads {
        1 => format!("Thread {} (tid {}){of}", s.comm, s.tid),
        n => format!("{n} threads like {} (tid {}){of}", s.comm, s.tid),
    }
}

pub(super) fn remedy(s: &Spin, unconsumed: bool) -> String {
    let who = s.callers.first().map_or_else(|| "the caller".to_string(), |c| c.to_string());
    if unconsumed {
        return format!(
            "Let {who} take the events or stop asking for them: drop the interest in EPOLLOUT while there is nothing to \
             write, close descriptors that report EPOLLHUP or EPOLLERR, or register them edge-triggered."
        );
    }
    if let Some(l) = not_waiting(s) {
        return format!(
            "{who} is not the place to mend: {} asks with timeout 0 {}. Look in the program for {}, and let it wait for what \
             it is waiting for (a callback, a promise, a condition) or give the timer a real delay; {}.",
            l.name, l.because, l.look_for, l.found_by
        );
    }
    if let Some(r) = s.runtime {
        return format!(
            "This is how {} waits for work for a while before its threads sleep. To spin less, {}. Its price is a little more \
             delay when work comes.",
            r.runtime, r.knob
        );
    }
    if s.threads > 1 {
        return format!(
            "Let {who} wait for the event itself, without a timeout or with a longer one: each of {} threads wakes to find \
             nothing, and the sum of it is the cost. Fewer threads, or one that waits for all of them (epoll), wake less often.",
            s.threads
        );
    }
    let chosen = " If it polls by choice, on a CPU of its own, to answer in microseconds, then this is its price.";
    let mend = by_call(s, &who);
    if s.wasted_share() >= ALL_WASTE.0 { mend + chosen } else { mend }
}

/// What to do instead of one call.
fn by_call(s: &Spin, who: &str) -> String {
    match family(&s.syscall) {
        Family::Receive | Family::Accept => format!(
            "Let {who} wait for readiness with epoll or poll, or use a blocking {}, instead of asking again after EAGAIN; \
             close connections whose peer is gone (a read of 0 bytes).",
            s.syscall
        ),
        Family::Yield => format!(
            "Let {who} block on a futex, a condition variable or an eventfd instead of yielding in a loop. Spinning first \
             for a few microseconds is fine."
        ),
        Family::Sleep => {
            format!("Let {who} wait for the event itself (futex, eventfd, epoll) instead of sleeping for moments.")
        }
        _ => format!(
            "Let {who} pass the time to its next deadline, or -1, as the timeout of {} instead of 0: then it wakes for \
             events only. A floor of 1 ms is the quick cure; its price is up to 1 ms of added delay and up to 1000 \
             wake-ups a second.",
            s.syscall
        ),
    }
}
