// SPDX-License-Identifier: Apache-2.0
//! What the network stack of the target's namespace counted about connections that were being made, and what was sent again.

use recording::counters::{Key, conntrack, netstat, snmp};

use super::counters::Counters;
use super::listeners::Listeners;
use super::requests::Requests;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::statistics::share;

/// Growth of counters in the window; those that the kernel does not have are 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Handshakes {
    /// Connections that clients made (`PassiveOpens`).
    pub taken: f64,
    /// Of these, the target's own, on which something was answered; none = that cannot be told.
    pub own_taken: Option<f64>,
    /// Connections that were asked for from here (`ActiveOpens`).
    pub made: f64,
    /// Handshakes that met a full accept queue (`ListenOverflows`).
    pub overflows: f64,
    /// All that listeners dropped, those among them (`ListenDrops`).
    pub drops: f64,
    /// Of those, of the target's own listeners; none = not recorded.
    pub own_drops: Option<f64>,
    /// SYNs that were dropped because too many were half open.
    pub half_open_drops: f64,
    /// SYNs that an old connection in TIME_WAIT refused by its timestamp (`PAWSTimewait`); none = this kernel does not count them.
    pub old_time_wait: Option<f64>,
    /// Packets that connection tracking dropped.
    pub tracking_drops: f64,
    /// Entries of connection tracking, at most, of those that there may be; none = it is not in use.
    pub tracking_used: Option<f64>,
    /// Segments sent (`OutSegs`).
    pub sent: f64,
    /// Segments sent again (`RetransSegs`).
    pub again: f64,
    /// Of those, the ones that begin a handshake (`TCPSynRetrans`).
    pub syn_again: f64,
    /// Of those, the ones that did not get out of this host (`TCPRetransFail`).
    pub not_out: f64,
    /// Of those, the ones whose first copy had arrived (`TCPDSACKRecv`).
    pub needless: f64,
    /// Times that an answer did not come in time (`TCPTimeouts`).
    pub timeouts: f64,
    /// Segments sent to ask for what had been lost (`TCPLossProbes`).
    pub probes: f64,
    /// Segments sent again because later ones had arrived (`TCPFastRetrans`).
    pub fast: f64,
    /// Resets sent (`OutRsts`).
    pub resets: f64,
}

impl Fact for Handshakes {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let counters = case.fact::<Counters>()?;
        let grew = |key: Key| counters.grew(key).unwrap_or(0.0);
        let most = counters.last(conntrack::MAX, "").filter(|most| *most > 0.0);
        let taken = grew(snmp::PASSIVE_OPENS);
        Ok(Self {
            taken,
            own_taken: case.fact::<Requests>().ok().and_then(|requests| requests.taken()).map(|own| own.min(taken)),
            made: grew(snmp::ACTIVE_OPENS),
            overflows: grew(netstat::LISTEN_OVERFLOWS),
            drops: grew(netstat::LISTEN_DROPS),
            own_drops: case.fact::<Listeners>()?.drops(),
            half_open_drops: grew(netstat::REQ_Q_FULL_DROP),
            old_time_wait: counters.grew(netstat::PAWS_TIME_WAIT),
            tracking_drops: counters.delta(conntrack::DROP, "").unwrap_or(0.0),
            tracking_used: most.and_then(|most| Some(share(counters.max(conntrack::COUNT, "")?, most))),
            sent: grew(snmp::OUT_SEGS),
            again: grew(snmp::RETRANS_SEGS),
            syn_again: grew(netstat::SYN_RETRANS),
            not_out: grew(netstat::RETRANS_FAIL),
            needless: grew(netstat::DSACK_RECV),
            timeouts: grew(netstat::TIMEOUTS),
            probes: grew(netstat::LOSS_PROBES),
            fast: grew(netstat::FAST_RETRANS),
            resets: grew(snmp::OUT_RSTS),
        })
    }
}

impl Handshakes {
    /// Segments of connections that stood already, sent again.
    pub fn data_again(&self) -> f64 {
        (self.again - self.syn_again).max(0.0)
    }

    /// Connections that were taken, for beside so many that were not: the target's own beside its own, where both are told. A
    /// neighbour in its network namespace may take many more.
    pub fn taken_beside(&self, own: Option<f64>) -> f64 {
        own.and(self.own_taken).unwrap_or(self.taken)
    }

    /// Of handshakes that came, those that listeners dropped for another reason than a full queue.
    pub fn other_drops(&self) -> f64 {
        (self.drops - self.overflows).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn growth_of_counters() {
        let mut text = "meta length_ns=1e9\n".to_string();
        for (source, entity, name, value) in [
            (snmp::SOURCE, "Tcp", "RetransSegs", 70.0),
            (netstat::SOURCE, "TcpExt", "TCPSynRetrans", 60.0),
            (netstat::SOURCE, "TcpExt", "ListenDrops", 9.0),
            (netstat::SOURCE, "TcpExt", "ListenOverflows", 4.0),
            (conntrack::SOURCE, "\"\"", "count", 95.0),
            (conntrack::SOURCE, "\"\"", "max", 105.0),
        ] {
            text += &format!("counter source={source} entity={entity} name={name} value=5\n");
            text += &format!("counter t_ns=9 source={source} entity={entity} name={name} value={}\n", 5.0 + value);
        }
        let h = Case::new(&parse(&text).unwrap()).fact::<Handshakes>().unwrap();
        assert_eq!((h.again, h.data_again(), h.other_drops(), h.own_drops), (70.0, 10.0, 5.0, Some(0.0)));
        assert_eq!(h.tracking_used.map(|used| (used * 100.0).round()), Some(91.0));
    }
}
