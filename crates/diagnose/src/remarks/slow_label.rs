// SPDX-License-Identifier: Apache-2.0
//! Which requests are slow, where they have labels: that is the first thing to look at, whatever makes them slow.

use crate::case::Case;
use crate::facts::labels::{ENOUGH, Labelled, Labels};
use crate::facts::requests::{LATE_NS, Requests};
use crate::wording::seconds;

/// How much longer half of them take than half of all.
const APART: f64 = 3.0;

/// The words for the headline, of the port where clients wait most. Those of a loop may be slow although others hold it: who those
/// are is told by what each computes.
pub(crate) fn headline(case: &Case) -> Option<String> {
    let (labels, requests) = (case.fact::<Labels>().ok()?, case.fact::<Requests>().ok()?);
    let main = requests.main()?;
    let place = labels.of(true, &main.name)?;
    let all_ns = main.response.quantile_ns(0.5);
    let half_ns = |labelled: &Labelled| labelled.lengths.quantile_ns(0.5);
    let is_slow = |labelled: &&Labelled| {
        labelled.seen >= ENOUGH && half_ns(labelled) >= LATE_NS && half_ns(labelled) >= all_ns * APART
    };
    let slow: Vec<&Labelled> = place.labels.iter().filter(is_slow).collect();
    let first = slow.first()?;
    let more = if slow.len() > 1 { format!(" and {} more", slow.len() - 1) } else { String::new() };
    let (label, half, all) = (&first.label, seconds(half_ns(first) / 1e9), seconds(all_ns / 1e9));
    Some(format!("slowest are {label}{more} (p50 {half}, of all requests {all})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    fn said(slow_ms: u64, quick_ns: u64) -> Option<String> {
        let text = format!(
            "meta length_ns=10e9 target.listen=[\"tcp 0.0.0.0:80\"]
             exchange_window t_ns=10e9 length_ns=10e9
             exchange role=accepted port=80 stage=response count=1050 sum_ns=2e9 length_ns=[{quick_ns},{slow_ms}000000] counts=[1000,50]
             label role=accepted port=80 protocol=http label=\"GET /list\" seen=450 count=1000 sum_ns=1e8 length_ns=[{quick_ns}] counts=[1000]
             label role=accepted port=80 protocol=http label=\"GET /orders/*\" seen=50 count=50 sum_ns=4e9 length_ns=[{slow_ms}000000] counts=[50]"
        );
        headline(&Case::new(&parse(&text).unwrap()))
    }

    #[test]
    fn the_label_that_is_slow_beside_the_others() {
        assert_eq!(said(80, 200_000).unwrap(), "slowest are GET /orders/* (p50 80 ms, of all requests 200 µs)");
        assert_eq!((said(5, 200_000), said(80, 60_000_000)), (None, None), "nobody feels it; all are slow");
    }
}
