// SPDX-License-Identifier: Apache-2.0
//! No local port is left for another connection to one destination.

use recording::counters::local_ports;

use super::{Check, Checked, Rule, absent, evidence, explained, found, too_little};
use crate::answer::{Measured, Unit};
use crate::case::Case;
use crate::facts::connections::Connections;
use crate::facts::counters::Counters;
use crate::facts::errors::{Errors, Kind, asks};
use crate::facts::handshakes::Handshakes;
use crate::facts::local_ports::{LocalPorts, Towards};
use crate::judgement::errors::MIN_COUNT;
use crate::remarks::hidden_queues;
use crate::statistics::{ratio, share};
use crate::verdict::{Explains, Finding, Subject};
use crate::wording::{count, percent, sockets_to};

pub(super) static RULE: Rule =
    Rule { cause: "port-exhaustion", explain: explain!("port-exhaustion"), check: Check::Accuses(check) };

/// Of the range: a port that becomes free is taken at once by one of those that wait for it.
const NEARLY_ALL: f64 = 0.95;

/// Of the window; and where calls were seen to fail for want of a port: then it is no question of how near it came.
const MIN_FULL: f64 = 0.5;
const MIN_FULL_IF_FAILED: f64 = 0.05;

/// EADDRNOTAVAIL.
const NOT_AVAILABLE: i64 = -99;

/// A destination and its ports.
struct Ports {
    towards: Towards,
    range: f64,
    /// Share of the window in which nearly all were in use.
    full: f64,
}

fn check(case: &Case) -> Checked {
    let (counters, known) = (case.fact::<Counters>()?, case.fact::<LocalPorts>()?);
    let all = known.towards.iter().filter_map(|towards| ports(case, &counters, towards, known.range));
    let by_use = |a: &Ports, b: &Ports| a.full.total_cmp(&b.full).then(a.towards.most.total_cmp(&b.towards.most));
    let Some(ports) = all.max_by(by_use) else {
        return absent("fewer connections than half of the local ports were there");
    };
    let (to, most) = (&ports.towards.destination, ports.towards.most);
    let told = format!("{} of {} local ports were in use towards {}", count(most), count(ports.range), to);
    let errors = case.fact::<Errors>()?;
    let failed =
        errors.all.iter().find(|error| error.kind == Kind::Failed(NOT_AVAILABLE)).map_or(0.0, |error| error.count);
    let least = if failed >= MIN_COUNT { MIN_FULL_IF_FAILED } else { MIN_FULL };
    let used = share(most, ports.range);
    let needed = [Measured::new(used, NEARLY_ALL, Unit::Share), Measured::new(ports.full, least, Unit::Share)];
    if let Some(seen) = Measured::farthest(needed) {
        return too_little(seen, format!("{told}, and nearly all for {} of the window", percent(ports.full)));
    }
    if let Some(why) = otherwise(case, &ports).filter(|_| failed < MIN_COUNT) {
        return explained(format!("{told}, but {why}"));
    }
    let has_peer = |c: &Connections| c.peers.iter().any(|(peer, held)| peer == to && held.open > 0.0);
    let connections = case.fact::<Connections>().ok();
    let goes_there = connections.as_ref().is_some_and(|connections| has_peer(connections));
    // Whom it asks is known: somebody else of the namespace goes there, such as a client that came to the target itself.
    let goes_elsewhere = connections.is_some_and(|connections| !connections.peers.is_empty()) && !goes_there;
    if failed < MIN_COUNT && (goes_elsewhere || !goes_there && !asks(case)) {
        return explained(format!("{told}, but the target was not seen to ask for a connection to it"));
    }
    let sources = 1 + usize::from(goes_there || failed >= MIN_COUNT);
    let headline = format!("no local port is left towards {}: {} are in use", to, count(most));
    found(
        finding(case, &ports, (failed, sources)),
        headline,
        "keep connections to it open and use them again (a pool, keep-alive)",
    )
}

/// Why so many in use are no want of them, if so, where no call was seen to fail.
fn otherwise(case: &Case, ports: &Ports) -> Option<&'static str> {
    if ports.towards.most > ports.range {
        return Some("from several addresses of its own, each of which has all of them");
    }
    // Those that ended less than a second ago are not.
    let of_a_second = ratio(case.fact::<Handshakes>().map_or(f64::INFINITY, |h| h.made), case.seconds());
    (ports.towards.is_used_again
        && ports.towards.most - ports.towards.time_wait + of_a_second < ports.range * NEARLY_ALL)
        .then_some("those in TIME_WAIT are used again a second after their end (net.ipv4.tcp_tw_reuse)")
}

fn ports(case: &Case, counters: &Counters, towards: &Towards, range: f64) -> Option<Ports> {
    let is_full = |used: f64| used >= range * NEARLY_ALL;
    Some(Ports {
        range,
        full: counters.share_of_time(local_ports::USED, &towards.destination, case.length_ns(), is_full)?,
        towards: towards.clone(),
    })
}

fn finding(case: &Case, ports: &Ports, (failed, sources): (f64, usize)) -> Finding {
    let calls = match failed {
        0.0 => String::new(),
        n => format!("; {} counted calls failed with EADDRNOTAVAIL", count(n)),
    };
    let strace = format!("strace -f -Z -e trace=connect -p {}", hidden_queues::pid_of_who_answers(case));
    let see = format!("{} | wc -l", sockets_to("-tan", &ports.towards.destination));
    let ended = format!("{} | wc -l", sockets_to("-tan state time-wait", &ports.towards.destination));
    Finding {
        summary: format!(
            "{} of {} local ports were in use towards {}, {} of them by connections that have ended (TIME_WAIT); nearly all for {} \
             of the window{calls}",
            count(ports.towards.most),
            count(ports.range),
            ports.towards.destination,
            count(ports.towards.time_wait),
            percent(ports.full)
        ),
        subject: Subject { socket: Some(ports.towards.destination.clone()), ..Subject::default() },
        explains: Explains { share: ports.full, of: "the window".into(), seconds: ports.full * case.seconds() },
        evidence: vec![
            evidence("local ports in use towards it, at most", ports.towards.most, "ports", "below the range", see),
            evidence("of these in TIME_WAIT", ports.towards.time_wait, "ports", "", ended),
            evidence("the range", ports.range, "ports", "", "sysctl net.ipv4.ip_local_port_range"),
            evidence("of the window, nearly all in use", ports.full * 100.0, "%", "0", ""),
            evidence("counted calls that failed with EADDRNOTAVAIL", failed, "calls", "0", strace),
        ],
        remedy: "Keep connections open and use them again: a pool, HTTP keep-alive. If each request must have its own, let the \
                 other end close first, or widen net.ipv4.ip_local_port_range and set net.ipv4.tcp_tw_reuse=1, after which a port \
                 is free again a second after its end. A second address of either end doubles the ports."
            .into(),
        check: "ss -s shows few sockets in TIME_WAIT, and no connect() fails, under the same load.".into(),
        ..RULE.finding(case, sources)
    }
}

#[cfg(test)]
mod tests {
    use super::super::asking::{found, silent};
    use super::RULE;

    fn text(used: u32, more: &str) -> String {
        format!(
            "meta host.arch=x86_64 length_ns=1e9 target.pids=[1]
             counter source=local_ports entity=\"\" name=range value=1001
             counter source=local_ports entity=\"10.0.0.9:80\" name=used value={used}
             counter source=local_ports entity=\"10.0.0.9:80\" name=time_wait value=900
             {more}"
        )
    }

    const PEER: &str = "connection t_ns=1 role=made peer=10.0.0.9:80 looks=10 open=3";

    #[test]
    fn all_ports_towards_a_peer() {
        let finding = found(&RULE, &text(1001, PEER));
        assert_eq!((finding.confidence.as_str(), finding.subject.socket.as_deref()), ("high", Some("10.0.0.9:80")));
        assert!(finding.summary.starts_with("1001 of 1001 local ports"), "{}", finding.summary);
        let failed = "call_window length_ns=1e9\ncall pid=1 tid=1 syscall=42 result=-99 count=300";
        assert!(found(&RULE, &text(1001, failed)).summary.ends_with("300 counted calls failed with EADDRNOTAVAIL"));
        assert_eq!(found(&RULE, &text(1001, "wait pid=1 tid=1 syscall=42 total_ns=9")).confidence, "medium");
    }

    /// Ports that came back now and then, and were wanted meanwhile.
    #[test]
    fn for_a_part_of_the_window() {
        let text = |more: &str| {
            let later = "counter t_ns=7e8 source=local_ports entity=\"10.0.0.9:80\" name=used value=1000";
            text(600, &format!("{later}\n{PEER}\n{more}"))
        };
        assert!(silent(&RULE, &text("")).contains("nearly all for 30 % of the window"));
        let finding = found(&RULE, &text("call_window length_ns=1e9\ncall pid=1 tid=1 syscall=42 result=-99 count=30"));
        assert_eq!(finding.confidence, "high");
    }

    #[test]
    fn ports_left_or_ports_of_others() {
        assert!(silent(&RULE, &text(700, PEER)).contains("700 of 1001"));
        assert!(silent(&RULE, &text(1001, "")).contains("not seen to ask"));
        let reused = |destination: &str, how: u32, made: u32| {
            let setting = format!("setting area=sysctl name=net.ipv4.tcp_tw_reuse value=\"{how}\"");
            let opens = |value: u32| format!("source=proc/net/snmp entity=Tcp name=ActiveOpens value={value}");
            let more = format!("{PEER}\n{setting}\ncounter {}\ncounter t_ns=1e9 {}", opens(0), opens(made));
            text(1001, &more).replace("10.0.0.9", destination)
        };
        assert!(silent(&RULE, &reused("10.0.0.9", 1, 300)).contains("used again"));
        assert!(silent(&RULE, &reused("127.0.0.1", 2, 300)).contains("used again"));
        found(&RULE, &reused("10.0.0.9", 2, 300));
        found(&RULE, &reused("127.0.0.1", 2, 1000));
        assert!(silent(&RULE, &text(1700, PEER)).contains("several addresses"));
        let elsewhere = PEER.replace("10.0.0.9:80", "10.0.0.5:5432");
        assert!(
            silent(&RULE, &text(1001, &elsewhere)).contains("not seen to ask for a connection to it"),
            "a client's"
        );
        assert!(silent(&RULE, "counter source=s entity=e name=n value=1").contains("fewer connections"));
    }
}
