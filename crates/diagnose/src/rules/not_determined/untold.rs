// SPDX-License-Identifier: Apache-2.0
//! Clients wait for long, and no rule has a cause for it: because what they wait for was not followed, or because each that could be one
//! was too little or doubted. Whatever it is, such a service is not known to be healthy.

use super::super::Statement;
use crate::case::Case;
use crate::facts::requests::{Endpoint, LATE_NS, Requests};
use crate::judgement::felt::Felt;
use crate::judgement::full::is_at_capacity;
use crate::judgement::paths::{mostly_late, telling, telling_handshakes};
use crate::judgement::{in_parts, streams, tail};
use crate::ledger::threads::Threads;
use crate::remarks::{hidden_queues, response_times};
use crate::statistics::{ratio, share};
use crate::walk::Kind;
use crate::walk::paths::{Part, What};
use crate::wording::{percent, seconds};

/// Of the time that clients wait: most of it.
const MOSTLY: f64 = 0.5;

/// The statement about them.
pub(super) fn check(case: &Case) -> Option<Statement> {
    // It has queues and says so; whoever listens to events, or sends what it asks piece by piece, waits by design.
    if is_at_capacity(case) || streams::begin(case).is_some() || in_parts::look(case).is_some() {
        return None;
    }
    match Felt::of(case) {
        Some(felt) => waits(case, &felt),
        None => not_followed(case),
    }
}

/// What most of their time went to, if that is something to wait for.
fn waits(case: &Case, felt: &Felt) -> Option<Statement> {
    let part = felt.most(is_waited_for)?;
    let first = felt.group().parts.iter().find(|part| is_waited_for(part))?;
    let [waits, took] = [felt.mean_ns() * part, felt.mean_ns()].map(|ns| seconds(ns / 1e9));
    let words = first.words();
    Some(Statement {
        headline: format!("{} wait {waits} of {took}, mostly for: {words}; no rule has a cause for that", felt.whose()),
        advice: format!("look there first: {words}"),
        detail: format!(
            "{}; for {} of it they waited, {} of that: {words}. Each cause that this may be was too little by itself, or something \
             spoke against it: see what was ruled out.{}",
            felt.words(),
            percent(part),
            percent(share(first.ns, felt.group().ns * part)),
            response_times::sentence(case).unwrap_or_default()
        ),
    })
}

/// Whether somebody waited, or stood ready for a CPU; not for what a client says next.
fn is_waited_for(part: &Part) -> bool {
    match &part.what {
        What::Waits(chain) => chain.end.kind != Kind::Client && !chain.is_of_idle_peer(),
        What::Awake { kind, .. } => *kind == Kind::RunQueue,
        What::Inside { .. } | What::Asking { .. } => false,
    }
}

/// Those of which nobody knows where their time went.
fn not_followed(case: &Case) -> Option<Statement> {
    let requests = case.fact::<Requests>().ok()?;
    let main = requests.main().filter(|main| is_late(&requests, main) && !computes(case, &requests, main))?;
    if telling(case).is_some() || telling_handshakes(case).is_some() {
        return None;
    }
    let (half, mean) = (seconds(main.response.quantile_ns(0.5) / 1e9), seconds(main.response.mean_ns() / 1e9));
    let why = match main.is_mixed() {
        true => "several share a connection, so that none can be followed",
        false => "too few of the slow ones were followed from end to end",
    };
    let asked = whom_it_asks(&requests, main);
    let meanwhile = asked.map_or_else(String::new, |peer| {
        format!("; meanwhile {} takes {} for an answer", peer.name, seconds(peer.awaited_each_ns() / 1e9))
    });
    Some(Statement {
        headline: format!(
            "answers take {mean} on average, half {half} or longer, and for what was not followed{meanwhile}"
        ),
        advice: match asked {
            Some(peer) => format!("look at {} first, and at who asks it for what", peer.name),
            None => format!("look inside: {}", hidden_queues::look(case).look),
        },
        detail: format!(
            "Where the time of requests went is not known: {why}. Answers that are long by design, as long polls are, look the same.{}",
            response_times::sentence(case).unwrap_or_default()
        ),
    })
}

/// Whether most of what clients wait there is for answers that somebody feels, again and again.
fn is_late(requests: &Requests, main: &Endpoint) -> bool {
    mostly_late(requests) && (main.response.quantile_ns(0.5) >= LATE_NS || !tail::is_one_moment(requests, main))
}

/// Whether answers take about as long as they are computed for.
fn computes(case: &Case, requests: &Requests, main: &Endpoint) -> bool {
    let demand = case.fact::<Threads>().map_or(0.0, |ledger| ledger.total.demand_ns());
    ratio(demand, main.response.count * requests.scale()) >= main.response.mean_ns() * MOSTLY
}

/// Who owes the target answers for most of that time, in all.
fn whom_it_asks<'r>(requests: &'r Requests, main: &Endpoint) -> Option<&'r Endpoint> {
    let asked = || requests.endpoints.iter().filter(|e| !e.accepted && e.awaited_each_ns() >= LATE_NS / 2.0);
    let all: f64 = asked().map(Endpoint::awaited_ns).sum();
    let most = asked().max_by(|a, b| a.awaited_ns().total_cmp(&b.awaited_ns()));
    most.filter(|_| all >= main.response.sum_ns * MOSTLY)
}

#[cfg(test)]
mod tests {
    use super::super::super::asking::stated;

    const HEAD: &str = "meta host.arch=x86_64 length_ns=5e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
        process pid=1 listen=[\"tcp 0.0.0.0:80\"]
        burst t_ns=5e9 length_ns=5e9
        exchange_window t_ns=5e9 length_ns=5e9\n";

    /// Answers at a port of which none was followed, beside so much CPU time of the one thread.
    fn said(exchange: &str, cpu_ns: u64) -> Option<String> {
        let text = format!(
            "{HEAD}
             thread t_ns=5e9 pid=1 tid=1 comm=api wall_ns=5e9 cpu_ns={cpu_ns} blocked_ns={}
             exchange role=accepted port=80 stage=response count=100 {exchange}",
            5_000_000_000 - cpu_ns
        );
        stated(&super::super::RULE, &text, &[]).map(|said| said.headline)
    }

    #[test]
    fn late_answers_of_which_none_was_followed() {
        let late = "sum_ns=8e9 length_ns=[80000000] counts=[100]";
        let told = said(late, 100_000_000).unwrap();
        assert_eq!(told, "answers take 80 ms on average, half 80 ms or longer, and for what was not followed");
        assert_eq!(said(late, 4_200_000_000), None, "they are computed");
        assert_eq!(said("sum_ns=8e8 length_ns=[8000000] counts=[100]", 100_000_000), None, "nobody feels it");
        assert_eq!(
            said("sum_ns=4e8 length_ns=[1000000,80000000] counts=[96,4]", 100_000_000),
            None,
            "a few, by chance"
        );
    }

    #[test]
    fn whom_it_asks_meanwhile_is_named_and_not_accused() {
        let shared = "sum_ns=8e9 length_ns=[80000000] counts=[100] more=90
             exchange role=made peer=10.0.0.9:1 stage=response count=100 sum_ns=7e9 length_ns=[70000000] counts=[100]";
        assert!(said(shared, 100_000_000).unwrap().ends_with("; meanwhile 10.0.0.9:1 takes 70 ms for an answer"));
    }

    /// Half of the time of requests is before a full pipe: too little of the threads' time for a rule.
    #[test]
    fn what_they_wait_for_where_no_rule_has_a_cause() {
        let mut text = format!(
            "{HEAD}frame id=2 symbol=pipe_write module=kernel kind=kernel\nstack id=2 frames=[2]
            thread t_ns=5e9 pid=1 tid=1 comm=api wall_ns=5e9 cpu_ns=1e8 blocked_ns=49e8
            exchange role=accepted port=80 stage=response count=40 sum_ns=8e8 length_ns=[20000000] counts=[40]\n"
        );
        for at in (0..40).map(|nth| 20 + nth * 100) {
            text += &format!(
                "request t_ns={}e6 role=accepted port=80 pid=1 began_ns={at}e6 began_tid=1 read_ns={at}e6 ended_tid=1
                 wakeup t_ns={}e6 pid=1 tid=1 comm=api since_ns={at}e6 wait_ns=18e6 blocked_ns=18e6 waits=1 syscall=1 fd_kind=pipe context=interrupt waker_stack=2\n",
                at + 20,
                at + 19
            );
        }
        let said = stated(&super::super::RULE, &text, &[]).unwrap();
        assert!(said.headline.starts_with("requests wait 18 ms of 20 ms, mostly for: api/1 in write"), "{said:?}");
    }
}
