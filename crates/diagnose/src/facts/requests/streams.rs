// SPDX-License-Identifier: Apache-2.0
//! Whether a target writes in a rhythm of its own, whatever clients send: then nobody waits for an answer.

use super::{Endpoint, LATE_NS};
use crate::statistics::ratio;

/// Of the answers: nearly all of them come in the midst of a stream. The first on each connection does not.
const STREAMED: f64 = 0.8;

/// Writes that nobody asked for, between two answers: of an answer in two or three parts that is not said.
const PUSHES: f64 = 3.0;

/// Of late answers, those that further parts follow; and of all time that clients wait, that in late answers.
const BEGIN_STREAMS: f64 = 0.8;
const MOST_OF_TIME: f64 = 0.5;

/// Parts that follow such an answer, of which the times are counted (the probe's `STREAM`).
const PARTS: f64 = 2.0;

/// Parts of an answer behind its first bytes: with more of them, most are none.
const NEWS: f64 = 2.0;

/// The time before an answer over that before other writes: in one rhythm they are alike, and in one that is drawn by chance,
/// whoever asks falls into the longer pauses, which are twice as long.
const RHYTHM: f64 = 2.0;

/// Of the time between two writes: what a client sends at any moment is followed by the next one after half of it, on average. A
/// download that is asked for when the last one is there is answered sooner, although its parts come in the rhythm of the line.
const NOT_ASKED_FOR: f64 = 0.25;

impl Endpoint {
    /// Whether the target writes in a rhythm of its own, whatever clients send meanwhile: a stream of media, of events. What comes
    /// after their bytes is its next part, and no answer.
    pub(super) fn is_stream(&self) -> bool {
        self.continued.count >= self.response.count * STREAMED
            && self.continued.count > 0.0
            && self.apart.count >= self.continued.count * PUSHES
            && self.continued.mean_ns() <= self.rhythm_ns() * RHYTHM
            && self.response.mean_ns() >= self.rhythm_ns() * NOT_ASKED_FOR
    }

    /// Whether late answers, of exchanges that were followed for so long, begin streams: further parts follow nearly all of them, and
    /// the first comes about as long after the question as each of the next ones after the one before. Several requests at once on a
    /// connection look the same.
    pub fn begins_streams(&self, followed_ns: f64) -> bool {
        let (late, late_ns) = (self.response.count_from(LATE_NS), self.response.time_from_ns(LATE_NS));
        // Of the last ones the further parts come after the end.
        let seen = 1.0 - PARTS * ratio(self.parts_apart_ns(), followed_ns);
        late_ns >= self.response.sum_ns * MOST_OF_TIME
            && self.streams.count >= (late * BEGIN_STREAMS * seen).max(1.0)
            && ratio(late_ns, late) <= self.parts_apart_ns() * RHYTHM
            && !self.is_mixed()
    }

    /// Between the first parts of such a stream, on average, ns.
    pub fn parts_apart_ns(&self) -> f64 {
        self.streams.mean_ns() / PARTS
    }

    /// Writes that came after the first one of an answer, or that nobody asked for; and how long each came after the one before it,
    /// added up, ns.
    pub fn later_writes(&self) -> (f64, f64) {
        (self.apart.count, self.apart.sum_ns)
    }

    /// Whether most of what is written was pushed to clients who had asked nothing: what looks like an answer is the next of such news.
    pub fn is_mostly_news(&self) -> bool {
        self.apart.count > self.response.count * NEWS
    }

    /// Between two writes of a stream, on average, ns.
    pub fn rhythm_ns(&self) -> f64 {
        self.apart.mean_ns()
    }
}
