// SPDX-License-Identifier: Apache-2.0
//! Exchanges by slice: how long clients waited for the target, and the target for those that it asks.

use anyhow::Result;
use recording::tables;

use crate::collector::Collector;
use crate::probes::exchanges::{Exchanges, Group, Histogram};

/// Runs of the hooks in a second, on average, that nobody notices: some 4 ms of CPU time. A service with more of them is
/// followed for a slice, and then left alone for some: whole slices, because in a shorter time long exchanges do not end.
const HITS: u64 = 25_000;
/// Slices that are left out at once, at most.
const MOST_LEFT_OUT: u64 = 9;

/// Which slices are followed.
pub struct Turns {
    from_ns: u64,
    hits: u64,
    /// Slices that are still to be left out; 0 = this one is followed.
    left_out: u64,
}

impl Turns {
    /// From the start of the capture on.
    pub fn new() -> Self {
        Self { from_ns: 0, hits: 0, left_out: 0 }
    }

    /// What was seen in the slice that ends at `t_ns`, and when; decides about the next one.
    pub fn rows(
        &mut self,
        t_ns: u64,
        probe: &mut Exchanges<'_>,
    ) -> Result<(Vec<tables::Exchange>, Vec<tables::ExchangeWindow>)> {
        if self.left_out > 0 {
            self.left_out -= 1;
            if self.left_out == 0 {
                probe.fresh()?; // what came while the hooks were taken off
                probe.follow()?;
                (self.from_ns, self.hits) = (t_ns, probe.hits()?);
            }
            return Ok((Vec::new(), Vec::new()));
        }
        let window = tables::ExchangeWindow { t_ns, length_ns: t_ns.saturating_sub(self.from_ns) };
        let rows = probe.fresh()?.into_iter().flat_map(|group| of_group(t_ns, group)).collect();
        let hits = probe.hits()?;
        self.left_out = slices_to_leave(hits.saturating_sub(self.hits), window.length_ns);
        if self.left_out > 0 {
            probe.detach();
        }
        (self.from_ns, self.hits) = (t_ns, hits);
        Ok((rows, vec![window]))
    }
}

/// How many slices are left out after one of this length with so many runs.
fn slices_to_leave(hits: u64, length_ns: u64) -> u64 {
    let a_second = (hits as f64 * 1e9 / (length_ns.max(1) as f64)) as u64;
    (a_second / HITS).min(MOST_LEFT_OUT)
}

fn of_group(t_ns: u64, group: Group) -> Vec<tables::Exchange> {
    let role = if group.accepted { "accepted" } else { "made" };
    let peer = group.peer.map_or("others".to_string(), |peer| peer.to_string());
    let row = |stage: &str, h: Histogram| {
        let (length_ns, counts) = h.bins.into_iter().unzip();
        tables::Exchange {
            t_ns,
            role: role.into(),
            port: group.port.into(),
            peer: if group.accepted { String::new() } else { peer.clone() },
            stage: stage.into(),
            count: h.count,
            sum_ns: h.sum_ns,
            length_ns,
            counts,
            ..tables::Exchange::default()
        }
    };
    let whole = tables::Exchange {
        began: group.began,
        unanswered: group.unanswered,
        more: group.more,
        pushed: group.pushed,
        ..row("response", group.response)
    };
    let parts = [("read_wait", group.read_wait), ("service", group.service)];
    let parts = parts.into_iter().filter(|(_, h)| h.count > 0).map(|(stage, h)| row(stage, h));
    std::iter::once(whole).chain(parts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_says_much_is_left_alone_for_a_while() {
        let after = |hits| slices_to_leave(hits, 1_000_000_000);
        assert_eq!((after(0), after(24_000), after(60_000), after(10_000_000)), (0, 0, 2, 9));
        assert_eq!(slices_to_leave(60_000, 2_000_000_000), 1);
    }

    #[test]
    fn a_group_is_a_row_for_each_stage() {
        let response = Histogram { count: 3, sum_ns: 90, bins: vec![(10, 2), (70, 1)] };
        let accepted = Group { accepted: true, port: 80, response: response.clone(), began: 4, ..Group::default() };
        let rows = of_group(7, Group { service: response.clone(), ..accepted });
        let told: Vec<_> = rows.iter().map(|r| (r.stage.as_str(), r.role.as_str(), r.port, r.count, r.began)).collect();
        assert_eq!(told, [("response", "accepted", 80, 3, 4), ("service", "accepted", 80, 3, 0)]);
        assert_eq!(
            (&rows[0].length_ns[..], &rows[0].counts[..], rows[0].peer.as_str()),
            (&[10, 70][..], &[2, 1][..], "")
        );
        let made = of_group(7, Group { response, ..Group::default() });
        assert_eq!((made[0].role.as_str(), made[0].peer.as_str()), ("made", "others"));
    }
}
