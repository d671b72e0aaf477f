// SPDX-License-Identifier: Apache-2.0
//! What came of a load: every answer in a histogram, every failure by its kind, second by second.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::client::{Spent, Threads};
use crate::lengths::Lengths;
use crate::opening::Opening;
use crate::plan::{Plan, Rate};
use crate::reason::Reason;
use crate::taken::Taken;

/// Why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// The connection was refused.
    Refused,
    /// The other end reset the connection.
    Reset,
    /// It closed the connection before the answer was whole.
    Closed,
    /// No answer, or no connection, within the timeout.
    Timeout,
    /// It was noticed only when its time was over, and never sent.
    Unsent,
    /// No local port was left for the connection.
    NoPort,
    /// No file descriptor was left.
    NoDescriptor,
    /// What came was no reply.
    Garbage,
    /// The network or the host cannot be reached.
    Unreachable,
    /// The answer says that it is none: an HTTP status of 400 and more.
    Status,
    /// Another error of the system.
    Other,
}

impl Failure {
    /// Whether it is the client's own: it was much too late, or its host had no port or no descriptor left.
    pub(crate) const fn is_own(self) -> bool {
        matches!(self, Self::Unsent | Self::NoPort | Self::NoDescriptor)
    }
}

/// One second of a load.
#[derive(Clone, Debug, Default)]
pub struct Second {
    /// Requests that were due.
    pub due: u64,
    /// Requests that were sent.
    pub sent: u64,
    /// Answers that came in it, whenever they were due.
    pub done: u64,
    /// Answers: from the moment at which a request was due until its answer was whole.
    pub latency: Lengths,
    /// The same from the moment at which it was sent.
    pub service: Lengths,
    /// Requests without one.
    pub failed: u64,
}

/// The longest time in which nobody was answered, although requests were under way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stood {
    /// How long.
    pub length: Duration,
    /// When it began.
    pub from: Duration,
    /// Requests that were under way at its end, or waited for a connection.
    pub waiting: usize,
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

/// Who ended a load before its time, or another's generator before it ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedBy {
    /// Somebody (Ctrl-C).
    Somebody,
    /// The time for which it was watched was over.
    Time,
    /// The recording had as many rows as are judged.
    Budget,
    /// It gave up by itself: nobody answered.
    Silence,
}

impl EndedBy {
    /// In words, after so many seconds.
    pub(crate) fn words(self, seconds: f64) -> String {
        match self {
            Self::Somebody => format!("it was ended after {seconds:.1} s"),
            Self::Time => {
                format!("it was ended after {seconds:.1} s, and would have gone on; --for gives it more time")
            }
            Self::Budget => {
                format!("it was ended after {seconds:.1} s, when as much of it was recorded as is judged at once")
            }
            Self::Silence => format!("it gave up by itself after {seconds:.1} s, because nobody had answered at all"),
        }
    }
}

/// What came of a load.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Who loaded: this program, or a generator by its name.
    pub who: String,
    /// Requests a second that were planned; none = they were sent as answers came, or somebody else's plan is not known.
    pub planned: Option<f64>,
    /// Connections that there could be at most; 0 = not known.
    pub pool: usize,
    /// For how long requests were due and none of them was free.
    pub full: Duration,
    /// From the moment at which a request was due until this program noticed: its own fault alone.
    pub lag: Lengths,
    /// Answers that say that they are none, from when they were due; never among the others.
    pub refusals: Lengths,
    /// Failures.
    pub failures: BTreeMap<Failure, u64>,
    /// Replies by HTTP status.
    pub statuses: BTreeMap<u16, u64>,
    /// How connections were opened, where somebody else did.
    pub opening: Opening,
    /// Answers that say where else to ask, of a generator that is somebody else's.
    pub elsewhere: u64,
    /// Why lengths are no response times, if they are none.
    pub mixed: Option<Reason>,
    /// What stood between client and service.
    pub between: Option<Reason>,
    /// What is to be known besides, as how a generator ended.
    pub noted: Vec<Reason>,
    /// Requests that were due, and those that were sent.
    pub due: u64,
    /// Sent.
    pub sent: u64,
    /// Those of them that were sent once more, because the service closed the connection meanwhile.
    pub sent_again: u64,
    /// Connections that were opened.
    pub connections: u64,
    /// Over how many connections at a time it was asked and answered.
    pub taken: Taken,
    /// When a request without an answer fails.
    pub timeout: Duration,
    /// Of the answers that somebody else's generator got, the share of which was looked at what they say, and how many of those are good;
    /// none = of all.
    pub looked: Option<(f64, u64)>,
    /// Answers that came while requests were still sent.
    pub in_time: u64,
    /// The shortest and the longest reply, bytes.
    pub sizes: Option<(u64, u64)>,
    /// How long nobody was answered, at the longest; nothing where it is not known.
    pub stood: Stood,
    /// Second by second, by when requests were due.
    pub seconds: Vec<Second>,
    /// How long requests were sent.
    pub length: Duration,
    /// Whether what was sent back was looked at: that an answer was whole, and what it said.
    pub sees_answers: bool,
    /// Of another's generator, whether the first bytes of answers said if they report an error.
    pub sees_errors: bool,
    /// Answers in the seconds that lie wholly within the load, and their time, where only seconds are known.
    pub steady: Option<(u64, Duration)>,
    /// The same and the wait for the last answers: the time that `spent` is of.
    pub lasted: Duration,
    /// For how long of that requests were counted.
    pub seen: Duration,
    /// In which seconds, where it was not all of them.
    pub followed: Option<BTreeSet<u64>>,
    /// What this program's loop took of CPUs, or all threads of a generator.
    pub spent: Spent,
    /// The same while it asked, by thread; none = that is not told apart.
    pub threads: Option<Threads>,
    /// Whether it was a closed loop; none = that is not known.
    pub is_closed: Option<bool>,
    /// Who ended it early; none = it ended by itself.
    pub ended: Option<EndedBy>,
}

impl Run {
    /// Nothing yet, of a plan.
    pub(crate) fn of(plan: &Plan) -> Self {
        let planned = match plan.rate {
            Rate::PerSecond(rate) => Some(rate),
            Rate::Max => None,
        };
        let who = "this program".into();
        Self {
            who,
            planned,
            timeout: plan.timeout,
            pool: plan.connections,
            sees_answers: true,
            is_closed: Some(planned.is_none()),
            ..Self::default()
        }
    }

    /// Answers that are ones.
    pub fn answered(&self) -> u64 {
        // Not by `latency`: there a wait may stand for those who were not let ask.
        self.seconds.iter().map(|second| second.service.count()).sum()
    }

    /// Whether requests were counted for a part of the time only.
    pub(crate) fn is_sampled(&self) -> bool {
        self.seen < self.length.mul_f64(0.95)
    }

    /// Whether requests of a second were counted.
    pub(crate) fn is_followed(&self, second: usize) -> bool {
        self.followed.as_ref().is_none_or(|all| all.contains(&(second as u64)))
    }

    /// Of all requests, those that nobody answered in time.
    pub(crate) fn unanswered(&self) -> f64 {
        self.failures.get(&Failure::Timeout).map_or(0.0, |many| *many as f64 / self.due.max(1) as f64)
    }

    /// Requests that failed for another reason than the client's own.
    pub(crate) fn failed_there(&self) -> u64 {
        self.failures.iter().filter(|entry| !entry.0.is_own()).map(|entry| *entry.1).sum()
    }

    /// Requests without.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    /// Answers a second, while requests were sent.
    pub fn rate(&self) -> f64 {
        let over_all = self.in_time as f64 / self.seen.as_secs_f64().max(1e-9);
        // With its beginning and its end, it is no faster than between them.
        self.steady.map_or(over_all, |(answers, time)| (answers as f64 / time.as_secs_f64()).max(over_all))
    }

    /// Adds an answer; `in_time` = it came while requests were still sent.
    pub(crate) fn add_answer(&mut self, due: Duration, times: (Duration, Duration), bytes: u64, in_time: bool) {
        let (latency, service) = times;
        let second = self.second(due);
        second.latency.add(latency);
        second.service.add(service);
        self.in_time += u64::from(in_time);
        if in_time {
            self.second(due + latency).done += 1;
        }
        let (least, most) = self.sizes.unwrap_or((bytes, bytes));
        self.sizes = Some((least.min(bytes), most.max(bytes)));
    }

    pub(crate) fn second(&mut self, due: Duration) -> &mut Second {
        let at = due.as_secs() as usize;
        if self.seconds.len() <= at {
            self.seconds.resize_with(at + 1, Second::default);
        }
        &mut self.seconds[at]
    }
}
