// SPDX-License-Identifier: Apache-2.0
//! `/proc/PID/net/sockstat{,6}`: sockets in use, orphaned and in TIME_WAIT, by protocol.

use recording::counters::sockstat;

use super::reread::Reread;
use super::{Readings, Sampler, Scope};

/// Both address families.
pub struct Sockstat {
    v4: Reread,
    v6: Reread,
}

pub fn sampler(scope: &Scope) -> Sockstat {
    Sockstat { v4: Reread::new(scope.network_file("sockstat")), v6: Reread::new(scope.network_file("sockstat6")) }
}

impl Sampler for Sockstat {
    fn name(&self) -> &'static str {
        sockstat::SOURCE
    }

    fn needs(&self) -> &'static str {
        "a readable /proc/PID/net of the target; without it the number of its sockets is unknown"
    }

    fn sample(&mut self, _: &Scope, out: &mut Readings) -> Result<(), String> {
        parse(self.v4.text()?, out);
        if let Ok(text) = self.v6.text() {
            parse(text, out); // missing where IPv6 is off
        }
        Ok(())
    }
}

/// `TCP: inuse 1 orphan 0 tw 0 alloc 1 mem 421`
fn parse(text: &str, out: &mut Readings) {
    for line in text.lines() {
        let Some((protocol, rest)) = line.split_once(':') else { continue };
        let words: Vec<&str> = rest.split_whitespace().collect();
        for pair in words.chunks_exact(2) {
            if let Ok(value) = pair[1].parse() {
                out.put_named(sockstat::SOURCE, protocol, pair[0], value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::samplers::tests::rows;

    #[test]
    fn the_kernels_names() {
        let found = rows(super::parse, "sockets: used 13\nTCP: inuse 1 orphan 0 tw 5 alloc 1 mem\n");
        assert_eq!((found["sockets used"], found["TCP tw"], found.len()), (13.0, 5.0, 5));
    }
}
