// SPDX-License-Identifier: Apache-2.0
//! Answers of which the rest comes much later than the first bytes: response times end with those.

use super::Remark;
use crate::case::Case;
use crate::facts::requests::Requests;
use crate::judgement::later::rest_ns;
use crate::wording::seconds;

/// What there is to say about the main port.
pub(crate) fn remark(case: &Case) -> Option<Remark> {
    let requests = case.fact::<Requests>().ok()?;
    let rest = seconds(rest_ns(requests.main()?)? / 1e9);
    Some(Remark {
        headline: format!("the rest of an answer comes {rest} after its first bytes"),
        advice: Some(format!("see why the rest of answers takes {rest}: a limit of the rate, a slow client, or work")),
        detail: format!(
            "Response times end with the first bytes of an answer. The target went on writing {rest} after them on average: \
             it paces what it sends, waits for a client that is slow to read, or makes the rest meanwhile."
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    fn of(writes: u32, each_ms: u32) -> Option<String> {
        let text = format!(
            "meta length_ns=1e9 target.listen=[\"tcp 0.0.0.0:80\"]
             exchange_window t_ns=1e9 length_ns=1e9
             exchange t_ns=1e9 role=accepted port=80 stage=response count=40 sum_ns=8e6 length_ns=[200000] counts=[40] \
             continued=40 continued_ns=9e9 apart={writes} apart_ns={}e6",
            writes * each_ms
        );
        remark(&Case::new(&parse(&text).unwrap())).map(|remark| remark.headline)
    }

    #[test]
    fn the_rest_comes_later() {
        assert_eq!(of(40, 320).as_deref(), Some("the rest of an answer comes 320 ms after its first bytes"));
        assert_eq!((of(40, 1), of(700, 50), of(0, 0)), (None, None, None));
    }
}
