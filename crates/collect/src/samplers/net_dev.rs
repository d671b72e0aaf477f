// SPDX-License-Identifier: Apache-2.0
//! `/proc/PID/net/dev`: packets, bytes, errors and drops of the interfaces of the target's namespace.

use recording::counters::{Key, net_dev};

use super::text_file::TextFile;
use super::{Readings, Scope};

/// The kernel's columns that are kept, by place after the colon.
const FIELDS: [(Key, usize); 8] = [
    (net_dev::RX_BYTES, 0),
    (net_dev::RX_PACKETS, 1),
    (net_dev::RX_ERRORS, 2),
    (net_dev::RX_DROPPED, 3),
    (net_dev::TX_BYTES, 8),
    (net_dev::TX_PACKETS, 9),
    (net_dev::TX_ERRORS, 10),
    (net_dev::TX_DROPPED, 11),
];

pub fn sampler(scope: &Scope) -> TextFile {
    let needs = "a readable /proc/PID/net of the target; without it the use of its network interfaces is unknown";
    TextFile::new(net_dev::SOURCE, scope.network_file("dev"), needs, parse)
}

fn parse(text: &str, out: &mut Readings) {
    for line in text.lines().skip(2) {
        // From the right: an interface may be called `a:b`, and the first number may touch the colon.
        let Some((name, rest)) = line.rsplit_once(':') else { continue };
        let numbers: Vec<f64> = rest.split_whitespace().map_while(|w| w.parse().ok()).collect();
        for (field, at) in FIELDS {
            if let Some(value) = numbers.get(at) {
                out.put(field, name.trim(), *value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::samplers::tests::rows;

    #[test]
    fn columns_by_place() {
        let head = "Inter-| Receive | Transmit\n face |bytes packets\n";
        let text =
            head.to_string() + "  eth0:100 2 3 4 0 0 0 0 500 6 7 8 0 0 0 0\n eth0:1: 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
        let found = rows(super::parse, &text);
        assert_eq!((found["eth0 rx_bytes"], found["eth0 rx_dropped"], found["eth0 tx_bytes"]), (100.0, 4.0, 500.0));
        assert_eq!((found["eth0 tx_dropped"], found["eth0:1 rx_bytes"]), (8.0, 1.0));
    }
}
