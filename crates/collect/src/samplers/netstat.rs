// SPDX-License-Identifier: Apache-2.0
//! `/proc/PID/net/snmp` and `netstat`: all counters of the target's network stack, by the kernel's names.

use recording::counters::{netstat, snmp};

use super::text_file::TextFile;
use super::{Readings, Scope};

const NEEDS: &str = "a readable /proc/PID/net of the target; without it what its network stack counted is unknown";

pub fn snmp(scope: &Scope) -> TextFile {
    TextFile::new(snmp::SOURCE, scope.network_file("snmp"), NEEDS, |text, out| parse(snmp::SOURCE, text, out))
}

pub fn netstat(scope: &Scope) -> TextFile {
    TextFile::new(netstat::SOURCE, scope.network_file("netstat"), NEEDS, |text, out| parse(netstat::SOURCE, text, out))
}

/// Pairs of lines with the same beginning: names, then values.
fn parse(source: &str, text: &str, out: &mut Readings) {
    let mut lines = text.lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        let (Some((protocol, names)), Some((same, values))) = (names.split_once(':'), values.split_once(':')) else {
            return;
        };
        if protocol != same {
            return;
        }
        for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
            if let Ok(value) = value.parse() {
                out.put_named(source, protocol, name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samplers::tests::rows;

    #[test]
    fn names_pair_with_values() {
        let text = "Tcp: RtoMin MaxConn RetransSegs\nTcp: 200 -1 7\nUdp: InDatagrams\nUdp: 3\n";
        let found = rows(|text, out| parse(snmp::SOURCE, text, out), text);
        assert_eq!((found["Tcp MaxConn"], found["Tcp RetransSegs"], found["Udp InDatagrams"]), (-1.0, 7.0, 3.0));
    }

    #[test]
    fn a_torn_text_gives_no_wrong_pairs() {
        assert!(rows(|text, out| parse(snmp::SOURCE, text, out), "Tcp: A B\nUdp: 1 2\n").is_empty());
        assert!(rows(|text, out| parse(snmp::SOURCE, text, out), "Tcp: A B\n").is_empty());
    }
}
