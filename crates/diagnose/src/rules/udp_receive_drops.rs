// SPDX-License-Identifier: Apache-2.0
//! Datagrams are dropped because the target does not read its socket in time.

use recording::counters::udp_sockets;

use super::{Check, Checked, Rule, absent, evidence, explained, found, too_little};
use crate::answer::{Gap, Measured, Unit, Unseen};
use crate::case::Case;
use crate::facts::counters::Counters;
use crate::facts::errors::{Error, Errors, Kind};
use crate::judgement::errors::{MIN_COUNT, floor_of};
use crate::judgement::meanwhile;
use crate::statistics::share;
use crate::verdict::{Explains, Finding, Link, Subject};
use crate::wording::{count, percent};

pub(super) static RULE: Rule =
    Rule { cause: "udp-receive-drops", explain: explain!("udp-receive-drops"), check: Check::Accuses(check) };

/// A buffer of a few datagrams, bytes, each of which takes a good half of a KiB at least: the kernel's default is some 200 KiB.
const SMALL: f64 = 16.0 * 1024.0;

const SMALL_REMEDY: &str = "The program has made the buffer smaller than the kernel would: a few datagrams that come together fill \
                            it, however soon it reads. Leave SO_RCVBUF alone, or set it to what comes in a burst.";

const REMEDY: &str = "Read more often: what the reader does between two reads belongs into another thread. recvmmsg() reads many at \
                      once, SO_REUSEPORT gives each of several threads a socket of its own. A larger SO_RCVBUF (and \
                      net.core.rmem_max) only carries bursts over.";

/// A socket and what it did not take.
struct Socket {
    name: String,
    drops: f64,
    queue: f64,
    buffer: f64,
}

impl Socket {
    /// Of its buffer, in use at most.
    fn full(&self) -> f64 {
        share(self.queue, self.buffer).min(1.0)
    }

    /// Whether it holds a few datagrams, whoever reads them: smaller than any default.
    fn is_small(&self) -> bool {
        self.buffer > 0.0 && self.buffer < SMALL
    }

    fn room(&self) -> String {
        format!("{:.0} KiB", self.buffer / 1024.0)
    }

    /// Where the datagrams stand.
    fn link(&self, seconds: f64) -> Link {
        let waits_on = format!("its buffer of {}: {} full at a look", self.room(), percent(self.full()));
        Link { who: self.name.clone(), waits_on, seconds, stack: Vec::new() }
    }
}

fn check(case: &Case) -> Checked {
    let errors = case.fact::<Errors>()?;
    let Some(error) = errors.all.iter().find(|error| error.kind == Kind::Unread && error.count > 0.0) else {
        return absent("no datagram was dropped for want of room in a socket");
    };
    let dropped = format!("{} datagrams were dropped for want of room in a socket", count(error.count));
    let least = floor_of(case, error.kind).unwrap_or_default();
    let needed =
        [Measured::new(error.at_most(), MIN_COUNT, Unit::Datagrams), Measured::new(error.share(), least, Unit::Share)];
    match (error.own, Measured::farthest(needed)) {
        (Some(0.0), _) => return explained(format!("{dropped}, in none of the target's own")),
        (_, Some(seen)) => {
            let (part, least) = (percent(error.share()), percent(least));
            let why = format!("{dropped}, {part} of all (a finding needs 10 and {least})");
            return too_little(seen, why);
        }
        (None, None) => {
            let why = format!("{dropped} in its network namespace, and whose it was is not recorded");
            return Err(Gap::new(RULE.cause, Unseen::Undecided, why));
        }
        (Some(_), None) => {}
    }
    let counters = case.fact::<Counters>()?;
    let sockets = counters.entities(udp_sockets::SOURCE).map(|name| socket(&counters, name));
    let Some(socket) = sockets.max_by(|a, b| a.drops.total_cmp(&b.drops)) else {
        return explained(dropped);
    };
    let (finding, words) = finding(case, error, &socket)?;
    let headline =
        format!("{} of {} datagrams were dropped unread at {}", count(error.at_most()), count(error.of), socket.name);
    let advice = match words.is_empty() {
        _ if socket.is_small() => format!("give it more room (SO_RCVBUF): {} hold a few datagrams", socket.room()),
        true => "make its reader come back sooner".into(),
        false => format!("make its reader come back sooner: {words}"),
    };
    found(finding, headline, advice)
}

fn socket(counters: &Counters, name: &str) -> Socket {
    Socket {
        name: name.to_string(),
        drops: counters.delta(udp_sockets::DROPS, name).unwrap_or(0.0),
        queue: counters.max(udp_sockets::QUEUE_BYTES, name).unwrap_or(0.0),
        buffer: counters.last(udp_sockets::BUFFER_BYTES, name).unwrap_or(0.0),
    }
}

fn finding(case: &Case, error: &Error, socket: &Socket) -> Result<(Finding, String), Gap> {
    let meanwhile = meanwhile::of(case, &[])?;
    // What the socket dropped and what the namespace counted are kept apart by the kernel.
    let agree = (error.count - error.at_most()).abs() <= error.count * MAX_APART || socket.full() >= NEARLY_FULL;
    let reader = if meanwhile.words.is_empty() { String::new() } else { format!("; meanwhile {}", meanwhile.words) };
    let finding = Finding {
        summary: format!(
            "{} dropped {} datagrams because its buffer was full, {} of the {} that came{reader}",
            socket.name,
            count(socket.drops),
            percent(error.share()),
            count(error.of)
        ),
        subject: Subject { pid: case.recording.meta.target.pids.first().copied(), ..Subject::default() },
        explains: Explains {
            share: error.share(),
            of: "datagrams that came".into(),
            seconds: error.share() * case.seconds(),
        },
        evidence: vec![
            evidence("dropped by this socket", socket.drops, "datagrams", "0", "ss -uanm  # d in skmem"),
            evidence("dropped in its network namespace", error.count, "datagrams", "0", "nstat -az UdpRcvbufErrors"),
            evidence("read", error.of - error.count, "datagrams", "", "nstat -az UdpInDatagrams"),
            evidence("in its buffer, at most", socket.queue, "bytes", "below its size", "ss -uanm  # r in skmem"),
            evidence("its buffer", socket.buffer, "bytes", "", "ss -uanm  # rb in skmem"),
        ],
        chain: std::iter::once(socket.link(case.seconds())).chain(meanwhile.links).collect(),
        remedy: if socket.is_small() { SMALL_REMEDY } else { REMEDY }.into(),
        check: "ss -uanm shows d0 for the socket, and UdpRcvbufErrors stands still, under the same load.".into(),
        ..RULE.finding(case, if agree { 2 } else { 1 })
    };
    Ok((finding, meanwhile.words))
}

/// Of the namespace's drops, at most in other sockets: then the two counts are of the same datagrams.
const MAX_APART: f64 = 0.05;

/// Of its buffer, seen in use: the next datagram does not fit.
const NEARLY_FULL: f64 = 0.75;

#[cfg(test)]
mod tests {
    use super::super::asking::{found, gap, silent};
    use super::RULE;

    fn text(dropped: u32, own: Option<u32>) -> String {
        let mut text = "meta host.arch=x86_64 length_ns=1e9 target.pids=[1] target.listen=[\"udp 0.0.0.0:53\"]
            wakeup
            thread t_ns=1e9 pid=1 tid=1 comm=dns wall_ns=1e9 cpu_ns=9e8 blocked_ns=1e8\n"
            .to_string();
        let mut counter = |entity: &str, name: &str, grew: u32| {
            text += &format!(
                "counter {entity} name={name} value=3\ncounter t_ns=9 {entity} name={name} value={}\n",
                3 + grew
            );
        };
        counter("source=proc/net/snmp entity=Udp", "RcvbufErrors", dropped);
        counter("source=proc/net/snmp entity=Udp", "InDatagrams", 1000 - dropped);
        if let Some(own) = own {
            counter("source=proc/net/udp entity=\"udp 0.0.0.0:53\"", "drops", own);
        }
        text
    }

    #[test]
    fn a_socket_that_nobody_reads_in_time() {
        let finding = found(&RULE, &text(600, Some(600)));
        assert_eq!((finding.confidence.as_str(), finding.explains.share), ("high", 0.6));
        assert!(
            finding.summary.ends_with("meanwhile dns/1 had or wanted a CPU for 90 % of its time"),
            "{}",
            finding.summary
        );
    }

    #[test]
    fn sockets_of_others() {
        assert!(silent(&RULE, &text(600, Some(0))).contains("none of the target's own"));
        assert!(silent(&RULE, &text(600, Some(5))).contains("0.5 % of all"));
        assert!(gap(&RULE, &text(600, None)).why.contains("not recorded"));
        assert_eq!(silent(&RULE, &text(0, None)), "no datagram was dropped for want of room in a socket");
    }
}
