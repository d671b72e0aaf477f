// SPDX-License-Identifier: Apache-2.0
//! How near somebody else's generator came to the end of its local ports.
//!
//! A load that is too short to use them all up goes well, and fails when it is repeated, or goes on for longer.

use crate::reason::Reason;
use crate::run::Run;

/// Of all ports, and of those in use.
const MANY: f64 = 0.5;
/// For how long a port is kept after the end of a connection, s.
const KEPT: f64 = 60.0;

/// Local ports towards whom it loads, which nobody takes again before [`KEPT`].
pub struct Ports<'a> {
    /// Whom.
    pub towards: &'a str,
    /// Those in use, at most.
    pub used: f64,
    /// Of them, by connections that had ended.
    pub ended: f64,
    /// All.
    pub range: f64,
}

/// That a good part of them was in use, and when none would have been left; none = there were plenty, or as many as such a load takes.
///
/// Not each connection takes one: those that the service closes first do not.
pub fn run_out_of_ports(run: &Run, ports: &Ports) -> Option<Reason> {
    let Ports { towards, used, ended, range } = ports;
    let length = run.length.as_secs_f64().max(1.0);
    // More than there are: from several addresses. Most of them open: as many as it wants. In a minute they are free again.
    if !(MANY * range..=*range).contains(used) || *ended < MANY * used || length >= KEPT {
        return None;
    }
    let a_second = ended / length;
    if a_second * KEPT <= *range {
        return None;
    }
    let sentence = format!(
        "{used:.0} of the {range:.0} local ports towards {towards} were in use, {ended:.0} of them by connections that had ended less than \
         a minute before, {a_second:.0} more each second: none is left after {:.0} s of it, nor for the next load that begins soon",
        range / a_second
    );
    Some(Reason { code: "ports".into(), sentence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn said(used: f64, ended: f64, seconds: u64) -> Option<String> {
        let run = Run { length: Duration::from_secs(seconds), ..Run::default() };
        let ports = Ports { towards: "10.0.0.9:80", used, ended, range: 28_232.0 };
        run_out_of_ports(&run, &ports).map(|reason| reason.sentence)
    }

    #[test]
    fn a_load_that_fails_if_it_goes_on() {
        let text = said(20_000.0, 19_900.0, 10).unwrap();
        assert!(text.contains("20000 of the 28232") && text.contains("none is left after 14 s"), "{text}");
    }

    #[test]
    fn a_load_that_has_enough_of_them() {
        assert_eq!(said(9_000.0, 8_900.0, 10), None, "few");
        assert_eq!(said(20_000.0, 100.0, 10), None, "open connections");
        assert_eq!(said(40_000.0, 39_000.0, 10), None, "from two addresses");
        assert_eq!(said(20_000.0, 19_900.0, 50), None, "they are free again before it comes to their end");
        assert_eq!(said(28_000.0, 27_900.0, 70), None, "it goes on like that");
    }
}
