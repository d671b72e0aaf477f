// SPDX-License-Identifier: Apache-2.0
//! A thread asks for events that are not there, over and over, and that is what its CPU time is.
//!
//! Decided by what the empty calls and the loop around them cost, never by how many there are:
//! 28,000 empty polls a second that sleep in between use 2 % of a CPU and are nobody's fault.

mod polite;
mod words;

use polite::Room;
use words::{advice, besides, does, headline, name, not_waiting, remedy};

use super::{COULD_BE, Check, Checked, Rule, absent, evidence, found, not_it};
use crate::answer::{Gap, Measured, Reason, Unit, Unseen};
use crate::case::Case;
use crate::facts::limits::Limits;
use crate::facts::polling::{Asked, Glimpsed, Polling, Spin};
use crate::ledger::threads::Threads;
use crate::statistics::{ratio, share};
use crate::syscall::{Family, family};
use crate::verdict::{Evidence, Explains, Finding, Subject};
use crate::wording::{cores, count, percent, plural};

pub(super) static RULE: Rule =
    Rule { cause: "busy-poll", explain: explain!("busy-poll"), check: Check::Accuses(check) };

/// Of the target's CPU time: a quarter is worth a change of the code.
const MIN_SHARE: f64 = 0.25;

/// In CPUs: less than 3 % of one is not worth a finding, however empty the calls (a 1 ms floor
/// costs 1 to 2 %).
const MIN_CORES: f64 = 0.03;

/// In a large service, a thread that does nothing else and costs half a CPU counts whatever its share.
const ALL_WASTE: (f64, f64) = (0.75, 0.5);

/// Four of five asking calls find nothing at once …
const MIN_EMPTY: f64 = 0.8;

/// … and there are five such calls for each that finds something. An edge-triggered loop that
/// reads until EAGAIN, or a proxy with a full run queue, makes one or two.
const MIN_PER_USEFUL: f64 = 5.0;

/// Of the thread's CPU time, where the call has nothing to find (a yield, a tiny sleep): a worker that
/// does its round and sleeps a little is a timer, not a poll. Spinning threads are above 90 %.
const MIN_PURE: f64 = 0.75;

/// A language runtime's own spin is its way to wait, with a knob: worth a finding only where it is most of the CPU time,
/// and half a CPU or more. An idle Erlang node was measured at 0.05 to 0.14 cores, 30 % of its time.
const RUNTIME: (f64, f64) = (0.5, 0.5);

/// Many threads that each ask a little: most of the CPU time, and a quarter of a CPU. A pool of a hundred that looks
/// around ten times a second is far below.
const TOGETHER: (f64, f64) = (0.5, 0.25);

/// Samples that registers must show before they alone may accuse.
const MIN_GLIMPSES: f64 = 10.0;

fn check(case: &Case) -> Checked {
    let limits = case.fact::<Limits>()?;
    let polling = match case.fact::<Polling>() {
        Ok(polling) => polling,
        Err(_) if limits.cores < MIN_CORES && case.fact::<Threads>().is_ok() => {
            return absent(format!("the target used {}", cores(limits.cores)));
        }
        Err(why) => return Err(why),
    };
    let room = polite::room(case);
    let excused = |s: &Spin| room.is_some() && polite::gives_way(s);
    match convicted(&polling, limits.cores * case.length_ns(), case.length_ns(), &excused) {
        Some((worst, threads, wasted_ns)) => {
            let wasted_cores = ratio(wasted_ns, case.length_ns());
            let part = share(wasted_ns, limits.cores * case.length_ns());
            found(finding(case, worst, threads, wasted_cores, part), headline(worst), advice(worst))
        }
        None => match polling.threads.iter().find(|s| is_suspect(s) && !excused(s)) {
            Some(s) => Err(Gap::new(RULE.cause, Unseen::Undecided, suspicion(s))),
            None => innocent(&polling, limits.cores * case.length_ns(), case.length_ns(), room.as_ref()),
        },
    }
}

/// Who asks in vain, how many threads that is, and what it costs, ns; nobody if that is not worth a word.
fn convicted<'a>(
    polling: &'a Polling,
    all_ns: f64,
    length_ns: f64,
    excused: &dyn Fn(&Spin) -> bool,
) -> Option<(&'a Spin, usize, f64)> {
    let sum = |spins: &[&Spin]| spins.iter().map(|s| s.wasted_ns).sum::<f64>();
    let over =
        |wasted: f64, (part, cores): (f64, f64)| share(wasted, all_ns) >= part && ratio(wasted, length_ns) >= cores;
    let (by_runtime, own): (Vec<&Spin>, Vec<&Spin>) =
        polling.threads.iter().filter(|s| is_spinning(s) && !excused(s)).partition(|s| s.runtime.is_some());
    let all_waste = |s: &&Spin| s.wasted_share() >= ALL_WASTE.0 && ratio(s.wasted_ns, length_ns) >= ALL_WASTE.1;
    if over(sum(&own), (MIN_SHARE, MIN_CORES)) || own.iter().any(all_waste) {
        return Some(match together(polling, &own) {
            Some(site) => (site, own.len().max(site.threads), sum(&own).max(site.wasted_ns)),
            None => (own[0], own.len(), sum(&own)),
        });
    }
    let is_site = |s: &&Spin| {
        is_spinning(s) && !excused(s) && over(s.wasted_ns, if s.runtime.is_some() { RUNTIME } else { TOGETHER })
    };
    if let Some(site) = polling.sites.iter().find(is_site) {
        return Some((site, site.threads, site.wasted_ns));
    }
    over(sum(&by_runtime), RUNTIME).then(|| (by_runtime[0], by_runtime.len(), sum(&by_runtime)))
}

/// The site that spinning threads belong to, if they are most of its threads: then it is told as one.
fn together<'a>(polling: &'a Polling, own: &[&Spin]) -> Option<&'a Spin> {
    let worst = own.first()?;
    let is_there = |s: &&Spin| (s.pid, &s.syscall) == (worst.pid, &worst.syscall);
    let site = polling.sites.iter().find(is_there).filter(|s| is_spinning(s))?;
    (own.iter().filter(|s| is_there(s)).count() * 4 >= site.threads * 3).then_some(site)
}

fn is_spinning(s: &Spin) -> bool {
    let least = if matches!(family(&s.syscall), Family::Yield | Family::Sleep) { MIN_PURE } else { MIN_SHARE };
    if s.wasted_share() < least {
        return false;
    }
    match &s.counted {
        Some(asked) => asked.empty_share() >= MIN_EMPTY && asked.empty_per_useful() >= MIN_PER_USEFUL,
        None => glimpses_agree(&s.sampled, &s.syscall),
    }
}

/// Whether sampled registers alone tell of empty calls that do not wait.
fn glimpses_agree(g: &Glimpsed, syscall: &str) -> bool {
    let zero = g.timeouts < MIN_GLIMPSES || share(g.zero, g.timeouts) >= MIN_EMPTY;
    let empty = g.results >= MIN_GLIMPSES && share(g.empty, g.results) >= MIN_EMPTY;
    zero && (empty || family(syscall) == Family::Yield && g.zero >= MIN_GLIMPSES)
}

/// Registers show timeout 0 on a thread that spends its time there, but nobody counted results.
fn is_suspect(s: &Spin) -> bool {
    s.counted.is_none()
        && s.sampled.results < MIN_GLIMPSES
        && s.sampled.zero >= MIN_GLIMPSES
        && share(s.sampled.zero, s.samples) >= MIN_SHARE
}

fn suspicion(s: &Spin) -> String {
    format!(
        "thread {} (tid {}) spends its time in {} with timeout 0, but no window counted what the calls return; \
         record again for longer, with system call windows allowed",
        s.comm, s.tid, s.syscall
    )
}

/// Nobody polls in vain; `all_ns` is the target's CPU time.
fn innocent(polling: &Polling, all_ns: f64, length_ns: f64, room: Option<&Room>) -> Checked {
    let why = innocence(polling, length_ns, room);
    let of_all = |s: &Spin| format!("{why}; that is {} of the target's CPU time", percent(share(s.wasted_ns, all_ns)));
    let Some(s) = polling.threads.first().filter(|s| s.wasted_ns > 0.0) else { return absent(why) };
    let wasted = ratio(s.wasted_ns, length_ns);
    let could_be = (s.wasted_share() / MIN_SHARE).min(wasted / MIN_CORES) >= COULD_BE;
    let mut needed = match s.runtime {
        // A runtime's own way to wait is judged over all of its threads.
        Some(runtime) => {
            let of_runtime = polling.threads.iter().filter(|other| other.runtime == Some(runtime));
            let all: f64 = of_runtime.map(|other| other.wasted_ns).sum();
            let (part, cores) = (share(all, all_ns), ratio(all, length_ns));
            vec![Measured::new(part, RUNTIME.0, Unit::Share), Measured::new(cores, RUNTIME.1, Unit::Cores)]
        }
        None => {
            vec![
                Measured::new(s.wasted_share(), MIN_SHARE, Unit::Share),
                Measured::new(share(s.wasted_ns, all_ns), MIN_SHARE, Unit::Share),
                Measured::new(wasted, MIN_CORES, Unit::Cores),
            ]
        }
    };
    if let Some(asked) = &s.counted {
        needed.push(Measured::new(asked.empty_share(), MIN_EMPTY, Unit::Share));
        needed.push(Measured::new(asked.empty_per_useful(), MIN_PER_USEFUL, Unit::Calls));
    }
    match Measured::farthest(needed) {
        Some(seen) => not_it(Reason::TooLittle, Some(seen), could_be, of_all(s)),
        None => not_it(Reason::Explained, None, could_be, why),
    }
}

fn innocence(polling: &Polling, length_ns: f64, room: Option<&Room>) -> String {
    let Some(s) = polling.threads.first().filter(|s| s.wasted_ns > 0.0) else {
        return "no thread spends CPU time on calls that find nothing".to_string();
    };
    let calls = s.counted.as_ref().map_or(String::new(), |a| {
        format!(
            ", {} of its {} calls were empty{}, {} for each that found work{}",
            percent(a.empty_share()),
            s.syscall,
            below(a.empty_share(), MIN_EMPTY, "80 %"),
            count(a.empty_per_useful()),
            below(a.empty_per_useful(), MIN_PER_USEFUL, "5")
        )
    });
    let wasted = ratio(s.wasted_ns, length_ns);
    let enough = match below(wasted, MIN_CORES, "0.03") {
        few if !few.is_empty() => few,
        _ => format!(", {} of its CPU time{}", percent(s.wasted_share()), below(s.wasted_share(), MIN_SHARE, "25 %")),
    };
    let own_way = s.runtime.map_or(String::new(), |r| {
        let all: f64 = polling.threads.iter().filter(|s| s.runtime == Some(r)).map(|s| s.wasted_ns).sum();
        format!(
            "; this is how {} waits, {} in all of its threads: to spin less, {}{}",
            r.runtime,
            cores(ratio(all, length_ns)),
            r.knob,
            room.filter(|_| polite::gives_way(s)).map_or(String::new(), Room::words)
        )
    });
    format!("empty calls cost thread {} (tid {}) {} at most{enough}{calls}{own_way}", s.comm, s.tid, cores(wasted))
}

/// The threshold in words, where the value is under it.
fn below(value: f64, threshold: f64, words: &str) -> String {
    if value < threshold { format!(" (under {words})") } else { String::new() }
}

fn finding(case: &Case, s: &Spin, threads: usize, wasted_cores: f64, part: f64) -> Finding {
    let others =
        if threads > s.threads { format!(" (and {} like it)", plural(threads - 1, "thread")) } else { String::new() };
    let caller = if s.callers.is_empty() { String::new() } else { format!("; called from {}", s.callers.join(" <- ")) };
    let unconsumed = s.counted.as_ref().is_some_and(|a| a.unconsumed > 0.0);
    let what = does(unconsumed, s.threads);
    Finding {
        // An event that nobody takes has one witness: the calls that are missing.
        summary: format!(
            "{}{others} {what}: {}, and that is {} of the target's {}{caller}{}",
            name(case, s),
            calls(s),
            cores(wasted_cores),
            cores(case.fact::<Limits>().map_or(0.0, |l| l.cores)),
            besides(s),
        ),
        subject: Subject {
            pid: Some(s.pid),
            tid: Some(s.tid).filter(|_| s.threads == 1),
            comm: Some(s.comm.clone()),
            syscall: Some(s.syscall.clone()),
            // The loop is not the place to mend, and what keeps queueing does not make the call.
            function: s.callers.first().filter(|_| not_waiting(s).is_none()).cloned(),
            ..Subject::default()
        },
        explains: Explains { share: part, of: "on-CPU time".into(), seconds: wasted_cores * case.seconds() },
        evidence: rows(case, s, wasted_cores),
        remedy: remedy(s, unconsumed),
        check: "Run wakewalk again under the same load: the empty calls for each useful one fall to a few, CPU time \
                follows the load, and throughput is unhurt."
            .into(),
        ..RULE.finding(case, if unconsumed { 1 } else { sources(s) })
    }
}

/// Registers and windows are independent of each other.
fn sources(s: &Spin) -> usize {
    usize::from(s.counted.is_some()) + usize::from(seen_in_registers(s))
}

fn seen_in_registers(s: &Spin) -> bool {
    let g = &s.sampled;
    let zero = g.timeouts >= MIN_GLIMPSES && share(g.zero, g.timeouts) >= MIN_EMPTY;
    let empty = g.results >= MIN_GLIMPSES && share(g.empty, g.results) >= MIN_EMPTY;
    zero || empty
}

/// The calls in words, from windows if they saw them.
fn calls(s: &Spin) -> String {
    match &s.counted {
        Some(a) if a.unconsumed > 0.0 => {
            format!("{} {} calls a second find an event, and hardly a call follows", count(a.per_second), s.syscall)
        }
        Some(a) => format!(
            "{} {} calls a second, {} came back at once with nothing",
            count(a.per_second),
            s.syscall,
            percent(a.empty_share())
        ),
        None => format!(
            "{} of the {} results that samples saw were empty",
            percent(share(s.sampled.empty, s.sampled.results)),
            s.syscall
        ),
    }
}

fn rows(case: &Case, s: &Spin, wasted_cores: f64) -> Vec<Evidence> {
    let strace = format!("strace -c -p {}  # slows this thread about a hundred times while it runs", s.tid);
    let trace = format!("perf trace -s -p {} -- sleep 1  # slows it too", s.tid);
    let top = format!("top -H -p {}", s.pid);
    let mut rows = vec![evidence("CPU wasted on empty calls and their loop", wasted_cores, "cores", "under 0.03", top)];
    if let Some(a) = &s.counted {
        rows.extend(counted_rows(a, &s.syscall, &strace));
        rows.push(evidence("useful calls of the whole process", useful(case, s.pid), "calls/s", "", ""));
    }
    let g = &s.sampled;
    if g.timeouts > 0.0 {
        let zero = share(g.zero, g.timeouts) * 100.0;
        rows.push(evidence("sampled calls with timeout 0", zero, "%", "near 0", trace.as_str()));
    }
    if g.results > 0.0 {
        let empty = share(g.empty, g.results) * 100.0;
        rows.push(evidence("sampled results that were empty", empty, "%", "under 50", trace));
    }
    if let Some(switches) = s.voluntary_switches {
        let each = ratio(switches as f64, case.seconds());
        let see = format!("grep voluntary /proc/{}/task/{}/status", s.pid, s.tid);
        rows.push(evidence("times that the thread went to sleep", each, "1/s", "about one for each round", see));
    }
    rows
}

fn counted_rows(a: &Asked, syscall: &str, strace: &str) -> Vec<Evidence> {
    let mut rows = vec![
        evidence(
            &format!("{syscall} and other asking calls"),
            a.per_second,
            "calls/s",
            "about the rate of events",
            strace,
        ),
        evidence("of these empty at once", a.empty_share() * 100.0, "%", "under 50", strace),
        evidence("empty calls for each that found something", a.empty_per_useful(), "calls", "under 5", strace),
    ];
    rows.extend(a.zero_timeout.map(|z| evidence("counted calls with timeout 0", z * 100.0, "%", "near 0", strace)));
    // A few descriptors say which; a hundred say nothing.
    let few = a.descriptors.iter().filter(|(call, ..)| call == syscall && a.descriptors.len() <= 4);
    rows.extend(few.map(|(call, fd, empty)| {
        evidence(&format!("empty share of {call} on descriptor {fd}"), empty * 100.0, "%", "under 50", "")
    }));
    rows
}

fn useful(case: &Case, pid: u32) -> f64 {
    case.fact::<crate::facts::calls::Calls>().map_or(0.0, |c| c.useful_per_second.get(&pid).copied().unwrap_or(0.0))
}

#[cfg(test)]
#[path = "busy_poll/tests.rs"]
mod tests;
