// SPDX-License-Identifier: Apache-2.0
//! The table of connection tracking is full: the kernel drops packets that would begin a connection.

use recording::counters::{conntrack, sockstat};

use super::{Check, Checked, Rule, absent, evidence, found, too_little};
use crate::answer::{Gap, Measured, Unit};
use crate::case::Case;
use crate::facts::counters::Counters;
use crate::facts::handshakes::Handshakes;
use crate::judgement::errors::{MIN_COUNT, TABLE_FULL};
use crate::judgement::handshakes::{Sign, table};
use crate::statistics::share;
use crate::verdict::{Evidence, Explains, Finding};
use crate::wording::{count, percent};

pub(super) static RULE: Rule =
    Rule { cause: "conntrack-full", explain: explain!("conntrack-full"), check: Check::Accuses(check) };

fn check(case: &Case) -> Checked {
    let h = case.fact::<Handshakes>()?;
    let Some(used) = h.tracking_used else {
        return absent("connection tracking is not in use in its network namespace");
    };
    let needed =
        [Measured::new(used, TABLE_FULL, Unit::Share), Measured::new(h.tracking_drops, MIN_COUNT, Unit::Packets)];
    if let Some(seen) = Measured::farthest(needed) {
        let dropped = count(h.tracking_drops);
        let why =
            format!("the table of connection tracking was {} full, and it dropped {dropped} packets", percent(used));
        return too_little(seen, why);
    }
    let headline = format!(
        "{} packets of new connections dropped: the table of connection tracking is full",
        count(h.tracking_drops)
    );
    found(finding(case, &h, used)?, headline, "raise net.netfilter.nf_conntrack_max, or make fewer connections")
}

/// What a client waits at least for its next try, in seconds: the first retransmission of a SYN.
const EACH: f64 = 1.0;

fn finding(case: &Case, h: &Handshakes, used: f64) -> Result<Finding, Gap> {
    let counters = case.fact::<Counters>()?;
    let most = counters.last(conntrack::MAX, "").unwrap_or(0.0);
    let place = if gets_out(h) { "as they came in or passed" } else { "on their way out of this host" };
    Ok(Finding {
        // The number of entries, and the drops.
        summary: format!(
            "Connection tracking had {} of {} entries in use and dropped {} packets {place}; {} connections were taken \
             meanwhile",
            percent(used),
            count(most),
            count(h.tracking_drops),
            count(h.taken)
        ),
        explains: Explains {
            share: share(h.tracking_drops, h.tracking_drops + h.taken),
            of: "packets of new connections".into(),
            seconds: h.tracking_drops * EACH,
        },
        evidence: evidence_of(case, &counters, h, (used, most)),
        remedy: "Raise net.netfilter.nf_conntrack_max (an entry takes some 300 bytes) and nf_conntrack_buckets with it, or \
                 shorten net.netfilter.nf_conntrack_tcp_timeout_time_wait: as many connections as the limit can begin in \
                 each such time. Connections that are kept open need one entry for many requests."
            .into(),
        check: "The drop column stands still under the same load, and nf_conntrack_count stays below nf_conntrack_max.".into(),
        ..RULE.finding(case, 2)
    })
}

/// SYNs that did not get out were dropped here, on their way; else the packets came from elsewhere.
fn gets_out(h: &Handshakes) -> bool {
    h.not_out < MIN_COUNT
}

fn evidence_of(case: &Case, counters: &Counters, h: &Handshakes, (used, most): (f64, f64)) -> Vec<Evidence> {
    let see = "cat /proc/net/stat/nf_conntrack  # column drop, hexadecimal";
    let mut all = vec![
        evidence(
            "entries in use",
            used * most,
            "entries",
            "below the limit",
            "sysctl net.netfilter.nf_conntrack_count",
        ),
        evidence("the limit", most, "entries", "", "sysctl net.netfilter.nf_conntrack_max"),
        evidence("dropped for want of an entry", h.tracking_drops, "packets", "0", see),
    ];
    if !gets_out(h) {
        let first = (h.tracking_drops - h.not_out).max(0.0);
        let again = "SYNs sent again that did not get out";
        all.push(evidence(again, h.not_out, "packets", "0", "nstat -az TcpExtTCPRetransFail"));
        all.push(evidence("so the rest of the drops, first SYNs", first, "packets", "0", ""));
    }
    let time_wait = counters.max(sockstat::TIME_WAIT, "TCP").unwrap_or(0.0);
    let harmless = "sockets in TIME_WAIT: harmless by themselves";
    all.push(evidence(harmless, time_wait, "sockets", "", "ss -tan state time-wait | wc -l"));
    all.extend(table(case, h, Sign::NotTracked));
    all
}

#[cfg(test)]
mod tests {
    use super::super::asking::{found, silent};
    use super::RULE;

    fn text(used: u32, drops: u32) -> String {
        let mut text = format!(
            "meta length_ns=4e9
             counter source=nf_conntrack entity=\"\" name=max value=10000
             counter source=nf_conntrack entity=\"\" name=count value={used}\n"
        );
        for (source, name, grew) in [
            ("nf_conntrack entity=\"\"", "drop", drops),
            ("proc/net/netstat entity=TcpExt", "TCPRetransFail", drops / 2),
            ("proc/net/snmp entity=Tcp", "PassiveOpens", 100),
        ] {
            text += &format!("counter source={source} name={name} value=3\n");
            text += &format!("counter t_ns=9 source={source} name={name} value={}\n", 3 + grew);
        }
        text
    }

    #[test]
    fn a_full_table_that_drops() {
        let finding = found(&RULE, &text(10_000, 700));
        assert!(
            finding.summary.contains("100 % of 10 thousand entries in use and dropped 700 packets on their way out"),
            "{}",
            finding.summary
        );
        assert_eq!(finding.explains.share, 0.875);
        assert_eq!(finding.evidence[4].value, 350.0);
    }

    #[test]
    fn room_or_no_drops() {
        assert!(silent(&RULE, &text(9_000, 700)).contains("90 % full"));
        assert!(silent(&RULE, &text(10_000, 3)).contains("dropped 3 packets"));
        assert!(silent(&RULE, "counter source=s entity=e name=n value=1").contains("not in use"));
    }
}
