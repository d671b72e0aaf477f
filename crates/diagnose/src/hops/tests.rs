// SPDX-License-Identifier: Apache-2.0
//! Who is to blame, over requests written as text and findings of all kinds.

use recording::text::parse;

use super::*;
use crate::verdict::{Explains, Link, Subject};
use crate::walk::chains::{self, Chain};
use crate::walk::{End, Kind, LOCK, Who};

pub(crate) const STORE: &str = "10.0.0.9:5432";

/// Three in four ms of each request are the store's.
pub(crate) fn text() -> String {
    let mut text =
        "meta host.arch=x86_64 length_ns=1e9 target.comm=svc target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
        process pid=1 listen=[\"tcp 0.0.0.0:80\"]
        exchange_window t_ns=1e9 length_ns=1e9
        burst t_ns=1e9 length_ns=1e9
        exchange role=accepted port=80 stage=response count=50 sum_ns=2e9 length_ns=[40000000] counts=[50]
        exchange role=accepted port=80 stage=service count=50 sum_ns=2e9 length_ns=[40000000] counts=[50]
        exchange role=made peer=10.0.0.9:5432 stage=response count=50 sum_ns=15e8 length_ns=[30000000] counts=[50]
        connection t_ns=1e9 role=accepted port=80 looks=10 open=50 busy_ns=1e8 rwnd_ns=6e7 retransmits=3
        wakeup t_ns=9e8 pid=1 tid=9 comm=svc\n"
            .to_string();
    for at in [100, 200, 300] {
        text += &format!(
            "request t_ns={}e6 role=accepted port=80 pid=1 began_ns={at}e6 began_tid=1 read_ns={at}e6 ended_tid=1
             request t_ns={}e6 role=made peer={STORE} pid=1 began_ns={}e6 began_tid=1 read_ns={}e6 ended_tid=1\n",
            at + 40,
            at + 35,
            at + 5,
            at + 35
        );
    }
    text
}

fn told(verdict: &str, findings: Vec<Finding>) -> Vec<(Role, String, Blame, String)> {
    let recording = parse(&text()).unwrap();
    let judged = Verdict { verdict: verdict.into(), findings, ..crate::diagnose(&recording) };
    let hops = hops(&Case::new(&recording), &judged).unwrap();
    assert_eq!((hops.followed, hops.left_out), (3, 0));
    let shares: Vec<Option<f64>> = hops.all.iter().map(|hop| hop.share.map(|s| (s * 100.0).round())).collect();
    assert_eq!(shares[..3], [None, Some(25.0), Some(75.0)]);
    hops.all.into_iter().map(|hop| (hop.role, hop.name, hop.blame, hop.why)).collect()
}

pub(crate) fn finding(cause: &str, socket: Option<&str>) -> Finding {
    Finding {
        cause: cause.into(),
        subject: Subject { socket: socket.map(str::to_string), ..Subject::default() },
        explains: Explains { share: 0.75, of: "active time".into(), seconds: 1.0 },
        chain: vec![Link { waits_on: "pread64 (/mnt/x)".into(), ..Link::default() }],
        ..Finding::default()
    }
}

fn blames(verdict: &str, findings: Vec<Finding>) -> Vec<(String, Blame)> {
    told(verdict, findings).into_iter().map(|(_, name, blame, _)| (name, blame)).collect()
}

#[test]
fn who_a_finding_accuses_is_guilty_and_nobody_else() {
    let hops = told("slow-dependency", vec![finding("slow-dependency", Some(STORE))]);
    let blames: Vec<Blame> = hops.iter().map(|hop| hop.2).collect();
    assert_eq!(blames, [Blame::Innocent, Blame::Innocent, Blame::Guilty], "{hops:?}");
    assert_eq!(hops[2].3, "slow-dependency: 75 % of active time");
    assert!(hops[0].3.contains("held answers for 60 %"), "{hops:?}");
}

#[test]
fn what_is_neither_the_targets_nor_a_peers() {
    for (cause, name) in [
        ("slow-dependency", "pread64 (/mnt/x)"),
        ("packet-loss", "the network between them"),
        ("run-queue-wait", "the host under it"),
    ] {
        let hops = blames(cause, vec![finding(cause, None)]);
        assert_eq!(hops.last(), Some(&(name.to_string(), Blame::Guilty)), "{hops:?}");
        assert_eq!(hops[1].1, Blame::Innocent);
    }
    let unseen = blames("slow-dns", vec![finding("slow-dns", Some("10.0.0.2:53"))]);
    assert_eq!(unseen.last(), Some(&("10.0.0.2:53".to_string(), Blame::Guilty)));
    assert_eq!(blames("receiver-limited", vec![finding("receiver-limited", None)])[0].1, Blame::Guilty);
}

#[test]
fn clients_that_hold_their_own_questions_are_guilty_and_the_target_is_not() {
    let of = |clients: bool| {
        let held = finding("nagle-delayed-ack", Some("tcp 0.0.0.0:80"));
        let held = Finding { subject: Subject { clients, ..held.subject.clone() }, ..held };
        blames("nagle-delayed-ack", vec![held])[..2].iter().map(|hop| hop.1).collect::<Vec<_>>()
    };
    assert_eq!(of(true), [Blame::Guilty, Blame::Innocent]);
    assert_eq!(of(false), [Blame::Innocent, Blame::Guilty]);
    let dropped = finding("packet-loss", None);
    let dropped =
        Finding { subject: Subject { function: Some("nft_do_chain".into()), ..Subject::default() }, ..dropped };
    let hops = blames("packet-loss", vec![dropped]);
    assert_eq!(hops.last(), Some(&("what filters and queues packets on this host".to_string(), Blame::Guilty)));
}

#[test]
fn two_findings_two_guilty_ones() {
    let both = vec![finding("pool-exhausted", None), finding("slow-dependency", Some(STORE))];
    let hops: Vec<Blame> = blames("pool-exhausted", both).into_iter().map(|hop| hop.1).collect();
    assert_eq!(hops, [Blame::Innocent, Blame::Guilty, Blame::Guilty]);
}

#[test]
fn a_neutral_verdict_accuses_nobody() {
    let of = |verdict| blames(verdict, Vec::new()).into_iter().map(|hop| hop.1).collect::<Vec<_>>();
    assert_eq!(of("healthy"), [Blame::Innocent; 3]);
    assert_eq!(of("not-determined"), [Blame::Innocent, Blame::NotCleared, Blame::NotCleared]);
}

/// A wait of threads of one process, one behind the other; the last one asks the store.
fn asks_through(names: &[&str], first: &str) -> Part {
    let link = |at: usize, comm: &&str| {
        let last = at + 1 == names.len();
        let (fd_kind, peer) = if last { ("tcp", STORE) } else { (first, "") };
        let who = Who {
            pid: 1,
            comm: (*comm).into(),
            call: "futex".into(),
            fd_kind: fd_kind.into(),
            peer: peer.into(),
            ..Who::default()
        };
        chains::Link { who, is_own: false, ns: 1e6, length_ns: 1e6, stack: 0, code: 0 }
    };
    let end = End { kind: Kind::Unseen, pid: 0, comm: String::new(), detail: STORE.into() };
    let links = names.iter().enumerate().map(|(at, comm)| link(at, comm)).collect();
    let chain = Chain { links, end, answer: 0, ns: 1e6, waits: 1 };
    Part { what: What::Waits(Box::new(chain)), before: false, ns: 1e6 }
}

#[test]
fn a_lock_that_is_held_over_a_question_is_the_services_own() {
    assert_eq!(peer(&asks_through(&["exec-*"], "")), Some(&STORE.to_string()));
    assert_eq!(peer(&asks_through(&["loop", "pool-*"], "")), Some(&STORE.to_string()), "it gave the question away");
    assert_eq!(peer(&asks_through(&["exec-*", "exec-*"], "")), None, "its peer has to be done with its own question");
    assert_eq!(peer(&asks_through(&["loop", "pool-*"], LOCK)), None);
}
