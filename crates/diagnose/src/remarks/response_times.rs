// SPDX-License-Identifier: Apache-2.0
//! How long clients wait, in a sentence; and that a few of them wait much longer than most.

use super::Remark;
use crate::case::Case;
use crate::facts::requests::Requests;
use crate::judgement::{streams, tail};
use crate::statistics::share;
use crate::walk::paths::RequestPaths;
use crate::wording::{percent, seconds};

/// What is said of the endpoint at which clients wait most, where enough of them did.
pub(crate) fn sentence(case: &Case) -> Option<String> {
    let requests = case.fact::<Requests>().ok()?;
    let main = requests.main()?;
    let at = |part| seconds(main.response.quantile_ns(part) / 1e9);
    let unread = share(main.read_wait.sum_ns, main.response.sum_ns);
    let batches = match main.is_pipelined() {
        true => " Several requests are often written at once there: a batch counts as one, until its first answer.",
        false => "",
    };
    Some(format!(
        " Of the answers at {} half took {} or longer, one in a hundred {}; {} of that time the request lay unread.{batches}",
        main.name.trim_start_matches("tcp "),
        at(0.5),
        at(0.99),
        percent(unread),
    ))
}

/// Of the time that all requests take.
const MOSTLY: f64 = 0.5;

/// That a few answers take much longer than most, and make a good part of what clients wait. Whether that is as it should be
/// (one kind of request is heavy, or long by nature) only the owner of the service knows.
pub(crate) fn tail(case: &Case) -> Option<Remark> {
    let requests = case.fact::<Requests>().ok()?;
    // Of streams it is known what the late ones have in common.
    let main = requests.main().filter(|_| streams::begin(case).is_none())?;
    let slow = tail::of(main)?;
    let half_ns = main.response.quantile_ns(0.5);
    let (of_all, from) = (percent(share(slow.count, main.response.count)), seconds(slow.from_ns / 1e9));
    let unread = share(main.read_wait.sum_ns, main.response.sum_ns) >= MOSTLY;
    let held = match unread {
        _ if tail::is_one_moment(&requests, main) => {
            "They came at one moment, within a second, and not again meanwhile"
        }
        true => {
            "Most of that time the requests lay unread: whoever reads them was held by something else meanwhile, as an event \
             loop is that computes or waits in one of its turns"
        }
        false => "They are another kind of request, or something inside the service holds a few of them",
    };
    Some(Remark {
        headline: format!(
            "{of_all} of the answers take {from} or longer ({} on average), half {} at most",
            seconds(slow.mean_ns / 1e9),
            seconds(half_ns / 1e9)
        ),
        advice: Some(format!("find out what the answers that take {from} or longer have in common")),
        detail: format!(
            "{of_all} of the answers at {} took {from} or longer, which is {} of all the time that its clients waited. {held}.{}",
            main.name.trim_start_matches("tcp "),
            percent(slow.part),
            followed(case).unwrap_or_default()
        ),
    })
}

/// What the slowest of those that were followed from end to end waited for.
fn followed(case: &Case) -> Option<String> {
    let paths = case.fact::<RequestPaths>().ok()?;
    let slow = &paths.main()?.tail;
    let most = slow.parts.first()?;
    let of = percent(share(most.ns, slow.ns));
    Some(format!(" Of the time of those of them that were followed from end to end, {of} was: {}.", most.words()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn half_and_one_in_a_hundred() {
        let text = "meta target.listen=[\"tcp 0.0.0.0:80\"]
             exchange role=accepted port=80 stage=response count=100 sum_ns=400e6 length_ns=[2000000,90000000] counts=[98,2]
             exchange role=accepted port=80 stage=read_wait count=100 sum_ns=100e6 length_ns=[1000000] counts=[100]";
        let said = sentence(&Case::new(&parse(text).unwrap())).unwrap();
        assert!(said.contains("at 0.0.0.0:80 half took 2 ms or longer, one in a hundred 90 ms; 25 %"), "{said}");
        assert!(sentence(&Case::new(&parse("").unwrap())).is_none());
    }

    #[test]
    fn a_few_that_take_much_longer() {
        let tail = |slow: u32, slow_ns: u64| {
            let text = format!(
                "exchange role=accepted port=80 stage=response count={} sum_ns=9e9 length_ns=[500000,{slow_ns}] counts=[5000,{slow}]",
                5000 + slow
            );
            tail(&Case::new(&parse(&text).unwrap())).map(|remark| remark.headline)
        };
        assert_eq!(
            tail(50, 200_000_000).unwrap(),
            "1.0 % of the answers take 10 ms or longer (200 ms on average), half 500 µs at most"
        );
        assert!(tail(4, 200_000_000).is_none(), "too few");
        assert!(tail(50, 9_000_000).is_none(), "nobody feels it");
        assert!(tail(25, 12_000_000).is_none(), "a small part of the time");
    }
}
