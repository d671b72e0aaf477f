// SPDX-License-Identifier: Apache-2.0
//! Which end of a connection spoke last, from the times and numbers that the kernel keeps of it.

use crate::probes::connections::Connection;

/// Who spoke last in a connection, and how long ago, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastWord {
    Theirs(u64),
    Ours(u64),
    /// Both within the same jiffy, and nothing tells which came later: an exchange that was over at once.
    Untold,
}

/// How long ago data came and was sent last, ns.
pub(super) fn ages_ns(c: &Connection, tick_ns: u64) -> (u64, u64) {
    let age = |at: u32| u64::from(c.now.wrapping_sub(at)).saturating_mul(tick_ns);
    (age(c.received_at), age(c.sent_at))
}

/// Who spoke last. Request and answer often fall into one jiffy, on a local connection nearly always the answer and the
/// next request; then it is told by what has been acknowledged alone, and when.
pub(super) fn last_word(c: &Connection, tick_ns: u64) -> LastWord {
    let (received_ns, sent_ns) = ages_ns(c, tick_ns);
    // Both times begin with the connection: one end alone may have spoken, within the jiffy in which it was opened.
    match (c.heard, c.said) {
        (true, true) => {}
        (true, false) => return LastWord::Theirs(received_ns),
        (false, true) => return LastWord::Ours(sent_ns),
        (false, false) => return LastWord::Untold,
    }
    if sent_ns != received_ns {
        return if received_ns < sent_ns { LastWord::Theirs(received_ns) } else { LastWord::Ours(sent_ns) };
    }
    // Everything that is sent acknowledges what came before.
    if c.unsaid > 0 {
        return LastWord::Theirs(received_ns);
    }
    if c.in_flight > 0 {
        return LastWord::Ours(sent_ns);
    }
    let since = |us: u64| c.at_ns.saturating_sub(us.saturating_mul(1_000));
    let later = |us: u64| since(us) + 2 * tick_ns < received_ns;
    if later(c.delivered_us) {
        return LastWord::Ours(sent_ns); // the other end acknowledged it after a while, with nothing to say
    }
    // Who has closed its side touched the connection by that, and had it acknowledged: neither says who spoke before.
    if c.closed {
        return LastWord::Untold;
    }
    // Something went over the line later that acknowledged nothing of ours: our own late acknowledgement. Or it was not
    // put off, because this end does not answer at once: then what came within this jiffy came after the answer before.
    let theirs = later(c.touched_us) || !c.prompt;
    if theirs { LastWord::Theirs(received_ns) } else { LastWord::Untold }
}

#[cfg(test)]
pub(super) mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;
    use crate::probes::connections::Sums;

    pub(crate) const JIFFY: u64 = 4_000_000;

    /// A connection at 10 s, 2,500 jiffies, whose last data came and went so many jiffies ago; nothing is on its way.
    pub(crate) fn connection(received: u32, sent: u32) -> Connection {
        Connection {
            pid: 1,
            at_ns: 10_000_000_000,
            now: 2_500,
            received_at: 2_500 - received,
            sent_at: 2_500 - sent,
            touched_us: 10_000_000 - u64::from(received) * 4_000,
            delivered_us: 10_000_000 - u64::from(received) * 4_000,
            unread: 0,
            unsaid: 0,
            in_flight: 0,
            unsent: 0,
            prompt: true,
            heard: true,
            said: true,
            opening: false,
            closed: false,
            awaited: false,
            sums: Sums::default(),
            cwnd: 10,
            sending: None,
            local_port: 80,
            remote_port: 5_000,
            peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
        }
    }

    #[test]
    fn the_later_one_spoke_last() {
        assert_eq!(last_word(&connection(5, 9), JIFFY), LastWord::Theirs(5 * JIFFY));
        assert_eq!(last_word(&connection(9, 5), JIFFY), LastWord::Ours(5 * JIFFY));
    }

    #[test]
    fn within_a_jiffy_acknowledgements_tell() {
        let quick = connection(7, 7);
        assert_eq!(last_word(&quick, JIFFY), LastWord::Untold);
        assert_eq!(last_word(&Connection { unsaid: 30, ..quick }, JIFFY), LastWord::Theirs(7 * JIFFY));
        assert_eq!(last_word(&Connection { in_flight: 30, ..quick }, JIFFY), LastWord::Ours(7 * JIFFY));
        let tardy = Connection { prompt: false, ..quick };
        assert_eq!(last_word(&tardy, JIFFY), LastWord::Theirs(7 * JIFFY));
        let opened = Connection { heard: false, said: false, ..tardy };
        assert_eq!(last_word(&opened, JIFFY), LastWord::Untold, "just opened");
        assert_eq!(last_word(&Connection { said: true, ..opened }, JIFFY), LastWord::Ours(7 * JIFFY), "asked at once");
        assert_eq!(last_word(&Connection { heard: true, ..opened }, JIFFY), LastWord::Theirs(7 * JIFFY));
        // 50 jiffies ago; 40 ms later somebody acknowledged.
        let slow = connection(50, 50);
        let late = 10_000_000 - 160_000;
        let ours = Connection { touched_us: late, ..slow };
        assert_eq!(last_word(&ours, JIFFY), LastWord::Theirs(50 * JIFFY));
        assert_eq!(last_word(&Connection { delivered_us: late, ..ours }, JIFFY), LastWord::Ours(50 * JIFFY));
    }

    /// Its end came some time after the answer and was acknowledged: that is no question. A question before it is one.
    #[test]
    fn who_has_closed_its_side_asked_nothing_by_that() {
        let touched_us = 10_000_000 - 160_000;
        let closed = Connection { closed: true, touched_us, ..connection(50, 50) };
        assert_eq!(last_word(&closed, JIFFY), LastWord::Untold);
        assert_eq!(last_word(&Connection { unsaid: 30, ..closed }, JIFFY), LastWord::Theirs(50 * JIFFY));
        assert_eq!(last_word(&Connection { received_at: 2_460, ..closed }, JIFFY), LastWord::Theirs(40 * JIFFY));
    }
}
