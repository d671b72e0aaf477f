// SPDX-License-Identifier: Apache-2.0
//! Whether what was timed are requests: of several at once on a connection, the first answer that comes ends the one that began first,
//! whosever it is; and behind TLS, a handshake that cannot be told from them is a question and an answer as well.

use std::time::Duration;

use recording::Recording;
use recording::tables::{Exchange, Label};

use super::failed::share_of;
use crate::opening::Opening;
use crate::reason::Reason;

/// Of what was looked at, where what is said cannot be read.
const UNREADABLE: f64 = 0.2;
/// Of the exchanges: more was asked before the answer. A request in two writes is one, where it can be read.
const MORE: f64 = 0.2;
/// Of what was looked at: several requests written at once are how it asks, and no chance.
const PIPELINED: f64 = 0.2;
/// Connections for each exchange: a handshake each makes two of each request.
const EACH: f64 = 0.3;

/// Why it is not, if so; exchanges were followed for a part of the time, connections counted all of it.
pub(super) fn mixed(
    recording: &Recording,
    responses: &[&Exchange],
    opening: &Opening,
    followed: Duration,
) -> Option<Reason> {
    let longer = recording.meta.length_ns as f64 / followed.as_nanos().max(1) as f64;
    let sum = |of: fn(&Exchange) -> u64| responses.iter().map(|row| of(row)).sum::<u64>() as f64;
    let (count, more) = (sum(|row| row.count).max(1.0), sum(|row| row.more));
    let tls = share_of(recording, |row| row.protocol == "tls");
    let http2 = share_of(recording, |row| row.protocol == "http2");
    let told = |code: &str, sentence: &str| Some(Reason { code: code.into(), sentence: sentence.into() });
    if more / count > MORE && (tls + http2 > UNREADABLE || http2 > 0.0) {
        return told(
            "not-told-apart",
            "several requests are under way at once on a connection (HTTP/2, or a pipeline behind TLS), and which answer is whose is not \
             seen: no lengths are given, and what the generator prints is not proven",
        );
    }
    let handshakes = recording.rows::<Exchange>().iter().filter(|row| row.role == "made" && row.stage == "handshake");
    let are_told = handshakes.map(|row| row.count).sum::<u64>() as f64 > EACH * count;
    if tls > UNREADABLE && !are_told && opening.asked as f64 > EACH * count * longer {
        return told(
            "handshakes",
            "connections are for one request or few, behind TLS: what is timed are handshakes as well as answers, and which is which is not \
             seen, so no lengths are given; keep connections (ab -k), or load the port behind the TLS",
        );
    }
    None
}

/// That a generator writes several requests at once, if it does.
pub(super) fn pipelines(recording: &Recording) -> Option<Reason> {
    let rows = || recording.rows::<Label>().iter().filter(|row| row.role == "made");
    let (pipelines, seen): (u64, u64) = (rows().map(|row| row.pipelines).sum(), rows().map(|row| row.seen).sum());
    let share = pipelines as f64 / seen.max(1) as f64;
    (share > PIPELINED).then(|| Reason {
        code: "pipelines".into(),
        sentence: format!(
            "several requests are written at once (a pipeline, {:.0} % of what was looked at): what is counted here are such batches, \
             each until its first answer, and the generator counts each request; clients that do not ask so are another load",
            share * 100.0
        ),
    })
}

#[cfg(test)]
mod tests {
    use recording::text::parse;

    use super::super::observed;
    use crate::judge::judge;
    use crate::verdict::{Verdict, Word};

    /// Ten seconds of answers, of which so many had more asked before them, in a protocol, with so many connections in all.
    fn text(protocol: &str, more: u64, connections: u64) -> String {
        let mut text = format!(
            "meta length_ns=10e9
             counter source=proc/net/snmp entity=Tcp name=ActiveOpens value=5
             counter t_ns=9e9 source=proc/net/snmp entity=Tcp name=ActiveOpens value={}\n",
            5 + connections
        );
        for second in 1..=10 {
            text += &format!(
                "exchange t_ns={second}e9 role=made peer=h:443 stage=response count=500 began=500 more={more} sum_ns=5e8 \
                 length_ns=[1000000] counts=[500]
                 label t_ns={second}e9 role=made peer=h:443 protocol={protocol} seen=50 count=500\n"
            );
        }
        text
    }

    fn verdict(protocol: &str, more: u64, connections: u64) -> Verdict {
        judged(&text(protocol, more, connections))
    }

    fn judged(text: &str) -> Verdict {
        judge(&observed(&parse(text).unwrap(), None).unwrap(), None)
    }

    /// A second in which 500 requests are asked over HTTP/2, several at once; so many answers come, after so long.
    fn second(nth: u64, (count, length_ns): (u64, u64)) -> String {
        format!(
            "exchange t_ns={nth}e9 role=made peer=h:443 stage=response count={count} began=500 more={count} sum_ns=1e8 \
             length_ns=[{length_ns}] counts=[{count}]
             label t_ns={nth}e9 role=made peer=h:443 protocol=http2 seen=50 count={count}\n"
        )
    }

    #[test]
    fn handshakes_that_are_told_from_requests_are_none() {
        let handshake =
            "exchange t_ns=1e9 role=made peer=h:443 stage=handshake count=4000 sum_ns=1 length_ns=[1] counts=[4000]\n";
        let told = |more: &str| judged(&(text("tls", 0, 5000) + more));
        assert!(told("").reasons.iter().any(|reason| reason.code == "handshakes"));
        let verdict = told(handshake);
        assert!(!verdict.reasons.iter().any(|reason| reason.code == "handshakes") && verdict.corrected.p50.is_some());
    }

    /// It goes on differently: answers take longer, or fewer come.
    #[test]
    fn where_no_lengths_are_given_none_is_said() {
        for (then, phases) in [((500, 40_000_000), 1), ((100, 40_000_000), 2)] {
            let seconds = (1..=10).map(|nth| second(nth, if nth < 6 { (500, 1_000_000) } else { then }));
            let text = format!("meta length_ns=10e9\n{}", seconds.collect::<String>());
            let verdict = judge(&observed(&parse(&text).unwrap(), None).unwrap(), None);
            let reasons = verdict.reasons.iter().map(|reason| format!("{}: {}\n", reason.code, reason.sentence));
            let told: String = reasons.collect();
            assert_eq!((verdict.reasons[0].code.as_str(), verdict.phases.len()), ("not-told-apart", phases), "{told}");
            assert_eq!(told.contains("phases: "), phases > 1, "{told}");
            let of_lengths = [" ms", "µs", "p50", "p90", "p99", "no answers"];
            assert!(!of_lengths.iter().any(|word| told.contains(word)), "{told}");
            assert!(verdict.by_second.iter().all(|it| it.p50.is_none() && it.p99.is_none() && it.answered > 0));
            assert!(verdict.phases.iter().all(|phase| phase.corrected.p50.is_none()), "{:?}", verdict.phases);
        }
    }

    #[test]
    fn a_pipeline_is_a_batch() {
        let codes = |pipelines: u64| {
            let text = format!(
                "meta length_ns=2e9
                 exchange t_ns=1e9 role=made peer=h:6379 stage=response count=500 began=500 sum_ns=5e8 length_ns=[1000000] counts=[500]
                 label t_ns=1e9 role=made peer=h:6379 protocol=redis label=SET seen=50 pipelines={pipelines} count=500"
            );
            let verdict = judge(&observed(&parse(&text).unwrap(), None).unwrap(), None);
            verdict.reasons.iter().any(|reason| reason.code == "pipelines")
        };
        assert!(codes(40) && !codes(2));
    }

    #[test]
    fn several_requests_at_once_or_handshakes_are_no_response_times() {
        for (verdict, code) in [
            (verdict("tls", 300, 10), "not-told-apart"),
            (verdict("http2", 300, 1), "not-told-apart"),
            (verdict("tls", 0, 2_500), "handshakes"),
        ] {
            assert_eq!((verdict.verdict, verdict.reasons[0].code.as_str()), (Word::Misleading, code));
            assert!(verdict.corrected.p50.is_none() && verdict.seconds.longest.is_none(), "{verdict:?}");
        }
        assert_eq!(verdict("tls", 0, 100).verdict, Word::Valid, "kept connections");
        assert_eq!(verdict("http", 500, 10).verdict, Word::Valid, "requests in two writes");
    }
}
