// SPDX-License-Identifier: Apache-2.0
//! What tells reasons for failing handshakes from one another. From outside they look alike: CPUs are idle, clients wait, SYNs
//! are sent again.

use super::dropped_here;
use crate::case::Case;
use crate::facts::handshakes::Handshakes;
use crate::verdict::{Evidence, evidence};

/// What a SYN that is sent again costs at least, in seconds.
pub(crate) const OF_SYN: f64 = 1.0;

/// A counter that one of the reasons moves, and the others do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    /// `accept-queue-full`.
    QueueFull,
    /// `no-return-path`.
    ListenDropped,
    /// `time-wait-collision`.
    OldTimeWait,
    /// `conntrack-full`.
    NotTracked,
    /// `packet-loss`: segments of connections that stand are sent again too.
    DataAgain,
}

impl Sign {
    fn cause(self) -> &'static str {
        match self {
            Self::QueueFull => "accept-queue-full",
            Self::ListenDropped => "no-return-path",
            Self::OldTimeWait => "time-wait-collision",
            Self::NotTracked => "conntrack-full",
            Self::DataAgain => "packet-loss",
        }
    }
}

/// The table that tells them apart, with the row of one of them marked; and what the kernel itself says of segments that it dropped.
pub(crate) fn table(case: &Case, h: &Handshakes, this: Sign) -> Vec<Evidence> {
    let rows = [
        (Sign::QueueFull, "met a full accept queue", h.overflows, "nstat -az TcpExtListenOverflows"),
        (Sign::ListenDropped, "dropped by listeners otherwise", h.other_drops(), "nstat -az TcpExtListenDrops"),
        (
            Sign::OldTimeWait,
            "refused by an old TIME_WAIT",
            h.old_time_wait.unwrap_or_default(),
            "nstat -az TcpExtPAWSTimewait",
        ),
        (Sign::NotTracked, "without an entry of conntrack", h.tracking_drops, "cat /proc/net/stat/nf_conntrack"),
        (Sign::DataAgain, "sent again that are no SYN", h.data_again(), "nstat -az TcpRetransSegs TcpExtTCPSynRetrans"),
    ];
    let most = rows.iter().map(|(_, _, value, _)| *value).fold(h.syn_again, f64::max);
    let told = rows.into_iter().map(|(sign, fact, value, see)| match sign == this {
        true => evidence(&format!("{fact} <- this one"), value, "segments", "0", see),
        false => evidence(fact, value, "segments", &format!("more if it were {}", sign.cause()), see),
    });
    let syns = evidence(
        "SYNs, and answers to SYNs, sent again from here",
        h.syn_again,
        "segments",
        "near 0",
        "nstat -az TcpExtTCPSynRetrans",
    );
    told.chain([syns]).chain(dropped_here::told(case, most)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_row_is_marked() {
        let h = Handshakes { overflows: 7.0, again: 9.0, syn_again: 9.0, ..Handshakes::default() };
        let recording = recording::text::parse("").unwrap();
        let rows = table(&Case::new(&recording), &h, Sign::QueueFull);
        assert_eq!((rows[0].fact.as_str(), rows[0].value), ("met a full accept queue <- this one", 7.0));
        assert_eq!(rows.iter().filter(|row| row.fact.contains("this one")).count(), 1);
        assert_eq!((rows[4].value, rows[5].value), (0.0, 9.0));
        assert!(rows[3].expected.contains("conntrack-full"));
    }
}
