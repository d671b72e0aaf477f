// SPDX-License-Identifier: Apache-2.0
//! Somebody else's load, from a recording of the generator: what it did as the kernel saw it, whatever it prints.
//!
//! Lengths are those from the first write of a request to the first byte of its answer. A generator that waits for answers
//! does not ask while its service stands still, so that nobody's wait is counted but those of the requests that were under
//! way: such waits are corrected as if it had gone on to ask in its own rhythm.

mod failed;
mod hang;
mod mixed;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Result, ensure};
use recording::Recording;
use recording::tables::{Connection, Exchange, ExchangeWindow, Label, Retransmit, Thread};

use self::failed::Failed;
use crate::client::{Spent, Threads};
use crate::omitted::{Loops, Omitted};
use crate::opening::{Opening, peers};
use crate::reason::Reason;
use crate::run::{Failure, Run};
use crate::slices::{HALF_SLICE_NS, second_of};

/// Of the time: connections on which a request was under way, if their generator asks as answers come.
const BUSY: f64 = 0.8;

/// What a generator did, and what stood between it and its service, if something did.
///
/// # Errors
/// No TCP exchange of it was seen.
pub fn observed(recording: &Recording, between: Option<Reason>) -> Result<Run> {
    let rows: Vec<&Exchange> = recording.rows().iter().filter(|row: &&Exchange| row.role == "made").collect();
    let responses: Vec<&Exchange> = rows.into_iter().filter(|row| row.stage == "response").collect();
    let threads = threads(recording);
    let busiest = busiest(&threads);
    let who = busiest.map_or("the generator".to_string(), |(comm, _)| format!("`{comm}`"));
    let opening = Opening::of(recording);
    ensure!(responses.iter().any(|row| row.count > 0), "{who} got no answer over TCP {}", without(recording, &opening));
    let length = Duration::from_nanos(recording.meta.length_ns.max(1));
    let mut run = Run { who, length, ..Run::default() };
    let followed = followed(recording);
    let seen = seen(recording).unwrap_or(run.length);
    let is_closed = is_closed(recording, &responses, seen);
    let loops = Loops { connections: open(recording).unwrap_or(0.0), wait: is_closed != Some(false) };
    let mut omitted = Omitted::of(&responses, followed.iter().flatten().copied(), loops);
    // A generator that has had enough closes its connections with requests under way; none of them has failed.
    let last = responses.iter().map(|row| row.t_ns).max().unwrap_or_default();
    let hang = hang::at_the_end(&responses, last, seen);
    let mut failed = Failed::of(recording);
    for row in &responses {
        add(&mut run, row, &failed.take(row), &mut omitted, if row.t_ns == last { hang } else { row.unanswered });
    }
    run.sees_errors = recording.rows::<Label>().iter().any(|row| row.role == "made" && !row.outcome.is_empty());
    run.opening = opening;
    run.noted.extend(mixed::pipelines(recording));
    run.mixed = mixed::mixed(recording, &responses, &run.opening, seen);
    let until = run.length.as_secs().checked_sub(1).filter(|_| between.is_some()).or(run.opening.standing().max());
    // No answer came then, and still it went on.
    if let Some(second) = until {
        run.second(Duration::from_secs(second));
    }
    (run.between, run.followed) = (between, followed);
    (run.lasted, run.seen) = (run.length, seen);
    let good = run.answered() as f64 / responses.iter().map(|row| row.count).sum::<u64>().max(1) as f64;
    run.steady = steady(recording, &responses).map(|(answers, time)| ((answers as f64 * good) as u64, time));
    run.elsewhere = (failed::share_of(recording, |row| row.outcome == "elsewhere") * run.answered() as f64) as u64;
    run.sent = run.due;
    run.in_time = run.answered();
    run.spent = threads.values().fold(Spent::default(), |sum, (_, spent)| sum.and(*spent));
    run.threads = busiest.map(|(_, busiest)| Threads { busiest: *busiest, cpus: may_use(recording) });
    failures(&mut run, recording, &mut closed(&responses, last), last);
    run.is_closed = is_closed.unwrap_or(false);
    Ok(run)
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

/// What each thread took, by its id, with its name.
fn threads(recording: &Recording) -> BTreeMap<(u32, u32), (&str, Spent)> {
    let mut threads: BTreeMap<(u32, u32), (&str, Spent)> = BTreeMap::new();
    for row in recording.rows::<Thread>() {
        let (comm, sum) = threads.entry((row.pid, row.tid)).or_default();
        *comm = &row.comm;
        let waited_ns = row.run_queue_ns + row.preempted_ns + row.throttled_ns;
        *sum = sum.and(Spent { cpu: Duration::from_nanos(row.cpu_ns), waited: Duration::from_nanos(waited_ns) });
    }
    threads
}

/// The thread that wanted most of a CPU, with its name. Those that lived for less than a second are one row together.
fn busiest<'t, 'r>(threads: &'t BTreeMap<(u32, u32), (&'r str, Spent)>) -> Option<&'t (&'r str, Spent)> {
    let lasting = threads.iter().filter(|((_, tid), _)| *tid != 0).map(|(_, spent)| spent);
    lasting.max_by_key(|(_, spent)| spent.cpu + spent.waited)
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

/// Connections that were refused or reset. One that was reset with a request under way is counted already, as closed before an answer.
fn failures(run: &mut Run, recording: &Recording, closed: &mut BTreeMap<u64, u64>, last: u64) {
    let own = peers(recording);
    let is_its =
        |row: &&Retransmit| row.kind == "reset_received" && row.role != "accepted" && own.contains(row.peer.as_str());
    for row in recording.rows::<Retransmit>().iter().filter(is_its) {
        // Once the other end has closed, a reset answers this one's goodbye; of a request that was under way the close tells.
        let refused = row.state == "SYN_SENT";
        if !refused && (row.t_ns >= last || row.state != "ESTABLISHED") {
            continue;
        }
        let failure = if refused { Failure::Refused } else { Failure::Reset };
        *run.failures.entry(failure).or_default() += row.count;
        let open = closed.entry(second_of(row.t_ns)).or_default();
        let known = if refused { 0 } else { row.count.min(*open) };
        *open -= known;
        if known > 0 {
            *run.failures.entry(Failure::Closed).or_default() -= known;
        }
        // Nobody could ask anything over one that was refused: no exchange began, and one was due.
        let due = if refused { row.count } else { 0 };
        run.due += due;
        let second = run.second(Duration::from_secs(second_of(row.t_ns)));
        (second.due, second.failed) = (second.due + due, second.failed + row.count - known);
    }
    run.failures.retain(|_, count| *count > 0);
}

/// Requests whose connection was closed before an answer, second by second.
fn closed(responses: &[&Exchange], last: u64) -> BTreeMap<u64, u64> {
    let mut closed = BTreeMap::new();
    for row in responses.iter().filter(|row| row.t_ns < last) {
        *closed.entry(second_of(row.t_ns)).or_default() += row.unanswered;
    }
    closed
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

    fn generator(rows: &str) -> Run {
        observed(&parse(&format!("meta length_ns=10e9\n{rows}")).unwrap(), None).unwrap()
    }

    fn seconds(range: std::ops::RangeInclusive<u64>, count: u64, length_ns: u64) -> String {
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
        assert!(busy.is_closed && busy.verdict == Word::Misleading, "{:?}", busy.reasons);
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
    fn a_reset_is_one_failure_whatever_was_under_way() {
        let reset = "retransmit t_ns=5e9 kind=reset_received state=ESTABLISHED role=made peer=127.0.0.1:80 count=4\n";
        let of = |unanswered: u32| {
            let second =
                seconds(5..=5, 1000, 1_000_000).replace("began=1000", &format!("began=1000 unanswered={unanswered}"));
            generator(&(seconds(1..=4, 1000, 1_000_000) + &second + &seconds(6..=9, 1000, 1_000_000) + reset)).failures
        };
        assert_eq!(of(4), [(Failure::Reset, 4)].into());
        assert_eq!(of(6), [(Failure::Closed, 2), (Failure::Reset, 4)].into());
        assert_eq!(of(0), [(Failure::Reset, 4)].into(), "amid an answer, or between two");
        let goodbye = reset.replace("ESTABLISHED", "LAST_ACK");
        assert_eq!(generator(&(seconds(1..=9, 1000, 1_000_000) + &goodbye)).failures, [].into(), "after it had all");
    }

    /// The table is of all in the generator's network namespace.
    #[test]
    fn what_a_neighbour_is_refused_is_none_of_the_generator_s() {
        let refused = |peer: &str| {
            let rows = (1..=9).map(|second| {
                format!(
                    "retransmit t_ns={second}e9 kind=reset_received state=SYN_SENT role=made peer={peer} count=200\n"
                )
            });
            judge(&generator(&(seconds(1..=10, 1000, 1_000_000) + &rows.collect::<String>())), None)
        };
        let (neighbour, own) = (refused("127.0.0.1:81"), refused("127.0.0.1:80"));
        assert_eq!((neighbour.verdict, neighbour.errors.len()), (Word::Valid, 0), "{:?}", neighbour.reasons);
        assert_eq!((own.verdict, own.errors.get(&Failure::Refused)), (Word::Misleading, Some(&1800)));
    }

    #[test]
    fn a_full_thread_limits_its_own_load() {
        let rows = seconds(1..=10, 1000, 1_000_000)
            + "thread pid=7 tid=8 comm=ab wall_ns=10e9 cpu_ns=9.8e9 run_queue_ns=1e8\n";
        let verdict = judge(&generator(&rows), None);
        assert_eq!((verdict.verdict, verdict.reasons[0].code.as_str()), (Word::ClientLimited, "client-cpu"));
        let starved = seconds(1..=10, 1000, 1_000_000)
            + "thread pid=7 tid=8 comm=ab wall_ns=10e9 cpu_ns=3e9 throttled_ns=6.5e9\n";
        let verdict = judge(&generator(&starved), None);
        assert_eq!((verdict.verdict, verdict.reasons[0].code.as_str()), (Word::ClientLimited, "client-starved"));
    }

    /// Eight threads of a runtime, none of which is full, on the two CPUs that there are.
    #[test]
    fn threads_that_are_full_together_limit_their_load() {
        let of = |cpu_ms: u64, waited_ms: u64, meta: &str| {
            let thread = |tid| {
                format!("thread pid=7 tid={tid} comm=hey wall_ns=10e9 cpu_ns={cpu_ms}e6 run_queue_ns={waited_ms}e6\n")
            };
            let rows = format!("meta length_ns=10e9 {meta}\n") + &seconds(1..=10, 1000, 1_000_000);
            let rows = rows + &(1..=8).map(thread).collect::<String>();
            let verdict = judge(&observed(&parse(&rows).unwrap(), None).unwrap(), None);
            (verdict.verdict, verdict.reasons[0].code.clone())
        };
        assert_eq!(of(2400, 100, "host.cpus=2"), (Word::ClientLimited, "client-cpu".into()));
        assert_eq!(of(1500, 1000, "host.cpus=2"), (Word::ClientLimited, "client-starved".into()));
        assert_eq!(of(1500, 100, "host.cpus=2").0, Word::Valid, "1.2 of two");
        assert_eq!(of(2400, 100, "host.cpus=8").0, Word::Valid, "1.9 of eight");
        assert_eq!(of(2400, 100, "host.cpus=8 target.quota_cpus=2").0, Word::ClientLimited);
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
