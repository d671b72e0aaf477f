// SPDX-License-Identifier: Apache-2.0
//! How a generator opened its connections: how many, and whether each had to ask again.
//!
//! A connection that is asked for in vain is asked for again after a second. Where all of a generator's connections stand there,
//! it makes as many a second as it has connections, whatever the service could do: a ceiling that is the client's number.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use recording::Recording;
use recording::counters::snmp;
use recording::tables::{Connection, Counter, Exchange, Retransmit};

use crate::slices::second_of;

/// Seconds of it, from which on a number is a ceiling.
const ENOUGH_SECONDS: usize = 3;
/// How far from it a second may be, and by how much it may be less than there are connections.
const NEAR: f64 = 0.15;
/// Of the ceiling, connections that were seen open at a time at least: an average over a second is less than there are, where they
/// came to stand in the middle of it.
const SEEN_OPEN: f64 = 0.5;
/// Of the seconds in which connections were asked for again, those that are at the ceiling.
const MOST: f64 = 0.6;

/// What is known of it.
#[derive(Clone, Debug, Default)]
pub struct Opening {
    /// Connections that were asked for in the generator's network namespace, by others there too.
    pub asked: u64,
    /// Connections to whom it loads that were asked for again, by second.
    pub again: BTreeMap<u64, u64>,
    /// So many of them in each second, which is the number of the connections that there are at a time.
    pub ceiling: Option<u64>,
}

impl Opening {
    /// Of a recording of a generator.
    pub fn of(recording: &Recording) -> Self {
        let mut again: BTreeMap<u64, u64> = BTreeMap::new();
        let own = peers(recording);
        let made = |row: &&Retransmit| {
            row.kind == "retransmit" && row.is_made() && row.state == "SYN_SENT" && own.contains(row.peer.as_str())
        };
        for row in recording.rows::<Retransmit>().iter().filter(made) {
            *again.entry(second_of(row.t_ns)).or_default() += row.count;
        }
        let ceiling = ceiling(&again, at_a_time(recording));
        Self { asked: asked(recording), again, ceiling }
    }

    /// Connections that were asked for, for each of the requests. Those were counted for a part of the time only, connections
    /// for all of it.
    pub fn each(&self, requests: u64, seen: Duration, length: Duration) -> f64 {
        let requests = requests as f64 * length.as_secs_f64() / seen.as_secs_f64().max(1e-9);
        self.asked as f64 / requests.max(1.0)
    }

    /// Seconds in which somebody stood before a connection.
    pub fn standing(&self) -> impl Iterator<Item = u64> {
        self.again.keys().copied()
    }
}

/// Whom a generator asks. Others of its network namespace, whose connections are counted too, ask others.
pub(crate) fn peers(recording: &Recording) -> BTreeSet<&str> {
    recording.rows::<Exchange>().iter().filter(|row| row.is_made()).map(|row| row.peer.as_str()).collect()
}

fn asked(recording: &Recording) -> u64 {
    let is_it =
        |row: &&Counter| row.source == snmp::SOURCE && row.entity == "Tcp" && row.name == snmp::ACTIVE_OPENS.name;
    let readings = recording.rows::<Counter>().iter().filter(is_it).map(|row| row.value);
    let (least, most) = readings.fold((f64::MAX, 0.0_f64), |(least, most), value| (least.min(value), most.max(value)));
    (most - least).max(0.0) as u64
}

/// Connections that it had open at a time, on average in the slice with most of them.
fn at_a_time(recording: &Recording) -> f64 {
    let mut slices: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for row in recording.rows::<Connection>().iter().filter(|row| row.is_made()) {
        let slice = slices.entry(row.t_ns).or_default();
        *slice = (slice.0 + row.open, row.looks.max(slice.1));
    }
    slices.values().map(|(open, looks)| *open as f64 / (*looks).max(1) as f64).fold(0.0, f64::max)
}

fn ceiling(again: &BTreeMap<u64, u64>, connections: f64) -> Option<u64> {
    let mut counts: Vec<u64> = again.values().copied().collect();
    counts.sort_unstable();
    let usual = *counts.get(counts.len() / 2)?;
    let is_near = |count: f64, to: f64| (count - to).abs() <= NEAR * to;
    let near = counts.iter().filter(|count| is_near(**count as f64, usual as f64)).count();
    let is_one = near >= ENOUGH_SECONDS && near as f64 >= MOST * counts.len() as f64;
    let seen = connections / usual.max(1) as f64;
    (is_one && (SEEN_OPEN..=1.0 + NEAR).contains(&seen)).then_some(usual)
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    fn opening(again: [u64; 6], open: u64) -> Opening {
        let mut text = format!(
            "meta length_ns=9e9
             counter source=proc/net/snmp entity=Tcp name=ActiveOpens value=5
             counter t_ns=9e9 source=proc/net/snmp entity=Tcp name=ActiveOpens value=1005
             exchange t_ns=1e9 role=made peer=h:80 stage=response count=1
             retransmit t_ns=1e9 kind=retransmit state=SYN_SENT role=made peer=another:80 count=7
             connection t_ns=1e9 role=made peer=h:80 looks=2 open={}\n",
            2 * open
        );
        for (second, count) in (3u64..).zip(again) {
            text += &format!(
                "retransmit t_ns={second}e9 kind=retransmit state=SYN_SENT role=made peer=h:80 count={count}\n"
            );
        }
        Opening::of(&parse(&text).unwrap())
    }

    #[test]
    fn a_ceiling_is_the_number_of_connections_each_second() {
        let all = opening([100, 100, 98, 100, 100, 100], 100);
        assert_eq!((all.asked, all.ceiling, all.standing().count()), (1000, Some(100), 6));
        assert_eq!(opening([333, 331, 333, 333, 0, 333], 333).ceiling, Some(333));
        assert_eq!(opening([100, 100, 100, 100, 100, 0], 78).ceiling, Some(100), "open for most of a second");
        assert_eq!(opening([100, 100, 98, 100, 100, 100], 333).ceiling, None, "fewer than there are");
        assert_eq!(opening([100, 100, 98, 100, 100, 100], 20).ceiling, None, "many more than there are");
        assert_eq!(opening([3, 90, 17, 100, 45, 61], 100).ceiling, None, "chance");
    }
}
