// SPDX-License-Identifier: Apache-2.0
//! The rest of answers waits for somebody whom the target asks: their first bytes are sent before, and all that is followed from end to
//! end ends with those.

use super::super::{Outcome, Statement, evidence};
use super::RULE;
use super::sockets::{AT_MOST, ENOUGH, NEARLY_ALL, ONE_EACH, advice, is_held_here, remedy};
use crate::case::Case;
use crate::facts::requests::{Endpoint, Requests};
use crate::judgement::full::is_at_capacity;
use crate::judgement::later::rest_ns;
use crate::statistics::ratio;
use crate::verdict::{Explains, Finding, Subject};
use crate::wording::{count, percent, seconds};

/// The finding, if there is such a one.
pub(super) fn check(case: &Case) -> Option<Outcome> {
    let requests = case.fact::<Requests>().ok()?;
    let clients = requests.main().filter(|clients| !clients.is_mixed() && clients.response.count >= ENOUGH)?;
    let whole_ns = clients.response.mean_ns() + rest_ns(clients)?;
    if is_at_capacity(case) {
        return None;
    }
    // Sums: some answers that have begun have not ended at the end of the window.
    let all_ns = clients.response.sum_ns + clients.later_writes().1;
    let part = |peer: &Endpoint| ratio(peer.awaited_ns(), all_ns);
    let is_it = |peer: &&Endpoint| {
        !peer.accepted
            && !peer.is_mixed()
            && ONE_EACH.contains(&ratio(peer.response.count, clients.response.count))
            && (NEARLY_ALL..=AT_MOST).contains(&part(peer))
    };
    let peer = requests.endpoints.iter().filter(is_it).max_by(|a, b| part(a).total_cmp(&part(b)))?;
    if is_held_here(case, &peer.name) {
        return None;
    }
    let (part, each, whole) = (part(peer).min(1.0), seconds(peer.awaited_each_ns() / 1e9), seconds(whole_ns / 1e9));
    let headline = format!("the rest of its answers waits for {} ({each} of {whole})", peer.name);
    let finding = finding(case, &requests, (clients, whole_ns), (peer, part));
    Some(Outcome::Found(Box::new(finding), Statement::short(headline, advice(peer))))
}

fn finding(
    case: &Case,
    requests: &Requests,
    (clients, whole_ns): (&Endpoint, f64),
    (peer, part): (&Endpoint, f64),
) -> Finding {
    let (each, whole) = (seconds(peer.awaited_each_ns() / 1e9), seconds(whole_ns / 1e9));
    let times = requests.scale();
    Finding {
        summary: format!(
            "The first bytes of {} answers are sent at once, the last ones after {whole} on average; {} answers of {}, one for each \
             request, take {each}: {} of that",
            count(clients.response.count * times),
            count(peer.response.count * times),
            peer.name,
            percent(part)
        ),
        subject: Subject { socket: Some(peer.name.clone()), ..Subject::default() },
        explains: Explains {
            share: part,
            of: "response time to the last byte".into(),
            seconds: peer.awaited_ns() * times / 1e9,
        },
        evidence: vec![
            evidence("an answer of it, on average", peer.awaited_each_ns() / 1e9, "s", "", ""),
            evidence("an answer to a client, to its first byte", clients.response.mean_ns() / 1e9, "s", "", ""),
            evidence("an answer to a client, to its last byte", whole_ns / 1e9, "s", "", ""),
        ],
        remedy: remedy(peer),
        check: "The last bytes come sooner by this part at the same load.".into(),
        // Both sides of the same sockets are one source.
        ..RULE.finding(case, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::asking::{found, silent};
    use super::super::RULE;

    /// Answers that begin after 0.2 ms and end so many ms later, and a peer that takes 60 ms.
    fn gallery(later_ms: u32, asked: u32) -> String {
        format!(
            "meta length_ns=4e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
             process pid=1 listen=[\"tcp 0.0.0.0:80\"]
             thread t_ns=4e9 pid=1 tid=1 comm=gallery wall_ns=4e9 cpu_ns=1e8 blocked_ns=39e8
             exchange_window t_ns=4e9 length_ns=4e9
             exchange role=accepted port=80 stage=response count=200 began=200 sum_ns=4e7 length_ns=[200000] counts=[200] \
             continued=200 continued_ns=9e9 apart=200 apart_ns={}e6
             exchange role=made peer=10.0.0.9:1 stage=response count={asked} began={asked} sum_ns={}e6 length_ns=[60000000] counts=[{asked}]
             wakeup",
            200 * later_ms,
            60 * asked
        )
    }

    #[test]
    fn what_comes_later_waits_for_a_peer() {
        let finding = found(&RULE, &gallery(60, 200));
        assert_eq!(finding.subject.socket.as_deref(), Some("10.0.0.9:1"));
        assert!((finding.explains.share - 0.997).abs() < 0.001, "{:?}", finding.explains);
    }

    #[test]
    fn what_is_paced_or_asked_for_something_else() {
        silent(&RULE, &gallery(300, 200));
        silent(&RULE, &gallery(0, 200));
        silent(&RULE, &gallery(60, 20));
    }
}
