// SPDX-License-Identifier: Apache-2.0
//! Answers that are late and begin streams: what clients wait for the first part is the rhythm of all of them.

use super::Remark;
use crate::case::Case;
use crate::judgement::streams;

/// What there is to say about the main port.
pub(crate) fn remark(case: &Case) -> Option<Remark> {
    let words = streams::begin(case)?;
    Some(Remark {
        detail: format!(
            "Response times end with the first part: {words} as each of the others comes after the one before it."
        ),
        headline: words,
        advice: None,
    })
}
