// SPDX-License-Identifier: Apache-2.0
//! Packets that the kernel dropped on this host, by its reason and the place in its code.

use std::collections::BTreeMap;

use recording::tables;

use super::own_ends::OwnEnds;
use super::stacks::Stacks;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::ledger::blocked::symbols;

/// Those of one reason, at one place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dropped {
    /// In the kernel's words, `NETFILTER_DROP`.
    pub reason: String,
    /// Function that drops them, `nft_do_chain`; empty = not known.
    pub place: String,
    /// They are segments of TCP.
    pub is_tcp: bool,
    /// To or from the target, as far as that is told.
    pub own: f64,
    /// Of those, the ones that do not begin a connection.
    pub own_data: f64,
    /// Of those that begin one, the ones that clients sent to its ports.
    pub own_begins: f64,
    /// In its network namespace.
    pub all: f64,
}

/// All of them; empty = none was dropped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drops(pub Vec<Dropped>);

impl Fact for Drops {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let is_refused = case.recording.rows::<tables::Gap>().iter().any(|gap| gap.what == "drop");
        if !case.recording.tables.has::<tables::Drop>() || is_refused {
            return Err(Gap::not_recorded("drop", "packets that the kernel dropped were not recorded"));
        }
        let (own, stacks) = (case.fact::<OwnEnds>()?, case.fact::<Stacks>()?);
        let mut by: BTreeMap<(&str, &str, bool), [f64; 4]> = BTreeMap::new();
        for row in case.recording.rows::<tables::Drop>() {
            let place = symbols(&stacks, row.stack).first().copied().unwrap_or_default();
            let sums = by.entry((&row.reason, place, row.protocol == "tcp")).or_default();
            let count = row.count as f64;
            let is_own = is_own(&own, row);
            for (sum, is_of_it) in
                sums.iter_mut().zip([is_own, is_own && !row.begins, is_own && row.begins && row.is_accepted(), true])
            {
                *sum += if is_of_it { count } else { 0.0 };
            }
        }
        let dropped = |((reason, place, is_tcp), [own, own_data, own_begins, all]): ((&str, &str, bool), [f64; 4])| {
            Dropped { reason: reason.into(), place: place.into(), is_tcp, own, own_data, own_begins, all }
        };
        let mut all: Vec<Dropped> = by.into_iter().map(dropped).collect();
        all.sort_by(|a, b| (b.own, b.all).partial_cmp(&(a.own, a.all)).unwrap_or(std::cmp::Ordering::Equal));
        Ok(Self(all))
    }
}

/// What filters packets before a listener sees them: the kernel's words, by their beginnings. What connection tracking has no room for is
/// dropped in the filter's words too.
const FILTERS: [&str; 5] = ["NETFILTER_DROP", "TC_", "BPF_CGROUP", "XDP", "IP_RPFILTER"];

impl Drops {
    /// Of the segments that begin a connection at one of the target's ports, those that a filter dropped.
    pub fn begins_of_clients(&self) -> f64 {
        self.filtered().map(|dropped| dropped.own_begins).sum()
    }

    /// What a filter dropped.
    pub fn filtered(&self) -> impl Iterator<Item = &Dropped> {
        self.0.iter().filter(|dropped| FILTERS.iter().any(|word| dropped.reason.starts_with(word)))
    }
}

fn is_own(own: &OwnEnds, row: &tables::Drop) -> bool {
    match row.protocol.as_str() {
        "udp" => own.takes_datagrams_at(row.port),
        _ => row.is_accepted() && own.has_port(row.port) || row.is_made() && own.has_peer(&row.peer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn reasons_places_and_whose_they_are() {
        let text = "meta target.listen=[\"tcp 0.0.0.0:80\",\"udp 0.0.0.0:53\"]
            frame id=1 symbol=nft_do_chain module=kernel kind=kernel
            stack id=1 frames=[1]
            connection t_ns=1 role=made peer=10.0.0.9:5432 looks=10 open=3
            drop reason=NETFILTER_DROP protocol=tcp role=accepted port=80 stack=1 count=4
            drop reason=NETFILTER_DROP protocol=tcp role=accepted port=80 begins=true stack=1 count=3
            drop reason=NETFILTER_DROP protocol=tcp role=made peer=10.0.0.9:5432 stack=1 count=2
            drop reason=NETFILTER_DROP protocol=tcp role=made peer=10.0.0.8:80 stack=1 count=90
            drop reason=NETFILTER_DROP protocol=tcp role=accepted port=81 stack=1 count=1
            drop reason=SOCKET_RCVBUFF protocol=udp role=none port=53 count=30
            drop reason=NO_SOCKET protocol=tcp role=none port=80 count=50";
        let drops = Case::new(&parse(text).unwrap()).fact::<Drops>().unwrap();
        let told: Vec<_> =
            drops.0.iter().map(|d| (d.reason.as_str(), d.place.as_str(), d.is_tcp, d.own, d.all)).collect();
        assert_eq!(
            told,
            [
                ("SOCKET_RCVBUFF", "", false, 30.0, 30.0),
                ("NETFILTER_DROP", "nft_do_chain", true, 9.0, 100.0),
                ("NO_SOCKET", "", true, 0.0, 50.0),
            ]
        );
        assert_eq!((drops.0[1].own_data, drops.begins_of_clients()), (6.0, 3.0));
        assert!(Case::new(&parse("").unwrap()).fact::<Drops>().is_err());
    }
}
