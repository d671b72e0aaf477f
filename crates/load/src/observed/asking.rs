// SPDX-License-Identifier: Apache-2.0
//! What a generator took of CPUs while it asked. Before that it may sleep or warm up, and afterwards wait for the last answers: over all
//! of the recording, one that has no CPU left would look idle, and one that only started slowly full.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use recording::Recording;
use recording::tables::{Exchange, ExchangeWindow, Thread};

use crate::client::{Spent, Taken, Threads};
use crate::slices::HALF_SLICE_NS;

/// Of the time in which it asked: what a thread took is a share of its own life, but of so much at least. One that begins late can be
/// full, and one that computes for a moment (a compiler of a runtime) limits nobody.
const LASTING: f64 = 0.5;

/// What its threads took, and what the one that wanted most is called; none = none of them lived for a second.
pub(super) fn asking<'r>(recording: &'r Recording, responses: &[&Exchange]) -> Option<(&'r str, Threads)> {
    let rows = while_asking(recording, responses);
    let asked = length(&rows);
    let mut threads: BTreeMap<(u32, u32), (&str, Taken)> = BTreeMap::new();
    // Those that lived for less than a second are one row together.
    for row in rows.iter().filter(|row| row.tid != 0) {
        let (comm, taken) = threads.entry((row.pid, row.tid)).or_default();
        *comm = &row.comm;
        taken.spent = taken.spent.and(spent([*row]));
        taken.within += Duration::from_nanos(row.wall_ns);
    }
    let least = asked.mul_f64(LASTING);
    let lasting = threads.into_values().map(|(comm, taken)| (comm, Taken { within: taken.within.max(least), ..taken }));
    let wanted = |taken: &Taken| taken.shares().iter().sum::<f64>();
    let (comm, busiest) = lasting.max_by(|a, b| wanted(&a.1).total_cmp(&wanted(&b.1)))?;
    let all = Taken { spent: spent(rows), within: asked };
    Some((comm, Threads { busiest, all, cpus: may_use(recording) }))
}

/// All of them together.
pub(super) fn spent<'r>(rows: impl IntoIterator<Item = &'r Thread>) -> Spent {
    let of = |row: &Thread| Spent {
        cpu: Duration::from_nanos(row.cpu_ns),
        waited: Duration::from_nanos(row.run_queue_ns + row.preempted_ns + row.throttled_ns),
    };
    rows.into_iter().map(of).fold(Spent::default(), Spent::and)
}

/// Rows of the slices in which it asked, but for the first and the last of them, in which it began and ended; of a load that is too
/// short for that, or asked once and waited, those from the first question to the last answer; else all.
fn while_asking<'r>(recording: &'r Recording, responses: &[&Exchange]) -> Vec<&'r Thread> {
    let slices = |is_it: &dyn Fn(&Exchange) -> bool| -> BTreeSet<u64> {
        responses.iter().filter(|row| is_it(row)).map(|row| row.t_ns).collect()
    };
    let (asked, any) = (slices(&|row| row.began > 0), slices(&|_| true));
    let followed: BTreeSet<u64> = recording.rows::<ExchangeWindow>().iter().map(|row| row.t_ns).collect();
    // Of slices that were not followed it is not known: it went on.
    let has_asked = |t_ns: u64| asked.contains(&t_ns) || !followed.is_empty() && !followed.contains(&t_ns);
    let all = || recording.rows::<Thread>().iter();
    let rows = |is_it: &dyn Fn(u64) -> bool| -> Vec<&Thread> { all().filter(|row| is_it(row.t_ns)).collect() };
    if let (Some(first), Some(last)) = (asked.first(), asked.last()) {
        let inner = rows(&|t_ns| *first < t_ns && t_ns < *last && has_asked(t_ns));
        if length(&inner) >= Duration::from_nanos(HALF_SLICE_NS) {
            return inner;
        }
    }
    if let (Some(first), Some(last)) = (any.first(), any.last()) {
        let from_first_to_last = rows(&|t_ns| (*first..=*last).contains(&t_ns));
        if !length(&from_first_to_last).is_zero() {
            return from_first_to_last;
        }
    }
    all().collect()
}

/// How long any of them was there: in each slice the one that was there for longest.
fn length(rows: &[&Thread]) -> Duration {
    let mut slices: BTreeMap<u64, u64> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.tid != 0) {
        let longest = slices.entry(row.t_ns).or_default();
        *longest = row.wall_ns.max(*longest);
    }
    Duration::from_nanos(slices.into_values().sum())
}

/// CPUs that the target of a recording may use; 0 = not known.
fn may_use(recording: &Recording) -> f64 {
    let (target, host) = (&recording.meta.target, &recording.meta.host);
    let allowed = match target.allowed_cpus.len() {
        0 => f64::from(host.cpus),
        some => some as f64,
    };
    target.quota_cpus.map_or(allowed, |quota| quota.min(allowed))
}

#[cfg(test)]
mod tests {
    use std::ops::RangeInclusive;

    use recording::text::parse;

    use super::super::observed;
    use super::super::tests::seconds;
    use crate::judge::judge;
    use crate::verdict::Word;

    /// A thread that is there in these seconds, and takes so much of each.
    fn thread(tid: u32, comm: &str, seconds: RangeInclusive<u64>, takes: &str) -> String {
        let row = |second| format!("thread t_ns={second}e9 pid=7 tid={tid} comm={comm} wall_ns=1e9 {takes}\n");
        seconds.map(row).collect()
    }

    /// The verdict, and its first reason.
    fn judged(length: u64, meta: &str, rows: &str) -> (Word, String, String) {
        let text = format!("meta length_ns={length}e9 {meta}\n{rows}");
        let verdict = judge(&observed(&parse(&text).unwrap(), None).unwrap(), None);
        let first = verdict.reasons.into_iter().next().unwrap();
        (verdict.verdict, first.code, first.sentence)
    }

    fn is_full(length: u64, rows: &str) -> bool {
        let (word, code, _) = judged(length, "", rows);
        assert_eq!(word == Word::ClientLimited, code == "client-cpu", "{code}");
        word == Word::ClientLimited
    }

    #[test]
    fn a_full_thread_limits_its_own_load() {
        let full = seconds(1..=10, 1000, 1_000_000) + &thread(8, "ab", 1..=10, "cpu_ns=9.8e8 run_queue_ns=1e7");
        assert!(is_full(10, &full));
        let starved = seconds(1..=10, 1000, 1_000_000) + &thread(8, "ab", 1..=10, "cpu_ns=3e8 throttled_ns=6.5e8");
        let (word, code, _) = judged(10, "", &starved);
        assert_eq!((word, code.as_str()), (Word::ClientLimited, "client-starved"));
    }

    /// Eight threads of a runtime, none of which is full, on the two CPUs that there are.
    #[test]
    fn threads_that_are_full_together_limit_their_load() {
        let of = |cpu_ms: u64, waited_ms: u64, meta: &str| {
            let takes = format!("cpu_ns={cpu_ms}e5 run_queue_ns={waited_ms}e5");
            let threads: String = (1..=8).map(|tid| thread(tid, "hey", 1..=10, &takes)).collect();
            let (word, code, _) = judged(10, meta, &(seconds(1..=10, 1000, 1_000_000) + &threads));
            (word, code)
        };
        assert_eq!(of(2400, 100, "host.cpus=2"), (Word::ClientLimited, "client-cpu".into()));
        assert_eq!(of(1500, 1000, "host.cpus=2"), (Word::ClientLimited, "client-starved".into()));
        assert_eq!(of(1500, 100, "host.cpus=2").0, Word::Valid, "1.2 of two");
        assert_eq!(of(2400, 100, "host.cpus=8").0, Word::Valid, "1.9 of eight");
        assert_eq!(of(2400, 100, "host.cpus=8 target.quota_cpus=2").0, Word::ClientLimited);
    }

    /// `sh -c 'sleep 30; exec wrk ...'`, and a generator that is held by its quota after as long.
    #[test]
    fn a_sleep_before_the_load_is_no_time_in_which_it_asked() {
        let sleeps = seconds(31..=40, 1000, 1_000_000) + &thread(7, "sh", 1..=30, "cpu_ns=1e6");
        let (word, code, sentence) = judged(41, "", &(sleeps.clone() + &thread(7, "wrk", 31..=40, "cpu_ns=9.7e8")));
        assert_eq!((word, code.as_str()), (Word::ClientLimited, "client-cpu"), "{sentence}");
        assert!(sentence.starts_with("`wrk` took 97 % of a CPU in one thread"), "{sentence}");
        let held = sleeps.clone() + &thread(7, "wrk", 31..=40, "cpu_ns=3e8 throttled_ns=6e8");
        assert_eq!(judged(41, "", &held).1, "client-starved");
        let eight: String = (8..16).map(|tid| thread(tid, "hey", 31..=40, "cpu_ns=2.4e8")).collect();
        let (_, code, sentence) = judged(41, "host.cpus=2", &(sleeps + &eight));
        assert!(code == "client-cpu" && sentence.contains("96 % of the 2 CPUs"), "{sentence}");
    }

    #[test]
    fn a_warm_up_before_the_load_does_not_fill_it() {
        let rows = seconds(31..=34, 1000, 1_000_000)
            + &thread(7, "java", 1..=31, "cpu_ns=1e9")
            + &thread(7, "java", 32..=34, "cpu_ns=2e8");
        assert!(!is_full(34, &rows));
        // It asks once, right after its start, and waits for half a minute.
        let waits =
            seconds(1..=1, 1000, 1_000_000) + &seconds(30..=30, 1000, 1_000_000).replace("began=1000", "began=0");
        assert!(!is_full(
            30,
            &(waits + &thread(7, "java", 1..=1, "cpu_ns=1e9") + &thread(7, "java", 2..=30, "cpu_ns=1e6"))
        ));
    }

    #[test]
    fn a_thread_that_begins_late_can_be_full_and_one_that_is_there_for_a_moment_not() {
        let usual = seconds(1..=12, 1000, 1_000_000) + &thread(7, "jmeter", 1..=12, "cpu_ns=1e8");
        assert!(is_full(12, &(usual.clone() + &thread(8, "group-2", 6..=12, "cpu_ns=9.9e8"))));
        assert!(!is_full(12, &(usual + &thread(8, "compiler", 3..=5, "cpu_ns=9.9e8"))));
    }

    /// Nobody is asked while the service stands still, and of every second slice nothing is known.
    #[test]
    fn a_load_that_stands_still_or_is_sampled() {
        let stands = seconds(1..=5, 1000, 1_000_000)
            + &seconds(16..=20, 1000, 1_000_000)
            + &thread(7, "ab", 6..=15, "cpu_ns=1e6");
        let works = thread(7, "ab", 1..=5, "cpu_ns=9.7e8") + &thread(7, "ab", 16..=20, "cpu_ns=9.7e8");
        assert!(is_full(20, &(stands + &works)));
        let sampled: String = (0..10).map(|nth| seconds(1 + 2 * nth..=1 + 2 * nth, 1000, 1_000_000)).collect();
        let windows: String =
            (0..10).map(|nth| format!("exchange_window t_ns={}e9 length_ns=1e9\n", 1 + 2 * nth)).collect();
        assert!(!is_full(20, &(sampled.clone() + &windows + &thread(7, "ab", 1..=20, "cpu_ns=8e8"))));
        assert!(is_full(20, &(sampled + &windows + &thread(7, "ab", 1..=20, "cpu_ns=9.5e8"))));
    }
}
