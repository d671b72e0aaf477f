// SPDX-License-Identifier: Apache-2.0
//! Network interfaces of the target's namespace that keep a queue: what stood in it, for how long, and how much left.

use recording::counters::{link, net_dev, qdisc};

use super::counters::Counters;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::statistics::ratio;

/// One interface.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Link {
    /// `eth0`.
    pub name: String,
    /// Share of the looks, one a second, at which something stood in its queue.
    pub queued: f64,
    /// Looks.
    pub looks: f64,
    /// Bytes in its queue, on average over them.
    pub backlog_bytes: f64,
    /// Bytes that left it, each second.
    pub sent: f64,
    /// Packets that the queue dropped.
    pub drops: f64,
    /// How often each second a shaper had a packet wait because its rate was used up.
    pub overlimits: f64,
    /// It drops or delays what a rule tells it to, as a test of bad networks does (netem): its queue says nothing of room.
    pub emulates: bool,
    /// Share of the interface's speed that went out or came in, whichever was more, where the driver knows it.
    pub utilization: Option<f64>,
}

impl Link {
    /// By Little's law: how long a byte stood in the queue, ns.
    pub fn delay_ns(&self) -> f64 {
        ratio(self.backlog_bytes, self.sent) * 1e9
    }
}

/// All of them, the one with the longest delay first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Links {
    /// Them.
    pub all: Vec<Link>,
}

impl Fact for Links {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let counters = case.fact::<Counters>()?;
        let mut all: Vec<Link> = counters.entities(qdisc::SOURCE).map(|name| of(case, &counters, name)).collect();
        if all.is_empty() {
            return Err(Gap::not_recorded("netlink/qdisc", "no interface of the target's network keeps a queue"));
        }
        all.sort_by(|a, b| b.delay_ns().total_cmp(&a.delay_ns()));
        Ok(Self { all })
    }
}

fn of(case: &Case, counters: &Counters, name: &str) -> Link {
    let mean = counters.mean(qdisc::BACKLOG_BYTES, name, case.length_ns()).unwrap_or_default();
    let each_second = |key| ratio(counters.delta(key, name).unwrap_or(0.0), case.seconds());
    let speed = counters.last(link::SPEED, name);
    let carried = each_second(net_dev::TX_BYTES).max(each_second(net_dev::RX_BYTES)) * 8.0;
    Link {
        name: name.to_string(),
        queued: mean.above_zero,
        looks: case.seconds().floor(),
        backlog_bytes: mean.value,
        sent: each_second(qdisc::SENT_BYTES),
        drops: counters.delta(qdisc::DROPS, name).unwrap_or(0.0),
        overlimits: each_second(qdisc::OVERLIMITS),
        emulates: counters.last(qdisc::EMULATES, name).is_some(),
        utilization: speed.filter(|speed| *speed > 0.0).map(|speed| ratio(carried, speed)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn what_stands_in_a_queue_stands_there_for_as_long_as_it_takes_to_leave() {
        let mut text = "meta length_ns=4e9\n".to_string();
        for (t, backlog, sent) in [(0, 0, 0), (1, 250_000, 0), (2, 250_000, 0), (3, 250_000, 0), (4, 0, 10_000_000)] {
            text += &format!(
                "counter t_ns={t}e9 source=netlink/qdisc entity=eth0 name=backlog_bytes value={backlog}
                 counter t_ns={t}e9 source=netlink/qdisc entity=eth0 name=sent_bytes value={sent}\n"
            );
        }
        text += "counter source=sys/class/net entity=eth0 name=speed_bits_per_s value=4e7
                 counter source=proc/net/dev entity=eth0 name=tx_bytes value=0
                 counter t_ns=4e9 source=proc/net/dev entity=eth0 name=tx_bytes value=10000000";
        let recording = parse(&text).unwrap();
        let links = Case::new(&recording).fact::<Links>().unwrap();
        let eth0 = &links.all[0];
        assert_eq!((eth0.name.as_str(), eth0.queued, eth0.backlog_bytes), ("eth0", 0.75, 187_500.0));
        assert_eq!((eth0.sent, eth0.delay_ns(), eth0.utilization), (2.5e6, 75e6, Some(0.5)));
        assert!(Case::new(&parse("").unwrap()).fact::<Links>().is_err());
    }
}
