// SPDX-License-Identifier: Apache-2.0
//! Requests that are answered when another client sends something: long polls, a chat, a batch that must fill.

use super::Remark;
use crate::case::Case;
use crate::facts::connections::Connections;
use crate::judgement::paths::{Felt, is_until_said};
use crate::wording::percent;

/// Of their response time.
const MOST: f64 = 0.5;

/// What there is to say about them, if that is most of their time.
pub(crate) fn remark(case: &Case) -> Option<Remark> {
    let felt = Felt::of(case)?;
    let part = felt.group().share(is_until_said);
    (part >= MOST).then(|| {
        let (whose, part) = (felt.whose(), percent(part));
        let standing = case.fact::<Connections>().map_or(0.0, |connections| connections.accepted.unanswered);
        let standing = if standing >= 1.0 { format!("; {standing:.1} stand so at a time") } else { String::new() };
        Remark {
            headline: format!("{whose} wait until another client sends something for {part} of their response time"),
            advice: Some(
                "if they are meant to (long polls, a chat, a batch that must fill), nothing is slow; else see why they \
                 are not answered before"
                    .into(),
            ),
            detail: format!(
                "For {part} of their response time {whose} waited while the target, or whoever it asked, had next to nothing to \
                 do, until another client sent something; then they were answered{standing}."
            ),
        }
    })
}
