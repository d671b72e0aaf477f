// SPDX-License-Identifier: Apache-2.0
//! The other end's window stops what the target sends: whoever reads there is slow, or its buffer is small.

mod others;

use super::{Check, Checked, Rule, absent, confidence, evidence, explained, found, too_little, too_short};
use crate::case::Case;
use crate::judgement::limited::{Limit, Limited, Seen, look};
use crate::verdict::{Evidence, Finding};
use crate::wording::{count, percent};

pub(super) static RULE: Rule =
    Rule { cause: "receiver-limited", explain: explain!("receiver-limited"), check: Check::Accuses(check) };

fn check(case: &Case) -> Checked {
    match look(case, Limit::PeersWindow) {
        Seen::Nothing => absent("no connection of the target was held by the other end's window"),
        // Of the time there, that of those who wait for their turn is most.
        Seen::TooLittle(limited, seen) => {
            others::check(case, &limited).map_or_else(|| too_little(seen, told(&limited)), Ok)
        }
        Seen::TooShort(limited, seen) => too_short(seen, format!("{}, under 5 ms for each exchange", told(&limited))),
        Seen::OfFew(limited) => others::check(case, &limited).map_or_else(|| only_themselves(&limited), Ok),
        Seen::OfItsOwn(limited) => explained(format!("{}, while no client waited for that", told(&limited))),
        Seen::Cause(limited) => accuse(case, &limited),
    }
}

fn only_themselves(limited: &Limited) -> Checked {
    explained(format!("{}, {}: a few slow clients, who only wait themselves", told(limited), limited.of_few()))
}

fn told(limited: &Limited) -> String {
    limited.told("the other end's window")
}

/// Of its widest, a window that shuts: what was sent stands unread.
const SHUT: f64 = 0.5;

/// Likewise, one that stands open as wide as ever.
const OPEN: f64 = 0.8;

/// Looks from which on a window's average says something.
const MIN_LOOKS: f64 = 3.0;

/// What is the matter at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    SlowReader,
    SmallBuffer,
    Untold,
}

fn why(limited: &Limited) -> Why {
    match limited.endpoint.window().1 {
        _ if limited.endpoint.rwnd_looks() < MIN_LOOKS => Why::Untold,
        open if open < SHUT => Why::SlowReader,
        open if open >= OPEN => Why::SmallBuffer,
        _ => Why::Untold,
    }
}

fn accuse(case: &Case, limited: &Limited) -> Checked {
    let who = if limited.endpoint.accepted { "its clients" } else { &limited.endpoint.name };
    let (is, part) = (if limited.endpoint.accepted { "read" } else { "reads" }, percent(limited.part));
    let (headline, advice) = match why(limited) {
        Why::SlowReader => (
            format!("what it sends stands for {part} of the time because {who} {is} no faster"),
            "look at whoever reads there (`ss -tm`, a full Recv-Q); a player that reads at its own pace is no fault",
        ),
        Why::SmallBuffer => (
            format!("what it sends stands for {part} of the time before a small receive buffer of {who}"),
            "do not set SO_RCVBUF at the other end, or make it larger; if none is set, raise net.ipv4.tcp_rmem there",
        ),
        Why::Untold => (
            format!("what it sends stands for {part} of the time before the receive window of {who}"),
            "see at the other end whether Recv-Q is full (slow reader) or empty (small buffer)",
        ),
    };
    found(finding(case, limited), headline, advice)
}

/// What is seen of the other end's window, and what to do about it.
fn words(limited: &Limited) -> (String, &'static str) {
    let (bytes, open) = limited.endpoint.window();
    let window = format!("a window of {} bytes, {} of its widest", count(bytes), percent(open));
    match why(limited) {
        Why::SlowReader => (
            format!("{window}: what came there stands unread"),
            "Whoever reads there does not keep up, or reads at a pace of its own, as a player does: then nothing is wrong. Else \
             make it quicker, or send it less. A larger buffer only fills later.",
        ),
        Why::SmallBuffer => (
            format!("{window}: it is read as it comes, and the buffer is smaller than what could be on its way"),
            "Leave the size of the receive buffer at the other end to the kernel: a buffer that is set by SO_RCVBUF does not \
             grow. It needs as many bytes as the way takes in a round trip. Where no program sets it, the last number of \
             net.ipv4.tcp_rmem there bounds it: raise that.",
        ),
        Why::Untold => (
            "whether it reads slowly or its buffer is small is seen there".to_string(),
            "Look at the other end: a full receive queue is a slow reader, an empty one a small buffer.",
        ),
    }
}

fn finding(case: &Case, limited: &Limited) -> Finding {
    let endpoint = &limited.endpoint;
    let (cause, remedy) = words(limited);
    // The kernel's sums are one source; what the looks found is another.
    let sources = 1 + usize::from(endpoint.rwnd_looks() >= MIN_LOOKS);
    Finding {
        confidence: confidence(case, sources),
        summary: format!("{}; {cause}", capital(&told(limited))),
        evidence: rows(limited),
        remedy: remedy.into(),
        ..limited.finding(RULE.cause)
    }
}

fn rows(limited: &Limited) -> Vec<Evidence> {
    let endpoint = &limited.endpoint;
    let (bytes, open) = endpoint.window();
    vec![
        evidence("held by the other end's window", limited.ns / 1e9, "s", "a small part", "ss -ti  # rwnd_limited"),
        evidence("something unsent or unacknowledged", endpoint.busy_ns / 1e9, "s", "", "ss -ti  # busy"),
        evidence(
            "the window where it held bytes",
            bytes,
            "bytes",
            "wider than what is on its way",
            "ss -ti  # snd_wnd",
        ),
        evidence("of its widest", open, "share", "near 1", ""),
        evidence("of the requests, in such connections", limited.of_requests, "share", "few", ""),
        evidence("shortest round trip", endpoint.min_rtt_ns / 1e9, "s", "", "ss -ti  # minrtt"),
    ]
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::super::asking::{found, silent};
    use super::RULE;

    /// Transfers of 4 s in all that are held by a window, and what else there is.
    fn text(connection: &str, exchanges: &str) -> String {
        format!(
            "meta length_ns=4e9 target.listen=[\"tcp 0.0.0.0:80\"]
             exchange_window t_ns=4e9 length_ns=4e9
             connection t_ns=4e9 role=accepted port=80 looks=40 open=40 unsent=38 rwnd=36 other=2 busy_ns=39e8 rwnd_ns=30e8 {connection}
             exchange t_ns=4e9 role=accepted port=80 stage=response {exchanges}"
        )
    }

    #[test]
    fn a_slow_reader_and_a_small_buffer() {
        let slow = found(
            &RULE,
            &text("window_bytes=36000 widest_bytes=2000000 segments=4 rwnd_segments=4", "count=4 sum_ns=4e6"),
        );
        assert!(slow.summary.contains("what came there stands unread"), "{}", slow.summary);
        let small = found(
            &RULE,
            &text("window_bytes=360000 widest_bytes=360000 segments=4 rwnd_segments=4", "count=4 sum_ns=4e6"),
        );
        assert!(small.summary.contains("buffer is smaller"), "{}", small.summary);
        let untold = found(&RULE, &text("segments=4 rwnd_segments=4", "count=4 sum_ns=4e6"));
        assert!(!untold.remedy.is_empty());
    }

    #[test]
    fn a_transfer_that_goes_on_all_the_time() {
        let finding = found(&RULE, &text("", "count=0"));
        assert!((finding.explains.share - 30.0 / 39.0).abs() < 1e-9, "{:?}", finding.explains);
    }

    #[test]
    fn one_slow_client_beside_many() {
        let beside = silent(&RULE, &text("segments=40 rwnd_segments=1", "count=40 sum_ns=4e6"));
        assert!(beside.contains("a few slow clients"), "{beside}");
        let crowd = silent(&RULE, &text("segments=40 rwnd_segments=40", "count=9000 sum_ns=4e6"));
        assert!(crowd.contains("under 5 ms for each exchange"), "{crowd}");
    }

    #[test]
    fn little_of_it_or_something_else() {
        let little = text("segments=4 rwnd_segments=4", "count=4 sum_ns=4e6").replace("rwnd_ns=30e8", "rwnd_ns=1e8");
        assert!(silent(&RULE, &little).contains("2.6 %"));
        let service = text("segments=4 rwnd_segments=4", "count=4 sum_ns=4e10");
        assert!(silent(&RULE, &service).contains("6.8 %"), "clients wait for something else");
        let buffer = text("segments=4", "count=4 sum_ns=4e6").replace("rwnd_ns", "sndbuf_ns");
        assert!(silent(&RULE, &buffer).contains("no connection"));
    }

    /// One who downloads over a slow line at a port of its own, beside many requests at another one.
    #[test]
    fn a_transfer_beside_many_requests() {
        let at = |port: u32, requests: u32| {
            format!(
                "meta length_ns=4e9 target.listen=[\"tcp 0.0.0.0:80\",\"tcp 0.0.0.0:81\"]
                 exchange_window t_ns=4e9 length_ns=4e9
                 connection t_ns=4e9 role=accepted port={port} looks=40 open=40 unsent=38 rwnd=36 other=2 busy_ns=39e8 rwnd_ns=30e8
                 exchange t_ns=4e9 role=accepted port=80 stage=response count={requests} sum_ns=4e9 length_ns=[2000000] counts=[{requests}]"
            )
        };
        let why = silent(&RULE, &at(81, 2000));
        assert!(why.contains("where no question was seen, while clients wait for answers at other ports"), "{why}");
        // Five transfers at a time, for which clients wait less than for answers, or longer.
        let five = at(81, 90).replace("rwnd_ns=30e8", "rwnd_ns=200e8").replace("busy_ns=39e8", "busy_ns=210e8");
        silent(&RULE, &five.replace("length_ns=[2000000]", "length_ns=[400000000]"));
        found(&RULE, &five);
    }
}
