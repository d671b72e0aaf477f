// SPDX-License-Identifier: Apache-2.0
//! Listening sockets that share their address with others (SO_REUSEPORT), in whose queue connections stood: each has one of its own.

use recording::counters::shared_listeners as counters;

use super::counters::Counters;
use crate::answer::Gap;
use crate::case::{Case, Fact};

/// One of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SharedListener {
    /// `tcp 0.0.0.0:80`.
    pub address: String,
    /// How many sockets have this address.
    pub sockets: f64,
    /// Connections in its accept queue, on average.
    pub queue: f64,
    /// The same at most, as it was read once a second.
    pub most: f64,
    /// How many may stand there; one more does before others are dropped.
    pub backlog: Option<f64>,
    /// Share of the window in which the queue was as long as it may be.
    pub full: f64,
    /// Share of the window in which there was one.
    pub queued: f64,
    /// Whether somebody always stood in it and it never got shorter: who waits in vain and goes stays in it.
    pub never_falls: bool,
    /// How many processes of the target have it open; none = that was not seen.
    pub holders: Option<f64>,
    /// Whose it is, of those.
    pub holder: Option<u32>,
}

/// All of them, those with the longest queue first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SharedListeners(pub Vec<SharedListener>);

impl Fact for SharedListeners {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let all = case.fact::<Counters>()?;
        let mut found: Vec<SharedListener> =
            all.entities(counters::SOURCE).filter_map(|entity| listener(case, &all, entity)).collect();
        found.sort_by(|a, b| b.queue.total_cmp(&a.queue));
        Ok(Self(found))
    }
}

fn listener(case: &Case, all: &Counters, entity: &str) -> Option<SharedListener> {
    let queue = all.mean(counters::ACCEPT_QUEUE, entity, case.length_ns())?;
    let full = (counters::ACCEPT_QUEUE, counters::BACKLOG);
    Some(SharedListener {
        most: all.max(counters::ACCEPT_QUEUE, entity).unwrap_or(0.0),
        backlog: all.last(counters::BACKLOG, entity),
        full: all.share_at_limit(full, entity, case.length_ns()),
        address: entity.split(" inode ").next().unwrap_or_default().to_string(),
        sockets: all.last(counters::SHARE_IT, entity)?,
        queue: queue.value,
        queued: queue.above_zero,
        never_falls: all.never_falls(counters::ACCEPT_QUEUE, entity),
        holders: all.last(counters::HOLDERS, entity),
        holder: all.last(counters::HOLDER, entity).map(|pid| pid as u32),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn each_has_a_queue_of_its_own() {
        let text = "meta length_ns=4
            counter source=proc/net/listeners/shared entity=\"tcp [::]:80 inode 7\" name=accept_queue value=2
            counter t_ns=2 source=proc/net/listeners/shared entity=\"tcp [::]:80 inode 7\" name=accept_queue value=4
            counter source=proc/net/listeners/shared entity=\"tcp [::]:80 inode 7\" name=share_it value=3
            counter source=proc/net/listeners/shared entity=\"tcp [::]:80 inode 7\" name=holders value=2
            counter source=proc/net/listeners/shared entity=\"tcp [::]:80 inode 7\" name=holder value=11
            counter source=proc/net/listeners/shared entity=\"tcp [::]:80 inode 9\" name=accept_queue value=4
            counter t_ns=2 source=proc/net/listeners/shared entity=\"tcp [::]:80 inode 9\" name=accept_queue value=0
            counter source=proc/net/listeners/shared entity=\"tcp [::]:80 inode 9\" name=share_it value=3";
        let found = Case::new(&parse(text).unwrap()).fact::<SharedListeners>().unwrap();
        let [longest, other] = &found.0[..] else { panic!("{found:?}") };
        assert_eq!((longest.address.as_str(), longest.sockets, longest.queue), ("tcp [::]:80", 3.0, 3.0));
        assert_eq!(
            (longest.queued, longest.never_falls, longest.holders, longest.holder),
            (1.0, true, Some(2.0), Some(11))
        );
        assert_eq!((other.queue, other.never_falls, other.holders), (2.0, false, None));
    }
}
