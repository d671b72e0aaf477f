// SPDX-License-Identifier: Apache-2.0
//! The target's own send buffer stops what it sends: all of it is on its way, and there is no room for more.

use super::{Check, Checked, Rule, absent, confidence, evidence, explained, found, too_little, too_short};
use crate::case::Case;
use crate::judgement::limited::{Limit, Limited, Seen, look};
use crate::verdict::{Evidence, Finding, Subject};
use crate::wording::percent;

pub(super) static RULE: Rule =
    Rule { cause: "send-buffer-limited", explain: explain!("send-buffer-limited"), check: Check::Accuses(check) };

fn check(case: &Case) -> Checked {
    match look(case, Limit::SendBuffer) {
        Seen::Nothing => absent("no connection of the target was held by a full send buffer"),
        Seen::TooLittle(limited, seen) => too_little(seen, told(&limited)),
        Seen::TooShort(limited, seen) => too_short(seen, format!("{}, under 5 ms for each exchange", told(&limited))),
        Seen::OfFew(limited) => explained(format!("{}, {}", told(&limited), limited.of_few())),
        Seen::OfItsOwn(limited) => explained(format!("{}, while no client waited for that", told(&limited))),
        Seen::Cause(limited) => {
            let headline =
                format!("its own send buffer holds what it sends back for {} of the time", percent(limited.part));
            let advice = match is_own(&limited) {
                true => "do not set SO_SNDBUF: the kernel sizes the buffer by what is needed",
                false => "raise the last number of net.ipv4.tcp_wmem",
            };
            found(finding(case, &limited), headline, advice)
        }
    }
}

fn told(limited: &Limited) -> String {
    limited.told("its send buffer")
}

/// Of the connections: the program has sized their buffers itself.
const MOST: f64 = 0.5;

fn is_own(limited: &Limited) -> bool {
    limited.endpoint.own_sndbuf() >= MOST
}

/// Of the connections with something to send, so many without room are a witness of their own.
const WITNESS: f64 = 0.1;

fn finding(case: &Case, limited: &Limited) -> Finding {
    let (endpoint, target) = (&limited.endpoint, &case.recording.meta.target);
    let (who, remedy) = match is_own(limited) {
        true => (
            "the program has set its size (SO_SNDBUF), so that it does not grow",
            "Take the call that sets SO_SNDBUF out: a buffer that the kernel sizes grows with the connection. If it must be \
             set, to twice the bytes that are on their way in a round trip; each connection may then use that much memory.",
        ),
        false => (
            "the kernel sizes it, within net.ipv4.tcp_wmem",
            "Raise the last number of net.ipv4.tcp_wmem to twice the bytes that are on their way in a round trip.",
        ),
    };
    let sources = 1 + usize::from(endpoint.no_room() >= WITNESS);
    let same = limited.finding(RULE.cause);
    Finding {
        confidence: confidence(case, sources),
        summary: format!("{}: {}; {who}", target.comm, told(limited)),
        subject: Subject { pid: target.pids.first().copied(), comm: Some(target.comm.clone()), ..same.subject.clone() },
        evidence: rows(limited),
        remedy: remedy.into(),
        ..same
    }
}

fn rows(limited: &Limited) -> Vec<Evidence> {
    let endpoint = &limited.endpoint;
    vec![
        evidence("held by a full send buffer", limited.ns / 1e9, "s", "0", "ss -ti  # sndbuf_limited"),
        evidence("something unsent or unacknowledged", endpoint.busy_ns / 1e9, "s", "", "ss -ti  # busy"),
        evidence("of those connections, without room for a write", endpoint.no_room(), "share", "few", "ss -tm  # tb"),
        evidence("of those, sized by SO_SNDBUF", endpoint.own_sndbuf(), "share", "0", ""),
        evidence("held by the other end's window", endpoint.rwnd_ns / 1e9, "s", "", "ss -ti  # rwnd_limited"),
        evidence("shortest round trip", endpoint.min_rtt_ns / 1e9, "s", "", "ss -ti  # minrtt"),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::asking::{found, silent};
    use super::RULE;

    fn text(connection: &str, exchanges: &str) -> String {
        format!(
            "meta length_ns=4e9 target.pids=[7] target.comm=files target.listen=[\"tcp 0.0.0.0:80\"]
             exchange_window t_ns=4e9 length_ns=4e9
             connection t_ns=4e9 role=accepted port=80 looks=40 open=40 on_its_way=38 no_room=36 busy_ns=39e8 sndbuf_ns=30e8 {connection}
             exchange t_ns=4e9 role=accepted port=80 stage=response {exchanges}"
        )
    }

    #[test]
    fn a_buffer_that_the_program_made_small() {
        let own = found(&RULE, &text("own_sndbuf=38 segments=4 sndbuf_segments=4", "count=4 sum_ns=4e6"));
        assert!(own.summary.contains("held what it sends at 0.0.0.0:80 for 3.0 s"), "{}", own.summary);
        assert!(own.remedy.contains("Take the call"), "{}", own.remedy);
        let kernels = found(&RULE, &text("segments=4 sndbuf_segments=4", "count=4 sum_ns=4e6"));
        assert!(kernels.remedy.contains("tcp_wmem"), "{}", kernels.remedy);
    }

    #[test]
    fn a_window_that_is_full_or_few_transfers() {
        let window = text("segments=4", "count=4 sum_ns=4e6").replace("sndbuf_ns", "rwnd_ns");
        assert!(silent(&RULE, &window).contains("no connection"));
        assert!(silent(&RULE, &text("segments=90 sndbuf_segments=2", "count=90")).contains("2.2 % of the requests"));
        let crowd = silent(&RULE, &text("segments=90 sndbuf_segments=90", "count=9000"));
        assert!(crowd.contains("under 5 ms for each"), "{crowd}");
    }
}
