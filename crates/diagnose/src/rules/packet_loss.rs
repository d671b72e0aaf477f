// SPDX-License-Identifier: Apache-2.0
//! The network loses packets: connections that stand have to send again, whatever state they are in.

mod seen;

use seen::Seen;

use super::{Check, Checked, Rule, absent, evidence, explained, found, too_little};
use crate::answer::{Measured, Unit};
use crate::case::Case;
use crate::facts::connections::Connections;
use crate::facts::errors::Kind;
use crate::facts::handshakes::Handshakes;
use crate::facts::links::Links;
use crate::facts::listening::Listening;
use crate::facts::retransmits::Retransmits;
use crate::judgement::dropped_here::{self, LostHere};
use crate::judgement::errors::{MIN_COUNT, floor};
use crate::judgement::full_links::is_full;
use crate::judgement::handshakes::{OF_SYN, Sign, table};
use crate::verdict::{Explains, Finding, Subject};
use crate::wording::{count, percent};

pub(super) static RULE: Rule =
    Rule { cause: "packet-loss", explain: explain!("packet-loss"), check: Check::Accuses(check) };

/// Of a kind of repetition, so many at least: one alone may be chance.
const MIN_OF_KIND: f64 = 3.0;

/// Kinds that losses show at once: they hit whatever is sent.
const MIN_KINDS: usize = 2;

/// Of the repetitions, as many as a full queue or table dropped: then that is why.
const EXPLAINED: f64 = 0.3;

/// Of the repetitions, of connections that stood: losses hit whatever is sent, not only what begins a handshake.
const MIN_OF_DATA: f64 = 0.2;

/// Of those, the ones whose first copy had arrived: above, the host is slow rather than the network lossy.
const MAX_NEEDLESS: f64 = 0.5;

fn check(case: &Case) -> Checked {
    let h = case.fact::<Handshakes>()?;
    if h.again == 0.0 {
        return absent("no segment was sent again");
    }
    let own = case.fact::<Retransmits>().ok();
    let seen = Seen::of(case, &h, own.as_deref());
    let (told, least) = (&seen.told, floor(Kind::SentAgain).unwrap_or_default());
    let needed = [Measured::new(seen.again, MIN_COUNT, Unit::Segments), Measured::new(seen.all, least, Unit::Share)];
    if let Some(number) = Measured::farthest(needed) {
        let why =
            format!("{told}, {} of them of connections that stood (a finding needs 1 %, and 10)", count(seen.again));
        return too_little(number, why);
    }
    if let Some(peer) = seen.for_nobody(case) {
        return explained(format!(
            "{told}: it sends to {peer} on its own account, and none of its clients waits for an answer of that"
        ));
    }
    if seen.of_data < MIN_OF_DATA {
        let number = Measured::new(seen.of_data, MIN_OF_DATA, Unit::Share);
        return too_little(number, format!("{told}, nearly all of them SYNs"));
    }
    if let Some(otherwise) = otherwise(case, &h, own.as_deref()) {
        return explained(format!("{told}{otherwise}"));
    }
    if seen.part < least {
        let why = format!("{told}, {} of all segments on connections of its own (under 1 %)", percent(seen.part));
        return too_little(Measured::new(seen.part, least, Unit::Share), why);
    }
    let kinds = [h.syn_again, h.timeouts, h.probes, h.fast].into_iter().filter(|n| *n >= MIN_OF_KIND).count();
    if kinds < MIN_KINDS {
        let number = Measured::new(kinds as f64, MIN_KINDS as f64, Unit::Kinds);
        return too_little(number, format!("{told}, and not in the several ways that losses show"));
    }
    let place = Place::of(case, &h, own.as_deref());
    let (headline, advice) = place.headline(&seen.lost());
    found(finding(case, &h, own.as_deref(), (&seen, &place)), headline, advice)
}

/// Where they were lost, as far as the kernel here knows.
enum Place {
    Here(LostHere),
    /// The kernel dropped next to none in this network namespace. An interface may have, or another namespace of this host.
    Elsewhere,
    Unknown,
}

/// Of the repetitions of data, dropped here: of each that is sent again one was lost, or its acknowledgement was.
const MOST_HERE: f64 = 0.5;
const NONE_HERE: f64 = 0.1;

impl Place {
    fn of(case: &Case, h: &Handshakes, own: Option<&Retransmits>) -> Self {
        let again = h.data_again() * own.map_or(1.0, Retransmits::own_share);
        match dropped_here::lost(case) {
            Some(lost) if lost.own >= again * MOST_HERE => Self::Here(lost),
            Some(lost) if lost.at_most < again * NONE_HERE => Self::Elsewhere,
            _ => Self::Unknown,
        }
    }

    /// The headline, and what to do first.
    fn headline(&self, lost: &str) -> (String, String) {
        let again = "and had to be sent again";
        match self {
            Self::Here(here) => (
                format!("{lost} had to be sent again: dropped on this host, {}", here.reason()),
                format!("look at it: `{}`", here.see()),
            ),
            Self::Elsewhere => (
                format!("{lost} were lost outside of its network namespace {again}"),
                "find out where: `ip -s link`, the host around a container, the network, the other end".to_string(),
            ),
            Self::Unknown => (
                format!("{lost} were lost on the way {again}"),
                "find out where: `ip -s link`, `nft list ruleset`, then the other end".to_string(),
            ),
        }
    }

    /// Where in the kernel of this host.
    fn function(&self) -> Option<String> {
        match self {
            Self::Here(here) => here.place(),
            Self::Elsewhere | Self::Unknown => None,
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Here(here) => {
                format!("; {} segments, SYNs apart, were dropped on this host, by {}", count(here.own), here.by())
            }
            Self::Elsewhere => "; in this network namespace the kernel dropped next to none".to_string(),
            Self::Unknown => String::new(),
        }
    }

    fn remedy(&self) -> String {
        let place = match self {
            Self::Here(here) => {
                format!(
                    "They are dropped here, by {}: look at it (`{}`), and let them pass if they were meant to.",
                    here.by(),
                    here.see()
                )
            }
            Self::Elsewhere => {
                "Find the place and repair it: drops of the interface (ip -s link, ethtool -S), the host around a \
                                container and its packet filter, a link that is full, the other end."
                    .to_string()
            }
            Self::Unknown => {
                "Find the place and repair it: drops of the interface (ip -s link, ethtool -S), a rule of the packet \
                              filter (nft list ruleset), a link that is full, the other end."
                    .to_string()
            }
        };
        format!("{place} Connections that are kept open lose no handshakes.")
    }
}

/// What else explains that segments are sent again, or why that is not the target's matter.
fn otherwise(case: &Case, h: &Handshakes, own: Option<&Retransmits>) -> Option<String> {
    if h.needless >= h.data_again() * MAX_NEEDLESS {
        return Some(format!(", but of {} the first copy had arrived", count(h.needless)));
    }
    // A queue that has room drops for another reason, as one that a test of bad networks set up.
    let of_full = |links: &Links| links.all.iter().filter(|link| is_full(link)).map(|link| link.drops).sum();
    let queue_drops = case.fact::<Links>().map_or(0.0, |links| of_full(&links));
    let full = [
        (queue_drops, "packets that the queue of an interface dropped"),
        (h.overflows, "handshakes that met a full accept queue"),
        (h.tracking_drops, "drops of connection tracking"),
        (h.other_drops(), "handshakes that listeners dropped"),
    ];
    if let Some((n, what)) = full.into_iter().find(|(n, _)| *n >= h.again * EXPLAINED) {
        return Some(format!("; {} {what} explain them", count(n)));
    }
    if let Some(own) = own.filter(|own| own.own_data() < MIN_COUNT) {
        return Some(format!(", {} of them on connections of its own that stood", count(own.own_data())));
    }
    (!has_traffic(case)).then(|| ", and the target has no TCP connection of its own".to_string())
}

fn has_traffic(case: &Case) -> bool {
    let open = |c: &Connections| c.accepted.open + c.made.open > 0.0;
    let listens = case.fact::<Listening>().is_ok_and(|listening| listening.on_tcp());
    listens || case.fact::<Connections>().is_ok_and(|connections| open(&connections))
}

/// What a repetition of data costs at least, in seconds.
const OF_DATA: f64 = 0.2;

/// Counters of the whole network namespace are one source; the target's own connections, in several states, another.
fn summary(h: &Handshakes, own: Option<&Retransmits>, (seen, place): (&Seen, &Place)) -> String {
    format!(
        "{}: {} of connections that stood, {} SYNs; an answer did not come in time {} times{}{}",
        seen.words(h),
        count(h.data_again()),
        count(h.syn_again),
        count(h.timeouts),
        own.map_or(String::new(), |own| format!("; on its own connections, by state: {}", by_state(own))),
        place.words()
    )
}

fn finding(case: &Case, h: &Handshakes, own: Option<&Retransmits>, (seen, place): (&Seen, &Place)) -> Finding {
    let see = |name: &str| format!("nstat -az {name}");
    Finding {
        summary: summary(h, own, (seen, place)),
        subject: Subject { function: place.function(), ..Subject::default() },
        explains: Explains {
            share: seen.part,
            of: "segments sent".into(),
            seconds: (h.timeouts * OF_DATA + h.syn_again * OF_SYN) * own.map_or(1.0, Retransmits::own_share),
        },
        evidence: [
            evidence("sent again", h.again, "segments", "below 1 % of those sent", see("TcpRetransSegs TcpOutSegs")),
            evidence("sent", h.sent, "segments", "", see("TcpOutSegs")),
            evidence("answers that did not come in time", h.timeouts, "times", "near 0", see("TcpExtTCPTimeouts")),
            evidence("probes for what was lost", h.probes, "segments", "near 0", see("TcpExtTCPLossProbes")),
            evidence(
                "sent again because later ones had come",
                h.fast,
                "segments",
                "near 0",
                see("TcpExtTCPFastRetrans"),
            ),
            evidence("sent again needlessly", h.needless, "segments", "", see("TcpExtTCPDSACKRecv")),
        ]
        .into_iter()
        .chain(seen.evidence())
        .chain(table(case, h, Sign::DataAgain))
        .collect(),
        remedy: place.remedy(),
        check: "nstat -az TcpRetransSegs grows by less than 1 % of TcpOutSegs under the same load.".into(),
        ..RULE.finding(case, if own.is_some_and(|own| own.own.len() >= MIN_KINDS) { 2 } else { 1 })
    }
}

/// Of its own, the most first: `ESTABLISHED 120, SYN_SENT 98`.
fn by_state(own: &Retransmits) -> String {
    let mut states: Vec<_> = own.own.iter().collect();
    states.sort_by(|a, b| b.1.total_cmp(a.1));
    states.iter().map(|(state, n)| format!("{state} {n:.0}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::asking::{found, silent};
    use super::RULE;

    fn text(rows: &[(&str, u32)]) -> String {
        let mut text = "meta length_ns=4e9 target.listen=[\"tcp 0.0.0.0:80\"]\n".to_string();
        for (name, grew) in [("Tcp OutSegs", 10_000)].iter().chain(rows) {
            let (entity, name) = name.split_once(' ').unwrap();
            let source = if entity == "TcpExt" { "proc/net/netstat" } else { "proc/net/snmp" };
            text += &format!("counter source={source} entity={entity} name={name} value=3\n");
            text += &format!("counter t_ns=9 source={source} entity={entity} name={name} value={}\n", 3 + grew);
        }
        text
    }

    const LOST: &[(&str, u32)] = &[
        ("Tcp RetransSegs", 480),
        ("TcpExt TCPSynRetrans", 110),
        ("TcpExt TCPTimeouts", 121),
        ("TcpExt TCPLossProbes", 263),
        ("TcpExt TCPDSACKRecv", 130),
    ];

    const OWN: &str = "retransmit kind=retransmit state=ESTABLISHED role=accepted port=80 count=90
        retransmit kind=retransmit state=LAST_ACK role=accepted port=80 count=40";

    #[test]
    fn losses_in_all_states() {
        let finding = found(&RULE, &text(LOST));
        assert_eq!((finding.confidence.as_str(), finding.explains.share), ("medium", 0.048));
        let own = [text(LOST).as_str(), OWN].concat();
        let finding_of_own = found(&RULE, &own);
        assert_eq!(finding_of_own.confidence, "high");
        assert!(
            finding_of_own.summary.ends_with("by state: ESTABLISHED 90, LAST_ACK 40"),
            "{}",
            finding_of_own.summary
        );
        assert!(silent(&RULE, &own.replace("port=80", "port=81")).contains("0 of them on connections of its own"));
        assert!(finding.summary.contains("370 of connections that stood, 110 SYNs"), "{}", finding.summary);
    }

    #[test]
    fn where_they_were_lost() {
        let told = |drops: &str| found(&RULE, &[&text(LOST), OWN, "\n", drops].concat()).summary;
        let here = "frame id=1 symbol=nft_do_chain module=kernel kind=kernel\nstack id=1 frames=[1]
            drop reason=NETFILTER_DROP protocol=tcp role=accepted port=80 stack=1 count=400";
        let by = "400 segments, SYNs apart, were dropped on this host, by its packet filter or connection tracking (NETFILTER_DROP at nft_do_chain)";
        assert!(told(here).ends_with(by), "{}", told(here));
        assert!(told(&here.replace("port=80", "port=81")).ends_with("LAST_ACK 40"), "somebody else's");
        let old = "drop reason=TCP_OLD_DATA protocol=tcp role=accepted port=80 count=400";
        assert!(told(old).ends_with("the kernel dropped next to none"), "{}", told(old));
    }

    /// Twelve of its own, as any connection has some, beside a neighbour's thousands.
    #[test]
    fn losses_of_a_neighbour() {
        let neighbour = "\nretransmit kind=retransmit state=ESTABLISHED role=made peer=203.0.113.9:873 count=29000";
        let few = OWN.replace("count=90", "count=7").replace("count=40", "count=5") + neighbour;
        let why = silent(&RULE, &[text(LOST).as_str(), &few].concat());
        assert!(why.contains("% of all segments on connections of its own (under 1 %)"), "{why}");
    }

    /// One in a thousand of all, beside a peer on this host with whom it talks most; one in twenty of those to its clients.
    #[test]
    fn losses_of_few_among_many() {
        let beside = text(LOST).replace("10003", "480003");
        let of_all = silent(&RULE, &[beside.as_str(), OWN].concat());
        assert!(of_all.contains("480 of 480 thousand segments (0.1 %)"), "{of_all}");
        let connections = |open: u32| {
            format!(
                "\nconnection t_ns=1e9 role=accepted port=80 looks=40 open={open} retransmits=120 segments_out=2400
                 connection t_ns=1e9 role=made peer=127.0.0.1:6379 looks=40 open=80 segments_out=400000
                 exchange_window t_ns=4e9 length_ns=4e9
                 exchange role=accepted port=80 stage=response count=900 sum_ns=9e9
                 exchange role=accepted port=80 stage=first_read count=100"
            )
        };
        let finding = found(&RULE, &[beside.as_str(), OWN, &connections(2000)].concat());
        assert!(finding.summary.starts_with("120 of 2400 segments to clients of "), "{}", finding.summary);
        assert!(finding.summary.contains("(5.0 %) were sent again. 480 of 480 thousand "), "{}", finding.summary);
        silent(&RULE, &[beside.as_str(), OWN, &connections(80)].concat());
    }

    #[test]
    fn what_a_full_queue_explains() {
        let full = [LOST, &[("TcpExt ListenOverflows", 300), ("TcpExt ListenDrops", 300)]].concat();
        assert!(silent(&RULE, &text(&full)).contains("a full accept queue explain them"));
    }

    #[test]
    fn needless_ones_and_handshakes() {
        assert!(
            silent(&RULE, &text(&[("Tcp RetransSegs", 480), ("TcpExt TCPDSACKRecv", 470)]))
                .contains("of 470 the first copy had arrived")
        );
        assert!(
            silent(&RULE, &text(&[("Tcp RetransSegs", 480), ("TcpExt TCPSynRetrans", 460)]))
                .contains("nearly all of them SYNs")
        );
        assert!(silent(&RULE, &text(&[("Tcp RetransSegs", 480)])).contains("not in the several ways"));
        assert_eq!(silent(&RULE, &text(&[])), "no segment was sent again");
    }
}
