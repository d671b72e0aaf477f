// SPDX-License-Identifier: Apache-2.0
//! From what came of a load to the verdict on it: all numbers first, then what they are worth.

use std::time::Duration;

use crate::by_second::by_second;
use crate::client::{Threads, client_limits};
use crate::keeping_up::{second_half, under_way};
use crate::lengths::{Lengths, Percentiles};
use crate::phases;
use crate::reasons::{fails, hides, misleads, remarks, stood, too_few};
use crate::run::{EndedBy, Run, Second, together};
use crate::verdict::{Client, Phase, Promise, Verdict, Word};

/// Good answers that were looked at in each second, where not all were, from which on seconds are alike or not.
const A_SECOND: f64 = 50.0;

/// Of a load: a first phase of at most so much is a warm-up.
const WARM_UP: f64 = 0.25;

/// Judges a load.
pub fn judge(run: &Run, slo: Option<Duration>) -> Verdict {
    let mut verdict = counted(run, slo);
    let few = too_few(&verdict);
    // Before anything is said of them.
    if run.mixed.is_some() {
        verdict.withhold_lengths();
    }
    let (client, misleading) = (client_limits(&verdict, run), misleads(&verdict, run));
    // Then whether the client did well is no question any more.
    let is_settled = fails(run) || run.between.is_some() || run.mixed.is_some();
    let (is_limited, remarks) = (!client.is_empty(), remarks(&verdict, run));
    verdict.verdict = match (client.is_empty(), few.is_empty(), misleading.is_empty()) {
        _ if is_settled => Word::Misleading,
        (false, ..) => Word::ClientLimited,
        (_, false, _) => Word::NotEnoughData,
        (_, _, false) => Word::Misleading,
        _ => Word::Valid,
    };
    verdict.reasons = if is_settled {
        [misleading, client, few, remarks].concat()
    } else {
        [client, few, misleading, remarks].concat()
    };
    if is_limited {
        verdict.withhold();
    }
    verdict.withhold_what_is_own(&run.lag);
    verdict.withhold_beyond(run.unanswered());
    if hides(run) && !stood(&verdict, run).is_empty() {
        verdict.withhold_corrected();
    }
    verdict
}

/// All numbers, without an opinion but what is a warm-up.
fn counted(run: &Run, slo: Option<Duration>) -> Verdict {
    let phases = phases_of(run);
    let from = phases.first().filter(|first| first.is_warm_up).map_or(0, |first| first.to as usize);
    let (latency, service) = together(run.seconds.get(from..).unwrap_or_default());
    Verdict {
        verdict: Word::Valid,
        reasons: Vec::new(),
        planned: run.planned,
        rate: run.rate(),
        length: run.length.as_secs_f64(),
        due: run.due,
        under_way: under_way(run, from, &service),
        judged: (latency.count(), from),
        second_half: second_half(run, from),
        full: run.full.as_secs_f64() / run.length.as_secs_f64().max(1e-9),
        quickest: together(&run.seconds).1.quantile(0.0),
        takes: run.takes(),
        sent: run.sent,
        answered: run.answered(),
        seconds: Percentiles::of(&service),
        corrected: Percentiles::of(&latency),
        refusals: Percentiles::of(&run.refusals),
        errors: run.failures.clone(),
        sent_again: run.sent_again,
        statuses: run.statuses.clone(),
        connections: run.connections,
        sizes: run.sizes,
        is_closed: run.is_closed,
        sees_answers: run.sees_answers,
        phases,
        client: client(run),
        slo: slo.map(|slo| promise(slo, run.seconds.get(from..).unwrap_or_default())),
        curve: latency.curve(),
        by_second: by_second(run),
    }
}

fn client(run: &Run) -> Client {
    let threads = Threads::of(run);
    Client {
        lag: Percentiles::of(&run.lag),
        cpus: threads.all.shares()[0],
        waited_for_cpu: threads.busiest.shares()[1],
        // Of a part of the time, as many requests were counted, but all of the CPU time.
        cpu_per_request: client_cpu(run) / run.sent.max(1) as f64,
    }
}

/// CPU time while requests were counted, s.
fn client_cpu(run: &Run) -> f64 {
    run.spent.cpu.as_secs_f64() * run.seen.as_secs_f64() / run.length.as_secs_f64().max(1e-9)
}

fn promise(slo: Duration, seconds: &[Second]) -> Promise {
    let longer: u64 = seconds.iter().map(|second| second.latency.longer_than(slo)).sum();
    let failed: u64 = seconds.iter().map(|second| second.failed).sum();
    let all = (seconds.iter().map(|second| second.latency.count()).sum::<u64>() + failed).max(1);
    Promise { seconds: slo.as_secs_f64(), broken: (longer + failed) as f64 / all as f64 }
}

/// Of the answers: nearly all take no longer.
const LONG_ONES: f64 = 0.9;

fn phases_of(run: &Run) -> Vec<Phase> {
    // What is estimated from few answers differs by chance from second to second.
    if run.looked.is_some_and(|(_, good)| (good as f64) < A_SECOND * run.seen.as_secs_f64()) {
        return Vec::new();
    }
    // What was due in the last second may have been cut.
    let whole = (run.length.as_secs() as usize).min(run.seconds.len());
    // Who ends a load does not wait for long answers that are under way: seconds without any are none in which nobody was answered.
    let under_way = match run.ended {
        Some(EndedBy::Somebody) => together(&run.seconds).1.quantile(LONG_ONES).filter(|long| *long > 1.0),
        _ => None,
    };
    let whole = whole.saturating_sub(under_way.unwrap_or(0.0).ceil() as usize);
    let counted = (0..whole).filter(|second| run.is_followed(*second));
    // A generator may take a while to begin.
    let counted: Vec<usize> = counted.skip_while(|second| run.seconds[*second].due == 0).collect();
    let mut seconds: Vec<Second> = counted.iter().map(|second| run.seconds[*second].clone()).collect();
    if run.mixed.is_some() {
        // Their lengths are no response times: by how much came, and what failed, it may have gone differently all the same.
        seconds.iter_mut().for_each(|second| second.latency = Lengths::default());
    }
    let stretches = phases::stretches(&seconds);
    let many = stretches.len();
    let phase = |(nth, range): (usize, std::ops::Range<usize>)| {
        let (part, length) = (&seconds[range.clone()], range.len().max(1) as f64);
        let (latency, _) = together(part);
        Phase {
            from: counted[range.start] as u64,
            to: counted[range.end - 1] as u64 + 1,
            rate: part.iter().map(|second| second.done).sum::<u64>() as f64 / length,
            failed: part.iter().map(|second| second.failed).sum(),
            corrected: Percentiles::of(&latency),
            is_warm_up: nth == 0 && many == 2 && length <= WARM_UP * seconds.len() as f64,
        }
    };
    let stretches = stretches.into_iter().enumerate().filter(|(_, range)| !range.is_empty());
    let mut phases: Vec<Phase> = stretches.map(phase).collect();
    // What is warm is quicker: one that was quick at first, and then is not, has met something.
    let quicker = |a: &Phase, b: &Phase| b.corrected.p50.is_some_and(|b| a.corrected.p50.is_none_or(|a| b < a));
    if let [first, then] = phases.as_mut_slice() {
        first.is_warm_up &= quicker(first, then);
    }
    phases
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Spent;

    /// A load that was quick for two seconds and slow for six, by a client that had no CPU left.
    #[test]
    fn what_is_slow_by_the_client_s_own_fault_is_nowhere() {
        let length = Duration::from_secs(8);
        let mut run = Run {
            length,
            seen: length,
            lasted: length,
            spent: Spent { cpu: length, ..Spent::default() },
            planned: Some(1000.0),
            ..Run::default()
        };
        for second in 0..8 {
            let ms = if second < 4 { 1 } else { 20 };
            for nth in 0..1000_u64 {
                let due = Duration::from_millis(1000 * second + nth);
                let latency = Duration::from_micros(1000 * ms + nth);
                (run.due, run.sent) = (run.due + 1, run.sent + 1);
                (run.second(due).due, run.second(due).sent) = (nth + 1, nth + 1);
                run.add_answer(due, (latency, latency), 2, true);
            }
        }
        let verdict = judge(&run, Some(Duration::from_millis(5)));
        assert!(verdict.verdict == Word::ClientLimited && verdict.phases.len() == 2, "{verdict:?}");
        let value = serde_json::to_value(&verdict).unwrap();
        let mut slow = Vec::new();
        slow_ones("", &value, &mut slow);
        assert_eq!(slow, Vec::<String>::new());
    }

    /// A generator that takes five seconds to begin, and whose service is slow for a second after that.
    #[test]
    fn what_is_before_the_first_request_is_no_phase_and_a_warm_up_breaks_no_promise() {
        let length = Duration::from_secs(15);
        let mut run = Run { length, seen: length, lasted: length, sees_answers: true, ..Run::default() };
        run.second(Duration::from_secs(14));
        for second in 5..15 {
            for nth in 0..1000_u64 {
                let due = Duration::from_millis(1000 * second + nth);
                let latency = Duration::from_millis(if second < 7 { 20 } else { 1 });
                (run.due, run.sent) = (run.due + 1, run.sent + 1);
                (run.second(due).due, run.second(due).sent) = (nth + 1, nth + 1);
                run.add_answer(due, (latency, latency), 2, true);
            }
        }
        let verdict = judge(&run, Some(Duration::from_millis(5)));
        assert_eq!(verdict.phases.iter().map(|phase| phase.from).collect::<Vec<_>>(), [5, 7], "{:?}", verdict.phases);
        assert!(verdict.phases[0].is_warm_up && verdict.slo.unwrap().broken < 0.01, "{verdict:?}");
    }

    /// Where JSON tells how slow answers were.
    fn slow_ones(path: &str, value: &serde_json::Value, found: &mut Vec<String>) {
        let is_slow = |name: &str| ["p99", "p999", "longest", "broken"].contains(&name);
        let entries: Vec<(String, &serde_json::Value)> = match value {
            serde_json::Value::Object(map) => map.iter().map(|(name, value)| (name.clone(), value)).collect(),
            serde_json::Value::Array(all) => {
                all.iter().enumerate().map(|(nth, value)| (nth.to_string(), value)).collect()
            }
            _ => Vec::new(),
        };
        for (name, value) in entries.into_iter().filter(|(name, _)| name != "lag") {
            if is_slow(&name) && !value.is_null() {
                found.push(format!("{path}/{name}"));
            }
            slow_ones(&format!("{path}/{name}"), value, found);
        }
    }
}
