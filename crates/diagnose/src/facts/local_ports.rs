// SPDX-License-Identifier: Apache-2.0
//! Local ports in use in the target's network namespace: a connection needs one of its own for each destination, and whoever closes
//! first keeps it for a while.

use std::net::SocketAddr;

use recording::counters::local_ports;
use recording::tables::Setting;

use super::counters::Counters;
use crate::answer::Gap;
use crate::case::{Case, Fact};

/// Those towards one destination.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Towards {
    /// Address and port, `10.0.0.9:80`.
    pub destination: String,
    /// In use, the most that a look found.
    pub most: f64,
    /// Likewise by connections that had ended.
    pub time_wait: f64,
    /// The latter are taken again a second after their end (net.ipv4.tcp_tw_reuse).
    pub is_used_again: bool,
}

/// All that were read: nobody looks while fewer than half of the range are in use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LocalPorts {
    /// How many there are for each address of its own.
    pub range: f64,
    /// By destination.
    pub towards: Vec<Towards>,
}

impl Fact for LocalPorts {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let counters = case.fact::<Counters>()?;
        let Some(range) = counters.last(local_ports::RANGE, "").filter(|range| *range > 0.0) else {
            return Ok(Self::default());
        };
        let towards = |name: &str| {
            Some(Towards {
                destination: name.to_string(),
                most: counters.max(local_ports::USED, name)?,
                time_wait: counters.max(local_ports::OF_WHICH_TIME_WAIT, name).unwrap_or(0.0),
                is_used_again: is_used_again(case, name),
            })
        };
        Ok(Self { range, towards: counters.entities(local_ports::SOURCE).filter_map(towards).collect() })
    }
}

fn is_used_again(case: &Case, destination: &str) -> bool {
    let reuse = case.recording.rows::<Setting>().iter().find(|setting| setting.name == "net.ipv4.tcp_tw_reuse");
    let is_here = || destination.parse::<SocketAddr>().is_ok_and(|to| to.ip().to_canonical().is_loopback());
    match reuse.map(|setting| setting.value.trim()) {
        Some("1") => true,
        Some("2") => is_here(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn by_destination() {
        let text = "counter source=local_ports name=range value=1000
            counter t_ns=1 source=local_ports entity=127.0.0.1:80 name=used value=700
            counter t_ns=2 source=local_ports entity=127.0.0.1:80 name=used value=600
            counter t_ns=2 source=local_ports entity=127.0.0.1:80 name=time_wait value=590
            counter t_ns=2 source=local_ports entity=10.0.0.9:80 name=used value=20
            setting area=sysctl name=net.ipv4.tcp_tw_reuse value=\"2\"";
        let ports = Case::new(&parse(text).unwrap()).fact::<LocalPorts>().unwrap();
        let told: Vec<_> =
            ports.towards.iter().map(|it| (it.destination.as_str(), it.most, it.time_wait, it.is_used_again)).collect();
        assert_eq!(ports.range, 1000.0);
        assert_eq!(told, [("10.0.0.9:80", 20.0, 0.0, false), ("127.0.0.1:80", 700.0, 590.0, true)]);
    }
}
