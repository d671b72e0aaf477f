// SPDX-License-Identifier: Apache-2.0
//! Threads of the target wait for names to be looked up.

use std::collections::BTreeSet;

use super::{Check, Checked, Rule, absent, evidence, explained, found, too_little, too_short};
use crate::answer::{Gap, Measured, Unit};
use crate::case::Case;
use crate::facts::stacks::Stacks;
use crate::facts::waiting::{Waiting, sum, wait_ns};
use crate::judgement::enough::{little, not_for_requests};
use crate::phrases::chain::{called_from, links};
use crate::verdict::{Explains, Finding, Subject};
use crate::walk::chains::Chain;
use crate::walk::clients::Clients;
use crate::walk::{DNS, Kind};
use crate::wording::{percent, seconds};

pub(super) static RULE: Rule = Rule { cause: "slow-dns", explain: explain!("slow-dns"), check: Check::Accuses(check) };

/// Half of active time.
const MIN_SHARE: f64 = 0.5;

/// Of the window, over all threads.
const MIN_TIME: f64 = 0.02;

/// The same of a target that serves no client: one that looks names up now and then, and does nothing else, is idle.
const MIN_TIME_UNASKED: f64 = 0.5;

/// On average; a server on the same network that knows the name answers in well under 1 ms.
const MIN_WAIT_NS: f64 = 5e6;

/// The same for one that serves names itself: asking the servers of the world is its work, and the farthest are some 300 ms
/// away. Beyond, one does not answer.
const RESOLVER_WAIT_NS: f64 = 4e8;

/// One that hands all questions on to a few servers waits for what these ask others, unless they know it: not as long each time.
const FORWARDER_WAIT_NS: f64 = 1e8;
const FEW_SERVERS: usize = 3;

const DNS_PORT: u32 = 53;

fn check(case: &Case) -> Checked {
    let waiting = case.fact::<Waiting>()?;
    let (chains, ns) = waiting.of(|chain| chain.links[0].who.fd_kind == DNS);
    let Some(first) = chains.first() else {
        return absent("no wait of the target was for a DNS server");
    };
    let part = waiting.share(ns);
    let min_time = if waiting.serves { MIN_TIME } else { MIN_TIME_UNASKED };
    if let Some((seen, why)) = little(case, (ns, part), MIN_SHARE, min_time) {
        return too_little(seen, format!("waiting for DNS servers took {why}"));
    }
    let length = wait_ns(&chains);
    let servers: BTreeSet<&str> = chains.iter().map(|chain| chain.links[0].who.peer.as_str()).collect();
    let least = match case.fact::<Clients>()?.serves_port(DNS_PORT) {
        true if servers.len() > FEW_SERVERS => RESOLVER_WAIT_NS,
        true => FORWARDER_WAIT_NS,
        false => MIN_WAIT_NS,
    };
    if length < least {
        let each = Measured::new(length / 1e9, least / 1e9, Unit::Seconds);
        let (length, least) = (seconds(length / 1e9), seconds(least / 1e9));
        return too_short(each, format!("DNS servers were waited for, but for {length} at a time (under {least})"));
    }
    if let Some(why) = not_for_requests(case, &waiting, ns) {
        return explained(format!("waiting for DNS servers was {why}"));
    }
    let headline =
        format!("waits for names to be looked up for {} of its active time, {}", percent(part), server(first));
    found(
        finding(case, &waiting, &chains, (ns, part))?,
        headline,
        "look at that DNS server, and keep what was looked up",
    )
}

fn server(chain: &Chain) -> String {
    match chain.links[0].who.peer.as_str() {
        "" => "through its resolver".to_string(),
        peer => format!("by {peer}"),
    }
}

fn finding(case: &Case, waiting: &Waiting, chains: &[&Chain], (ns, part): (f64, f64)) -> Result<Finding, Gap> {
    let stacks = case.fact::<Stacks>()?;
    let who = &chains[0].links[0].who;
    let unanswered = sum(chains.iter().copied().filter(|c| c.end.kind == Kind::Timer && c.links.len() == 1));
    let see = format!("strace -f -T -e trace=poll,sendto,sendmmsg,recvfrom -p {}", who.pid);
    Ok(Finding {
        summary: format!(
            "Threads of the target waited for names to be looked up for {} of thread time, {} of its active time, {}{}",
            seconds(ns / 1e9),
            percent(part),
            server(chains[0]),
            called_from(&*case.fact()?, who, &stacks)
        ),
        subject: Subject {
            pid: Some(who.pid),
            comm: Some(who.comm.clone()),
            syscall: Some(who.call.clone()),
            socket: Some(who.peer.clone()).filter(|peer| !peer.is_empty()),
            ..Subject::default()
        },
        explains: Explains { share: part, of: "active time".into(), seconds: ns / 1e9 },
        evidence: vec![
            evidence("waiting for DNS servers", ns / 1e9, "s", "a small part of active time", see),
            evidence("one such wait, on average", wait_ns(chains) / 1e9, "s", "under 1 ms", "getent ahosts NAME"),
            evidence("of that waiting, ended by a timeout: no answer came", unanswered / 1e9, "s", "0", ""),
            evidence("CPU demand", waiting.demand_ns / 1e9, "s", "most of active time", ""),
        ],
        chain: links(chains[0], &stacks),
        remedy: remedy(unanswered),
        check: "The waits on port 53 are gone from the chain, at the same load.".into(),
        ..RULE.finding(case, 1 + usize::from(!who.peer.is_empty()))
    })
}

fn remedy(unanswered_ns: f64) -> String {
    let first = if unanswered_ns > 0.0 {
        "A server of /etc/resolv.conf gives no answer: repair it, or take it out if there is another one."
    } else {
        "That server answers late: look there, or ask another one."
    };
    format!(
        "{first} Look names up once and keep the connection, instead of once for each request; run a caching resolver on this \
         host; a final dot in a name saves the tries with each search domain."
    )
}

#[cfg(test)]
mod tests {
    use super::super::asking::{found, silent};
    use super::RULE;

    fn text(port: u32, wait: &str) -> String {
        format!(
            "meta host.arch=x86_64 length_ns=1e9 target.pids=[1]
             frame id=1 symbol=hrtimer_wakeup module=kernel kind=kernel
             stack id=1 frames=[1]
             thread pid=1 tid=1 comm=api wall_ns=1e9 cpu_ns=1e8 blocked_ns=9e8
             wakeup t_ns=800e6 pid=1 tid=1 comm=api wait_ns={wait} blocked_ns={wait} syscall=7 fd_kind=socket family=2 \\
             remote_port={port} peer=10.0.0.2 context=interrupt waker_stack=1"
        )
        .replace("\\\n", "")
    }

    #[test]
    fn a_server_that_never_answers() {
        let finding = found(&RULE, &text(53, "600e6"));
        assert!(finding.summary.contains("by 10.0.0.2:53"), "{}", finding.summary);
        assert_eq!(finding.evidence[2].value, 0.6);
    }

    #[test]
    fn a_resolver_asks_for_a_living() {
        let listens = "\nprocess pid=1 listen=[\"udp 0.0.0.0:53\"]";
        let forwarder =
            |wait: &str| text(53, wait).replace(&format!("blocked_ns={wait}"), "blocked_ns=600e6") + listens;
        assert!(silent(&RULE, &forwarder("90e6")).contains("90 ms at a time (under 100 ms)"));
        found(&RULE, &forwarder("150e6"));
        let other = |nth: u32| {
            let row = text(53, "150e6").lines().last().unwrap().replace("10.0.0.2", &format!("10.0.0.{nth}"));
            row.replace("800e6", &format!("80{nth}e6"))
        };
        let resolver = (3..=6).fold(forwarder("150e6"), |text, nth| format!("{text}\n{}", other(nth)));
        assert!(silent(&RULE, &resolver).contains("150 ms at a time (under 400 ms)"), "{}", silent(&RULE, &resolver));
    }

    /// An agent that looks a name up now and then and does nothing else: idle between, and nobody waits for it.
    #[test]
    fn whom_nobody_asks_may_look_a_name_up() {
        let agent = text(53, "25e6").replace("blocked_ns=25e6", "blocked_ns=250e6").replace("cpu_ns=1e8", "cpu_ns=1e7");
        assert!(silent(&RULE, &agent).contains("of the window (under 50 %)"), "{}", silent(&RULE, &agent));
        let asked = "\nprocess pid=1 listen=[\"tcp 0.0.0.0:80\"]
            wakeup t_ns=950e6 pid=1 tid=1 comm=api wait_ns=1e6 blocked_ns=1e6 syscall=0 fd_kind=socket family=2 local_port=80 remote_port=5 context=thread waker_pid=9";
        found(&RULE, &(agent + asked));
    }

    #[test]
    fn another_port_and_quick_answers() {
        assert!(silent(&RULE, &text(5432, "600e6")).contains("no wait"));
        assert!(silent(&RULE, &text(53, "3e6")).contains("under 50 %"));
    }

    #[test]
    fn a_thread_that_waits_for_clients_in_the_same_call() {
        let code = "frame id=2 symbol=socket_getaddrinfo\nstack id=2 frames=[2]
            process pid=1 listen=[\"tcp 0.0.0.0:80\"]
            wait_stack pid=1 tid=2 comm=api syscall=7 args=[1,1,1000,0] stack=2\n"
            .to_string();
        let at_the_door = text(0, "600e6").replace("remote_port=0 peer=10.0.0.2", "local_port=80");
        assert!(silent(&RULE, &(code.clone() + &at_the_door)).contains("no wait"));
        let never_connected = text(0, "600e6").replace("remote_port=0 peer=10.0.0.2", "local_port=40123");
        found(&RULE, &(code.clone() + &never_connected));
        let of_an_unknown_file = text(0, "600e6").replace("family=2 remote_port=0 peer=10.0.0.2 ", "");
        found(&RULE, &(code + &of_an_unknown_file));
    }
}
