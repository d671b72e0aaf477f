// SPDX-License-Identifier: Apache-2.0
//! What keeps a connection from sending: at a look, and from one look to the next.

use std::mem::take;
use std::net::IpAddr;

use recording::tables;

use crate::probes::connections::{Connection, Sending, Sums, option};

/// Why bytes that were written are not sent yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    Nagle,
    Cork,
    PeersWindow,
    CongestionWindow,
    /// The congestion control spreads it over time.
    Pacing,
    /// The queue of the interface, a write that goes on at this moment.
    Other,
}

/// The kernel's own order when it decides whether to send (`tcp_write_xmit`).
pub(super) fn held(c: &Connection, s: &Sending) -> Option<Held> {
    if c.unsent == 0 {
        return None;
    }
    if s.packets >= s.cwnd {
        return Some(Held::CongestionWindow);
    }
    if c.in_flight.saturating_add(c.unsent.min(s.mss)) > s.window {
        return Some(Held::PeersWindow);
    }
    let small = c.unsent < s.mss;
    if small && s.options & option::CORK > 0 {
        return Some(Held::Cork);
    }
    // What is being repaired waits for that, whatever the options say.
    let overruled = s.options & (option::NODELAY | option::PUSH) > 0 || s.repairing > 0;
    if small && s.partial && !overruled {
        return Some(Held::Nagle);
    }
    Some(if s.options & option::PACED > 0 { Held::Pacing } else { Held::Other })
}

/// A window in slow start grows by what is acknowledged: of a connection that begins, so many windows were at most.
const GROWN: u32 = 2;

/// Segments of the first window (RFC 6928). One that never was wider has not been needed so far.
const FIRST: u32 = 10;

/// A window that is so many times narrower than before, with nothing sent again, was made small after a pause.
const SHRUNK: u32 = 2;

/// Adds a look at a connection that is held by its congestion window, or the pace that follows from it, if it is in slow start.
fn add_slow_start(row: &mut tables::Connection, c: &Connection, s: &Sending, step: &Step) {
    let begins = s.acked <= s.cwnd.saturating_mul(s.mss).saturating_mul(GROWN);
    let is_new = c.sums.retransmits == 0 && (begins || s.cwnd.max(step.widest_cwnd) <= FIRST);
    let is_restarted = !is_new && step.widest_cwnd >= s.cwnd.saturating_mul(SHRUNK);
    if !s.slow_start || s.repairing > 0 || !is_new && !is_restarted {
        return;
    }
    row.slow_start += u64::from(is_new);
    row.restarted += u64::from(is_restarted);
    row.slow_start_cwnd += u64::from(s.cwnd);
    row.slow_start_unsent += u64::from(c.unsent);
}

/// Adds what a look shows of the sending side.
pub(super) fn add(row: &mut tables::Connection, c: &Connection, step: &Step, tick_ns: u64) {
    let Some(s) = c.sending else { return };
    match held(c, &s) {
        None => row.on_its_way += 1,
        Some(Held::Nagle) => {
            row.nagle += 1;
            row.nagle_ns += u64::from(c.now.wrapping_sub(c.sent_at)).saturating_mul(tick_ns);
        }
        Some(Held::Cork) => row.cork += 1,
        Some(Held::PeersWindow) => {
            row.rwnd += 1;
            row.window_bytes += u64::from(s.window);
            row.widest_bytes += u64::from(s.widest);
        }
        Some(Held::CongestionWindow) => {
            row.cwnd += 1;
            add_slow_start(row, c, &s, step);
        }
        Some(Held::Pacing) => {
            row.paced += 1;
            add_slow_start(row, c, &s, step);
        }
        Some(Held::Other) => row.other += 1,
    }
    let has = |bit: u32| u64::from(s.options & bit > 0);
    row.no_room += has(option::NO_ROOM);
    row.nodelay += has(option::NODELAY);
    row.keepalive += has(option::KEEPALIVE);
    row.own_sndbuf += has(option::OWN_SNDBUF);
    row.own_rcvbuf += has(option::OWN_RCVBUF);
    row.srtt_ns += u64::from(s.srtt_us) * 1_000;
    let rtt_ns = u64::from(s.min_rtt_us) * 1_000;
    // Before the first measurement the kernel has the largest number there.
    if s.min_rtt_us != u32::MAX && (row.min_rtt_ns == 0 || rtt_ns < row.min_rtt_ns) {
        row.min_rtt_ns = rtt_ns;
    }
}

/// What a connection has added up: since the look before, and since it was seen first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    since: Sums,
    so_far: [u32; 3],
    /// The congestion window at its widest since something was sent again, as far as looks met it.
    widest_cwnd: u32,
    /// More came, and nothing went out, where an answer was late: the first time.
    pub(super) went_on: bool,
    /// That was so now or before.
    is_known_to_go_on: bool,
}

/// Of the time in which a connection had something to send, one part in so many is what a user feels: then it is limited.
const FELT: u32 = 4;

/// Adds what the kernel had counted since the look before.
pub(super) fn add_sums(row: &mut tables::Connection, step: &Step, tick_ns: u64) {
    let [free, rwnd, sndbuf] = step.since.limited.map(u64::from);
    let segments = u64::from(step.since.segments);
    row.busy_ns += (free + rwnd + sndbuf) * tick_ns;
    row.rwnd_ns += rwnd * tick_ns;
    row.sndbuf_ns += sndbuf * tick_ns;
    row.retransmits += u64::from(step.since.retransmits);
    row.segments += segments;
    row.segments_out += u64::from(step.since.segments_out);
    // A question comes before what its answer meets: so far, not since the look before.
    let busy = step.so_far.into_iter().fold(0, u32::saturating_add);
    let is_limited = |by: u32| by > 0 && by.saturating_mul(FELT) >= busy;
    let [_, rwnd, sndbuf] = step.so_far;
    row.rwnd_segments += if is_limited(rwnd) { segments } else { 0 };
    row.sndbuf_segments += if is_limited(sndbuf) { segments } else { 0 };
}

/// What tells connections apart; looks are sorted by it.
type Key = (u16, u16, IpAddr);

fn key(c: &Connection) -> Key {
    (c.local_port, c.remote_port, c.peer)
}

/// A connection as the look before found it, and what came since the first one.
struct Known {
    key: Key,
    sums: Sums,
    so_far: [u32; 3],
    widest_cwnd: u32,
    /// An answer was.
    late: bool,
    /// It has been told already that more came there.
    went_on: bool,
}

/// The look before. There are as many as connections in it, so that nothing has to be bounded or forgotten.
#[derive(Default)]
pub(super) struct Before {
    at: Option<u32>,
    known: Vec<Known>,
}

impl Before {
    /// What came since, for each connection; nothing at the first look. `late` = in which of them an answer is.
    pub fn next(&mut self, found: &[Connection], late: impl Iterator<Item = bool>) -> Vec<Step> {
        let Some(first) = found.first() else { return Vec::new() };
        let passed = self.at.replace(first.now).map(|at| first.now.wrapping_sub(at));
        let mut before = take(&mut self.known).into_iter().peekable();
        let of = |c: &Connection| {
            while before.next_if(|known| known.key < key(c)).is_some() {}
            let then = before.next_if(|known| known.key == key(c));
            passed.map_or_else(Step::default, |passed| step(then, c, passed))
        };
        let steps: Vec<Step> = found.iter().map(of).collect();
        let known = found.iter().zip(&steps).zip(late);
        let known = known.map(|((c, step), late)| Known {
            key: key(c),
            sums: c.sums,
            so_far: step.so_far,
            widest_cwnd: step.widest_cwnd,
            late,
            went_on: step.is_known_to_go_on,
        });
        self.known = known.collect();
        steps
    }
}

/// The difference, no longer than the time between. Of a connection that was not there, or was another one at the same
/// ports, all that it has.
fn step(then: Option<Known>, c: &Connection, passed: u32) -> Step {
    let now = c.sums;
    let is_same = |then: &Known| then.sums.segments <= now.segments && then.sums.retransmits <= now.retransmits;
    let then = then.filter(is_same);
    let wider = then.as_ref().filter(|then| then.sums.retransmits == now.retransmits);
    let widest_cwnd = wider.map_or(0, |then| then.widest_cwnd).max(c.cwnd);
    let is_mute = c.now.wrapping_sub(c.sent_at) > passed;
    let was_late = then.as_ref().is_some_and(|then| then.late) && is_mute;
    let is_told = then.as_ref().is_some_and(|then| then.went_on);
    let (then, mut so_far) = then.map_or_else(Default::default, |known| (known.sums, known.so_far));
    let mut limited = now.limited;
    for ((now, then), so_far) in limited.iter_mut().zip(then.limited).zip(&mut so_far) {
        *now = now.saturating_sub(then).min(passed);
        *so_far = so_far.saturating_add(*now);
    }
    let since = Sums {
        limited,
        retransmits: now.retransmits - then.retransmits,
        segments: now.segments - then.segments,
        segments_out: now.segments_out.saturating_sub(then.segments_out),
    };
    let goes_on = was_late && since.segments > 0;
    Step { since, so_far, widest_cwnd, went_on: goes_on && !is_told, is_known_to_go_on: goes_on || is_told }
}

#[cfg(test)]
mod tests {

    use super::*;

    const FREE: Sending = Sending {
        options: 0,
        partial: true,
        repairing: 0,
        packets: 1,
        cwnd: 10,
        mss: 1448,
        window: 64_000,
        widest: 64_000,
        srtt_us: 20_000,
        min_rtt_us: 50,
        slow_start: true,
        acked: 0,
    };

    fn connection(local_port: u16, sums: Sums, now: u32) -> Connection {
        Connection {
            now,
            sent_at: now.wrapping_sub(5),
            in_flight: 12,
            unsent: 100,
            sums,
            sending: Some(FREE),
            local_port,
            remote_port: 9,
            ..super::super::last_word::tests::connection(0, 0)
        }
    }

    #[test]
    fn why_bytes_are_held() {
        let why = |change: fn(&mut Connection, &mut Sending)| {
            let (mut c, mut s) = (connection(80, Sums::default(), 100), FREE);
            change(&mut c, &mut s);
            held(&c, &s)
        };
        assert_eq!(why(|_, _| ()), Some(Held::Nagle));
        assert_eq!(why(|c, _| c.unsent = 0), None);
        assert_eq!(why(|_, s| s.options = option::NODELAY), Some(Held::Other), "a write that goes on");
        assert_eq!(why(|_, s| s.options = option::CORK), Some(Held::Cork));
        assert_eq!(why(|_, s| s.partial = false), Some(Held::Other), "only full segments are on their way");
        assert_eq!(why(|_, s| s.repairing = 1), Some(Held::Other), "a segment was lost");
        assert_eq!(why(|_, s| s.cwnd = 1), Some(Held::CongestionWindow));
        assert_eq!(why(|_, s| s.window = 50), Some(Held::PeersWindow));
        assert_eq!(why(|c, s| (c.in_flight, s.packets, s.window) = (0, 0, 0)), Some(Held::PeersWindow), "it is shut");
        assert_eq!(why(|c, _| c.unsent = 5_000), Some(Held::Other), "more than a segment");
        let paced = |c: &mut Connection, s: &mut Sending| (c.unsent, s.options) = (5_000, option::PACED);
        assert_eq!(why(paced), Some(Held::Pacing));
    }

    #[test]
    fn a_look_is_added_up() {
        let mut row = tables::Connection::default();
        let held = connection(80, Sums::default(), 100);
        add(&mut row, &held, &Step::default(), 4_000_000);
        add(&mut row, &Connection { unsent: 0, ..held }, &Step::default(), 4_000_000);
        add(&mut row, &Connection { sending: None, ..held }, &Step::default(), 4_000_000);
        assert_eq!((row.nagle, row.nagle_ns, row.on_its_way), (1, 20_000_000, 1));
        assert_eq!((row.srtt_ns, row.min_rtt_ns), (40_000_000, 50_000));
    }

    #[test]
    fn windows_that_begin_or_begin_again() {
        let seen = |acked: u32, widest_cwnd: u32, change: fn(&mut Connection, &mut Sending)| {
            let mut c = Connection { unsent: 50_000, ..connection(80, Sums::default(), 100) };
            let mut s = Sending { cwnd: 20, packets: 20, acked, ..FREE };
            change(&mut c, &mut s);
            let mut row = tables::Connection::default();
            add(&mut row, &Connection { sending: Some(s), ..c }, &Step { widest_cwnd, ..Step::default() }, 4_000_000);
            (row.cwnd, row.slow_start, row.restarted, row.slow_start_cwnd)
        };
        assert_eq!(seen(10_000, 20, |_, _| ()), (1, 1, 0, 20));
        assert_eq!(seen(900_000, 80, |_, _| ()), (1, 0, 1, 20), "after a pause");
        assert_eq!(seen(900_000, 30, |_, _| ()), (1, 0, 0, 0), "as wide as the way");
        assert_eq!(seen(10_000, 20, |_, s| s.slow_start = false), (1, 0, 0, 0), "it met a limit");
        assert_eq!(seen(10_000, 20, |c, _| c.sums.retransmits = 1), (1, 0, 0, 0), "a segment was lost");
        let paced = seen(10_000, 20, |_, s| (s.packets, s.options) = (2, option::PACED));
        assert_eq!(paced, (0, 1, 0, 20), "it is sent as slowly as the window is narrow");
        let never_needed = seen(900_000, 10, |_, s| (s.cwnd, s.packets) = (10, 10));
        assert_eq!(never_needed, (1, 1, 0, 10));
    }

    #[test]
    fn what_came_between_two_looks() {
        let sums = |limited: [u32; 3], segments: u32| Sums { limited, segments, segments_out: segments * 2, ..Sums::default() };
        let mut before = Before::default();
        let first = [connection(80, sums([9, 9, 9], 9), 100), connection(82, sums([5, 0, 0], 50), 100)];
        assert_eq!(
            before.next(&first, [false; 2].into_iter()),
            [Step::default(); 2],
            "what was before the capture is nobody's"
        );
        let second = [(80, sums([10, 30, 9], 11)), (81, sums([400, 0, 0], 3)), (82, sums([1, 0, 0], 2))];
        let steps = before.next(&second.map(|(port, sums)| connection(port, sums, 125)), [false; 9].into_iter());
        assert_eq!(steps[0].since, sums([1, 21, 0], 2));
        assert_eq!(steps[1].since, sums([25, 0, 0], 3), "a new one, but no longer than the time between");
        assert_eq!(steps[2].since, sums([1, 0, 0], 2), "another one at the same ports");
        let mut row = tables::Connection::default();
        steps.iter().for_each(|step| add_sums(&mut row, step, 4_000_000));
        assert_eq!((row.busy_ns, row.rwnd_ns, row.segments, row.rwnd_segments), (192_000_000, 84_000_000, 7, 2));
        let third = before.next(&[connection(80, sums([40, 30, 9], 12), 155)], [false].into_iter());
        assert_eq!((third[0].since, third[0].so_far), (sums([30, 0, 0], 1), [31, 21, 0]));
        add_sums(&mut row, &third[0], 4_000_000);
        assert_eq!(row.rwnd_segments, 3, "it is limited, if not at this moment");
    }
}
