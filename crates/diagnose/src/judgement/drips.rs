// SPDX-License-Identifier: Apache-2.0
//! Whether the answers of somebody who is asked come in parts, of which the target waits for one after the other: each wait is short,
//! and the times at the sockets end with the first bytes; but a request waits for all of it.

use crate::case::Case;
use crate::facts::requests::{LATE_NS, Requests};
use crate::judgement::paths::asks_a_peer;
use crate::statistics::ratio;
use crate::walk::paths::{Part, RequestPaths, What};
use crate::wording::seconds;

/// Of the time of requests that were followed, in waits for that peer: it is they who wait, and not somebody with a subscription.
const MIN_SHARE: f64 = 0.25;

/// Requests that were followed: long ones are few in a burst, and they show that it is they who wait.
const FOLLOWED: u64 = 5;

/// Times what the first bytes take: less is no matter of the rest.
const MUCH_LONGER: f64 = 5.0;

/// Questions for each request, at most: those that are asked more often are another matter.
const MOST_QUESTIONS: f64 = 3.0;

/// Of all that clients wait for: who waits longer, waits for something else as well.
const MOST: f64 = 1.3;

/// The answers of a peer.
pub(crate) struct Drips {
    /// How long the target waits for all of one, ns.
    each_ns: f64,
}

impl Drips {
    /// Of a peer for which threads waited so long, ns, if its answers drip.
    pub(crate) fn of(case: &Case, peer: &str, ns: f64) -> Option<Self> {
        let (paths, requests) = (case.fact::<RequestPaths>().ok()?, case.fact::<Requests>().ok()?);
        let followed = &paths.busiest()?.all;
        let (busiest, asked) = (requests.busiest()?, requests.of(false, peer).filter(|asked| !asked.is_mixed())?);
        let each_ns = ratio(ns, asked.response.count * requests.scale());
        let is_peer = |part: &Part| match &part.what {
            What::Waits(chain) => asks_a_peer(part) && chain.links[0].who.peer == peer,
            _ => false,
        };
        let drips = asked.response.count <= busiest.response.count * MOST_QUESTIONS
            && each_ns >= LATE_NS.max(asked.response.mean_ns() * MUCH_LONGER)
            && ns <= busiest.response.sum_ns * requests.scale() * MOST
            && busiest.response.mean_ns() >= LATE_NS
            && followed.requests >= FOLLOWED
            && followed.share(is_peer) >= MIN_SHARE;
        drips.then_some(Self { each_ns })
    }

    /// For a headline.
    pub(crate) fn words(&self) -> String {
        format!("{} for each answer, which comes in parts", seconds(self.each_ns / 1e9))
    }

    /// What to do about it first.
    pub(crate) fn advice(&self, who: &str) -> String {
        format!("see why an answer of {who} takes so long after its first bytes: its work, its rate, or the line")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    /// Forty requests of 100 ms, which ask a store once each; its first bytes come after `first_ms`, and of the time of a request
    /// `waits` parts of 10 are waits for it.
    fn of(first_ms: u64, waits: u64, ns: f64) -> Option<String> {
        let mut text = format!(
            "meta host.arch=x86_64 length_ns=10e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
            process pid=1 listen=[\"tcp 0.0.0.0:80\"]
            thread t_ns=10e9 pid=1 tid=1 comm=worker wall_ns=10e9 cpu_ns=5e8 blocked_ns=95e8
            burst t_ns=10e9 length_ns=10e9
            exchange_window t_ns=10e9 length_ns=10e9
            frame id=1 symbol=net_rx_action module=kernel kind=kernel
            stack id=1 frames=[1]
            exchange role=accepted port=80 stage=response count=40 sum_ns=4e9 length_ns=[100000000] counts=[40]
            exchange role=made peer=10.0.0.9:1 stage=response count=40 sum_ns={}e6 length_ns=[{first_ms}000000] counts=[40]\n",
            40 * first_ms
        );
        for at in (0..40).map(|nth| 10 + nth * 200) {
            text += &format!(
                "request t_ns={}e6 role=accepted port=80 pid=1 began_ns={at}e6 began_tid=1 read_ns={at}e6 ended_tid=1\n",
                at + 100
            );
            for part in 1..=waits {
                let woken = at + part * 4;
                text += &format!(
                    "wakeup t_ns={woken}e6 pid=1 tid=1 comm=worker wait_ns=4e6 blocked_ns=4e6 since_ns={}e6 waits=1 syscall=45 family=2 local_port=4000 remote_port=1 peer=10.0.0.9 context=interrupt waker_stack=1\n",
                    woken - 4
                );
            }
        }
        Drips::of(&Case::new(&parse(&text).unwrap()), "10.0.0.9:1", ns).map(|drips| drips.words())
    }

    #[test]
    fn answers_in_parts() {
        assert_eq!(of(1, 20, 32e8).as_deref(), Some("80 ms for each answer, which comes in parts"));
        assert_eq!(of(60, 20, 32e8), None, "most of it is the time until the first bytes");
        assert_eq!(of(1, 4, 32e8), None, "requests hardly wait for it");
        assert_eq!(of(1, 20, 95e8), None, "longer than all clients wait");
    }
}
