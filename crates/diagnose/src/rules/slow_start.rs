// SPDX-License-Identifier: Apache-2.0
//! Answers take round trips because a connection begins with a narrow congestion window, or begins again after a pause.

use recording::tables::Setting;

use super::{Check, Checked, Rule, absent, evidence, explained, found, too_little, too_short};
use crate::case::Case;
use crate::facts::sending::Endpoint;
use crate::judgement::churn;
use crate::judgement::slow_start::{Held, Seen, look};
use crate::statistics::ratio;
use crate::verdict::{Evidence, Explains, Finding, Subject};
use crate::wording::{count, percent, seconds};

pub(super) static RULE: Rule =
    Rule { cause: "slow-start", explain: explain!("slow-start"), check: Check::Accuses(check) };

fn check(case: &Case) -> Checked {
    match look(case) {
        Seen::Nothing => absent("no bytes were seen to stand before the window of a connection that begins"),
        Seen::TooLittle(held, seen) => too_little(seen, told(&held)),
        Seen::ShortWay(held, rtt) => {
            let trip = seconds(rtt.value);
            too_short(rtt, format!("{}, where a round trip takes {trip}", told(&held)))
        }
        Seen::TooShort(held, each) => too_short(each, format!("{}, under 5 ms for each exchange", told(&held))),
        Seen::OfItsOwn(held) => explained(format!("{}, while no client waited for that", told(&held))),
        Seen::OfFew(held) => explained(format!("{}, a small part of what clients wait for in all", told(&held))),
        Seen::Cause(held) => match why_not(case, &held) {
            Some(why) => explained(format!("{}, but {why}", told(&held))),
            None => accuse(case, &held),
        },
    }
}

/// Why windows do not begin again after pauses, where settings say so: then something else has made them narrow.
fn why_not(case: &Case, held: &Held) -> Option<&'static str> {
    let is_set = |name: &str, value: &str| {
        let mut settings = case.recording.rows::<Setting>().iter();
        settings.any(|setting| setting.name == name && setting.value.starts_with(value))
    };
    let paces = || is_set("net.ipv4.tcp_congestion_control", "bbr");
    match why(held) {
        Why::NewConnections => None,
        Why::Pauses if is_set(AFTER_IDLE, "0") => {
            Some("net.ipv4.tcp_slow_start_after_idle is 0: none begins again after a pause")
        }
        Why::Pauses => {
            paces().then_some("BBR makes windows as wide as the way takes, and never begins again after a pause")
        }
    }
}

/// The setting by which they do.
const AFTER_IDLE: &str = "net.ipv4.tcp_slow_start_after_idle";

fn place(endpoint: &Endpoint) -> String {
    match endpoint.accepted {
        true => format!("at {}", endpoint.name.trim_start_matches("tcp ")),
        false => format!("to {}", endpoint.name),
    }
}

fn told(held: &Held) -> String {
    format!(
        "windows of connections that begin held what it sends {} for {}, {} of the time there",
        place(&held.endpoint),
        seconds(held.ns / 1e9),
        percent(held.part)
    )
}

/// Why windows are narrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    NewConnections,
    Pauses,
}

fn why(held: &Held) -> Why {
    if held.endpoint.restarts() > 0.5 { Why::Pauses } else { Why::NewConnections }
}

fn accuse(case: &Case, held: &Held) -> Checked {
    let part = percent(held.part);
    let (headline, advice) = match why(held) {
        Why::NewConnections => (
            format!("what it sends stands for {part} of the time before the first windows of new connections"),
            "keep connections open, so that their windows have grown when an answer comes",
        ),
        Why::Pauses => (
            format!("what it sends stands for {part} of the time: windows begin again after each pause"),
            "set net.ipv4.tcp_slow_start_after_idle=0, or send something in pauses",
        ),
    };
    found(finding(case, held), headline, advice)
}

/// Whether something else says the same: how many connections are new, or what the kernel does after pauses.
fn is_confirmed(case: &Case, held: &Held) -> bool {
    match why(held) {
        Why::NewConnections => held.endpoint.accepted && churn::look(case).is_some_and(|churn| churn.one_each),
        Why::Pauses => {
            let is_on = |s: &Setting| s.name == AFTER_IDLE && s.value == "1";
            case.recording.rows::<Setting>().iter().any(is_on)
        }
    }
}

fn finding(case: &Case, held: &Held) -> Finding {
    let endpoint = &held.endpoint;
    let (cwnd, unsent) = endpoint.slow_start_window();
    let rounds = rounds(held);
    let (which, remedy) = match why(held) {
        Why::NewConnections => (
            "the connections are new, and their windows had not grown yet",
            "Keep connections open (a pool, keep-alive, HTTP/2): their windows stay as wide as they have grown. Or send less: \
             compress answers. On a network of one's own a wider first window helps (`ip route change` with the whole line of \
             `ip route show`, and `initcwnd 30`).",
        ),
        Why::Pauses => (
            "the windows had been wider, and the kernel made them small again after a pause",
            "sysctl net.ipv4.tcp_slow_start_after_idle=0 keeps them as they have grown; so does traffic in the pauses.",
        ),
    };
    Finding {
        summary: format!(
            "Bytes that it sends {} stood for {}, {} of the time there, before congestion windows of {cwnd:.0} segments, {} \
             bytes behind them{rounds}; {}{which}",
            place(endpoint),
            seconds(held.ns / 1e9),
            percent(held.part),
            count(unsent),
            if endpoint.retransmits == 0.0 { "nothing was sent again, and " } else { "" }
        ),
        subject: Subject { socket: Some(endpoint.name.clone()).filter(|_| !endpoint.accepted), ..Subject::default() },
        explains: Explains {
            share: held.part,
            of: "the time in which answers were owed or being sent".into(),
            seconds: held.ns / 1e9,
        },
        evidence: rows(held),
        remedy: remedy.into(),
        check:
            "After the change the same diagnosis shows fewer bytes before congestion windows, and answers end sooner."
                .into(),
        ..RULE.finding(case, 1 + usize::from(is_confirmed(case, held)))
    }
}

/// How many round trips an exchange waits for.
fn rounds(held: &Held) -> String {
    let rtt_ns = held.endpoint.min_rtt_ns;
    held.each_ns.map_or(String::new(), |ns| {
        format!(
            ": {} of each exchange, {:.1} round trips of {}",
            seconds(ns / 1e9),
            ratio(ns, rtt_ns),
            seconds(rtt_ns / 1e9)
        )
    })
}

fn rows(held: &Held) -> Vec<Evidence> {
    let endpoint = &held.endpoint;
    let (cwnd, unsent) = endpoint.slow_start_window();
    vec![
        evidence("held by a window that begins", held.ns / 1e9, "s", "a small part", ""),
        evidence("looks that found it so", endpoint.slow_start_looks(), "looks", "few", ""),
        evidence("the congestion window there", cwnd, "segments", "what the answer needs", "ss -ti  # cwnd"),
        evidence("unsent behind it", unsent, "bytes", "0", "ss -ti  # notsent"),
        evidence("shortest round trip", endpoint.min_rtt_ns / 1e9, "s", "", "ss -ti  # minrtt"),
        evidence("segments sent again there", endpoint.retransmits, "segments", "0", "ss -ti  # retrans"),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::asking::{found, silent};
    use super::RULE;

    /// Answers over 20 ms; 40 looks of 4 s, of which so many found bytes before a congestion window.
    fn text(connection: &str, exchange: &str) -> String {
        format!(
            "meta length_ns=4e9 target.listen=[\"tcp 0.0.0.0:80\"]
             exchange_window t_ns=4e9 length_ns=4e9
             connection t_ns=4e9 role=accepted port=80 looks=40 open=80 unsent=20 cwnd=20 on_its_way=10 min_rtt_ns=20e6 {connection}
             exchange t_ns=4e9 role=accepted port=80 stage=response {exchange}"
        )
    }

    const NEW: &str = "slow_start=20 slow_start_cwnd=400 slow_start_unsent=1e6";

    #[test]
    fn new_connections() {
        let finding = found(&RULE, &text(NEW, "count=40 sum_ns=4e7"));
        assert!(finding.summary.contains("windows of 20 segments"), "{}", finding.summary);
        assert!(finding.summary.contains("50 ms of each exchange, 2.5 round trips of 20 ms"), "{}", finding.summary);
        assert_eq!((finding.confidence.as_str(), finding.explains.seconds), ("medium", 2.0));
        let confirmed = "\ncounter source=proc/net/snmp entity=Tcp name=PassiveOpens value=0
             counter t_ns=9 source=proc/net/snmp entity=Tcp name=PassiveOpens value=41
             exchange t_ns=4e9 role=accepted port=80 stage=first_read count=39
             sample pid=1 tid=1 kernel=true syscall=3 weight=9";
        let finding = found(&RULE, &(text(NEW, "count=40 sum_ns=4e7") + confirmed));
        assert_eq!(finding.confidence, "high");
    }

    #[test]
    fn after_pauses() {
        let again = text("restarted=20 slow_start_cwnd=200 slow_start_unsent=1e6", "count=40 sum_ns=4e7");
        let finding = found(&RULE, &again);
        assert!(finding.summary.contains("made them small again after a pause"), "{}", finding.summary);
        let set = format!("{again}\nsetting area=sysctl name=net.ipv4.tcp_slow_start_after_idle value=\"1\"");
        assert_eq!(found(&RULE, &set).confidence, "high");
        assert!(silent(&RULE, &set.replace("value=\"1\"", "value=\"0\"")).contains("is 0: none begins again"));
        let paced = format!("{again}\nsetting area=sysctl name=net.ipv4.tcp_congestion_control value=\"bbr\"");
        assert!(silent(&RULE, &paced).contains("BBR makes windows"));
    }

    #[test]
    fn a_way_that_is_full_and_one_that_loses() {
        assert!(silent(&RULE, &text("", "count=40 sum_ns=4e7")).contains("no bytes were seen"), "as wide as the way");
        let few = text("slow_start=2 slow_start_cwnd=20 retransmits=90", "count=40 sum_ns=4e7");
        assert!(silent(&RULE, &few).contains("6.6 %"), "{}", silent(&RULE, &few));
    }

    #[test]
    fn small_answers_slow_ones_and_short_ways() {
        let small = silent(&RULE, &text(NEW, "count=4000 sum_ns=4e7"));
        assert!(small.contains("under 5 ms for each exchange"), "{small}");
        let slow = silent(&RULE, &text(NEW, "count=40 sum_ns=4e10"));
        assert!(slow.contains("4.7 % of the time there"), "{slow}");
        let short = text(NEW, "count=40 sum_ns=4e7").replace("min_rtt_ns=20e6", "min_rtt_ns=5e4");
        assert!(silent(&RULE, &short).contains("a round trip takes 50 µs"));
    }

    #[test]
    fn a_port_at_which_hardly_anybody_waits() {
        let others = |sum: &str| {
            let other = format!(
                "exchange t_ns=4e9 role=accepted port=81 stage=response count=4000 sum_ns={sum} length_ns=[10000000] counts=[4000]"
            );
            format!("{}\n{other}", text(NEW, "count=40 sum_ns=4e7"))
        };
        assert!(silent(&RULE, &others("40e9")).contains("a small part of what clients wait for"));
        found(&RULE, &others("40e9").replace("count=4000", "count=400").replace("counts=[4000]", "counts=[400]"));
    }
}
