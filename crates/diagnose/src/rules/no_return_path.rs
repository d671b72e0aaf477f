// SPDX-License-Identifier: Apache-2.0
//! Handshakes come, and the listener drops them although its queue has room: no route leads back to the client.

use super::{Check, Checked, Rule, absent, evidence, explained, found, too_little};
use crate::answer::{Gap, Measured, Unit, Unseen};
use crate::case::Case;
use crate::facts::errors::Kind;
use crate::facts::handshakes::Handshakes;
use crate::facts::listeners::Listeners;
use crate::judgement::errors::{MIN_COUNT, floor};
use crate::judgement::handshakes::{Sign, table};
use crate::statistics::share;
use crate::verdict::{Explains, Finding, Subject};
use crate::wording::{count, percent};

pub(super) static RULE: Rule =
    Rule { cause: "no-return-path", explain: explain!("no-return-path"), check: Check::Accuses(check) };

/// Of the drops, met by a full queue: then that is what is the matter.
const MAX_OVERFLOWS: f64 = 0.1;

fn check(case: &Case) -> Checked {
    let h = case.fact::<Handshakes>()?;
    let others = (h.other_drops() - h.half_open_drops).max(0.0);
    if others == 0.0 {
        return absent("no listener dropped a handshake but for a full queue");
    }
    let told = format!("listeners dropped {} handshakes although their queues had room", count(others));
    // What others of its network namespace take says nothing of its own clients.
    let dropped = h.own_drops.filter(|_| h.own_taken.is_some()).map_or(others, |own| own.min(others));
    let part = share(dropped, dropped + h.taken_beside(h.own_drops));
    let least = floor(Kind::ListenDropped).unwrap_or_default();
    let needed = [Measured::new(others, MIN_COUNT, Unit::Handshakes), Measured::new(part, least, Unit::Share)];
    if let Some(seen) = Measured::farthest(needed) {
        return too_little(seen, format!("{told}, {} of all (a finding needs 10, and 0.1 %)", percent(part)));
    }
    if h.overflows >= h.drops * MAX_OVERFLOWS {
        return explained(format!("{told}, beside {} that met a full one", count(h.overflows)));
    }
    match h.own_drops {
        None => {
            return Err(Gap::new(RULE.cause, Unseen::Undecided, format!("{told}; whose they were is not recorded")));
        }
        Some(own) if own < MIN_COUNT => return explained(format!("{told}, {} of them the target's own", count(own))),
        Some(_) => {}
    }
    let own = h.own_drops.unwrap_or(0.0).min(others);
    let headline = format!("{} handshakes were dropped: there seems to be no way back to those clients", count(own));
    found(
        finding(case, &h, own)?,
        headline,
        "`ip route get ADDRESS` of a client that hangs says whether there is a way",
    )
}

/// What a client waits at least for its next try, in seconds.
const EACH: f64 = 1.0;

/// Of the namespace's drops, those of its own listeners: then the counts are the same.
const AGREE: f64 = 0.95;

fn finding(case: &Case, h: &Handshakes, own: f64) -> Result<Finding, Gap> {
    let listeners = case.fact::<Listeners>()?;
    let name = listeners.all.first().map_or("", |listener| listener.name.as_str());
    Ok(Finding {
        summary: format!(
            "{name} dropped {} handshakes while its accept queue had room, beside {} connections that were taken: what is left \
             as a reason is that no route leads back",
            count(own),
            count(h.taken_beside(Some(own)))
        ),
        subject: Subject { pid: case.recording.meta.target.pids.first().copied(), ..Subject::default() },
        explains: Explains { share: share(own, own + h.taken_beside(Some(own))), of: "handshakes of its clients".into(), seconds: own * EACH },
        evidence: std::iter::once(evidence("dropped by its listeners", own, "handshakes", "0", "ss -ltnm  # d in skmem"))
            .chain(table(case, h, Sign::ListenDropped))
            .collect(),
        remedy: "Compare the addresses of clients that hang (tcpdump -n 'tcp[tcpflags] & tcp-syn != 0') with the routing table: \
                 ip route get ADDRESS. Add the route, or repair the address translation that should have hidden these addresses."
            .into(),
        check: "nstat -az TcpExtListenDrops stands still while those clients connect.".into(),
        ..RULE.finding(case, if own >= h.drops * AGREE { 2 } else { 1 })
    })
}

#[cfg(test)]
mod tests {
    use super::super::asking::{found, gap, silent};
    use super::RULE;

    fn text(drops: u32, overflows: u32, own: Option<u32>) -> String {
        let mut text = "meta length_ns=4e9 target.listen=[\"tcp 0.0.0.0:80\"]\n".to_string();
        let mut counter = |entity: &str, name: &str, grew: u32| {
            text += &format!(
                "counter {entity} name={name} value=3\ncounter t_ns=9 {entity} name={name} value={}\n",
                3 + grew
            );
        };
        counter("source=proc/net/netstat entity=TcpExt", "ListenDrops", drops);
        counter("source=proc/net/netstat entity=TcpExt", "ListenOverflows", overflows);
        counter("source=proc/net/snmp entity=Tcp", "PassiveOpens", 100);
        let listener = "source=proc/net/listeners entity=\"tcp 0.0.0.0:80\"";
        counter(listener, "accept_queue", 0);
        if let Some(own) = own {
            counter(listener, "drops", own);
        }
        text
    }

    #[test]
    fn drops_of_a_queue_with_room() {
        let finding = found(&RULE, &text(25, 0, Some(25)));
        assert_eq!((finding.confidence.as_str(), finding.explains.share), ("high", 0.2));
        assert!(
            finding.evidence.iter().any(|e| e.fact == "dropped by listeners otherwise <- this one" && e.value == 25.0)
        );
    }

    #[test]
    fn full_queues_others_and_old_recordings() {
        assert!(silent(&RULE, &text(300, 250, Some(300))).contains("beside 250 that met a full one"));
        assert_eq!(silent(&RULE, &text(300, 300, Some(300))), "no listener dropped a handshake but for a full queue");
        assert!(silent(&RULE, &text(25, 0, Some(0))).contains("0 of them the target's own"));
        assert!(silent(&RULE, &text(5, 0, Some(5))).contains("5 handshakes"));
        assert!(gap(&RULE, &text(25, 0, None)).why.contains("not recorded"));
    }
}
