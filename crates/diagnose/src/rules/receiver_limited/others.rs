// SPDX-License-Identifier: Apache-2.0
//! A few clients that read slowly, and all others wait for them: whoever would take the next request stands in a write to one of
//! these.

use super::super::{Outcome, Statement};
use super::{RULE, capital, rows, told};
use crate::case::Case;
use crate::judgement::felt::Felt;
use crate::judgement::limited::Limited;
use crate::verdict::Finding;
use crate::walk::paths::{Part, What};
use crate::wording::percent;

/// The finding, if others wait.
pub(super) fn check(case: &Case, limited: &Limited) -> Option<Outcome> {
    let felt = Felt::of(case)?;
    let part = felt.most(stands_behind_a_write).filter(|_| limited.endpoint.accepted)?;
    let headline = format!(
        "a few clients that read slowly hold its threads: other {} wait {} of their time for those",
        felt.whose(),
        percent(part)
    );
    let advice = "answer slow clients by an event loop or a proxy that buffers, or limit how long a write may take";
    Some(Outcome::Found(Box::new(finding(case, limited, &felt, part)), Statement::short(headline, advice)))
}

/// Whether a thread was not yet free for the request, because somebody did not take its answer.
fn stands_behind_a_write(part: &Part) -> bool {
    let What::Waits(chain) = &part.what else { return false };
    let first = &chain.links[0].who;
    part.before && first.fd_kind == "socket" && first.writes()
}

fn finding(case: &Case, limited: &Limited, felt: &Felt, part: f64) -> Finding {
    Finding {
        summary: format!(
            "{}, in connections with {} of the requests there. {}; for {} of it the thread that took them stood in a write to one \
             of these",
            capital(&told(limited)),
            percent(limited.of_requests),
            felt.words(),
            percent(part)
        ),
        explains: felt.explains(case, part),
        evidence: [felt.evidence("of it, until a thread had written to a slow client", part), rows(limited)].concat(),
        remedy: "A thread or process that serves one client at a time is taken for as long as that client reads. Let a proxy that \
                 buffers answers stand before it, write by an event loop, limit the time of a write (SO_SNDTIMEO), or have more \
                 threads than slow clients."
            .into(),
        check: "Requests no longer wait for their turn at the same load, with the same slow clients.".into(),
        ..RULE.finding(case, 2)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::asking::{found, silent};
    use super::super::RULE;

    /// Sixty quick requests, each after its thread has stood in `call` to another client for `ms`.
    fn text(ms: u32, call: &str) -> String {
        let mut text = "meta host.arch=x86_64 length_ns=4e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
            process pid=1 listen=[\"tcp 0.0.0.0:80\"]
            thread t_ns=4e9 pid=1 tid=1 comm=w wall_ns=4e9 cpu_ns=1e8 blocked_ns=39e8
            frame id=1 symbol=net_rx_action module=kernel kind=kernel\nstack id=1 frames=[1]
            burst t_ns=4e9 length_ns=4e9\nexchange_window t_ns=4e9 length_ns=4e9
            connection t_ns=4e9 role=accepted port=80 looks=40 open=400 unsent=38 rwnd=36 other=2 busy_ns=39e8 rwnd_ns=30e8 segments=40 rwnd_segments=4
            exchange t_ns=4e9 role=accepted port=80 stage=response count=60 sum_ns=36e8 length_ns=[60000000] counts=[60]\n"
            .to_string();
        for turn in (0..60).map(|nth| 90 + nth * 64) {
            let (began, end) = (turn - ms, turn + 1);
            text += &format!(
                "request t_ns={end}e6 role=accepted port=80 pid=1 began_ns={began}e6 began_tid=1 read_ns={turn}e6 ended_tid=1
                 wakeup t_ns={turn}e6 pid=1 tid=1 comm=w wait_ns={ms}e6 blocked_ns={ms}e6 since_ns={began}e6 waits=1 {call} family=2 local_port=80 remote_port=4000 peer=10.0.0.9 context=interrupt waker_stack=1\n"
            );
        }
        text
    }

    #[test]
    fn others_wait_for_a_few_slow_clients() {
        let finding = found(&RULE, &text(60, "syscall=1 fd_kind=socket"));
        assert!(finding.explains.share > 0.9, "{:?}", finding.explains);
        assert!(finding.summary.contains("stood in a write to one of these"), "{}", finding.summary);
    }

    #[test]
    fn they_only_wait_themselves() {
        silent(&RULE, &text(3, "syscall=1 fd_kind=socket"));
        silent(&RULE, &text(60, "syscall=35"));
    }
}
