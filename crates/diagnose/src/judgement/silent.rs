// SPDX-License-Identifier: Apache-2.0
//! Whether requests that hang may wait for a peer that gave no answer.
//!
//! A connection over which a log is sent, or on which something was ordered once, looks the same at its socket. Who stands in a read
//! of it waits; else there have to be as many questions as requests that hang, and no older ones.

use crate::facts::connections::Held;
use crate::facts::silent::{Silent, SilentPeer};
use crate::statistics::ratio;

/// By what it is told that somebody waits for a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// Threads stand in reads of its connections.
    ByThreads,
    /// As many questions are open as requests hang, for about as long.
    ByCount,
    /// By nothing.
    Untold,
}

/// Connections: one may be there for something else.
const SEVERAL: f64 = 3.0;

/// Of the requests that hang, or of the connections to a peer.
const MOSTLY: f64 = 0.5;

/// Times the requests that hang: each of them asks once.
const MOST_QUESTIONS: f64 = 1.2;

/// Times the age of the requests: those that a few threads have in hand are the older ones, and a question is younger than what it is
/// for, as far as averages over looks tell.
const OLDEST_IN_HAND: f64 = 2.0;
const OLDEST: f64 = 1.1;
/// Likewise: a question that was asked long after the requests came is for something else.
const YOUNGEST: f64 = 0.2;

/// By what it is told that requests wait for a peer.
pub(crate) fn awaited(silent: &Silent, held: &Held) -> Awaited {
    let (requests, age) = (silent.requests, ratio(held.late_ns, silent.owed_ns));
    let several = held.late >= (requests * MOSTLY).min(SEVERAL);
    if several && held.awaited >= held.late * MOSTLY && (YOUNGEST..=OLDEST_IN_HAND).contains(&age) {
        return Awaited::ByThreads;
    }
    let as_many = (requests * MOSTLY..=requests * MOST_QUESTIONS).contains(&held.late) && held.late >= SEVERAL;
    // Over a relay, lines of logs or measurements go as they come.
    let wait = silent.went_on < requests * MOSTLY;
    if as_many && wait && (YOUNGEST..=OLDEST).contains(&age) { Awaited::ByCount } else { Awaited::Untold }
}

/// The one that most is owed by, of those that somebody waits for.
pub(crate) fn most(silent: &Silent) -> Option<&SilentPeer> {
    let waited_for = silent.peers.iter().filter(|peer| awaited(silent, &peer.held) != Awaited::Untold);
    waited_for.max_by(|a, b| a.held.late.total_cmp(&b.held.late))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Case;
    use recording::text::parse;

    /// Twenty requests have hung for six seconds; a peer owes answers.
    fn of(more: &str) -> Option<Awaited> {
        let text = format!(
            "meta length_ns=4e9
             exchange_window t_ns=4e9 length_ns=4e9
             connection t_ns=4e9 role=accepted port=80 looks=40 open=800 late=800 late_ns=480e10
             connection t_ns=4e9 role=made peer=10.0.0.9:1 looks=40 {more}"
        );
        let recording = parse(&text).unwrap();
        let silent = Case::new(&recording).fact::<Silent>().unwrap();
        silent.peers.first().map(|peer| awaited(&silent, &peer.held))
    }

    #[test]
    fn by_threads_or_by_their_number() {
        assert_eq!(of("open=320 late=320 late_ns=300e10 awaited=320"), Some(Awaited::ByThreads), "a pool of eight");
        assert_eq!(of("open=800 late=720 late_ns=400e10"), Some(Awaited::ByCount), "a loop");
    }

    #[test]
    fn what_looks_the_same() {
        assert_eq!(of("open=40 late=40 late_ns=24e10"), Some(Awaited::Untold), "one connection over which logs go");
        assert_eq!(
            of("open=40 late=40 late_ns=24e10 awaited=40"),
            Some(Awaited::Untold),
            "a subscription with a thread"
        );
        assert_eq!(of("open=2000 late=2000 late_ns=1000e10"), Some(Awaited::Untold), "more than requests");
        assert_eq!(of("open=800 late=800 late_ns=600e10"), Some(Awaited::Untold), "ordered before any request came");
        assert_eq!(of("open=320 late=320 late_ns=30e10 awaited=320"), Some(Awaited::Untold), "asked a moment ago");
        assert_eq!(of("open=800 late=800 late_ns=20e10"), Some(Awaited::Untold), "a line of a log now and then");
        let relayed = "open=800 late=720 late_ns=400e10
             connection t_ns=4e9 role=accepted port=80 looks=40 went_on=15";
        assert_eq!(of(relayed), Some(Awaited::Untold), "whoever sent something goes on sending");
        let answers = "open=800 late=720 late_ns=400e10
             exchange role=made peer=10.0.0.9:1 stage=response count=9 sum_ns=1 length_ns=[1000000] counts=[9]";
        assert_eq!(of(answers), None);
    }
}
