// SPDX-License-Identifier: Apache-2.0
//! New connections meet an old one of the same addresses and ports in TIME_WAIT, which refuses them by its timestamp.

use recording::counters::sockstat;

use super::{Check, Checked, Rule, absent, evidence, explained, found, too_little};
use crate::answer::{Gap, Measured, Unit};
use crate::case::Case;
use crate::facts::counters::Counters;
use crate::facts::handshakes::Handshakes;
use crate::facts::listening::Listening;
use crate::facts::socket_states::SocketStates;
use crate::judgement::errors::MIN_COUNT;
use crate::judgement::handshakes::{Sign, table};
use crate::judgement::time_wait;
use crate::statistics::share;
use crate::verdict::{Explains, Finding, Subject};
use crate::wording::{count, percent};

pub(super) static RULE: Rule =
    Rule { cause: "time-wait-collision", explain: explain!("time-wait-collision"), check: Check::Accuses(check) };

/// Each costs its client a round more, or a second, so that one in a thousand is the whole of a p999.
const MIN_SHARE: f64 = 0.001;

fn check(case: &Case) -> Checked {
    let h = case.fact::<Handshakes>()?;
    let Some(refused) = h.old_time_wait else { return not_counted(case) };
    if refused == 0.0 {
        let none = "no SYN was refused by an old connection in TIME_WAIT";
        // Thousands of them are what everybody sees first.
        return time_wait::harmless(case).map_or_else(|| absent(none), explained);
    }
    if !case.fact::<Listening>()?.on_tcp() {
        return explained(format!(
            "{} SYNs were refused by old connections in TIME_WAIT, but the target takes none",
            count(refused)
        ));
    }
    // The counter is that of a network namespace: who else has such sockets there has his part of it.
    let own = case.fact::<SocketStates>().ok().and_then(|states| states.own_time_wait);
    let everybodys = refused;
    let refused = everybodys * own.unwrap_or(1.0);
    if refused == 0.0 {
        return explained(format!(
            "{} SYNs of its network namespace were refused by old connections in TIME_WAIT, none of which is at its own ports",
            count(everybodys)
        ));
    }
    let taken = h.taken_beside(own);
    let part = share(refused, refused + taken);
    let needed = [Measured::new(refused, MIN_COUNT, Unit::Handshakes), Measured::new(part, MIN_SHARE, Unit::Share)];
    if let Some(seen) = Measured::farthest(needed) {
        let why = format!(
            "{} SYNs were refused by old connections in TIME_WAIT, {} of all (a finding needs 10, and 0.1 %)",
            count(refused),
            percent(part)
        );
        return too_little(seen, why);
    }
    let headline =
        format!("{} of the handshakes were refused by old connections of the same ports in TIME_WAIT", percent(part));
    found(
        finding(case, &h, (refused, part, taken))?,
        headline,
        "let the clients close first, or keep connections open; look at the NAT before it",
    )
}

/// On kernels without the counter a clash cannot be told; where nobody is in that state, there is none.
fn not_counted(case: &Case) -> Checked {
    let is_own = case.fact::<SocketStates>().map_or(true, |states| states.own_time_wait != Some(0.0));
    match time_wait::many(case) {
        None => absent("hardly any socket was in TIME_WAIT"),
        Some(_) if !is_own || !case.fact::<Listening>()?.on_tcp() => {
            absent("no socket in TIME_WAIT is at a port of its own")
        }
        Some(_) => Err(Gap::not_recorded(
            "counter",
            "this kernel does not count SYNs that an old connection in TIME_WAIT refuses (`PAWSTimewait`, in recent kernels)",
        )),
    }
}

/// What a refusal costs its client at least, in seconds: with the answer to it, a reset, and the next try.
const EACH: f64 = 0.02;

/// Ports that a client of Linux takes by default, from 32,768 to 60,999.
const CLIENT_PORTS: f64 = 28_232.0;

/// Whose old connections a new one of the same address may meet, and on how many of its ports.
fn pairs(case: &Case) -> Option<String> {
    let (address, port, sockets) = case.fact::<SocketStates>().ok()?.most_time_wait.clone()?;
    Some(format!(
        "; in the end {} between {address} and port {port}: a new connection from there may meet one on {} of the \
         {CLIENT_PORTS:.0} ports that a client takes by default",
        count(sockets),
        percent(share(sockets, CLIENT_PORTS).min(1.0))
    ))
}

fn finding(case: &Case, h: &Handshakes, (refused, part, taken): (f64, f64, f64)) -> Result<Finding, Gap> {
    let counters = case.fact::<Counters>()?;
    let time_wait = counters.max(sockstat::TIME_WAIT, "TCP").unwrap_or(0.0);
    Ok(Finding {
        // One counter of a namespace, and the rest of the table that is still.
        summary: format!(
            "{} SYNs met an old connection in TIME_WAIT with the same ports and were refused by its timestamp, {} of the \
             handshakes; {} were taken, {} sockets were in TIME_WAIT{}",
            count(refused),
            percent(part),
            count(taken),
            count(time_wait),
            pairs(case).unwrap_or_default()
        ),
        subject: Subject { pid: case.recording.meta.target.pids.first().copied(), ..Subject::default() },
        explains: Explains { share: part, of: "handshakes of its clients".into(), seconds: refused * EACH },
        evidence: std::iter::once(evidence("sockets in TIME_WAIT", time_wait, "sockets", "", "ss -tan state time-wait | wc -l"))
            .chain(table(case, h, Sign::OldTimeWait))
            .collect(),
        remedy: "Keep connections open, or let the clients close them: TIME_WAIT is kept by whoever closes first. If they come \
                 through a NAT, give it more addresses, and let it keep ended connections as long as this side does (60 s). \
                 Timestamps off (net.ipv4.tcp_timestamps=0) only change how such SYNs are refused."
            .into(),
        check: "nstat -az TcpExtPAWSTimewait stands still under the same load.".into(),
        ..RULE.finding(case, 1)
    })
}

#[cfg(test)]
mod tests {
    use super::super::asking::{found, gap, silent};
    use super::RULE;

    fn text(refused: u32, taken: u32) -> String {
        format!(
            "meta length_ns=4e9 target.listen=[\"tcp 0.0.0.0:80\"]
             counter source=proc/net/netstat entity=TcpExt name=PAWSTimewait value=0
             counter t_ns=9 source=proc/net/netstat entity=TcpExt name=PAWSTimewait value={refused}
             counter source=proc/net/snmp entity=Tcp name=PassiveOpens value=0
             counter t_ns=9 source=proc/net/snmp entity=Tcp name=PassiveOpens value={taken}
             counter source=proc/net/sockstat entity=TCP name=tw value=13946"
        )
    }

    #[test]
    fn syns_that_time_wait_refuses() {
        let finding = found(&RULE, &text(200, 9800));
        assert_eq!((finding.explains.share, finding.confidence.as_str()), (0.02, "medium"));
        assert!(finding.summary.ends_with("14 thousand sockets were in TIME_WAIT"), "{}", finding.summary);
        let told = "\nsocket_state t_ns=4e9 state=TIME_WAIT role=accepted port=80 peer=10.0.0.7 count=7058";
        let finding = found(&RULE, &(text(200, 9800) + told));
        assert!(
            finding.summary.ends_with("on 25 % of the 28232 ports that a client takes by default"),
            "{}",
            finding.summary
        );
    }

    #[test]
    fn many_in_time_wait_are_harmless() {
        let harmless = silent(&RULE, &text(0, 64_000));
        assert!(harmless.starts_with("13,946 sockets") && harmless.contains("harmless here, because"), "{harmless}");
        let few = text(0, 64_000).replace("value=13946", "value=20");
        assert_eq!(silent(&RULE, &few), "no SYN was refused by an old connection in TIME_WAIT");
        let uncounted = text(0, 64_000).replace("PAWSTimewait", "PAWSEstab");
        assert!(gap(&RULE, &uncounted).why.contains("does not count SYNs"));
        assert!(silent(&RULE, &text(20, 64_000)).starts_with("20 SYNs were refused"));
        assert!(silent(&RULE, &text(200, 9800).replace("tcp 0", "udp 0")).contains("takes none"));
        let another = "\nsocket_state t_ns=4e9 state=TIME_WAIT role=accepted port=443 peer=10.0.0.7 count=7058";
        assert!(silent(&RULE, &(text(200, 9800) + another)).contains("none of which is at its own ports"));
        assert!(silent(&RULE, &(uncounted + another)).contains("no socket in TIME_WAIT is at a port of its own"));
    }
}
