// SPDX-License-Identifier: Apache-2.0
//! Clients that asked all the time ask nothing any more, although they are connected: whoever asks stands still, and the target
//! is well.

use super::{Check, Checked, Rule, absent, evidence, explained, found, too_little};
use crate::answer::{Measured, Unit};
use crate::case::Case;
use crate::facts::handshakes::Handshakes;
use crate::facts::stopped::Stopped;
use crate::facts::traffic::Traffic;
use crate::phrases::ledger_lines::stopped;
use crate::statistics::share;
use crate::verdict::{Evidence, Explains, Finding, Subject};
use crate::wording::{count, percent, seconds};

pub(super) static RULE: Rule =
    Rule { cause: "traffic-stopped", explain: explain!("traffic-stopped"), check: Check::Accuses(check) };

/// Requests that were due in the silence: none of twenty is no chance, whatever law they come by.
const MIN_DUE: f64 = 20.0;

/// A second: the shortest time that is looked at as a whole.
const MIN_SILENCE_S: f64 = 0.9;

/// Of the mean rate, the least that a slice before the silence had: else they come in bursts, and this may be a pause.
const STEADY: f64 = 0.5;

/// Whole slices before the silence, and of the silence so much in time: of fewer nobody can say that they are steady, and what came
/// for a shorter time may have been a page that somebody looked at, or a batch.
const MIN_SLICES: usize = 2;
const AS_LONG: f64 = 0.5;

/// Of the connections before: with fewer the clients have left.
const STILL_THERE: f64 = 0.5;

/// Of the connections, those in which the target owes something: one in twenty may be a long poll.
const OWED: f64 = 0.05;

/// Connections that stand so and did not before: nearly one is somebody who asked, and waits.
const ONE_MORE: f64 = 0.9;

/// Of the requests that were due, segments with data that came: with so many, clients ask.
const THEY_ASK: f64 = 0.5;

/// Of its time, held by somebody: as long as that, clients would notice.
const MAX_HELD: f64 = 0.01;

fn check(case: &Case) -> Checked {
    let Ok(traffic) = case.fact::<Traffic>() else { return absent("no client was seen to ask it for anything") };
    if traffic.ns == 0.0 || traffic.rate == 0.0 {
        return absent("clients asked until the end of the window, or too little before to tell");
    }
    let due = Measured::new(traffic.expected(), MIN_DUE, Unit::Requests);
    let silence = Measured::new(traffic.ns / 1e9, MIN_SILENCE_S, Unit::Seconds);
    if let Some(seen) = Measured::farthest([due, silence]) {
        return too_little(seen, format!("{}, {} requests were due", told(&traffic), count(traffic.expected())));
    }
    match otherwise(case, &traffic) {
        Some(why) => explained(format!("{}, but {why}", told(&traffic))),
        None => accuse(case, &traffic),
    }
}

fn told(traffic: &Traffic) -> String {
    let rate = count(traffic.rate);
    format!("{rate} requests came a second, and none in the last {}", seconds(traffic.ns / 1e9))
}

/// What else explains the silence.
fn otherwise(case: &Case, t: &Traffic) -> Option<String> {
    if let Some(held) = case.fact::<Stopped>().ok().filter(|stopped| stopped.share() >= MAX_HELD) {
        return Some(format!("the target itself stood still: {}", stopped(&held).unwrap_or_default()));
    }
    let owed = t.unread.max(t.late);
    if owed > t.open * OWED || t.queued > 0.0 || owed - t.owed_before >= ONE_MORE {
        return Some(format!(
            "the target is what stands still: bytes lay unread in {:.1} connections on average, in {:.1} an answer was owed, and \
             {:.1} stood in the accept queue",
            t.unread, t.late, t.queued
        ));
    }
    if t.segments >= t.expected() * THEY_ASK {
        return Some(format!(
            "{} segments with data came, and the target took none of them for a request",
            count(t.segments)
        ));
    }
    if t.slices < MIN_SLICES || t.before_ns < t.ns * AS_LONG {
        let before = seconds(t.before_ns / 1e9);
        return Some(format!("they were seen for {before} before, too short to tell from a batch that is over"));
    }
    if t.steady < STEADY {
        return Some(format!("they come in bursts: a slice before it had {} of the mean", percent(t.steady)));
    }
    if t.open < t.open_before * STILL_THERE || t.open == 0.0 {
        return Some(format!(
            "the clients closed their connections: {:.1} are open, {:.1} were",
            t.open, t.open_before
        ));
    }
    let dropped = case.fact::<Handshakes>().map_or(0.0, |h| h.overflows + h.other_drops());
    (dropped > 0.0)
        .then(|| format!("{} handshakes were dropped in the window: clients may stand there", count(dropped)))
}

fn accuse(case: &Case, traffic: &Traffic) -> Checked {
    let headline = format!("{}: clients are connected, and stand still", told(traffic));
    found(finding(case, traffic), headline, "look at the clients and what is before them; this service waits for them")
}

fn finding(case: &Case, t: &Traffic) -> Finding {
    Finding {
        // Requests are counted at the reads; that no data came is the sockets' own count.
        summary: format!(
            "{}, where {} were due; {:.1} connections of clients stand open, {:.1} did before. Nothing lies unread in them and \
             no answer is owed: the target waits for its clients",
            told(t),
            count(t.expected()),
            t.open,
            t.open_before
        ),
        subject: Subject { clients: true, ..Subject::default() },
        explains: Explains {
            share: share(t.ns, case.length_ns()),
            of: "the window".into(),
            seconds: t.ns / 1e9,
        },
        evidence: rows(t),
        remedy: "Find who asks: `ss -tnp state established` shows the other ends. See there whether the process runs, and what it \
                 waits for. Connections whose other end is gone for good look the same here until keep-alive ends them."
            .into(),
        check: "Requests come again, at the rate of before.".into(),
        // A pool of connections that stays open after the last request of a batch looks the same.
        ..RULE.finding(case, 1)
    }
}

fn rows(t: &Traffic) -> Vec<Evidence> {
    vec![
        evidence("requests a second, before", t.rate, "requests", "", ""),
        evidence("without any, at the end", t.ns / 1e9, "s", "0", ""),
        evidence("requests due in that time", t.expected(), "requests", "", ""),
        evidence("connections open before", t.open_before, "connections", "", ""),
        evidence("connections open in it", t.open, "connections", "0 if clients were done", "ss -tn state established"),
        evidence(
            "of them, with bytes unread",
            t.unread,
            "connections",
            "all of them if the target stood still",
            "ss -tn  # Recv-Q",
        ),
        evidence("of them, with an answer owed", t.late, "connections", "all of them if the target stood still", ""),
        evidence("in the accept queue", t.queued, "connections", "more if the target stood still", "ss -ltn  # Recv-Q"),
        evidence("segments with data that came in it", t.segments, "segments", "", ""),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::asking::{found, silent};
    use super::RULE;

    /// Requests in each second, and connections in those of the silence.
    fn text(began: &[u32], connection: &str) -> String {
        let mut text = format!("meta host.arch=x86_64 target.pids=[1] length_ns={}e9\n", began.len());
        for (slice, began) in (1..).zip(began) {
            text += &format!("exchange_window t_ns={slice}e9 length_ns=1e9\n");
            let connection = if *began > 0 { "open=80 segments=9" } else { connection };
            text += &format!("connection t_ns={slice}e9 role=accepted port=80 looks=10 {connection}\n");
            if *began > 0 {
                text +=
                    &format!("exchange t_ns={slice}e9 role=accepted port=80 stage=response count=9 began={began}\n");
            }
        }
        text
    }

    #[test]
    fn clients_that_stand_still() {
        let finding = found(&RULE, &text(&[200, 210, 60, 0, 0], "open=80"));
        assert!(
            finding.summary.starts_with("205 requests came a second, and none in the last 2.0 s"),
            "{}",
            finding.summary
        );
        assert_eq!((finding.confidence.as_str(), finding.explains.share), ("medium", 0.4), "a batch may pause so long");
    }

    #[test]
    fn a_target_that_stands_still_itself() {
        let unread = silent(&RULE, &text(&[200, 210, 60, 0, 0], "open=80 unread=78 late=78"));
        assert!(unread.contains("the target is what stands still: bytes lay unread in 7.8 connections"), "{unread}");
        assert!(silent(&RULE, &text(&[200, 210, 60, 0, 0], "open=80 queued=30")).contains("stood in the accept queue"));
        // Beside a thousand connections that are idle.
        let few = |more: &str| silent(&RULE, &text(&[200, 210, 60, 0, 0], &format!("open=1000 {more}")));
        assert!(few("late=40").contains("in 4.0 an answer was owed"), "{}", few("late=40"));
        assert!(few("segments=300").contains("600 segments with data came"), "{}", few("segments=300"));
        let stopped = text(&[200, 210, 60, 0, 0], "open=80")
            + "thread pid=1 tid=1 wall_ns=5e9 blocked_ns=45e8
               wait pid=1 tid=1 syscall=232 fd_kind=anon state=4 count=1 total_ns=2e9";
        assert!(
            silent(&RULE, &stopped).contains("stood still: being stopped by a signal"),
            "{}",
            silent(&RULE, &stopped)
        );
    }

    #[test]
    fn idle_services_bursts_and_clients_that_are_done() {
        assert!(silent(&RULE, &text(&[3, 2, 4, 0, 0], "open=80")).contains("5 requests were due"));
        assert!(silent(&RULE, &text(&[300, 2, 280, 0, 0], "open=80")).contains("they come in bursts"));
        assert!(
            silent(&RULE, &text(&[200, 210, 60, 0, 0], "open=3")).contains("closed their connections: 0.3 are open")
        );
        assert!(
            silent(&RULE, &text(&[40, 3, 0, 0, 0, 0, 0], "open=80")).contains("a batch that is over"),
            "a page, once"
        );
        assert!(silent(&RULE, &text(&[40, 42, 3, 0, 0, 0, 0, 0], "open=80")).contains("a batch that is over"));
        assert!(silent(&RULE, &text(&[200, 210, 200], "")).contains("until the end"));
        assert!(silent(&RULE, "meta length_ns=1e9").contains("no client"));
    }

    #[test]
    fn the_beginning_of_the_window_tells_nothing() {
        assert!(silent(&RULE, &text(&[200, 0, 0, 0], "open=80")).contains("until the end"), "no whole slice before");
    }
}
