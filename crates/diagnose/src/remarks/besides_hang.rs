// SPDX-License-Identifier: Apache-2.0
//! That requests hang besides, where what was found is only what the answers that come wait for.

use super::Remark;
use crate::case::Case;
use crate::judgement::{hanging, hung, standers};
use crate::verdict::Finding;
use crate::wording::{seconds, some};

/// What there is to say about them beside this finding.
pub(crate) fn remark(case: &Case, finding: &Finding) -> Option<Remark> {
    if finding.explains.is_of_hanging() || finding.explains.is_of_queued() {
        return None;
    }
    let (connections, owed_ns) = hanging::besides(case, finding)?;
    let (requests, owed) = (some(connections, "request"), seconds(owed_ns / 1e9));
    // How many, and for how long, is said beside every verdict.
    let meanwhile = standers::meanwhile(case, connections);
    let headline = meanwhile.map_or_else(String::new, |threads| format!("other requests hang, and {threads}"));
    let stand = hung::look(case).and_then(|hung| standers::sentence(case, &hung));
    let stand = stand.map_or_else(String::new, |sentence| format!(" {sentence}"));
    Some(Remark {
        headline,
        advice: None,
        detail: format!(
            "Besides, {requests} at a time had been waiting for {owed} and got no answer while anybody watched: what was found is \
             not why.{stand} Long polls look the same."
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Explains;
    use recording::text::parse;

    /// Answers of which Nagle's algorithm holds the rest back, beside some that never come.
    #[test]
    fn what_is_found_of_answers_is_not_why_others_never_come() {
        let said = |connections: u64, explains: Explains| {
            let text = format!(
                "meta host.arch=x86_64 length_ns=4e9 target.pids=[1]
                 thread t_ns=4e9 pid=1 tid=1 wall_ns=4e9 cpu_ns=1e7 blocked_ns=399e7
                 exchange_window t_ns=4e9 length_ns=4e9
                 exchange role=accepted port=80 stage=response count=90 sum_ns=1 length_ns=[3000000] counts=[90]
                 connection t_ns=4e9 role=accepted port=80 looks=40 open=640 late={} late_ns={}",
                connections * 40,
                connections * 80_000_000_000
            );
            let finding = Finding { cause: "nagle-delayed-ack".into(), explains, ..Finding::default() };
            remark(&Case::new(&parse(&text).unwrap()), &finding).map(|remark| remark.detail)
        };
        let of = |seconds: f64| Explains { seconds, ..Explains::default() };
        let detail = said(8, of(0.3)).unwrap();
        assert!(detail.starts_with("Besides, 8 requests at a time had been waiting for 2.0 s"), "{detail}");
        assert_eq!(said(8, of(20.0)), None, "that is what they wait for");
        assert_eq!((said(0, of(0.3)), said(8, Explains::hanging(0.3))), (None, None));
    }
}
