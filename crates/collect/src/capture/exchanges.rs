// SPDX-License-Identifier: Apache-2.0
//! Exchanges by slice: how long clients waited for the target, and the target for those that it asks.

use recording::tables;

use crate::probes::exchanges::{Group, Histogram};

/// The rows of the slice that ends at `t_ns`.
pub fn rows(t_ns: u64, groups: Vec<Group>) -> Vec<tables::Exchange> {
    groups.into_iter().flat_map(|group| of_group(t_ns, group)).collect()
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
