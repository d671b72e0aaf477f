// SPDX-License-Identifier: Apache-2.0
//! Thousands of sockets in TIME_WAIT: what everybody sees first, and mostly harmless.

use recording::counters::{local_ports, sockstat};

use crate::case::Case;
use crate::facts::counters::Counters;
use crate::facts::handshakes::Handshakes;
use crate::judgement::errors::TABLE_FULL;
use crate::statistics::share;
use crate::wording::percent;

/// Fewer nobody wonders about.
const MANY: f64 = 1000.0;

/// Of the local ports, towards one destination.
const PORTS_LEFT: f64 = 0.95;

/// How many there were at most, if anybody wonders about them.
pub(crate) fn many(case: &Case) -> Option<f64> {
    case.fact::<Counters>().ok()?.max(sockstat::TIME_WAIT, "TCP").filter(|n| *n >= MANY)
}

/// How many there are, and why they hurt nobody, if so.
pub(crate) fn harmless(case: &Case) -> Option<String> {
    let (counters, handshakes) = (case.fact::<Counters>().ok()?, case.fact::<Handshakes>().ok()?);
    let sockets = many(case)?;
    let range = counters.last(local_ports::RANGE, "").unwrap_or(0.0);
    let used = counters.entities(local_ports::SOURCE).filter_map(|name| counters.max(local_ports::USED, name));
    let ports = share(used.fold(0.0, f64::max), range);
    let tracking = handshakes.tracking_used.unwrap_or(0.0);
    if handshakes.old_time_wait != Some(0.0) || tracking >= TABLE_FULL || ports >= PORTS_LEFT {
        return None;
    }
    let table = match handshakes.tracking_used {
        Some(used) => format!("connection tracking is {} full", percent(used)),
        None => "connection tracking is not in use".to_string(),
    };
    Some(format!(
        "{} sockets of its network namespace were in TIME_WAIT: harmless here, because no new connection was refused by one \
         of them, local ports are left, and {table}",
        grouped(sockets)
    ))
}

/// With all its digits, `13,946`: it is held against what other tools print.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let at = |(nth, digit): (usize, char)| match digits.len() - nth {
        left if left % 3 == 0 && nth > 0 => format!(",{digit}"),
        _ => digit.to_string(),
    };
    digits.chars().enumerate().map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    fn of(sockets: u32, refused: u32) -> Option<String> {
        let text = format!(
            "meta length_ns=1e9
             counter source=proc/net/sockstat entity=TCP name=tw value={sockets}
             counter source=proc/net/netstat entity=TcpExt name=PAWSTimewait value=0
             counter t_ns=9 source=proc/net/netstat entity=TcpExt name=PAWSTimewait value={refused}"
        );
        harmless(&Case::new(&parse(&text).unwrap()))
    }

    #[test]
    fn many_are_called_harmless_where_they_are() {
        let said = of(13_946, 0).unwrap();
        assert!(said.starts_with("13,946 sockets of its network namespace were in TIME_WAIT: harmless here"), "{said}");
        assert_eq!((of(900, 0), of(13_946, 50)), (None, None));
    }
}
