// SPDX-License-Identifier: Apache-2.0
//! More wants to leave through a network interface than it carries: what the target sends stands in its queue.

use std::net::SocketAddr;

use super::{Check, Checked, Outcome, Rule, absent, evidence, explained, found, too_little, too_short};
use crate::answer::{Measured, Unit};
use crate::case::Case;
use crate::facts::links::{Link, Links};
use crate::facts::requests::Requests;
use crate::facts::sending::{Endpoint, Sending};
use crate::judgement::clients_wait::may_wait_for;
use crate::judgement::full_links::{MIN_DELAY_NS, MIN_QUEUED};
use crate::judgement::one_of;
use crate::statistics::share;
use crate::verdict::{Evidence, Explains, Finding, Subject};
use crate::wording::{count, percent, seconds, word};

pub(super) static RULE: Rule =
    Rule { cause: "link-saturated", explain: explain!("link-saturated"), check: Check::Accuses(check) };

/// Looks, one a second: fewer may meet one burst.
const MIN_LOOKS: f64 = 3.0;

/// How often a second a shaper held something back, or of its speed, from which on an interface is at its limit. A queue that
/// spaces packets of its own accord (fq) holds some too.
const HELD_BACK: f64 = 10.0;
/// Packets that its queue dropped, at least one a second: fewer are one burst, or one flow that has its share of the queue used up.
const DROPPED: f64 = 10.0;
const AT_SPEED: f64 = 0.9;

/// Of the queue's delay: a connection whose round trips take less does not go through it.
const OF_DELAY: f64 = 0.5;

/// The shortest round trip over that delay, from which on it is the distance and no queue.
const FAR: f64 = 3.0;

/// Of the time that clients wait and answers take to be sent.
const MIN_SHARE: f64 = 0.25;

/// Of the window, over all connections.
const MIN_TIME: f64 = 0.05;

/// The one over which this host talks to itself.
const LOOPBACK: &str = "lo";

fn check(case: &Case) -> Checked {
    let Ok(links) = case.fact::<Links>() else { return absent("no interface of its network was seen to keep a queue") };
    let at_limit = links.all.iter().filter(|link| is_at_limit(link)).map(|link| judge(case, link));
    one_of(at_limit, |said| matches!(said, Ok(Outcome::Found(..))))
        .unwrap_or_else(|| absent("no interface held back or dropped what was to be sent"))
}

fn judge(case: &Case, link: &Link) -> Checked {
    let told = format!(
        "bytes stood in the queue of {} for {} of the looks, for {} each; {} left it",
        link.name,
        percent(link.queued),
        seconds(link.delay_ns() / 1e9),
        rate(link.sent)
    );
    if let Some(short) = few_or_short(link, &told) {
        return short;
    }
    let Some(through) = Through::of(case, link) else {
        return explained(format!("{told}, and no connection of the target goes through it"));
    };
    let needed = [
        Measured::new(through.part(), MIN_SHARE, Unit::Share),
        Measured::new(through.ns / 1e9, case.seconds() * MIN_TIME, Unit::Seconds),
    ];
    if let Some(seen) = Measured::farthest(needed) {
        let why = format!("{told}, but the target sent through it for {} of the time", percent(through.part()));
        return too_little(seen, why);
    }
    if !through.is_felt {
        return explained(format!("{told}, and no client waits for what the target sends through it"));
    }
    let headline = format!(
        "interface {} is full: what is sent stands in its queue for {}, and leaves at {}",
        link.name,
        seconds(link.delay_ns() / 1e9),
        rate(link.sent)
    );
    let advice = format!("send less, or raise the limit: `tc -s qdisc show dev {}` shows a shaper", word(&link.name));
    found(finding(case, link, &through), headline, advice)
}

/// That bytes stood there seldom, or not for long, if so.
fn few_or_short(link: &Link, told: &str) -> Option<Checked> {
    let needed = [
        Measured::new(link.queued, MIN_QUEUED, Unit::Share),
        Measured::new(link.looks * link.queued, MIN_LOOKS, Unit::Looks),
    ];
    if let Some(seen) = Measured::farthest(needed) {
        return Some(too_little(seen, told));
    }
    let delay = Measured::new(link.delay_ns() / 1e9, MIN_DELAY_NS / 1e9, Unit::Seconds);
    (link.delay_ns() < MIN_DELAY_NS).then(|| too_short(delay, told))
}

/// Whether it had something wait because it could not carry more.
fn is_at_limit(link: &Link) -> bool {
    let holds = link.overlimits >= HELD_BACK || link.drops >= DROPPED.max(link.looks);
    holds && !link.emulates || link.utilization.is_some_and(|used| used >= AT_SPEED)
}

/// What the target sent through an interface.
struct Through {
    /// For how long it had something unsent or unacknowledged that no end of the connection held, over all connections, ns.
    ns: f64,
    /// For how long answers were owed or being sent, there and where other clients are, ns.
    all_ns: f64,
    /// Clients are among those at the other end, or wait for what is sent there.
    is_felt: bool,
    /// The longest of their round trips on average, ns.
    srtt_ns: f64,
    retransmits: f64,
}

impl Through {
    fn of(case: &Case, link: &Link) -> Option<Self> {
        let sending = case.fact::<Sending>().ok()?;
        let delay_ns = link.delay_ns();
        // Whoever is far away has long round trips without any queue.
        let is_far = |e: &Endpoint| e.min_rtt_ns >= delay_ns * FAR;
        let queues = |e: &&Endpoint| e.srtt_ns() - if is_far(e) { e.min_rtt_ns } else { 0.0 } >= delay_ns * OF_DELAY;
        let goes = |e: &&Endpoint| link.name == LOOPBACK || !is_on_loopback(e);
        let through: Vec<&Endpoint> = sending.endpoints.iter().filter(goes).filter(queues).collect();
        let sum = |of: fn(&Endpoint) -> f64| through.iter().map(|endpoint| of(endpoint)).sum::<f64>();
        // Clients who do not stand behind it are clients, too.
        let others = sending.endpoints.iter().filter(|e| e.accepted && !through.contains(e));
        let all = through.iter().copied().chain(others);
        let all_ns = all.map(|endpoint| waited_ns(case, endpoint) + endpoint.busy_ns).sum();
        let ns = sum(|e| (e.busy_ns - e.rwnd_ns - e.sndbuf_ns).max(0.0));
        (!through.is_empty()).then(|| Self {
            ns,
            all_ns,
            is_felt: through.iter().any(|e| e.accepted) || may_wait_for(case, ns, each_ns(case, &through, ns)),
            srtt_ns: through.iter().map(|endpoint| endpoint.srtt_ns()).fold(0.0, f64::max),
            retransmits: sum(|e| e.retransmits),
        })
    }

    fn part(&self) -> f64 {
        share(self.ns, self.all_ns)
    }
}

/// Whether an endpoint can only be talked to from this host.
fn is_on_loopback(endpoint: &Endpoint) -> bool {
    let address = endpoint.name.trim_start_matches("tcp ").parse::<SocketAddr>();
    address.is_ok_and(|address| address.ip().to_canonical().is_loopback())
}

/// What each of the questions that the target asked there has of so much time, ns; none where none was answered.
fn each_ns(case: &Case, through: &[&Endpoint], ns: f64) -> Option<f64> {
    let requests = case.fact::<Requests>().ok()?;
    let answered = |e: &&Endpoint| requests.of(e.accepted, &e.name).map_or(0.0, |asked| asked.response.count);
    let all = through.iter().map(answered).sum::<f64>() * requests.scale();
    (all > 0.0).then(|| ns / all)
}

/// For how long clients waited for the beginning of their answers; what the target asks it sends while it waits.
fn waited_ns(case: &Case, endpoint: &Endpoint) -> f64 {
    let Ok(requests) = case.fact::<Requests>() else { return 0.0 };
    let asked = requests.of(true, &endpoint.name).filter(|_| endpoint.accepted);
    asked.map_or(0.0, |asked| asked.response.sum_ns * requests.scale())
}

/// Bytes a second, as lines are told.
fn rate(bytes: f64) -> String {
    let bits = bytes * 8.0;
    match bits {
        many if many >= 1e9 => format!("{:.1} Gbit/s", many / 1e9),
        some if some >= 1e6 => format!("{:.1} Mbit/s", some / 1e6),
        few => format!("{:.0} kbit/s", few / 1e3),
    }
}

fn finding(case: &Case, link: &Link, through: &Through) -> Finding {
    let part = through.part();
    Finding {
        // The queue is one source, the round trips of the target's connections another.
        summary: format!(
            "What left through {} stood in its queue for {} on average, and round trips of the target's connections took {}; {} \
             left it, and its queue dropped {} packets",
            link.name,
            seconds(link.delay_ns() / 1e9),
            seconds(through.srtt_ns / 1e9),
            rate(link.sent),
            count(link.drops)
        ),
        subject: Subject { socket: Some(link.name.clone()), ..Subject::default() },
        explains: Explains {
            share: part,
            of: "the time in which answers were owed or being sent".into(),
            seconds: through.ns / 1e9,
        },
        evidence: rows(link, through),
        remedy: RULE.explained().what_to_do,
        check: "With less to send, or a higher limit, the same diagnosis finds the queue empty, and round trips are shorter."
            .into(),
        ..RULE.finding(case, 2)
    }
}

fn rows(link: &Link, through: &Through) -> Vec<Evidence> {
    let see = format!("tc -s qdisc show dev {}", word(&link.name));
    let mut rows = vec![
        evidence("looks at which bytes stood in the queue", link.queued, "share", "few", &*see),
        evidence("they stood there for", link.delay_ns() / 1e9, "s", "under 5 ms", ""),
        evidence("left the queue", link.sent, "bytes/s", "", ""),
        evidence("dropped by the queue", link.drops, "packets", "0", see),
        evidence("round trips of the target's connections", through.srtt_ns / 1e9, "s", "", "ss -ti  # rtt"),
        evidence("segments sent again", through.retransmits, "segments", "0", "ss -ti  # retrans"),
    ];
    rows.extend(link.utilization.map(|used| evidence("of the interface's speed", used, "share", "under 90 %", "")));
    rows
}

#[cfg(test)]
mod tests {
    use super::super::asking::{found, silent};
    use super::RULE;

    /// An interface whose queue is looked at each second, and a server that sends through it.
    fn text(backlog: u64, overlimits: u64, srtt_ns: u64) -> String {
        let mut text = format!(
            "meta length_ns=6e9 target.pids=[7] target.comm=files target.listen=[\"tcp 0.0.0.0:80\"]
             exchange_window t_ns=6e9 length_ns=6e9
             connection t_ns=6e9 role=accepted port=80 looks=60 open=180 unsent=150 on_its_way=20 busy_ns=16e9 srtt_ns={}
             exchange t_ns=6e9 role=accepted port=80 stage=response count=30 sum_ns=3e8\n",
            srtt_ns * 170
        );
        for t in 0..=6_u64 {
            for (name, value) in [
                ("backlog_bytes", backlog),
                ("sent_bytes", t * 2_500_000),
                ("overlimits", t * overlimits),
                ("drops", 0),
            ] {
                text += &format!("counter t_ns={t}e9 source=netlink/qdisc entity=eth0 name={name} value={value}\n");
            }
        }
        text
    }

    #[test]
    fn what_is_sent_stands_in_the_queue() {
        let finding = found(&RULE, &text(250_000, 900, 120_000_000));
        assert!(finding.summary.contains("stood in its queue for 100 ms"), "{}", finding.summary);
        assert!(finding.summary.contains("20.0 Mbit/s left it"), "{}", finding.summary);
        assert!(finding.explains.share > 0.9, "{:?}", finding.explains);
    }

    /// Beside somebody else's backup through the same interface: acknowledgements that are put off take as long as its queue.
    #[test]
    fn connections_of_this_host_and_transfers_that_no_client_waits_for() {
        let made = |peer: &str, more: &str| {
            let endpoint = format!("role=made peer={peer}");
            text(250_000, 900, 60_000_000).replacen("role=accepted port=80", &endpoint, 1) + more
        };
        assert!(silent(&RULE, &made("127.0.0.1:4317", "")).contains("no connection of the target goes through it"));
        assert!(silent(&RULE, &made("[::1]:4317", "")).contains("no connection of the target goes through it"));
        let quick = "exchange t_ns=6e9 role=accepted port=80 stage=response count=900 sum_ns=18e8 length_ns=[2000000] counts=[900]\n";
        assert!(
            silent(&RULE, &made("10.0.0.9:443", quick)).contains("no client waits for what"),
            "a backup of its own"
        );
    }

    #[test]
    fn a_short_queue_one_that_spaces_packets_or_another_way() {
        assert!(silent(&RULE, &text(5_000, 900, 120_000_000)).contains("2 ms each"));
        assert!(silent(&RULE, &text(250_000, 0, 120_000_000)).contains("no interface held back"));
        assert!(silent(&RULE, &text(250_000, 900, 100_000)).contains("no connection of the target goes through it"));
        let far = text(50_000, 900, 80_000_000).replace("srtt_ns", "min_rtt_ns=79000000 srtt_ns");
        assert!(silent(&RULE, &far).contains("no connection of the target goes through it"), "clients are far away");
        assert!(silent(&RULE, "meta length_ns=6e9").contains("no interface of its network"));
    }
}
