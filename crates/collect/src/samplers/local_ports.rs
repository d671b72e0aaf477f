// SPDX-License-Identifier: Apache-2.0
//! Local ports in use towards each destination, in the target's network namespace.
//!
//! A connection needs a local port of its own for each destination. Who asks for them all has to walk all connections, so
//! that is done only where there are as many as a good part of the ports, and for a hundredth of the time at most.

use std::collections::{HashMap, HashSet};
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
    /// Of IPv4, and of IPv6.
    sockets: [Reread; 2],
    source: Source,
    looks: Seldom,
    /// Destinations of which something was told last.
    told: HashSet<SocketAddr>,
}

pub fn sampler(scope: &Scope) -> LocalPorts {
    LocalPorts {
        range: open(scope),
        sockets: ["sockstat", "sockstat6"].map(|file| Reread::new(scope.network_file(file))),
        source: Source::of(&scope.proc, &scope.network()),
        looks: Seldom::default(),
        told: HashSet::new(),
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
        let sockets: f64 = self.sockets.iter_mut().map(|file| file.text().map(in_use).unwrap_or(0.0)).sum();
        if sockets < size * MANY {
            // What was told of them held until now.
            self.put(HashMap::new(), out);
            return Ok(());
        }
        let Some(began) = self.looks.begin() else { return Ok(()) };
        out.put(local_ports::RANGE, "", size);
        let mut used: HashMap<SocketAddr, (u32, u32)> = HashMap::new();
        let count = |socket: Socket| {
            if (first..=last).contains(&socket.port) {
                // Sockets of IPv6 go to addresses of IPv4, too, and use the same ports.
                let to = SocketAddr::new(socket.other.ip().to_canonical(), socket.other.port());
                let of = used.entry(to).or_default();
                of.0 += 1;
                of.1 += u32::from(socket.state == TIME_WAIT);
            }
        };
        self.source.sockets(HOLDING, count).map_err(|error| format!("cannot ask for connections ({error})"))?;
        self.looks.end(began);
        self.put(used, out);
        Ok(())
    }
}

impl LocalPorts {
    /// Tells those with most ports, and those that were told before: what is not told again seems to be as it was.
    fn put(&mut self, used: HashMap<SocketAddr, (u32, u32)>, out: &mut Readings) {
        let mut most: Vec<SocketAddr> = used.keys().copied().collect();
        most.sort_by_key(|destination| (std::cmp::Reverse(used[destination].0), *destination));
        most.truncate(DESTINATIONS);
        self.told.extend(&most);
        for destination in &self.told {
            let (ports, time_wait) = used.get(destination).copied().unwrap_or_default();
            out.put(local_ports::USED, &destination.to_string(), f64::from(ports));
            out.put(local_ports::OF_WHICH_TIME_WAIT, &destination.to_string(), f64::from(time_wait));
        }
        self.told.retain(|destination| most.contains(destination));
    }
}

/// `32768\t60999`
fn bounds(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once(char::is_whitespace)?;
    let (first, last) = (first.parse().ok()?, last.trim().parse().ok()?);
    (first <= last).then_some((first, last))
}

/// TCP sockets of IPv4 with those in TIME_WAIT: `TCP: inuse 1 orphan 0 tw 0 alloc 1 mem 421`. Those of IPv6 are among the
/// latter too; the others of IPv6: `TCP6: inuse 1`.
fn in_use(text: &str) -> f64 {
    let line =
        text.lines().find_map(|line| line.strip_prefix("TCP:").or(line.strip_prefix("TCP6:"))).unwrap_or_default();
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
        assert_eq!((in_use(text), in_use(""), in_use("TCP6: inuse 3\nUDP6: inuse 9\n")), (507.0, 0.0, 3.0));
    }

    #[test]
    fn what_is_over_is_told() {
        let mut ports = sampler(&Scope::host(std::path::Path::new("/"), Default::default()));
        let [a, b]: [SocketAddr; 2] = ["10.0.0.9:5432", "10.0.0.8:80"].map(|to| to.parse().unwrap());
        let mut told = |used: &[(SocketAddr, u32)]| {
            let mut out = Readings::default();
            ports.put(used.iter().map(|(to, ports)| (*to, (*ports, 0))).collect(), &mut out);
            let used = out.rows.iter().filter(|row| row.name == local_ports::USED.name);
            let mut told: Vec<_> = used.map(|row| (row.entity.clone(), row.value)).collect();
            told.sort_by(|a, b| a.0.cmp(&b.0));
            told
        };
        assert_eq!(told(&[(a, 900)]), [(a.to_string(), 900.0)]);
        assert_eq!(told(&[(b, 7)]), [(b.to_string(), 7.0), (a.to_string(), 0.0)]);
        assert_eq!((told(&[]), told(&[])), (vec![(b.to_string(), 0.0)], vec![]));
    }
}
