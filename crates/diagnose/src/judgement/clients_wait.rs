// SPDX-License-Identifier: Apache-2.0
//! For how long clients wait, and how much of that the target waits for somebody else, as the sockets tell: only where there are
//! enough exchanges of one kind.

use crate::case::Case;
use crate::facts::hanging::AllHanging;
use crate::facts::requests::Requests;
use crate::statistics::ratio;

/// Exchanges from which on sums say something.
const ENOUGH: f64 = 10.0;

/// Of those that the target began, so many may still be without an answer at the end: with more of them it holds something
/// open, such as a subscription, and its time is in none that ended.
const OPEN: f64 = 0.2;

/// How long the clients waited for usual answers, ns; none where too few of them got any, or what they ask is mixed.
pub(crate) fn usual_ns(requests: &Requests) -> Option<f64> {
    let clients = || requests.endpoints.iter().filter(|e| e.accepted && !e.is_mixed());
    let answered: f64 = clients().map(|e| e.response.count).sum();
    (answered >= ENOUGH).then(|| clients().map(|e| e.response.usual_ns()).sum())
}

/// Of the time that clients wait for usual answers, at all ports: less, and they wait for something else.
const MIN_OF_ANSWERS: f64 = 0.1;

/// Whether something that held what the target sends for so long in all, ns, is a part of what its clients wait for. Where too few of
/// them got answers, nothing speaks against it.
pub(crate) fn is_of_answers(requests: &Requests, ns: f64) -> bool {
    usual_ns(requests).is_none_or(|usual_ns| ns >= usual_ns * requests.scale() * MIN_OF_ANSWERS)
}

/// How long the target waited for answers of `peer`, for each second that its own clients waited for usual ones of theirs;
/// none where either cannot be told. Beyond 1, it asks several at once, or not for its clients.
pub(crate) fn part_of_peer(requests: &Requests, peer: &str) -> Option<f64> {
    let (clients_ns, asked) = (usual_ns(requests)?, requests.of(false, peer)?);
    let open = asked.began - asked.response.count - asked.unanswered;
    // What several of its requests share a connection for, is less time than they wait.
    let told = !asked.is_mixed() && asked.response.count >= ENOUGH && open <= asked.began * OPEN;
    told.then(|| ratio(asked.awaited_ns(), clients_ns))
}

/// Of what held each of its questions: a client who waits for one that was held for less than the usual one waits for less.
const HELD: f64 = 0.5;

/// Several of its questions may be held at once for one request.
const AT_ONCE: f64 = 1.5;

/// Whether clients can have waited while something held what the target sent to whom it asks: for so long in all, ns, and for so long
/// each, none = as long as anybody watched. Answers that come sooner than that, and they are the most that clients wait for, did not
/// wait for it: it was a transfer of the target's own, as of a backup or a log. One that has no clients waits itself.
pub(crate) fn may_wait_for(case: &Case, ns: f64, each_ns: Option<f64>) -> bool {
    let Ok(requests) = case.fact::<Requests>() else { return true };
    if usual_ns(&requests).is_none() {
        return true;
    }
    let from_ns = each_ns.unwrap_or_else(|| case.length_ns()) * HELD;
    let clients = requests.endpoints.iter().filter(|endpoint| endpoint.accepted);
    let as_long_ns = clients.map(|endpoint| endpoint.response.time_from_ns(from_ns)).sum::<f64>() * requests.scale();
    let hang = case.fact::<AllHanging>().map_or(0.0, |all| all.together(|_| true).0);
    ns <= (as_long_ns + hang * case.length_ns()) * AT_ONCE
}

/// So many times longer is no matter of how it was measured.
const MUCH_LONGER: f64 = 1.5;

/// Of the time that clients wait.
const A_GOOD_PART: f64 = 0.33;

/// Likewise: of more than all of it, clients do not wait for a part at least, as for a long poll of the target's own.
const AT_MOST: f64 = 1.0;

/// Another one whom clients wait for much longer than for `peer`, with both parts, that one's first.
pub(crate) fn waited_longer<'r>(requests: &'r Requests, peer: &str) -> Option<(&'r str, f64, f64)> {
    let part = part_of_peer(requests, peer)?;
    let asked = requests.endpoints.iter().filter(|e| !e.accepted && e.name != peer);
    let parts = asked.filter_map(|e| Some((e.name.as_str(), part_of_peer(requests, &e.name)?)));
    let parts = parts.filter(|(_, part)| *part <= AT_MOST);
    let (other, longest) = parts.max_by(|a, b| a.1.total_cmp(&b.1))?;
    (longest >= A_GOOD_PART && longest >= part * MUCH_LONGER).then_some((other, longest, part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn how_much_of_the_answers_is_somebody_elses() {
        let part = |more: &str| {
            let text = format!(
                "exchange role=accepted port=80 stage=response count=100 sum_ns=100e6 length_ns=[1000000] counts=[100] began=100
                 exchange role=made peer=10.0.0.9:1 stage=response count=90 sum_ns=80e6 length_ns=[888888] counts=[90] {more}"
            );
            super::part_of_peer(&Case::new(&parse(&text).unwrap()).fact::<Requests>().unwrap(), "10.0.0.9:1")
        };
        assert_eq!((part("began=90"), part("began=95")), (Some(0.8), Some(0.8)));
        let polls =
            "\nexchange role=accepted port=80 stage=response count=4 sum_ns=120e9 length_ns=[30000000000] counts=[4]";
        assert_eq!(part(&format!("began=90{polls}")), Some(0.8), "long polls wait for nobody");
        assert_eq!(part("began=200"), None, "it holds many open");
        assert_eq!(part("began=90 more=30"), None, "several share a connection");
        let hello =
            "\nexchange role=made peer=10.0.0.9:1 stage=handshake count=90 sum_ns=10e6 length_ns=[111111] counts=[90]";
        assert_eq!(part(&format!("began=90{hello}")), Some(0.9), "nothing can be asked before");
    }

    #[test]
    fn a_transfer_that_no_client_waits_for() {
        let may = |answer_ms: u64, answers: u64, each_ms: Option<u64>| {
            let text = format!(
                "meta length_ns=5e9\nexchange_window t_ns=5e9 length_ns=5e9
                 exchange role=accepted port=80 stage=response count={answers} sum_ns={} length_ns=[{answer_ms}000000] counts=[{answers}]",
                answers * answer_ms * 1_000_000
            );
            may_wait_for(&Case::new(&parse(&text).unwrap()), 4e9, each_ms.map(|ms| ms as f64 * 1e6))
        };
        assert!(!may(2, 5000, None), "one that lasts, beside quick answers");
        assert!(!may(2, 5000, Some(400)), "ten that last, beside quick answers");
        assert!(may(500, 10, Some(400)), "each answer waits for one");
        assert!(may(2, 3, None), "hardly any clients");
    }

    #[test]
    fn somebody_else_is_waited_for_longer() {
        let longer = |other: u32| {
            let text = format!(
                "exchange role=accepted port=80 stage=response count=100 sum_ns=100e6 length_ns=[1000000] counts=[100] began=100
                 exchange role=made peer=10.0.0.9:1 stage=response count=100 sum_ns=30e6 length_ns=[300000] counts=[100] began=100
                 exchange role=made peer=10.0.0.8:1 stage=response count=100 sum_ns={other}e6 length_ns=[600000] counts=[100] began=100"
            );
            let requests = Case::new(&parse(&text).unwrap()).fact::<Requests>().unwrap();
            super::waited_longer(&requests, "10.0.0.9:1").map(|(who, longest, part)| (who.to_string(), longest, part))
        };
        assert_eq!(longer(60), Some(("10.0.0.8:1".into(), 0.6, 0.3)));
        assert_eq!((longer(40), longer(20)), (None, None));
        assert_eq!(longer(180), None, "a long poll that is always under way");
    }
}
