// SPDX-License-Identifier: Apache-2.0
//! What the numbers of a load are worth. A number that is not to be believed is not given, and why is said.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::by_second::{Moment, by_second};
use crate::phases;
use crate::reasons::{client_limits, fails, misleads, remarks, too_few};
use crate::run::{Failure, Lengths, Run, Second};

/// Answers beyond a percentile without which it is chance.
const BEYOND: f64 = 10.0;
/// How long a service is left alone at most, s.
const LONGEST_REST: f64 = 10.0;
/// Of a load: a first phase of at most so much is a warm-up.
const WARM_UP: f64 = 0.25;

/// In a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// The numbers are the service's.
    Valid,
    /// They are the client's: it could not send or read in time.
    ClientLimited,
    /// They are true, and say something else than they seem to.
    Misleading,
    /// They are too few.
    NotEnoughData,
}

/// Why a verdict is not `valid`, or what is to be known of one that is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// Short and stable.
    pub code: String,
    /// In words.
    pub sentence: String,
}

/// Percentiles in seconds; those that too few answers lie beyond are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Percentiles {
    /// Half of the answers took no longer.
    pub p50: Option<f64>,
    /// Nine in ten.
    pub p90: Option<f64>,
    /// 99 in a hundred.
    pub p99: Option<f64>,
    /// 999 in a thousand.
    pub p999: Option<f64>,
    /// The longest.
    pub longest: Option<f64>,
}

/// A stretch of the load in which it went alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// Seconds from the start.
    pub from: u64,
    /// Seconds from the start.
    pub to: u64,
    /// Answers to what was due in it, a second.
    pub rate: f64,
    /// Of what was due in it, without an answer.
    pub failed: u64,
    /// From when they were due.
    pub corrected: Percentiles,
    /// A first phase that is left out of the percentiles.
    pub is_warm_up: bool,
}

/// What this program itself took and how late it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Client {
    /// How late it noticed that a request was due, seconds; none in a closed loop.
    pub lag: Percentiles,
    /// CPUs that it used.
    pub cpus: f64,
    /// Share of the time in which it waited for a CPU.
    pub waited_for_cpu: f64,
    /// CPU time for each request, seconds.
    pub cpu_per_request: f64,
}

/// A promise and how many broke it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Promise {
    /// Seconds.
    pub seconds: f64,
    /// Share of all requests that took longer or have no answer.
    pub broken: f64,
}

/// What the service did meanwhile, where it was diagnosed at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Meanwhile {
    /// Cause id, or `healthy`, `at-capacity`, `not-determined`.
    pub verdict: String,
    /// In one line, with a number.
    pub headline: String,
    /// What to do about it, in one line.
    pub advice: String,
    /// CPUs that it used.
    pub cpus: f64,
}

/// The verdict on a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// In a word.
    pub verdict: Word,
    /// Why.
    pub reasons: Vec<Reason>,
    /// Requests a second that were planned; none = as many as there came answers to.
    pub planned: Option<f64>,
    /// Answers a second, while requests were sent.
    pub rate: f64,
    /// Seconds in which requests were sent.
    pub length: f64,
    /// Requests that were due, those of them that were sent, and answers.
    pub due: u64,
    /// Sent.
    pub sent: u64,
    /// Answers.
    pub answered: u64,
    /// From when a request was sent until its answer was whole: what generators usually print.
    pub seconds: Percentiles,
    /// From when it was due: what somebody who comes by himself waits for.
    pub corrected: Percentiles,
    /// Answers that say that they are none, from when they were due.
    pub refusals: Percentiles,
    /// Requests without an answer, by why.
    pub errors: BTreeMap<Failure, u64>,
    /// Answers by HTTP status.
    pub statuses: BTreeMap<u16, u64>,
    /// Connections that were opened.
    pub connections: u64,
    /// The shortest and the longest answer, bytes.
    pub sizes: Option<(u64, u64)>,
    /// Each connection waited for its answer before it asked again.
    pub is_closed: bool,
    /// Whether answers were seen whole, with what they say; else lengths end at their first byte.
    pub sees_answers: bool,
    /// Stretches in which it went differently.
    pub phases: Vec<Phase>,
    /// The client.
    pub client: Client,
    /// The promise, where one was given.
    pub slo: Option<Promise>,
    /// Share of the answers (second number) that took no longer than so many seconds (first number) from when they were due.
    pub curve: Vec<(f64, f64)>,
    /// Second by second, by when requests were due, in at most 600 rows.
    pub by_second: Vec<Moment>,
}

impl Percentiles {
    pub(crate) fn of(lengths: &Lengths) -> Self {
        let known = |share: f64| {
            let is_known = lengths.count() as f64 * (1.0 - share) >= BEYOND;
            if is_known { lengths.quantile(share) } else { None }
        };
        Self {
            p50: lengths.quantile(0.5).filter(|_| lengths.count() as f64 >= BEYOND),
            p90: known(0.9),
            p99: known(0.99),
            p999: known(0.999),
            longest: lengths.quantile(1.0),
        }
    }
}

/// All of some seconds together, from when requests were due, and from when they were sent.
pub(crate) fn together(seconds: &[Second]) -> (Lengths, Lengths) {
    let (mut latency, mut service) = (Lengths::default(), Lengths::default());
    for second in seconds {
        latency.add_all(&second.latency);
        service.add_all(&second.service);
    }
    (latency, service)
}

/// Judges a load.
pub fn judge(run: &Run, slo: Option<Duration>) -> Verdict {
    let mut verdict = counted(run, slo);
    let (client, few, misleading) = (client_limits(&verdict, run), too_few(&verdict), misleads(&verdict, run));
    // Then whether the client did well is no question any more.
    let is_settled = fails(run) || run.between.is_some();
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
        sent: run.sent,
        answered: run.answered(),
        seconds: Percentiles::of(&service),
        corrected: Percentiles::of(&latency),
        refusals: Percentiles::of(&run.refusals),
        errors: run.failures.clone(),
        statuses: run.statuses.clone(),
        connections: run.connections,
        sizes: run.sizes,
        is_closed: run.is_closed,
        sees_answers: run.sees_answers,
        phases,
        client: client(run),
        slo: slo.map(|slo| promise(slo, run)),
        curve: latency.curve(),
        by_second: by_second(run),
    }
}

impl Verdict {
    /// For how long the service may still be at what it was asked and did not answer, which is none of what comes next.
    pub fn left_over(&self) -> Duration {
        let left = self.sent.saturating_sub(self.answered) as f64;
        Duration::from_secs_f64((left / self.rate.max(1.0)).min(LONGEST_REST))
    }

    /// What the client adds is largest where answers are slowest: these are not the service's.
    fn withhold(&mut self) {
        for percentiles in [&mut self.seconds, &mut self.corrected] {
            (percentiles.p99, percentiles.p999, percentiles.longest) = (None, None, None);
        }
        self.curve.clear();
        self.by_second.iter_mut().for_each(|moment| moment.p99 = None);
    }
}

fn client(run: &Run) -> Client {
    let length = run.lasted.as_secs_f64().max(1e-9);
    Client {
        lag: Percentiles::of(&run.lag),
        cpus: run.cpu.as_secs_f64() / length,
        waited_for_cpu: run.waited_for_cpu.as_secs_f64() / length,
        // Of a part of the time, as many requests were counted, but all of the CPU time.
        cpu_per_request: client_cpu(run) / run.sent.max(1) as f64,
    }
}

/// CPU time while requests were counted, s.
fn client_cpu(run: &Run) -> f64 {
    run.cpu.as_secs_f64() * run.seen.as_secs_f64() / run.length.as_secs_f64().max(1e-9)
}

fn promise(slo: Duration, run: &Run) -> Promise {
    let longer: u64 = run.seconds.iter().map(|second| second.latency.longer_than(slo)).sum();
    let all = (run.seconds.iter().map(|second| second.latency.count()).sum::<u64>() + run.failed()).max(1);
    Promise { seconds: slo.as_secs_f64(), broken: (longer + run.failed()) as f64 / all as f64 }
}

fn phases_of(run: &Run) -> Vec<Phase> {
    // What was due in the last second may have been cut.
    let whole = (run.length.as_secs() as usize).min(run.seconds.len());
    let counted = (0..whole).filter(|second| run.is_followed(*second));
    let counted: Vec<usize> = counted.collect();
    let seconds: Vec<Second> = counted.iter().map(|second| run.seconds[*second].clone()).collect();
    let stretches = phases::stretches(&seconds);
    let many = stretches.len();
    let phase = |(nth, range): (usize, std::ops::Range<usize>)| {
        let (part, length) = (&seconds[range.clone()], range.len().max(1) as f64);
        let (latency, service) = together(part);
        Phase {
            from: counted[range.start] as u64,
            to: counted[range.end - 1] as u64 + 1,
            rate: service.count() as f64 / length,
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
