// SPDX-License-Identifier: Apache-2.0
//! Where several requests are written at once.

use std::collections::BTreeMap;

use recording::tables;

use crate::case::Case;
use crate::statistics::share;

/// By endpoint, of the exchanges that were looked at those that are pipelines.
pub(super) fn shares<'r>(case: &'r Case<'_>) -> BTreeMap<(bool, u32, &'r str), f64> {
    let mut all: BTreeMap<_, (u64, u64)> = BTreeMap::new();
    for row in case.recording.rows::<tables::Label>() {
        let (pipelines, seen) = all.entry((row.is_accepted(), row.port, row.peer.as_str())).or_default();
        (*pipelines, *seen) = (*pipelines + row.pipelines, *seen + row.seen);
    }
    all.into_iter().map(|(place, (pipelines, seen))| (place, share(pipelines as f64, seen as f64))).collect()
}

#[cfg(test)]
mod tests {
    use recording::text::parse;

    use crate::case::Case;
    use crate::facts::requests::Requests;

    #[test]
    fn several_requests_in_the_same_bytes_are_a_batch() {
        let of = |pipelines: u32| {
            let text = format!(
                "exchange role=accepted port=6379 stage=response count=900 sum_ns=9e8 length_ns=[1000000] counts=[900]
                 label role=accepted port=6379 protocol=redis label=SET seen=50 pipelines={pipelines} count=800
                 label role=accepted port=6379 protocol=redis label=GET seen=50 count=100"
            );
            let requests = Case::new(&parse(&text).unwrap()).fact::<Requests>().unwrap();
            (requests.endpoints[0].pipelined, requests.endpoints[0].is_mixed())
        };
        assert_eq!((of(40), of(4)), ((0.4, true), (0.04, false)));
    }
}
