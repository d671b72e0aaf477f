// SPDX-License-Identifier: Apache-2.0
//! Somebody is asked many times for each request: each answer is quick, and together they are most of what a request takes.

use super::Remark;
use crate::case::Case;
use crate::facts::requests::Requests;
use crate::judgement::often::Often;
use crate::statistics::ratio;
use crate::wording::{count, percent};

/// Of the response time: less is not where it goes.
const WORTH: f64 = 0.3;

/// What there is to say about it.
pub(crate) fn remark(case: &Case) -> Option<Remark> {
    let requests = case.fact::<Requests>().ok()?;
    let often = |peer| {
        let (asking, ns) = requests.that_may_ask(peer)?;
        let often = Often::of(case, &peer.name)?;
        let part = ratio(often.times * often.each_ns * asking, ns);
        // What takes longer than the requests is asked for something else too.
        (part <= 1.0).then_some((&peer.name, often, part))
    };
    let peers = requests.endpoints.iter().filter(|endpoint| !endpoint.accepted).filter_map(often);
    let (peer, often, of_time) = peers.max_by(|a, b| a.2.total_cmp(&b.2)).filter(|(_, _, part)| *part >= WORTH)?;
    Some(Remark {
        headline: format!("{peer} is {}", often.words()),
        advice: Some(often.advice(peer)),
        detail: format!(
            "{peer} is asked {} times for each request, which is {} of the response time: one question for all would save most \
             of that.",
            count(often.times.round()),
            percent(of_time)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    fn of(asked: u32) -> Option<String> {
        let text = format!(
            "meta length_ns=1e9
             exchange_window t_ns=1e9 length_ns=1e9
             exchange role=accepted port=80 stage=response count=100 sum_ns=6e8 length_ns=[6000000] counts=[100]
             exchange role=made peer=10.0.0.9:1 stage=response count={asked} sum_ns={asked}0000 length_ns=[10000] counts=[{asked}]"
        );
        remark(&Case::new(&parse(&text).unwrap())).map(|remark| remark.headline)
    }

    #[test]
    fn quick_answers_of_which_there_are_many() {
        let headline = of(40_000).unwrap();
        assert_eq!(headline, "10.0.0.9:1 is asked 400 times for each request, 10 µs at a time");
        assert_eq!(of(10_000), None, "100 times are a sixth of the time");
    }
}
