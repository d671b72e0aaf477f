// SPDX-License-Identifier: Apache-2.0
//! Local ports in use towards each destination, in the target's network namespace.
//!
//! A connection needs a local port of its own for each destination. Who asks for them all has to walk all connections, so
//! that is done only where there are as many as a good part of the ports, and for a hundredth of the time at most.

use std::collections::HashMap;
use std::fs::File;
use std::net::SocketAddr;

use recording::counters::local_ports;

use super::reread::Reread;
use super::{Readings, Sampler, Scope};
use crate::namespace;
use crate::seldom::Seldom;
use crate::sockets::{HOLDING, Socket, Source, TIME_WAIT};

/// Of the range, sockets from which on one destination may have most of it.
const MANY: f64 = 0.5;

/// Destinations that are written, those with most ports first.
const DESTINATIONS: usize = 4;

/// What is kept open.
pub struct LocalPorts {
    range: Result<Reread, String>,
    sockets: Reread,
    source: Source,
    looks: Seldom,
}

pub fn sampler(scope: &Scope) -> LocalPorts {
    LocalPorts {
        range: open(scope),
        sockets: Reread::new(scope.network_file("sockstat")),
        source: Source::of(&scope.proc, &scope.network()),
        looks: Seldom::default(),
    }
}

impl Sampler for LocalPorts {
    fn name(&self) -> &'static str {
        local_ports::SOURCE
    }

    fn needs(&self) -> &'static str {
        "root, to enter the target's network namespace; without it the local ports that are left there are unknown"
    }

    fn sample(&mut self, _: &Scope, out: &mut Readings) -> Result<(), String> {
        let range = self.range.as_mut().map_err(|why| why.clone())?;
        let Some((first, last)) = range.text().ok().and_then(bounds) else { return Ok(()) };
        let size = f64::from(last - first) + 1.0;
        let sockets = self.sockets.text().map(in_use).unwrap_or(0.0);
        let Some(began) = self.looks.begin().filter(|_| sockets >= size * MANY) else { return Ok(()) };
        out.put(local_ports::RANGE, "", size);
        let mut used: HashMap<SocketAddr, (u32, u32)> = HashMap::new();
        let count = |socket: Socket| {
            if (first..=last).contains(&socket.port) {
                let of = used.entry(socket.other).or_default();
                of.0 += 1;
                of.1 += u32::from(socket.state == TIME_WAIT);
            }
        };
        self.source.sockets(HOLDING, count).map_err(|error| format!("cannot ask for connections ({error})"))?;
        self.looks.end(began);
        put(used, out);
        Ok(())
    }
}

fn put(used: HashMap<SocketAddr, (u32, u32)>, out: &mut Readings) {
    let mut used: Vec<_> = used.into_iter().collect();
    used.sort_by_key(|(destination, (ports, _))| (std::cmp::Reverse(*ports), *destination));
    for (destination, (ports, time_wait)) in used.into_iter().take(DESTINATIONS) {
        let destination = destination.to_string();
        out.put(local_ports::USED, &destination, f64::from(ports));
        out.put(local_ports::OF_WHICH_TIME_WAIT, &destination, f64::from(time_wait));
    }
}

/// `32768\t60999`
fn bounds(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once(char::is_whitespace)?;
    let (first, last) = (first.parse().ok()?, last.trim().parse().ok()?);
    (first <= last).then_some((first, last))
}

/// TCP sockets of IPv4 with those in TIME_WAIT: `TCP: inuse 1 orphan 0 tw 0 alloc 1 mem 421`. Those of IPv6 are among the
/// latter too.
fn in_use(text: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix("TCP:")).unwrap_or_default();
    let words: Vec<&str> = line.split_whitespace().collect();
    let pairs = words.chunks_exact(2).filter(|pair| ["inuse", "tw"].contains(&pair[0]));
    pairs.filter_map(|pair| pair[1].parse::<f64>().ok()).sum()
}

/// `/proc/sys/net` shows the namespace of whoever opens a file there.
fn open(scope: &Scope) -> Result<Reread, String> {
    let path = scope.proc.path("sys/net/ipv4/ip_local_port_range");
    if scope.own_network {
        return Ok(Reread::new(path));
    }
    let link = scope.proc.path(format!("{}/ns/net", scope.network()));
    let file = namespace::inside(&link, || Ok(File::open(&path)));
    let file = file.map_err(|error| format!("cannot enter the target's network namespace ({error})"))?;
    Ok(file.map_or_else(|_| Reread::new("missing"), |file| Reread::opened(&path, file)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_the_kernel() {
        assert_eq!((bounds("32768\t60999\n"), bounds("9 8"), bounds("")), (Some((32768, 60999)), None, None));
        let text = "sockets: used 13\nTCP: inuse 7 orphan 0 tw 500 alloc 1 mem 4\nUDP: inuse 9 mem 1\n";
        assert_eq!((in_use(text), in_use("")), (507.0, 0.0));
    }
}
