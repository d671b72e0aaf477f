// SPDX-License-Identifier: Apache-2.0
//! When it began: the verdict of each part of a recording, one after the other.

use std::fmt;
use std::time::Duration;

use recording::{Part, Recording};

use crate::answer::RequestTimes;
use crate::answer::about::length_ns;
use crate::case::Case;
use crate::facts::limits::Limits;
use crate::facts::traffic::followed;
use crate::judge;
use crate::verdict::Moment;

/// Verdicts that one reader looks through, and that are made in seconds.
const MOST: u32 = 500;

/// Why there is no timeline, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooMany(String);

impl fmt::Display for TooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TooMany {}

/// The verdicts of parts of `every` length, to the nearest slices. Each is made of its part alone, as if nothing else had been
/// recorded.
///
/// # Errors
/// There would be too many; the sentence says which length would do.
pub fn timeline(recording: &Recording, every: Duration, slo: Option<Duration>) -> Result<Vec<Moment>, TooMany> {
    let length_ns = length_ns(recording) as u64; // of one that broke off too
    let whole = Duration::from_nanos(length_ns);
    if every.is_zero() || every < whole / MOST {
        let (seconds, least) = (whole.as_secs(), (whole / MOST).as_secs() + 1);
        return Err(TooMany(format!(
            "parts of {every:?} of a recording of {seconds} s are more than the {MOST} that one timeline has; take \
             {least}s or more"
        )));
    }
    let step = u64::try_from(every.as_nanos()).unwrap_or(u64::MAX).max(1);
    let starts = (0..length_ns).step_by(usize::try_from(step).unwrap_or(usize::MAX));
    let parts = starts.map(|from_ns| Part { from_ns, to_ns: from_ns.saturating_add(step) });
    Ok(parts.filter_map(|part| moment(recording, part, slo)).collect())
}

/// `None` = no slice of the recording lies mostly in this part.
fn moment(recording: &Recording, part: Part, slo: Option<Duration>) -> Option<Moment> {
    let (case, from_ns) = Case::of_part(recording, part, slo)?;
    let verdict = judge(&case);
    let asked = verdict.requests.iter().filter(|r| r.is_accepted()).max_by_key(|r| r.exchanges);
    let seconds = |at: fn(&RequestTimes) -> f64| asked.map(at);
    Some(Moment {
        from: from_ns as f64 / 1e9,
        to: (from_ns + case.recording.meta.length_ns) as f64 / 1e9,
        share: verdict.findings.first().map(|finding| finding.explains.share),
        verdict: verdict.verdict,
        headline: verdict.headline,
        cores: case.fact::<Limits>().map_or(0.0, |limits| limits.cores),
        rate: rate(&case),
        p50: seconds(|r| r.seconds.p50),
        p99: seconds(|r| r.seconds.p99),
    })
}

/// A silence is told from a time in which nobody looked.
fn rate(case: &Case) -> Option<f64> {
    let times = followed(case);
    let (followed_ns, began) =
        times.iter().fold((0.0, 0.0), |(ns, all), (_, length, began)| (ns + length, all + began));
    (followed_ns > 0.0).then(|| began * 1e9 / followed_ns)
}

#[cfg(test)]
mod tests {
    use recording::text::parse;

    use super::*;

    const TEXT: &str =
        "meta host.arch=x86_64 host.cpus=2 length_ns=4e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
        thread t_ns=1e9 pid=1 tid=1 wall_ns=1e9 cpu_ns=1e8 blocked_ns=9e8
        thread t_ns=2e9 pid=1 tid=1 wall_ns=1e9 cpu_ns=1e8 blocked_ns=9e8
        thread t_ns=3e9 pid=1 tid=1 wall_ns=1e9 cpu_ns=1e8 run_queue_ns=9e8
        thread t_ns=4e9 pid=1 tid=1 wall_ns=1e9 cpu_ns=1e8 run_queue_ns=9e8
        exchange_window t_ns=1e9 length_ns=1e9\nexchange_window t_ns=3e9 length_ns=1e9
        exchange t_ns=3e9 role=accepted port=80 stage=response began=12 count=10 sum_ns=2e9 length_ns=[200000000] counts=[10]";

    #[test]
    fn each_part_has_its_own() {
        let moments = timeline(&parse(TEXT).unwrap(), Duration::from_secs(2), None).unwrap();
        let when: Vec<_> = moments.iter().map(|m| (m.from, m.to)).collect();
        assert_eq!(when, [(0.0, 2.0), (2.0, 4.0)]);
        assert_eq!((moments[0].rate, moments[1].rate), (Some(0.0), Some(12.0)));
        assert!(moments[0].p99.is_none() && moments[1].p99.is_some_and(|p99| (0.1..0.3).contains(&p99)));
        assert!(moments.iter().all(|m| (m.cores - 0.1).abs() < 0.02), "{moments:?}");
    }

    #[test]
    fn too_many_are_refused() {
        let long = parse("meta length_ns=600e9").unwrap();
        let refused = timeline(&long, Duration::from_secs(1), None).err().unwrap();
        assert!(refused.0.ends_with("take 2s or more"), "{}", refused.0);
        assert_eq!(timeline(&long, Duration::from_secs(2), None), Ok(vec![]));
    }
}
