// SPDX-License-Identifier: Apache-2.0
//! Clients wait before they send what they ask, for as long as some are known to wait for `100 Continue`. Whether they do, their bytes
//! would tell, which nobody looks at.

use super::super::Statement;
use crate::case::Case;
use crate::judgement::in_parts;
use crate::remarks;
use crate::wording::seconds;

/// The statement about them.
pub(super) fn check(case: &Case) -> Option<Statement> {
    let (who, length_ns) = in_parts::look(case)?.expects()?;
    Some(Statement {
        headline: format!(
            "its clients wait {} before they send the rest, as {who} for `100 Continue`",
            seconds(length_ns / 1e9)
        ),
        advice:
            "answer `Expect: 100-continue` as soon as a head with it came; `curl -H 'Expect:'` shows the difference"
                .into(),
        detail: format!(
            "{} Clients that pause for so long by themselves look the same.",
            remarks::in_parts::remark(case)?.detail
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::asking::stated;
    use super::super::RULE;
    use crate::judgement::in_parts::tests::text;

    #[test]
    fn clients_that_wait_to_be_told_to_go_on() {
        let ledger = "\nthread t_ns=4e9 pid=7 tid=7 comm=shop wall_ns=4e9 cpu_ns=1e8 blocked_ns=39e8";
        let said = |rest_ms| {
            stated(&RULE, &(text(rest_ms, 0, "") + ledger), &[]).map(|said| said.headline).unwrap_or_default()
        };
        assert!(said(1_003).contains("before they send the rest, as curl does for `100 Continue`"), "{}", said(1_003));
        assert!(!said(600).contains("100 Continue"), "{}", said(600));
    }
}
