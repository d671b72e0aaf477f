// SPDX-License-Identifier: Apache-2.0
//! A short time in which nobody was answered, in a window of which it is a small part: whoever asked then felt it, and others did not.

use super::Remark;
use crate::case::Case;
use crate::judgement::standstill::small;
use crate::wording::{count, percent, seconds};

/// What there is to say about it.
pub(crate) fn remark(case: &Case) -> Option<Remark> {
    let seen = small(case)?;
    let (about, whole) = match seen.is_followed {
        true => ("", "time in which answers were followed"),
        false => ("about ", "capture"),
    };
    let (ns, at) = (seconds(seen.ns / 1e9), (seen.until_ns - seen.ns).max(0.0) / 1e9);
    Some(Remark {
        headline: format!("for {about}{ns} nobody got an answer, around {at:.0} s"),
        advice: None,
        detail: format!(
            "Around {at:.0} s of the capture nobody was answered at {} for {about}{ns}, while {} requests waited; such times are {} of the \
             {whole}. `--at {}s..{}s` of a recording (--save DIR) looks at that part alone.",
            seen.endpoint,
            count(seen.requests as f64),
            percent(seen.share),
            seen.slices().from_ns / 1_000_000_000,
            seen.slices().to_ns / 1_000_000_000,
        ),
    })
}

#[cfg(test)]
mod tests {
    use recording::text::parse;

    use super::remark;
    use crate::case::Case;
    use crate::judgement::standstill::{look, tests::text};

    /// The same pause, in four seconds and in four minutes.
    #[test]
    fn one_pause_in_a_long_capture_is_said_and_is_no_finding() {
        let short = text(2400, 2, 920, 4);
        let long = short.replace("length_ns=4e9", "length_ns=240e9").replace("t_ns=4e9", "t_ns=240e9");
        let (short, long) = (parse(&short).unwrap(), parse(&long.replace("count=2400", "count=144000")).unwrap());
        assert!(look(&Case::new(&short)).is_some() && remark(&Case::new(&short)).is_none());
        assert!(look(&Case::new(&long)).is_none());
        let said = remark(&Case::new(&long)).unwrap();
        assert!(said.headline.starts_with("for 920 ms nobody got an answer"), "{said:?}");
        assert!(said.detail.contains("such times are 0.4 % of the time"), "{said:?}");
    }
}
