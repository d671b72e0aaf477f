// SPDX-License-Identifier: Apache-2.0
//! Whether a few answers take much longer than most, and make a good part of what clients wait.

use crate::facts::requests::{Endpoint, LATE_NS, Requests, slow_from_ns};
use crate::statistics::ratio;

/// Of the time that all clients wait.
const MUCH: f64 = 0.25;

/// Slow ones: of fewer, each may be chance.
pub(super) const SEVERAL: f64 = 5.0;

/// The slow answers.
pub(crate) struct Tail {
    /// From which length on they are slow, ns.
    pub from_ns: f64,
    /// How many.
    pub count: f64,
    /// How long each takes on average, ns.
    pub mean_ns: f64,
    /// Of all time that clients waited there.
    pub part: f64,
}

/// The slow answers at an endpoint, if they matter.
pub(crate) fn of(endpoint: &Endpoint) -> Option<Tail> {
    let times = &endpoint.response;
    let from_ns = slow_from_ns(times.quantile_ns(0.5));
    let slow = || times.counts().filter(|(length_ns, _)| *length_ns >= from_ns);
    let (count, sum_ns) = (slow().map(|(_, n)| n).sum(), slow().map(|(length_ns, n)| length_ns * n).sum());
    let tail = Tail { from_ns, count, mean_ns: ratio(sum_ns, count), part: times.share_of_time_from(from_ns) };
    (tail.count >= SEVERAL && tail.part >= MUCH).then_some(tail)
}

/// Slices, of which one can be told from the others.
const FEW_SLICES: usize = 3;

/// Of the time in late answers, in one slice: a disk that stands still for once, a burst of somebody else's.
const AT_ONCE: f64 = 0.9;

/// What one exchange that was followed may stand for: of a service that is followed for less than half of the time, nobody knows what
/// came in between.
const MOST_UNSEEN: f64 = 2.0;

/// Whether an endpoint's answers were late at one moment only. Several requests may wait for one thing then; that it comes again,
/// nobody has seen.
pub(crate) fn is_one_moment(requests: &Requests, endpoint: &Endpoint) -> bool {
    let times = &endpoint.response;
    let late_ns = times.time_from_ns(LATE_NS);
    // They are told by when they end: what lasted for longer than that was no moment.
    let slice_ns = ratio(requests.followed_ns, requests.slices as f64);
    requests.slices >= FEW_SLICES
        && requests.scale() <= MOST_UNSEEN
        && late_ns > 0.0
        && ratio(late_ns, times.count_from(LATE_NS)) < slice_ns
        && endpoint.most_late_ns >= late_ns * AT_ONCE
}

#[cfg(test)]
mod tests {
    use crate::case::Case;

    use super::*;

    /// Slices with 20 answers each, of which so many took 50 ms instead of 2.
    fn one_moment(late: &[u64]) -> bool {
        one_moment_of("4e9", late)
    }

    /// The same of a capture of some length, ns.
    fn one_moment_of(length_ns: &str, late: &[u64]) -> bool {
        let mut text = format!("meta length_ns={length_ns} target.listen=[\"tcp 0.0.0.0:80\"]\n");
        for (t, late) in late.iter().enumerate() {
            let (quick, sum_ns) = (20 - late, (20 - late) * 2_000_000 + late * 50_000_000);
            text += &format!(
                "exchange t_ns={t}e9 role=accepted port=80 stage=response count=20 sum_ns={sum_ns} length_ns=[2000000,50000000] counts=[{quick},{late}]
                 exchange_window t_ns={t}e9 length_ns=1e9\n"
            );
        }
        let recording = recording::text::parse(&text).unwrap();
        let requests = Case::new(&recording).fact::<Requests>().unwrap();
        is_one_moment(&requests, requests.main().unwrap())
    }

    #[test]
    fn what_comes_once_is_told_from_what_comes_again() {
        assert!(one_moment(&[0, 0, 9, 0]) && one_moment(&[10, 0, 1, 0]), "one stall, and one late answer by chance");
        assert!(!one_moment(&[0, 3, 9, 0]) && !one_moment(&[5, 5, 5, 5]));
        assert!(!one_moment(&[9, 0]), "of two slices nobody can tell");
        assert!(!one_moment(&[0, 0, 0, 0]), "nothing was late");
        assert!(!one_moment_of("20e9", &[0, 0, 9, 0]), "it may have come again while nobody looked");
    }
}
