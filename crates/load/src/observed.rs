// SPDX-License-Identifier: Apache-2.0
//! Somebody else's load, from a recording of the generator: what it did as the kernel saw it, whatever it prints.
//!
//! Lengths are those from the first write of a request to the first byte of its answer. A generator that waits for answers
//! does not ask while its service stands still, so that nobody's wait is counted but those of the requests that were under
//! way: such waits are corrected as if it had gone on to ask in its own rhythm.

mod asking;
mod failed;
mod hang;
mod mixed;
mod resets;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Result, ensure};
use recording::Recording;
use recording::tables::{Connection, Exchange, ExchangeWindow, Label, Thread};

use self::failed::Failed;
use crate::omitted::{Loops, Omitted};
use crate::opening::Opening;
use crate::reason::Reason;
use crate::run::{EndedBy, Failure, Run};
use crate::slices::{HALF_SLICE_NS, second_of};

/// Of the time: connections on which a request was under way, if their generator asks as answers come.
const BUSY: f64 = 0.8;

/// Connections for each request, from which on most requests have one of their own: then it is busy for as long as it is there, of a
/// generator that asks by plan too.
const ANEW: f64 = 0.5;

/// What a generator did, and what stood between it and its service, if something did.
///
/// # Errors
/// No TCP exchange of it was seen.
pub fn observed(recording: &Recording, between: Option<Reason>) -> Result<Run> {
    let is_response = |row: &&Exchange| row.role == "made" && row.stage == "response";
    let responses: Vec<&Exchange> = recording.rows().iter().filter(is_response).collect();
    let asking = asking::asking(recording, &responses);
    let who = asking.map_or("the generator".to_string(), |(comm, _)| format!("`{comm}`"));
    let opening = Opening::of(recording);
    ensure!(responses.iter().any(|row| row.count > 0), "{who} got no answer over TCP {}", without(recording, &opening));
    let length = Duration::from_nanos(recording.meta.length_ns.max(1));
    let mut run = Run { who, length, ..Run::default() };
    let followed = followed(recording);
    let seen = seen(recording).unwrap_or(run.length);
    let each = opening.each(responses.iter().map(|row| row.began).sum(), seen, length);
    let is_closed = is_closed(recording, &responses, seen).filter(|_| each < ANEW);
    let loops = Loops { connections: open(recording).unwrap_or(0.0), wait: is_closed != Some(false) };
    let mut omitted = Omitted::of(&responses, followed.iter().flatten().copied(), loops);
    let last = responses.iter().map(|row| row.t_ns).max().unwrap_or_default();
    add_all(&mut run, recording, (&responses, last), seen, &mut omitted);
    run.sees_errors = recording.rows::<Label>().iter().any(|row| row.role == "made" && !row.outcome.is_empty());
    run.opening = opening;
    run.noted.extend(mixed::pipelines(recording));
    run.mixed = mixed::mixed(recording, &responses, &run.opening, seen);
    run.ended = ended_by(recording);
    // Of one that ended by itself, the end is that of what it asked.
    let goes_on = between.is_some() || matches!(run.ended, Some(EndedBy::Somebody | EndedBy::Time));
    let until = run.length.as_secs().checked_sub(1).filter(|_| goes_on).or(run.opening.standing().max());
    // No answer came then, and still it went on.
    if let Some(second) = until {
        run.second(Duration::from_secs(second));
    }
    (run.between, run.followed) = (between, followed);
    (run.lasted, run.seen) = (run.length, seen);
    let good = run.answered() as f64 / responses.iter().map(|row| row.count).sum::<u64>().max(1) as f64;
    run.steady = steady(recording, &responses).map(|(answers, time)| ((answers as f64 * good) as u64, time));
    run.looked = failed::looked(recording);
    run.elsewhere = (failed::share_of(recording, |row| row.outcome == "elsewhere") * run.answered() as f64) as u64;
    (run.sent, run.in_time) = (run.due, run.answered());
    run.spent = asking::spent(recording.rows());
    run.threads = asking.map(|(_, threads)| threads);
    resets::add(&mut run, recording, &responses, last);
    run.is_closed = is_closed;
    Ok(run)
}

/// Who ended it; none = it ended by itself.
fn ended_by(recording: &Recording) -> Option<EndedBy> {
    match recording.meta.ended.as_str() {
        "interrupted" => Some(EndedBy::Somebody),
        "time" => Some(EndedBy::Time),
        "budget" => Some(EndedBy::Budget),
        _ => None,
    }
}

/// For how long nothing was answered, and what may be why.
fn without(recording: &Recording, opening: &Opening) -> String {
    let why = match opening.asked {
        0 => "what it asked over UDP, Unix sockets or not at all is not seen; `wakewalk doctor` says whether this kernel shows \
              response times"
            .to_string(),
        asked => format!(
            "it asked for connections ({asked} where it runs), and none answered; is that address right, and does somebody \
             listen there?"
        ),
    };
    format!("within {:.1} s: {why}", recording.meta.length_ns as f64 / 1e9)
}

/// CPUs that the target of a recording used.
pub fn cpus(recording: &Recording) -> f64 {
    let cpu_ns: u64 = recording.rows::<Thread>().iter().map(|row| row.cpu_ns).sum();
    cpu_ns as f64 / recording.meta.length_ns.max(1) as f64
}

/// All of them, with what failed.
fn add_all(
    run: &mut Run,
    recording: &Recording,
    (responses, last): (&[&Exchange], u64),
    seen: Duration,
    omitted: &mut Omitted,
) {
    // A generator that has had enough closes its connections with requests under way; none of them has failed.
    let mut hang = hang::at_the_end(responses, last, seen);
    let mut failed = Failed::of(recording);
    for row in responses {
        let unanswered = if row.t_ns == last { row.unanswered.min(hang) } else { row.unanswered };
        if row.t_ns == last {
            hang -= unanswered;
        }
        add(run, row, &failed.take(row), omitted, unanswered);
    }
}

fn add(run: &mut Run, row: &Exchange, failed: &BTreeMap<u64, u64>, omitted: &mut Omitted, unanswered: u64) {
    let due = Duration::from_secs(second_of(row.t_ns));
    run.due += row.began;
    if unanswered > 0 {
        *run.failures.entry(Failure::Closed).or_default() += unanswered;
    }
    let said: u64 = failed.values().sum();
    if said > 0 {
        *run.failures.entry(Failure::Status).or_default() += said;
    }
    let second = run.second(due);
    (second.due, second.sent, second.failed) =
        (second.due + row.began, second.sent + row.began, second.failed + unanswered + said);
    for (length_ns, count) in row.length_ns.iter().zip(&row.counts) {
        let count = &(count - failed.get(length_ns).copied().unwrap_or_default());
        second.done += count;
        second.service.add_many(Duration::from_nanos(*length_ns), *count);
        second.latency.add_many(Duration::from_nanos(*length_ns), *count);
        for (waits_ns, omitted) in omitted.behind(due.as_secs(), *length_ns, *count) {
            second.latency.add_many(Duration::from_nanos(waits_ns), omitted);
        }
    }
}

/// The seconds in which exchanges were followed.
fn followed(recording: &Recording) -> Option<BTreeSet<u64>> {
    let windows = recording.rows::<ExchangeWindow>();
    (!windows.is_empty()).then(|| windows.iter().map(|row| second_of(row.t_ns)).collect())
}

/// For how long exchanges were followed: where there are very many, they are for some slices only.
fn seen(recording: &Recording) -> Option<Duration> {
    let windows = recording.rows::<ExchangeWindow>();
    let ns: u64 = windows.iter().map(|row| row.length_ns).sum();
    (ns > 0).then_some(Duration::from_nanos(ns))
}

/// Answers in the slices between the first and the last with any, and their time: in those two the generator began and ended.
fn steady(recording: &Recording, responses: &[&Exchange]) -> Option<(u64, Duration)> {
    let with = responses.iter().filter(|row| row.count > 0).map(|row| row.t_ns);
    let (first, last) = (with.clone().min()?, with.max()?);
    let inner = |t_ns: u64| first < t_ns && t_ns < last;
    let windows = recording.rows::<ExchangeWindow>().iter().filter(|row| inner(row.t_ns));
    let ns: u64 = windows.map(|row| row.length_ns).sum();
    let answers = responses.iter().filter(|row| inner(row.t_ns)).map(|row| row.count).sum();
    (ns >= 2 * HALF_SLICE_NS).then_some((answers, Duration::from_nanos(ns)))
}

/// Connections that it had on average; none = that is not known.
fn open(recording: &Recording) -> Option<f64> {
    let rows = recording.rows::<Connection>().iter().filter(|row| row.role == "made");
    let looks: BTreeMap<u64, u64> = rows.clone().map(|row| (row.t_ns, row.looks)).collect();
    let open: u64 = rows.map(|row| row.open).sum();
    Some(open as f64 / looks.values().sum::<u64>().max(1) as f64).filter(|open| *open > 0.0)
}

/// Whether nearly all of them had a request under way, all the time; none = how many it had is not known.
fn is_closed(recording: &Recording, responses: &[&Exchange], length: Duration) -> Option<bool> {
    let under_way = responses.iter().map(|row| row.sum_ns).sum::<u64>() as f64 / length.as_nanos().max(1) as f64;
    open(recording).map(|open| under_way > BUSY * open)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::judge;
    use crate::verdict::Word;
    use recording::text::parse;

    /// What a generator did within 10 s.
    pub fn generator(rows: &str) -> Run {
        observed(&parse(&format!("meta length_ns=10e9\n{rows}")).unwrap(), None).unwrap()
    }

    /// So many answers of a length in each of these seconds.
    pub fn seconds(range: std::ops::RangeInclusive<u64>, count: u64, length_ns: u64) -> String {
        let row = |second: u64| {
            format!(
                "exchange t_ns={second}000000000 role=made peer=127.0.0.1:80 stage=response count={count} began={count} \
                 sum_ns={} length_ns=[{length_ns}] counts=[{count}]\n",
                count * length_ns
            )
        };
        range.map(row).collect()
    }

    #[test]
    fn a_generator_that_waited_through_a_freeze_is_corrected() {
        let rows = seconds(1..=4, 1000, 1_000_000)
            + &seconds(6..=10, 1200, 1_000_000)
            + "exchange t_ns=5000000000 role=made peer=127.0.0.1:80 stage=response count=1 began=1 sum_ns=1000000000 \
               length_ns=[1000000000] counts=[1]\n";
        let verdict = judge(&generator(&rows), None);
        let [naive, corrected] = [verdict.seconds, verdict.corrected].map(|it| it.p99.unwrap());
        assert!(naive < 0.0011, "{naive}");
        assert!((0.85..0.95).contains(&corrected), "{corrected}: of 11,000 those in a second that stood still");
        let first = verdict.reasons[0].code.as_str();
        assert_eq!((verdict.verdict, first), (Word::Misleading, "coordinated-omission"), "{:?}", verdict.reasons);

        // Of a hundred connections one is asked over at a time: this one asks when it wants to.
        let idle = "connection t_ns=3000000000 role=made peer=127.0.0.1:80 looks=1 open=100\n";
        let verdict = judge(&generator(&(rows.clone() + idle)), None);
        assert_eq!(
            (verdict.verdict, verdict.seconds.p99),
            (Word::Valid, verdict.corrected.p99),
            "{:?}",
            verdict.reasons
        );
        let busy = judge(&generator(&(rows + &idle.replace("open=100", "open=1"))), None);
        assert!(busy.is_closed == Some(true) && busy.verdict == Word::Misleading, "{:?}", busy.reasons);
    }

    #[test]
    fn a_connection_for_each_request_is_always_busy_whoever_asks() {
        let rows = seconds(1..=10, 1000, 1_000_000)
            + "connection t_ns=3000000000 role=made peer=127.0.0.1:80 looks=1 open=1
               counter source=proc/net/snmp entity=Tcp name=ActiveOpens value=7\n";
        let asked =
            |to: u64| format!("{rows}counter t_ns=9e9 source=proc/net/snmp entity=Tcp name=ActiveOpens value={to}\n");
        assert_eq!(generator(&asked(8)).is_closed, Some(true));
        assert_eq!(generator(&asked(10_007)).is_closed, None);
    }

    #[test]
    fn one_that_goes_on_asking_has_omitted_nothing() {
        let rows = seconds(1..=10, 1000, 1_000_000)
            + "exchange t_ns=5000000000 role=made peer=127.0.0.1:80 stage=response count=1 began=1 sum_ns=1000000000 \
               length_ns=[1000000000] counts=[1]\n";
        let verdict = judge(&generator(&rows), None);
        assert_eq!(verdict.seconds.p99, verdict.corrected.p99);
    }

    #[test]
    fn a_generator_that_did_not_end_by_itself_was_ended_early() {
        let of = |ended: &str| {
            let run = generator(&format!("meta ended={ended}\n{}", seconds(1..=10, 1000, 1_000_000)));
            let verdict = judge(&run, None);
            let told = verdict.reasons.into_iter().find(|reason| reason.code == "ended-early");
            (verdict.verdict, told.map(|reason| reason.sentence))
        };
        assert_eq!(of("\"target exited\""), (Word::Valid, None));
        assert_eq!(of("interrupted"), (Word::Valid, Some("it was ended after 10.0 s".into())));
        assert!(of("time").1.is_some_and(|told| told.contains("--for gives it more")));
        assert!(of("budget").1.is_some_and(|told| told.contains("recorded")));
    }

    /// Half of the answers come at once, and say that the service is overloaded.
    #[test]
    fn answers_that_failed_are_no_quick_ones() {
        let second = |nth: u64| {
            format!(
                "exchange t_ns={nth}e9 role=made peer=127.0.0.1:80 stage=response count=1000 began=1000 sum_ns=26e8 \
                 length_ns=[200000,5000000] counts=[500,500]
                 label t_ns={nth}e9 role=made peer=127.0.0.1:80 protocol=http label=\"GET /\" outcome=failed seen=50 count=500 \
                 length_ns=[200000] counts=[500]
                 label t_ns={nth}e9 role=made peer=127.0.0.1:80 protocol=http label=\"GET /\" outcome=ok seen=50 count=500 \
                 length_ns=[5000000] counts=[500]\n"
            )
        };
        let run = generator(&(1..=10).map(second).collect::<String>());
        let verdict = judge(&run, None);
        assert_eq!((run.failures[&Failure::Status], verdict.answered), (5000, 5000));
        assert_eq!((verdict.verdict, verdict.reasons[0].code.as_str()), (Word::Misleading, "errors"));
        assert!(verdict.corrected.p50.unwrap() > 4e-3, "{:?}", verdict.corrected);
    }

    #[test]
    fn a_load_that_collapses_is_two() {
        let rows = seconds(1..=3, 5000, 1_000_000) + &seconds(4..=10, 50, 400_000_000);
        let verdict = judge(&generator(&rows), None);
        assert_eq!(verdict.phases.len(), 2, "{:?}", verdict.phases);
        assert!(parse("meta length_ns=1").is_ok_and(|recording| observed(&recording, None).is_err()));
    }
}
