// SPDX-License-Identifier: Apache-2.0
//! What the program wrote stands in its send queue because it said that more would come, and no more came.

use super::super::Statement;
use crate::case::Case;
use crate::facts::requests::Requests;
use crate::facts::sending::{Endpoint, Sending};
use crate::statistics::{ratio, share};
use crate::wording::{percent, seconds};

/// Connections, over all looks: of fewer, each may be chance.
const MIN_LOOKS: f64 = 5.0;

/// Of the time that whoever asks waits: a user feels a quarter.
const MIN_SHARE: f64 = 0.25;

/// Of each exchange, ns: half of what the kernel keeps them. A cork that is drawn while the rest of an answer is read from a disk keeps them
/// for as long as that, and is none.
const MIN_EACH_NS: f64 = 1e8;

/// Bytes that were kept back.
struct Kept<'e> {
    endpoint: &'e Endpoint,
    /// Of each exchange, ns.
    each_ns: f64,
    /// Of the time that whoever asks waits.
    part: f64,
}

fn kept<'e>(requests: &Requests, endpoint: &'e Endpoint) -> Option<Kept<'e>> {
    let asked = requests.of(endpoint.accepted, &endpoint.name)?;
    let waited_ns = asked.awaited_ns() * requests.scale();
    // What is asked is answered only after it was sent; of answers the time ends where they begin.
    let waited_ns = if endpoint.accepted { waited_ns + endpoint.held_ns() } else { waited_ns };
    let (part, each_ns) =
        (share(endpoint.corked_ns(), waited_ns), ratio(endpoint.corked_ns(), asked.response.count * requests.scale()));
    let is_felt = endpoint.cork_looks() >= MIN_LOOKS && each_ns >= MIN_EACH_NS && part >= MIN_SHARE;
    is_felt.then_some(Kept { endpoint, each_ns, part })
}

/// The statement about them.
pub(super) fn check(case: &Case) -> Option<Statement> {
    let (sending, requests) = (case.fact::<Sending>().ok()?, case.fact::<Requests>().ok()?);
    let all = sending.endpoints.iter().filter_map(|endpoint| kept(&requests, endpoint));
    let most = all.max_by(|a, b| a.endpoint.corked_ns().total_cmp(&b.endpoint.corked_ns()))?;
    let (what, whose) = match most.endpoint.accepted {
        true => ("answers", "its clients wait"),
        false => ("questions", "it waits"),
    };
    let name = most.endpoint.name.trim_start_matches("tcp ");
    Some(Statement {
        headline: format!("TCP_CORK keeps bytes of its {what} back for {} each", seconds(most.each_ns / 1e9)),
        advice: format!("clear TCP_CORK as soon as one of its {what} is written, or write it at once and do without"),
        detail: format!(
            "At {name}, bytes that were written stood unsent for {} of the time that {whose} there, because the program had said that more \
             would follow. Without more the kernel sends them after 200 ms by itself.",
            percent(most.part)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::asking::stated;
    use super::super::RULE;

    /// 20 answers, after which so many of 40 looks found bytes kept back.
    fn told(kept: &str, role: &str) -> Option<String> {
        let text = format!(
            "meta length_ns=4e9 target.pids=[7] target.listen=[\"tcp 0.0.0.0:80\"]
             process pid=7 listen=[\"tcp 0.0.0.0:80\"]
             thread t_ns=4e9 pid=7 tid=7 comm=service wall_ns=4e9 cpu_ns=1e8 blocked_ns=39e8
             exchange_window t_ns=4e9 length_ns=4e9
             connection t_ns=4e9 {role} looks=40 open=40 unsent=30 {kept} min_rtt_ns=2e5
             exchange t_ns=4e9 {role} stage=response count=20 began=20 sum_ns=8e8 length_ns=[40000000] counts=[20]
             wakeup\n"
        );
        stated(&RULE, &text, &[]).map(|statement| statement.headline)
    }

    #[test]
    fn what_is_kept_back_is_told() {
        let (accepted, made) = ("role=accepted port=80", "role=made peer=10.0.0.9:1");
        let said = told("cork=30", accepted).unwrap();
        assert!(said.starts_with("TCP_CORK keeps bytes of its answers back for 150 ms each"), "{said}");
        assert!(told("cork=30", made).unwrap().contains("its questions"));
        let others = told("cork=2 rwnd=28", accepted);
        assert!(!others.as_ref().is_some_and(|said| said.contains("CORK")), "a reader that is slow: {others:?}");
    }
}
