// SPDX-License-Identifier: Apache-2.0
//! Clients wait before they send what they ask, for as long as some are known to wait for `100 Continue`. Whether they do, their bytes
//! would tell, which nobody looks at.

use super::super::Statement;
use recording::tables::Wakeup;

use crate::case::Case;
use crate::judgement::in_parts;
use crate::remarks;
use crate::walk::clients::Clients;
use crate::wording::seconds;

/// The statement about them.
pub(super) fn check(case: &Case) -> Option<Statement> {
    let (who, length_ns) = in_parts::look(case)?.expects()?;
    if pauses_again(case, length_ns) {
        return None;
    }
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

/// A pause that somebody feels, ns.
const PAUSE_NS: f64 = 5e6;

/// Whether threads that read what clients send wait several times for each, as of a line that drips, and not once.
fn pauses_again(case: &Case, length_ns: f64) -> bool {
    let Ok(clients) = case.fact::<Clients>() else { return false };
    let rows = case.recording.rows::<Wakeup>().iter();
    let reads = rows.filter(|row| clients.is_own(row.pid) && clients.is_read(case, row)).map(|row| row.wait_ns as f64);
    let (mut short, mut whole) = (0, 0);
    for ns in reads {
        short += usize::from((PAUSE_NS..length_ns / 2.0).contains(&ns));
        whole += usize::from((length_ns / 2.0..length_ns * 1.5).contains(&ns));
    }
    short > whole * 2
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
        let waits = |ms: u64, times: usize| {
            let wait = "wakeup t_ns=2e9 pid=7 tid=7 syscall=0 fd_kind=socket family=2 local_port=80 remote_port=9 peer=10.0.0.9";
            let rows = format!("{wait} wait_ns={ms}000000\n").repeat(times);
            let text = format!("{}{ledger}\nprocess pid=7 listen=[\"tcp 0.0.0.0:80\"]\n{rows}", text(1_003, 0, ""));
            stated(&RULE, &text, &[]).map(|said| said.headline).unwrap_or_default()
        };
        assert!(waits(1_003, 40).contains("100 Continue"), "{}", waits(1_003, 40));
        assert!(!waits(90, 40).contains("100 Continue"), "a line that drips: {}", waits(90, 40));
    }
}
