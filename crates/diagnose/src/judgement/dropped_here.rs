// SPDX-License-Identifier: Apache-2.0
//! What of it that a network loses was lost in the target's network namespace, and by whom: the kernel's words for its reasons, and
//! what to look at.

use crate::case::Case;
use crate::facts::drops::{Dropped, Drops};
use crate::statistics::share;
use crate::verdict::{Evidence, evidence};

/// Reasons by the beginning of their names, who that is, and how to look at it.
const KNOWN: [(&str, &str, &str); 17] = [
    ("NETFILTER_DROP", "its packet filter or connection tracking", "nft list ruleset; conntrack -S"),
    ("QDISC_", "the queue of an interface", "tc -s qdisc"),
    ("FQ_", "the queue of an interface", "tc -s qdisc"),
    ("CAKE_", "the queue of an interface", "tc -s qdisc"),
    ("DUALPI2_", "the queue of an interface", "tc -s qdisc"),
    ("TC_", "a rule of traffic control", "tc -s filter show dev DEVICE"),
    ("BPF_CGROUP", "a BPF program of a cgroup", "bpftool cgroup tree"),
    ("XDP", "a BPF program of an interface", "bpftool net"),
    ("SOCKET_FILTER", "a filter of the socket", "ss -tanm  # with --bpf"),
    ("SOCKET_RCVBUFF", "a full buffer of a socket", "ss -tuanm"),
    ("SOCKET_BACKLOG", "a full buffer of a socket", "ss -tuanm"),
    ("PROTO_MEM", "the bound on the memory of all sockets", "sysctl net.ipv4.tcp_mem net.ipv4.udp_mem"),
    ("CPU_BACKLOG", "the queue of packets before a CPU", "sysctl net.core.netdev_max_backlog"),
    ("IP_RPFILTER", "the filter of reverse paths", "sysctl -a | grep rp_filter"),
    ("NEIGH_", "the search for a neighbour's address", "ip -s neigh"),
    ("NOMEM", "want of memory", "dmesg"),
    ("IP_OUTNOROUTES", "a missing route", "ip route"),
];

/// Further reasons for which a segment is lost that somebody waits for.
const LOSSES: [&str; 9] = [
    "TCP_CSUM",
    "IP_CSUM",
    "SKB_CSUM",
    "TCP_OFO_QUEUE_PRUNE",
    "IP_INNOROUTES",
    "FULL_RING",
    "PKT_TOO_BIG",
    "PKT_TOO_SMALL",
    "DEV_READY",
];

fn is_loss(reason: &str) -> bool {
    known(reason).is_some() || LOSSES.contains(&reason)
}

/// Whether they may be losses. Older kernels have no word for many; for most reasons of TCP's own nobody waits for the segment, and
/// what TCP gives up without a word had been taken.
fn may_be_losses(dropped: &Dropped) -> bool {
    const OTHERWISE: [&str; 3] = ["NO_SOCKET", "OTHERHOST", "DUP_FRAG"];
    let of_tcp = |name: &str| name.to_ascii_lowercase().starts_with("tcp_");
    let is_taken = dropped.reason == UNSPECIFIED && of_tcp(&dropped.place);
    is_loss(&dropped.reason) || !of_tcp(&dropped.reason) && !is_taken && !OTHERWISE.contains(&dropped.reason.as_str())
}

/// The kernel's word for having none.
const UNSPECIFIED: &str = "NOT_SPECIFIED";

/// Segments of TCP that were lost in the target's network namespace.
pub(crate) struct LostHere {
    /// The target's own, but for those that begin a connection: of a SYN that a filter takes from a client nobody here sends again.
    pub own: f64,
    /// Everybody's there, and what may be a loss.
    pub at_most: f64,
    /// Most of them.
    most: Option<Dropped>,
}

impl LostHere {
    /// Why and where most of them were dropped, in the kernel's words.
    pub(crate) fn reason(&self) -> String {
        self.most.as_ref().map(name).unwrap_or_default()
    }

    /// The function that drops most of them.
    pub(crate) fn place(&self) -> Option<String> {
        self.most.as_ref().map(|most| most.place.clone()).filter(|place| !place.is_empty())
    }

    /// Whom most of them met, `its packet filter or connection tracking (NETFILTER_DROP at nft_do_chain)`.
    pub(crate) fn by(&self) -> String {
        let Some(most) = &self.most else { return String::new() };
        match known(&most.reason) {
            Some((_, who, _)) => format!("{who} ({})", name(most)),
            None => name(most),
        }
    }

    /// How to look at that.
    pub(crate) fn see(&self) -> &'static str {
        self.most.as_ref().and_then(|most| known(&most.reason)).map_or("ip -s link", |(.., see)| see)
    }
}

fn known(reason: &str) -> Option<&'static (&'static str, &'static str, &'static str)> {
    KNOWN.iter().find(|(begin, ..)| reason.starts_with(begin))
}

fn name(dropped: &Dropped) -> String {
    match dropped.place.as_str() {
        "" => dropped.reason.clone(),
        place => format!("{} at {place}", dropped.reason),
    }
}

/// What was lost here; none = nobody looked.
pub(crate) fn lost(case: &Case) -> Option<LostHere> {
    let drops = case.fact::<Drops>().ok()?;
    let segments = || drops.0.iter().filter(|dropped| dropped.is_tcp);
    let lost = || segments().filter(|dropped| is_loss(&dropped.reason));
    let at_most = segments().filter(|dropped| may_be_losses(dropped)).map(|dropped| dropped.all).sum();
    let most = lost().max_by(|a, b| a.own_data.total_cmp(&b.own_data)).cloned();
    Some(LostHere { own: lost().map(|dropped| dropped.own_data).sum(), at_most, most })
}

/// Who filters most of the segments by which clients ask for a connection, and how to look at that; none = nobody does.
pub(crate) fn before_the_listener(case: &Case) -> Option<(String, &'static str)> {
    let drops = case.fact::<Drops>().ok()?;
    let most = drops.filtered().max_by(|a, b| a.own_begins.total_cmp(&b.own_begins)).filter(|d| d.own_begins > 0.0)?;
    let most = LostHere { own: most.own_begins, at_most: most.all, most: Some(most.clone()) };
    Some((most.by(), most.see()))
}

/// Rows of evidence at most.
const ROWS: usize = 3;

/// Of what is counted: less than that is something else.
const MUCH: f64 = 0.1;

/// The kernel's own words for segments that it dropped, of those reasons that are a part of so many.
pub(crate) fn told(case: &Case, of: f64) -> Vec<Evidence> {
    let Ok(drops) = case.fact::<Drops>() else { return Vec::new() };
    let has_word = |dropped: &&Dropped| !dropped.reason.is_empty() && dropped.reason != UNSPECIFIED;
    let much = |dropped: &&Dropped| dropped.is_tcp && share(dropped.all, of) >= MUCH;
    let row = |dropped: &Dropped| {
        let see = "perf trace -a -e skb:kfree_skb";
        evidence(&format!("dropped here: {}", name(dropped)), dropped.all, "segments", "0", see)
    };
    drops.0.iter().filter(has_word).filter(much).take(ROWS).map(row).collect()
}

#[cfg(test)]
mod tests {
    use recording::text::parse;

    use super::*;

    const TEXT: &str = "meta target.listen=[\"tcp 0.0.0.0:80\"]
        frame id=1 symbol=nft_do_chain module=kernel kind=kernel
        stack id=1 frames=[1]
        drop reason=NETFILTER_DROP protocol=tcp role=accepted port=80 stack=1 count=70
        drop reason=NETFILTER_DROP protocol=tcp role=accepted port=80 begins=true stack=1 count=900
        drop reason=QDISC_DROP protocol=tcp role=others count=20
        drop reason=TCP_OLD_DATA protocol=tcp role=accepted port=80 count=500
        drop reason=SOCKET_RCVBUFF protocol=udp role=none port=80 count=500";

    #[test]
    fn what_was_lost_and_by_whom() {
        let recording = parse(TEXT).unwrap();
        let lost = lost(&Case::new(&recording)).unwrap();
        assert_eq!((lost.own, lost.at_most), (70.0, 990.0));
        let old =
            parse(&TEXT.replace("QDISC_DROP", "NOT_SPECIFIED").replace("NETFILTER_DROP", "NOT_SPECIFIED")).unwrap();
        let lost_of_old = super::lost(&Case::new(&old)).unwrap();
        assert_eq!((lost_of_old.own, lost_of_old.at_most), (0.0, 990.0), "what an old kernel has no word for");
        let taken =
            parse(&TEXT.replace("NETFILTER_DROP", "NOT_SPECIFIED").replace("nft_do_chain", "tcp_v4_rcv")).unwrap();
        assert_eq!(super::lost(&Case::new(&taken)).unwrap().at_most, 20.0, "what TCP had taken");
        assert_eq!(lost.by(), "its packet filter or connection tracking (NETFILTER_DROP at nft_do_chain)");
        assert!(lost.see().starts_with("nft "));
        assert!(super::lost(&Case::new(&parse("").unwrap())).is_none(), "nobody looked");
    }

    #[test]
    fn reasons_that_are_a_part() {
        let recording = parse(TEXT).unwrap();
        let rows = told(&Case::new(&recording), 600.0);
        let told: Vec<_> = rows.iter().map(|row| (row.fact.as_str(), row.value)).collect();
        assert_eq!(
            told,
            [("dropped here: NETFILTER_DROP at nft_do_chain", 970.0), ("dropped here: TCP_OLD_DATA", 500.0)]
        );
    }
}
