// SPDX-License-Identifier: Apache-2.0
//! What a verdict on a load holds. A number that is not to be believed is not given, and why is said.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::by_second::Moment;
use crate::client::is_late;
use crate::keeping_up::SecondHalf;
use crate::lengths::{Lengths, Percentiles};
use crate::reason::Reason;
use crate::run::Failure;

/// How long a service is left alone at most, s.
const LONGEST_REST: f64 = 10.0;

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

/// A stretch of the load in which it went alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// Seconds from the start.
    pub from: u64,
    /// Seconds from the start.
    pub to: u64,
    /// Answers that came in it, a second.
    pub rate: f64,
    /// Of what was due in it, without an answer.
    pub failed: u64,
    /// From when they were due.
    pub corrected: Percentiles,
    /// A first phase that is left out of the percentiles.
    pub is_warm_up: bool,
}

/// What the client itself took and how late it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Client {
    /// How late it noticed that a request was due, seconds; none in a closed loop.
    pub lag: Percentiles,
    /// CPUs that it used.
    pub cpus: f64,
    /// Share of the time in which it waited for a CPU; of several threads, the one that wanted most of it.
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
    /// Of those, the ones that may be under way at the end although the service keeps up: as many as come while its
    /// answers take their time.
    #[serde(skip)]
    pub under_way: f64,
    /// Answers of which percentiles are given, and seconds of warm-up before them.
    #[serde(skip)]
    pub(crate) judged: (u64, usize),
    /// How the second half of the load went; none = it had no plan, or was too short.
    #[serde(skip)]
    pub(crate) second_half: Option<SecondHalf>,
    /// Share of the time in which requests were due and no connection was free; and the quickest answer from when it was sent, seconds.
    #[serde(skip)]
    pub full: f64,
    /// Quickest.
    #[serde(skip)]
    pub quickest: Option<f64>,
    /// Over how many connections it answered, where most of what failed was sent over others, which it never took.
    #[serde(skip)]
    pub(crate) takes: Option<u64>,
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
    /// Requests that were sent once more, because the connection was closed within 5 ms of sending them: no errors.
    pub sent_again: u64,
    /// Answers by HTTP status.
    pub statuses: BTreeMap<u16, u64>,
    /// Connections that were opened.
    pub connections: u64,
    /// The shortest and the longest answer, bytes.
    pub sizes: Option<(u64, u64)>,
    /// Each connection waited for its answer before it asked again. Null = not known: of a generator that asks over a connection of
    /// its own for each request, or whose connections nobody looked at.
    pub is_closed: Option<bool>,
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

impl Verdict {
    /// Of what was due while requests were sent, the share that was answered in that time, or could not be yet; of the second half,
    /// where that is less: an overload makes answers take longer, and that is not to explain why they are not there yet.
    pub fn kept(&self) -> f64 {
        let all = (self.rate * self.length + self.under_way) / self.due.max(1) as f64;
        self.second_half.map_or(all, |half| all.min(half.kept))
    }

    /// Answers for each request, while requests were sent and the service was warm.
    pub(crate) fn through(&self) -> f64 {
        self.second_half.map_or_else(|| self.kept(), |half| half.through)
    }

    /// Answers a second, while requests were sent and the service was warm, of one that was asked so many.
    pub(crate) fn answered_of(&self, asked: f64) -> f64 {
        asked * self.through().min(1.0)
    }

    /// For how long the service may still be at what it was asked and did not answer, which is none of what comes next.
    pub fn left_over(&self) -> Duration {
        // What has failed is done with; but a service need not know that nobody waits for an answer any more, and what was never sent
        // is not at it.
        let is_over = |failure: Failure| !matches!(failure, Failure::Timeout | Failure::Unsent);
        let failed: u64 = self.errors.iter().filter(|entry| is_over(*entry.0)).map(|entry| *entry.1).sum();
        let left = self.sent.saturating_sub(self.answered + failed) as f64;
        Duration::from_secs_f64((left / self.rate.max(1.0)).min(LONGEST_REST))
    }

    /// The few longest, where the client's own lateness is a part of them.
    pub(crate) fn withhold_what_is_own(&mut self, lag: &Lengths) {
        let is_own = |share: f64, measured: Option<f64>| is_late(lag.quantile(share), measured);
        let phases = self.phases.iter_mut().map(|phase| &mut phase.corrected);
        for percentiles in [&mut self.seconds, &mut self.corrected].into_iter().chain(phases) {
            percentiles.p999 = percentiles.p999.filter(|p999| !is_own(0.999, Some(*p999)));
            percentiles.longest = percentiles.longest.filter(|longest| !is_own(1.0, Some(*longest)));
        }
    }

    /// Lengths beyond which there are requests that nobody answered in time, where those are such a share of all.
    pub(crate) fn withhold_beyond(&mut self, unanswered: f64) {
        let phases = self.phases.iter_mut().map(|phase| &mut phase.corrected);
        for percentiles in [&mut self.seconds, &mut self.corrected].into_iter().chain(phases) {
            percentiles.p99 = percentiles.p99.filter(|_| unanswered <= 0.01);
            percentiles.p999 = percentiles.p999.filter(|_| unanswered <= 0.001);
            percentiles.longest = percentiles.longest.filter(|_| unanswered <= 0.0);
        }
    }

    /// What those wait for who come by themselves, where nobody asked while the service stood still.
    pub(crate) fn withhold_corrected(&mut self) {
        for percentiles in self.phases.iter_mut().map(|phase| &mut phase.corrected).chain([&mut self.corrected]) {
            (percentiles.p99, percentiles.p999, percentiles.longest) = (None, None, None);
        }
        self.slo = None;
        self.curve.clear();
        self.by_second.iter_mut().for_each(|moment| moment.p99 = None);
    }

    /// All lengths: which answer is whose was not seen.
    pub(crate) fn withhold_lengths(&mut self) {
        self.withhold();
        let phases = self.phases.iter_mut().map(|phase| &mut phase.corrected);
        for percentiles in [&mut self.seconds, &mut self.corrected, &mut self.refusals].into_iter().chain(phases) {
            *percentiles = Percentiles::default();
        }
        self.by_second.iter_mut().for_each(|moment| moment.p50 = None);
    }

    /// What the client adds is largest where answers are slowest: these are not the service's.
    pub(crate) fn withhold(&mut self) {
        let phases = self.phases.iter_mut().map(|phase| &mut phase.corrected);
        for percentiles in [&mut self.seconds, &mut self.corrected, &mut self.refusals].into_iter().chain(phases) {
            (percentiles.p99, percentiles.p999, percentiles.longest) = (None, None, None);
        }
        // Who breaks the promise is among the slow ones.
        self.slo = None;
        self.curve.clear();
        self.by_second.iter_mut().for_each(|moment| moment.p99 = None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Run;

    /// A load of a thousand requests a second for ten seconds, of which so many failed, and a tenth of a second more was not answered.
    #[test]
    fn what_was_refused_is_not_waited_for() {
        let rest = |failed: &[(Failure, u64)]| {
            let mut verdict = crate::judge::judge(&Run::default(), None);
            verdict.errors = failed.iter().copied().collect();
            let failed: u64 = failed.iter().map(|(_, count)| count).sum();
            (verdict.rate, verdict.sent, verdict.answered) = (1000.0, 10_000, 9_900 - failed);
            verdict.left_over()
        };
        let tenth = Duration::from_millis(100);
        assert_eq!(rest(&[]), tenth);
        assert_eq!(rest(&[(Failure::Status, 4_000), (Failure::Reset, 400), (Failure::Refused, 10)]), tenth);
        assert_eq!(rest(&[(Failure::Timeout, 900)]), Duration::from_secs(1), "it may still be at them");
    }
}
