// SPDX-License-Identifier: Apache-2.0
//! Whether the answers of somebody who is asked come in parts, of which the target waits for one after the other: each wait is short,
//! and the times at the sockets end with the first bytes; but a request waits for all of it.

use recording::tables::Wakeup;

use crate::case::Case;
use crate::facts::requests::{LATE_NS, Requests};
use crate::facts::waiting::Waiting;
use crate::facts::woken_by_clients::WokenByClients;
use crate::judgement::asked::worst;
use crate::judgement::secure::mostly_handshakes;
use crate::statistics::{ratio, share};
use crate::walk::clients::Clients;
use crate::wording::seconds;

/// Of all that clients wait for, at least: and at most, because who waits longer waits for something else as well.
const MIN_SHARE: f64 = 0.25;
const MOST: f64 = 1.3;

/// Of the waiting, by threads that clients wake too: one with a subscription is woken by nobody else.
const MOSTLY: f64 = 0.8;

/// Times what the first bytes take: less is no matter of the rest.
const MUCH_LONGER: f64 = 5.0;

/// Questions for each request, at most: those that are asked more often are another matter.
const MOST_QUESTIONS: f64 = 3.0;

/// The answers of a peer.
pub(crate) struct Drips {
    /// How long the target waits for all of one, ns.
    each_ns: f64,
}

impl Drips {
    /// Of a peer for which threads waited so long, ns, if its answers drip.
    pub(crate) fn of(case: &Case, peer: &str, ns: f64) -> Option<Self> {
        let requests = case.fact::<Requests>().ok()?;
        let (main, asked) = (requests.main()?, requests.of(false, peer).filter(|asked| !asked.is_mixed())?);
        let each_ns = ratio(ns, asked.response.count * requests.scale());
        let of_clients = ratio(ns, main.response.sum_ns * requests.scale());
        let drips = asked.response.count <= main.response.count * MOST_QUESTIONS
            && each_ns >= LATE_NS.max(asked.response.mean_ns() * MUCH_LONGER)
            && main.response.mean_ns() >= LATE_NS
            && (MIN_SHARE..=MOST).contains(&of_clients)
            // What passes before a question can be asked, is no part of its answer.
            && mostly_handshakes(asked).is_none()
            && by_serving(case, peer)? >= MOSTLY;
        drips.then_some(Self { each_ns })
    }

    /// Of whom the target waits for most.
    pub(crate) fn of_most(case: &Case) -> Option<Self> {
        let waiting = case.fact::<Waiting>().ok()?;
        let (_, chains, ns) = worst(&waiting)?;
        Self::of(case, &chains.first()?.links[0].who.peer, ns)
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

/// What part of the waiting for a peer is that of threads of which clients ended waits too; `None` = nothing was picked.
fn by_serving(case: &Case, peer: &str) -> Option<f64> {
    let (clients, serving) = (case.fact::<Clients>().ok()?, case.fact::<WokenByClients>().ok()?);
    let (mut all, mut by) = (0.0, 0.0);
    let for_it = |row: &&Wakeup| clients.asked_by(row).is_some_and(|asked| asked == peer);
    for row in case.recording.rows::<Wakeup>().iter().filter(for_it) {
        all += row.blocked_ns as f64;
        by += if serving.0.contains(&row.tid) { row.blocked_ns as f64 } else { 0.0 };
    }
    (all > 0.0).then(|| share(by, all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    /// Forty requests of 100 ms, which ask a store once each; its first bytes come after `first_ms`, and a thread that clients wake, or
    /// another one, waits for it twenty times each.
    fn of(first_ms: u64, serves: bool, ns: f64) -> Option<String> {
        with(first_ms, serves, ns, "")
    }

    fn with(first_ms: u64, serves: bool, ns: f64, more: &str) -> Option<String> {
        let mut text = format!(
            "meta host.arch=x86_64 length_ns=10e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
            process pid=1 listen=[\"tcp 0.0.0.0:80\"]
            thread t_ns=10e9 pid=1 tid=1 comm=worker wall_ns=10e9 cpu_ns=5e8 blocked_ns=95e8
            exchange_window t_ns=10e9 length_ns=10e9
            frame id=1 symbol=net_rx_action module=kernel kind=kernel
            stack id=1 frames=[1]
            exchange role=accepted port=80 stage=response count=40 sum_ns=4e9 length_ns=[100000000] counts=[40]
            exchange role=made peer=10.0.0.9:1 stage=response count=40 sum_ns={}e6 length_ns=[{first_ms}000000] counts=[40]\n",
            40 * first_ms
        );
        let wait = |at: u64, (tid, ms): (u32, u64), ports: &str| {
            format!(
                "wakeup t_ns={at}e6 pid=1 tid={tid} comm=worker wait_ns={ms}e6 blocked_ns={ms}e6 since_ns={}e6 waits=1 syscall=45 family=2 {ports} context=interrupt waker_stack=1\n",
                at.saturating_sub(ms)
            )
        };
        for at in (0..40).map(|nth| 110 + nth * 200) {
            text += &wait(at, (1, 90), "local_port=80 remote_port=5000 peer=10.0.0.1");
            for part in 1..=20 {
                let tid = if serves { 1 } else { 2 };
                text += &wait(at + part * 4, (tid, 4), "local_port=4000 remote_port=1 peer=10.0.0.9");
            }
        }
        text += more;
        Drips::of(&Case::new(&parse(&text).unwrap()), "10.0.0.9:1", ns).map(|drips| drips.words())
    }

    #[test]
    fn answers_in_parts() {
        assert_eq!(of(1, true, 32e8).as_deref(), Some("80 ms for each answer, which comes in parts"));
        assert_eq!(of(60, true, 32e8), None, "most of it is the time until the first bytes");
        assert_eq!(of(1, true, 8e8), None, "a small part of what clients wait");
        assert_eq!(of(1, false, 32e8), None, "a thread that no client wakes: a subscription");
        assert_eq!(of(1, true, 95e8), None, "longer than all clients wait");
        let shakes =
            "exchange role=made peer=10.0.0.9:1 stage=handshake count=40 sum_ns=3e9 length_ns=[75000000] counts=[40]";
        assert_eq!(with(1, true, 32e8, shakes), None, "what passes before it can be asked");
    }
}
