// SPDX-License-Identifier: Apache-2.0
//! `/proc/PID/net/snmp6`: datagrams of IPv6, which `snmp` does not count. TCP's counters are of both.

use recording::counters::{Key, snmp6};

use super::reread::Reread;
use super::{Readings, Sampler, Scope};

/// What is asked for, of all that the kernel prints.
const WANTED: [Key; 3] = [snmp6::IN_DATAGRAMS, snmp6::RCVBUF_ERRORS, snmp6::MEM_ERRORS];
const ENTITY: &str = "Udp6";

/// What is kept open.
pub struct Snmp6(Reread);

pub fn sampler(scope: &Scope) -> Snmp6 {
    Snmp6(Reread::new(scope.network_file("snmp6")))
}

impl Sampler for Snmp6 {
    fn name(&self) -> &'static str {
        snmp6::SOURCE
    }

    fn needs(&self) -> &'static str {
        "a readable /proc/PID/net of the target; without it dropped datagrams of IPv6 are unknown"
    }

    fn sample(&mut self, _: &Scope, out: &mut Readings) -> Result<(), String> {
        if let Ok(text) = self.0.text() {
            parse(text, out); // missing where IPv6 is off
        }
        Ok(())
    }
}

/// `Udp6RcvbufErrors  540`
fn parse(text: &str, out: &mut Readings) {
    for line in text.lines() {
        let Some((name, value)) = line.split_once(char::is_whitespace) else { continue };
        let wanted = WANTED.iter().find(|key| name.strip_prefix(ENTITY) == Some(key.name));
        if let (Some(key), Ok(value)) = (wanted, value.trim().parse()) {
            out.put(*key, ENTITY, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::samplers::tests::rows;

    #[test]
    fn datagrams_of_ipv6() {
        let text = "Ip6InReceives \t9\nUdp6InDatagrams                 \t460\nUdp6RcvbufErrors \t540\nUdp6MemErrors\t0\nUdpLite6InDatagrams \t3\n";
        let found = rows(super::parse, text);
        assert_eq!((found["Udp6 InDatagrams"], found["Udp6 RcvbufErrors"], found.len()), (460.0, 540.0, 3));
    }
}
