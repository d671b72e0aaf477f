// SPDX-License-Identifier: Apache-2.0
//! Clients wait for handshakes of TLS, and what these wait for is no cause that is known.

use super::super::Statement;
use crate::case::Case;
use crate::facts::requests::{Endpoint, Requests};
use crate::judgement::felt::Felt;
use crate::judgement::full::is_at_capacity;
use crate::judgement::secure::mostly_handshakes;
use crate::remarks::hidden_queues;
use crate::statistics::ratio;
use crate::walk::LOOP;
use crate::walk::paths::{Meanwhile, What};
use crate::wording::{count, percent, seconds};

/// The statement about them.
pub(super) fn check(case: &Case) -> Option<Statement> {
    let requests = case.fact::<Requests>().ok()?;
    let accepted = requests.endpoints.iter().filter(|endpoint| endpoint.accepted);
    let slow = accepted.filter_map(|endpoint| Some((endpoint, mostly_handshakes(endpoint)?)));
    let owed = |endpoint: &Endpoint| endpoint.awaited_ns();
    let (endpoint, part) = slow.max_by(|a, b| owed(a.0).total_cmp(&owed(b.0)))?;
    if is_at_capacity(case) {
        return None;
    }
    let at = |quantile| seconds(endpoint.handshake.quantile_ns(quantile) / 1e9);
    let felt = Felt::of_handshakes(case).filter(|felt| felt.port() == endpoint.port);
    let hidden = hidden_queues::look(case);
    Some(Statement {
        headline: format!(
            "TLS handshakes at {} take {} (p50), {}",
            endpoint.name,
            at(0.5),
            felt.as_ref().and_then(inside).unwrap_or_else(|| "and what they wait for is not known".into())
        ),
        advice: format!(
            "see what it does before it answers a hello (certificates and keys that are looked up, another host); {}",
            hidden.look
        ),
        detail: format!(
            "{} handshakes took {} (p50), {} (p99) from the hello to what was said to it: {} of all that clients of {} wait for. \
             Requests come only afterwards. {}The time may lie in whoever keeps the keys, in a callback that looks up a \
             certificate, or in signatures; clients that resume a session, or keep their connection, need none.",
            count(endpoint.handshake.count * requests.scale()),
            at(0.5),
            at(0.99),
            percent(part),
            endpoint.name,
            felt.as_ref().and_then(followed).unwrap_or_default(),
        ),
    })
}

/// That the kernel sees no wait in most of their time, but for timers of a loop, which may be anybody's.
fn inside(felt: &Felt) -> Option<String> {
    let part = felt.most(|part| match &part.what {
        What::Inside { meanwhile, .. } => *meanwhile == Meanwhile::Unknown,
        What::Waits(chain) => chain.links[0].who.fd_kind == LOOP,
        What::Awake { .. } | What::Asking { .. } => false,
    })?;
    let there = seconds(felt.mean_ns() * part / 1e9);
    Some(format!("{there} of it inside the process, and what they wait for there is not seen"))
}

/// Where most of the time went of those that were followed.
fn followed(felt: &Felt) -> Option<String> {
    let (number, most) = (felt.group().requests as f64, felt.group().parts.first()?);
    let [spent, all] = [ratio(most.ns, number), felt.mean_ns()].map(|ns| seconds(ns / 1e9));
    Some(format!("Of {} that were followed from end to end, {spent} of {all}: {}. ", count(number), most.words()))
}

#[cfg(test)]
mod tests {
    use super::super::super::asking::stated;
    use super::super::RULE;

    fn told(handshake_ms: u32, count: u32, more: &str) -> Option<String> {
        let text = format!(
            "meta length_ns=5e9 target.listen=[\"tcp 0.0.0.0:443\"]
             process pid=1 listen=[\"tcp 0.0.0.0:443\"]
             thread t_ns=5e9 pid=1 tid=1 comm=service wall_ns=5e9 cpu_ns=1e8 blocked_ns=49e8
             exchange_window t_ns=5e9 length_ns=5e9
             exchange t_ns=5e9 role=accepted port=443 stage=response count={count} sum_ns={answers} length_ns=[1000000] counts=[{count}] began={count}
             exchange t_ns=5e9 role=accepted port=443 stage=first_read count={count} sum_ns=1 length_ns=[1] counts=[{count}]
             exchange t_ns=5e9 role=accepted port=443 stage=handshake count={count} sum_ns={handshakes} length_ns=[{handshake_ms}000000] counts=[{count}]
             wakeup\n{more}",
            answers = count * 1_000_000,
            handshakes = u64::from(count) * u64::from(handshake_ms) * 1_000_000,
        );
        stated(&RULE, &text, &[]).map(|statement| statement.headline)
    }

    #[test]
    fn handshakes_that_take_their_time_are_not_healthy() {
        let said = told(80, 100, "").unwrap();
        assert!(said.contains("TLS handshakes at tcp 0.0.0.0:443 take 80"), "{said}");
        assert_eq!((told(5, 100, ""), told(80, 5, "")), (None, None), "short ones, and few");
    }
}
