// SPDX-License-Identifier: Apache-2.0
//! Handshakes are dropped because the accept queue of a listener is full. A link in the middle: why nobody takes connections
//! from it is the cause.

use super::{Check, Checked, Rule, absent, evidence, explained, found, too_little};
use crate::answer::{Gap, Measured, Unit, Unseen};
use crate::case::Case;
use crate::facts::errors::Kind;
use crate::facts::handshakes::Handshakes;
use crate::facts::listeners::{Listener, Listeners};
use crate::facts::requests::{Endpoint, Requests};
use crate::facts::workers::Workers;
use crate::judgement::errors::{enough, floor};
use crate::judgement::handshakes::{OF_SYN, Sign, table};
use crate::judgement::meanwhile::{self, Meanwhile};
use crate::judgement::standstill;
use crate::judgement::untaken::{self, Untaken};
use crate::statistics::share;
use crate::verdict::{Evidence, Explains, Finding, Link, Subject};
use crate::wording::{count, percent, plural};

pub(super) static RULE: Rule =
    Rule { cause: "accept-queue-full", explain: explain!("accept-queue-full"), check: Check::Accuses(check) };

fn check(case: &Case) -> Checked {
    let handshakes = case.fact::<Handshakes>()?;
    let met = format!("{} handshakes met a full accept queue", count(handshakes.overflows));
    if handshakes.overflows == 0.0 {
        return absent("no handshake met a full accept queue");
    }
    if handshakes.own_drops == Some(0.0) {
        return explained(format!("{met} of its network namespace, none of them one of its own"));
    }
    let ours = handshakes.own_drops.map_or(handshakes.overflows, |own| own.min(handshakes.overflows));
    let part = share(ours, ours + handshakes.taken_beside(handshakes.own_drops));
    let min_share = floor(Kind::QueueFull).unwrap_or_default();
    let least = enough(Kind::QueueFull, part, handshakes.own_drops.is_some());
    let needed = [Measured::new(ours, least, Unit::Handshakes), Measured::new(part, min_share, Unit::Share)];
    if let Some(seen) = Measured::farthest(needed) {
        let why = format!(
            "{met}, {} of them one of its own, {} of all (a finding needs 10 and 0.1 %, or 3 and 1 %)",
            count(ours),
            percent(part)
        );
        return too_little(seen, why);
    }
    let listeners = case.fact::<Listeners>()?;
    let first = listeners.all.iter().find(|listener| listener.drops.unwrap_or(0.0) > 0.0 || listener.full > 0.0);
    let Some(listener) = first else {
        let why =
            format!("{met} of its network namespace; its own were never seen full, and whose it was is not recorded");
        return Err(Gap::new(RULE.cause, Unseen::Undecided, why));
    };
    let untaken = untaken::look(case);
    let finding = finding(case, &handshakes, listener, untaken.as_ref())?;
    let headline =
        format!("{} new connections were dropped: the accept queue of {} is full", count(ours), listener.name);
    let workers = case.fact::<Workers>()?;
    found(finding, headline, untaken.map_or_else(|| advice(&workers, listener), |untaken| untaken.advice()))
}

fn advice(workers: &Workers, listener: &Listener) -> String {
    match listener.backlog {
        Some(backlog) if come_in_bursts(workers, listener.full) => format!(
            "raise the backlog, which is {}, in listen() and net.core.somaxconn: those that accept are often free",
            count(backlog)
        ),
        _ => "find out why they are not taken; a longer backlog only lets more of them wait".into(),
    }
}

fn finding(
    case: &Case,
    handshakes: &Handshakes,
    listener: &Listener,
    untaken: Option<&Untaken>,
) -> Result<Finding, Gap> {
    let workers = case.fact::<Workers>()?;
    let meanwhile = meanwhile::of(case, &workers.who)?;
    let (queue, backlog) = (format!("{:.1}", listener.queue), listener.backlog.unwrap_or(0.0));
    let ours = listener.drops.unwrap_or(handshakes.overflows).min(handshakes.overflows);
    // The counter of the namespace is one source; the socket's own state is another.
    let agree = listener.full > 0.0 || listener.drops.is_some_and(|drops| drops >= handshakes.overflows * AGREE);
    // Each that is dropped is asked for again after a second.
    let is_root = untaken.is_none() && come_in_bursts(&workers, listener.full) && are_soon_taken(case);
    let waited = if is_root { ours * OF_SYN } else { listener.queue * case.seconds() };
    let place = Link {
        who: listener.name.clone(),
        waits_on: format!("its accept queue: {:.0} stood where {} may", listener.most, count(backlog)),
        seconds: listener.queue * case.seconds(),
        stack: Vec::new(),
    };
    Ok(Finding {
        summary: format!(
            "{} handshakes met a full accept queue at {}, beside {} connections that were taken: {queue} stood in it on \
             average, its limit is {} (the kernel admits one more); {}",
            count(ours),
            listener.name,
            count(handshakes.taken_beside(handshakes.own_drops)),
            count(backlog),
            untaken.map_or_else(|| what_they_do(&workers, listener.full, &meanwhile), Untaken::detail)
        ),
        subject: Subject { pid: workers.who.first().map(|who| who.0), ..Subject::default() },
        explains: Explains {
            share: share(ours, ours + handshakes.taken_beside(handshakes.own_drops)),
            of: "handshakes of its clients".into(),
            seconds: waited,
        },
        is_root,
        evidence: evidence_of(case, handshakes, listener),
        chain: std::iter::once(place).chain(meanwhile.links).collect(),
        remedy: untaken.map_or_else(|| AWAY_FROM_IT.into(), Untaken::advice),
        check:
            "nstat -az TcpExtListenOverflows stands still under the same load, and ss -ltn shows Recv-Q below Send-Q."
                .into(),
        ..RULE.finding(case, if agree { 2 } else { 1 })
    })
}

/// What helps where somebody takes connections, and not soon enough.
const AWAY_FROM_IT: &str = "Make those that accept come back sooner: what they do meanwhile is in the chain, or a finding of its own. A \
                 thread that does nothing but accept helps where requests may wait inside. Only against short bursts: raise \
                 the backlog in listen() and net.core.somaxconn, both.";

/// Of the overflows, dropped by the one listener: then the counts are the same.
const AGREE: f64 = 0.95;

fn evidence_of(case: &Case, handshakes: &Handshakes, listener: &Listener) -> Vec<Evidence> {
    let see = "ss -ltn  # Recv-Q, Send-Q";
    let mut all = vec![
        evidence("in the accept queue, on average", listener.queue, "connections", "near 0", see),
        evidence("at most, once a second", listener.most, "connections", "below the backlog", see),
        evidence("the backlog", listener.backlog.unwrap_or(0.0), "connections", "", see),
        evidence("of the window, the queue was full", listener.full * 100.0, "%", "0", ""),
    ];
    if let Some(drops) = listener.drops {
        let see = "ss -ltnm  # d in skmem";
        all.push(evidence("dropped by this listener", drops, "handshakes", "as many as ListenDrops", see));
    }
    all.extend(table(case, handshakes, Sign::QueueFull));
    all
}

/// Whether nobody who gets into the queue stands there for long: then it is not that they all stood still for a while.
fn are_soon_taken(case: &Case) -> bool {
    let requests = case.fact::<Requests>();
    let soon = |main: &Endpoint| main.response.quantile_ns(0.99) < standstill::FELT_NS;
    standstill::longest(case).is_none() && requests.is_ok_and(|requests| requests.main().is_some_and(soon))
}

/// They wait for connections for a good part of the time: then only bursts overflow the queue, unless it is full for longer.
const FREE: f64 = 0.3;
const FULL_NOW_AND_THEN: f64 = 0.5;

fn come_in_bursts(workers: &Workers, full: f64) -> bool {
    workers.free >= FREE && full < FULL_NOW_AND_THEN
}

fn what_they_do(workers: &Workers, full: f64, meanwhile: &Meanwhile) -> String {
    match (workers.threads, meanwhile.words.as_str()) {
        (1.., _) if come_in_bursts(workers, full) => {
            let free = percent(workers.free);
            format!("those that accept waited for a connection for {free} of their time: they come in bursts")
        }
        (_, "") => "what keeps those that should take them was not seen".to_string(),
        (0, words) => format!("no thread was seen to accept, while {words}"),
        (_, words) if workers.none_taken => format!("none was taken, while {words}"),
        (1, words) => words.to_string(),
        (n, words) => format!("{} accept, of which {words}", plural(n, "thread")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::asking::{found, gap, silent};
    use super::RULE;

    /// A service with one thread that sleeps, whose queue of eight is full; `drops` are its own listener's.
    fn text(overflows: u32, waiting: u32, drops: Option<u32>) -> String {
        let mut text = "meta host.arch=x86_64 length_ns=1e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
            process pid=1 comm=api listen=[\"tcp 0.0.0.0:80\"]
            wakeup
            thread t_ns=1e9 pid=1 tid=1 comm=api wall_ns=1e9 cpu_ns=1e8 blocked_ns=9e8
            wait t_ns=1e9 pid=1 tid=1 syscall=230 total_ns=9e8\n"
            .to_string();
        let listener = "source=proc/net/listeners entity=\"tcp 0.0.0.0:80\"";
        text +=
            &format!("counter {listener} name=backlog value=8\ncounter {listener} name=accept_queue value={waiting}\n");
        let mut counter = |entity: &str, name: &str, grew: u32| {
            text += &format!(
                "counter {entity} name={name} value=3\ncounter t_ns=9 {entity} name={name} value={}\n",
                3 + grew
            );
        };
        counter("source=proc/net/netstat entity=TcpExt", "ListenOverflows", overflows);
        counter("source=proc/net/netstat entity=TcpExt", "ListenDrops", overflows);
        counter("source=proc/net/snmp entity=Tcp", "PassiveOpens", 100);
        if let Some(drops) = drops {
            counter(listener, "drops", drops);
        }
        text
    }

    #[test]
    fn a_queue_that_is_full() {
        let finding = found(&RULE, &text(300, 9, Some(300)));
        assert_eq!((finding.confidence.as_str(), finding.explains.share), ("high", 0.75));
        assert!(
            finding.summary.contains("its limit is 8 (the kernel admits one more); api/1 was at work for 10 %"),
            "{}",
            finding.summary
        );
        assert_eq!(finding.chain[0].waits_on, "its accept queue: 9 stood where 8 may");
        // A recording that does not know whose drops they were shows its own queue.
        assert_eq!(found(&RULE, &text(300, 9, None)).confidence, "high");
        // The counter of the namespace is not all its own.
        assert!(found(&RULE, &text(300, 9, Some(12))).summary.starts_with("12 handshakes met a full accept queue"));
        // A burst between two looks: one source.
        assert_eq!(found(&RULE, &text(300, 0, Some(100))).confidence, "medium");
    }

    /// Workers take from their own listeners, and nobody from one more with the same address.
    #[test]
    fn a_listener_that_was_left() {
        let shared = "counter source=proc/net/listeners/shared entity=\"tcp 0.0.0.0:80 inode 7\"";
        let left: String = [("accept_queue", 9), ("share_it", 4), ("holders", 0)]
            .iter()
            .map(|(name, value)| format!("{shared} name={name} value={value}\n"))
            .collect();
        let finding = found(&RULE, &(text(300, 9, Some(300)) + &left));
        assert!(finding.summary.contains("no process of the target has that one open"), "{}", finding.summary);
        assert!(finding.remedy.contains("ss -ltnp"), "{}", finding.remedy);
    }

    #[test]
    fn queues_of_others_and_single_bursts() {
        assert!(silent(&RULE, &text(300, 2, Some(0))).contains("none of them one of its own"));
        assert!(gap(&RULE, &text(300, 2, None)).why.contains("never seen full"));
        assert!(silent(&RULE, &text(2, 9, Some(2))).contains("2 handshakes met"));
        // A few of the target's own that are a good part of all; those of somebody in the namespace may be of another service.
        assert!(found(&RULE, &text(3, 9, Some(3))).summary.starts_with("3 handshakes met"));
        assert!(silent(&RULE, &text(3, 9, None)).contains("3 handshakes met"));
        assert_eq!(silent(&RULE, &text(0, 9, Some(0))), "no handshake met a full accept queue");
    }
}
