// SPDX-License-Identifier: Apache-2.0
//! The target's listening TCP sockets: who stands in their accept queues, and what they dropped.

use recording::counters::listeners;

use super::counters::Counters;
use super::listening::Listening;
use super::shared_listeners::SharedListeners;
use crate::answer::Gap;
use crate::case::{Case, Fact};

/// One listening socket, or all that share its address.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listener {
    /// `tcp 0.0.0.0:80`.
    pub name: String,
    /// Connections in its accept queue, on average.
    pub queue: f64,
    /// The same at most, as it was read once a second.
    pub most: f64,
    /// How many may stand there; one more does before others are dropped. Of several sockets, the one with the longest queue.
    pub backlog: Option<f64>,
    /// Share of the window in which the queue was as long as it may be.
    pub full: f64,
    /// Handshakes that it dropped, for whatever reason; none = not recorded.
    pub drops: Option<f64>,
}

/// Whether a listener is a Unix socket, by its name.
pub fn is_unix(name: &str) -> bool {
    name.starts_with("unix ")
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listeners {
    /// Those that dropped most first, then those with the longest queue.
    pub all: Vec<Listener>,
    /// Whether the target listens on TCP at all.
    listens: bool,
}

impl Fact for Listeners {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let counters = case.fact::<Counters>()?;
        // At a Unix socket no handshake is dropped: who finds its queue full is told at once, or waits.
        let names = counters.entities(listeners::SOURCE).filter(|name| !is_unix(name));
        let mut all: Vec<Listener> = names.map(|name| listener(case, &counters, name)).collect();
        let drops = |listener: &Listener| listener.drops.unwrap_or(0.0);
        all.sort_by(|a, b| drops(b).total_cmp(&drops(a)).then(b.queue.total_cmp(&a.queue)));
        Ok(Self { all, listens: case.fact::<Listening>()?.on_tcp() })
    }
}

/// The numbers of an address are those of all its sockets together; only those of one say whether it is full.
fn listener(case: &Case, counters: &Counters, name: &str) -> Listener {
    let all = of_address(case, counters, name);
    let shared = case.fact::<SharedListeners>().ok();
    match shared.as_ref().and_then(|shared| shared.0.iter().find(|socket| socket.address == name)) {
        Some(one) => Listener { most: one.most, backlog: one.backlog, full: one.full, ..all },
        None => all,
    }
}

fn of_address(case: &Case, counters: &Counters, name: &str) -> Listener {
    let full = (listeners::ACCEPT_QUEUE, listeners::BACKLOG);
    Listener {
        name: name.to_string(),
        queue: counters.mean(listeners::ACCEPT_QUEUE, name, case.length_ns()).unwrap_or_default().value,
        most: counters.max(listeners::ACCEPT_QUEUE, name).unwrap_or(0.0),
        backlog: counters.last(listeners::BACKLOG, name),
        full: counters.share_at_limit(full, name, case.length_ns()),
        drops: counters.delta(listeners::DROPS, name),
    }
}

impl Listeners {
    /// Handshakes that the target's own listeners dropped; none = not recorded. Without a listener there are none to drop.
    pub fn drops(&self) -> Option<f64> {
        if self.listens && self.all.is_empty() {
            return None;
        }
        self.all.iter().map(|listener| listener.drops).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    /// Of four sockets with one address, one is full.
    #[test]
    fn one_of_several_sockets_is_full() {
        let text = "meta length_ns=4
            counter source=proc/net/listeners entity=a name=backlog value=256
            counter source=proc/net/listeners entity=a name=accept_queue value=66
            counter source=proc/net/listeners/shared entity=\"a inode 7\" name=accept_queue value=65
            counter source=proc/net/listeners/shared entity=\"a inode 7\" name=backlog value=64
            counter source=proc/net/listeners/shared entity=\"a inode 7\" name=share_it value=4
            counter source=proc/net/listeners/shared entity=\"a inode 8\" name=accept_queue value=1
            counter source=proc/net/listeners/shared entity=\"a inode 8\" name=backlog value=64
            counter source=proc/net/listeners/shared entity=\"a inode 8\" name=share_it value=4";
        let listeners = Case::new(&parse(text).unwrap()).fact::<Listeners>().unwrap();
        let [one] = &listeners.all[..] else { panic!("{listeners:?}") };
        assert_eq!((one.queue, one.most, one.backlog, one.full), (66.0, 65.0, Some(64.0), 1.0));
    }

    #[test]
    fn a_queue_at_its_backlog() {
        let text = "meta length_ns=4
            counter source=proc/net/listeners entity=a name=backlog value=8
            counter source=proc/net/listeners entity=a name=accept_queue value=9
            counter t_ns=1 source=proc/net/listeners entity=a name=accept_queue value=1
            counter source=proc/net/listeners entity=a name=drops value=7
            counter t_ns=4 source=proc/net/listeners entity=a name=drops value=17
            counter source=proc/net/listeners entity=b name=accept_queue value=0
            counter source=proc/net/listeners entity=b name=drops value=0";
        let listeners = Case::new(&parse(text).unwrap()).fact::<Listeners>().unwrap();
        let first = &listeners.all[0];
        assert_eq!((first.queue, first.most, first.backlog, first.full), (3.0, 9.0, Some(8.0), 0.25));
        assert_eq!((first.drops, listeners.drops(), listeners.all[1].full), (Some(10.0), Some(10.0), 0.0));
    }
}
