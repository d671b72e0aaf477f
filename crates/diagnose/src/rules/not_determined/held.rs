// SPDX-License-Identifier: Apache-2.0
//! A target that somebody held: stopped, traced or frozen.

use super::super::Statement;
use crate::case::Case;
use crate::facts::connections::Connections;
use crate::facts::stopped::Stopped;
use crate::phrases;
use crate::wording::percent;

/// Of its time, stopped: a debugger that looked for a moment explains as much.
const MAX_HELD: f64 = 0.01;

/// A target that somebody held: what it would have done meanwhile, nobody knows.
pub(super) fn check(case: &Case) -> Option<Statement> {
    let stopped = case.fact::<Stopped>().ok()?;
    let words = phrases::ledger_lines::stopped(&stopped).filter(|_| stopped.share() >= MAX_HELD)?;
    let part = percent(stopped.share());
    Some(Statement {
        headline: format!("held for {part} of its thread time: {words}"),
        advice: match stopped.most {
            Some(pid) => {
                format!(
                    "see who stopped it (a debugger, an operator); `kill -CONT {pid}` lets it go on; then diagnose again"
                )
            }
            None => "see why it is held, and diagnose again when it runs".into(),
        },
        detail: format!(
            "The target was held for {part} of its threads' time by {words}: whoever they serve waited for that long.{}",
            unread(case).unwrap_or_default()
        ),
    })
}

/// That clients went on asking: it is not the traffic that stopped.
fn unread(case: &Case) -> Option<String> {
    let connections = case.fact::<Connections>().ok()?;
    let held = &connections.accepted;
    (held.unread > 0.0).then(|| {
        format!(
            " Bytes lay unread in {:.1} of the {:.1} connections of its clients on average: they went on asking, and it is the \
             target that stood still.",
            held.unread, held.open
        )
    })
}
