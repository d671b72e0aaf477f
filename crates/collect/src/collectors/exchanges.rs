// SPDX-License-Identifier: Apache-2.0
//! Exchanges by slice: how long clients waited for the target, and the target for those that it asks.

mod bursts;
mod labels;

use anyhow::Result;
use recording::tables::{self, Gap, Process};
use recording::{Tables, role};

use crate::collector::{Collector, Kind, Shared, SliceEnd, Slot, Start};
use crate::plan::Role;
use crate::probes::Probe;
use crate::probes::exchanges::{self, Group, Histogram};
use crate::target::tcp_ports_of;
use bursts::Bursts;
use labels::Labels;

/// Runs of the hooks in a second, on average, that nobody notices: some 4 ms of CPU time. A service with more of them is
/// followed for a slice, and then left alone for some: whole slices, because in a shorter time long exchanges do not end.
const HITS: u64 = 25_000;
/// The same of a load generator, some 4 % of its CPU time: nobody waits for it, and what it did second by second is the question.
const HITS_OF_GENERATOR: u64 = 250_000;
/// Slices that are left out for each that is followed, at most.
const MOST_LEFT_OUT: u64 = 9;
/// What a run for a bystander counts, of one for the target: the bystander's share of so many is small, and few answers of the target's
/// tell little.
const OF_A_BYSTANDERS: u64 = 4;
/// Slices that are followed one after the other, at most, before some are left out, and of what has begun in them, what is still
/// without an answer, if it is worth to go on: what takes longer than is followed is never seen whole.
const LONGEST: u64 = 3;
const STILL_OPEN: f64 = 0.01;

/// Slices in which no client was answered, after which none is expected. The requests that stand through such a slice are told only if
/// the one in which they are answered is told in full, and who is not answered then may well be later.
const QUIET: u64 = 5;

const MORE_PEERS: &str = "the target asks more peers than are told apart: those that it met last are told together as `others`, and none of \
                          them is named";
const MORE_PORTS: &str = "clients ask at more ports than are told apart: those at which they came last are told together as `others`";

/// Before Linux 6.16.
const WRITES_ARE_SEEN_DONE: &str =
    "this kernel shows a write to a socket when it is done, not when it begins (Linux 6.16 and later do): an answer that waits for \
     room in its send buffer seems to come so much later, and whether Nagle's algorithm holds one back is told by looks alone";

/// What is known of it before it is started.
pub const KIND: Kind = Kind {
    gap: "exchange",
    facility: Some(("exchanges", "how long requests take; without them response times are unknown")),
    tables: |_| (),
    start: |start, slot| Ok(Box::new(Exchanges::start(start, slot)?)),
};

/// The probe, and which slices are followed.
struct Exchanges<'o> {
    probe: exchanges::Exchanges<'o>,
    from_ns: u64,
    hits: u64,
    /// Runs in a second above which slices are left out.
    most_hits: u64,
    /// Slices that are still to be left out; 0 = this one is followed.
    left_out: u64,
    /// What is followed without a gap.
    stretch: Stretch,
    /// After each that is followed, at least so many are left out.
    least_left_out: u64,
    /// All that come are left out.
    is_stopped: bool,
    /// None where there are no wakeups.
    bursts: Option<Bursts>,
    /// None where no labels are wanted.
    labels: Option<Labels>,
    /// Rows of the slice so far.
    requests: Vec<tables::Request>,
    /// Slices since clients were last answered something, of those that were followed. Whom nobody asks has no requests to be told in
    /// full.
    quiet: u64,
    /// They were in any slice.
    was_asked: bool,
}

impl<'o> Exchanges<'o> {
    fn start(start: &mut Start<'_, 'o>, slot: Slot<'o>) -> Result<Self> {
        let bursts = start.bursts.take();
        let probe =
            exchanges::Exchanges::load(slot, start.ledger, bursts.as_ref(), start.listening(), start.plan.labels)?;
        Ok(Self {
            probe,
            from_ns: 0,
            hits: 0,
            most_hits: match start.plan.role {
                Role::Service => HITS,
                Role::Generator => HITS_OF_GENERATOR,
            },
            left_out: 0,
            stretch: Stretch::default(),
            least_left_out: 0,
            is_stopped: false,
            bursts: bursts.map(Bursts::new),
            labels: start.plan.labels.then(Labels::default),
            requests: Vec::new(),
            quiet: 0,
            was_asked: false,
        })
    }

    /// Goes on after slices that were left out.
    fn resume(&mut self, t_ns: u64) -> Result<()> {
        self.probe.follow()?;
        (self.from_ns, self.hits) = (t_ns, self.probe.hits()?);
        Ok(())
    }
}

impl Exchanges<'_> {
    /// Empties the ring.
    fn take(&mut self, start_ns: u64) -> Result<()> {
        for request in self.probe.requests()? {
            let label = self.labels.as_mut().map_or_else(String::new, |labels| labels.add(&request));
            if request.told {
                self.requests.push(bursts::row(start_ns, request, label));
            }
        }
        Ok(())
    }
}

impl Collector for Exchanges<'_> {
    fn begin(&mut self, shared: &mut Shared<'_>, _: &mut Tables) -> Result<()> {
        let listens = shared.plan.target.listen.iter().any(|socket| socket.starts_with("tcp "));
        self.quiet = if listens { 0 } else { QUIET };
        self.bursts.iter_mut().try_for_each(|bursts| bursts.slice(shared.start_ns, listens).map(drop))
    }

    fn drain(&mut self, shared: &mut Shared<'_>) -> Result<()> {
        if self.labels.is_some() {
            self.take(shared.start_ns)?;
        }
        // A slice that is left out says nothing of how many there are.
        if let Some(labels) = self.labels.as_mut().filter(|_| self.left_out == 0) {
            self.probe.open_every(labels.pace());
        }
        Ok(())
    }

    /// Writes what was seen, and when; decides about the next slice.
    fn slice(&mut self, shared: &mut Shared<'_>, end: &SliceEnd, tables: &mut Tables) -> Result<()> {
        let t_ns = end.t_ns;
        let (mut rows, mut windows) = (Vec::new(), Vec::new());
        if self.left_out > 0 {
            self.left_out -= u64::from(!self.is_stopped);
            if self.left_out == 0 && !end.last {
                self.resume(t_ns)?;
            }
        } else {
            let length_ns = t_ns.saturating_sub(self.from_ns);
            windows.push(tables::ExchangeWindow { t_ns, length_ns });
            let (groups, hits) = (self.probe.fresh()?, self.probe.hits()?);
            let own = groups.iter().map(runs_for).sum();
            let each = slices_to_leave(weighed(hits.saturating_sub(self.hits), own), length_ns, self.most_hits);
            self.left_out = self.stretch.after(&groups, each.max(self.least_left_out));
            rows.extend(groups.into_iter().flat_map(|group| of_group(t_ns, group)));
            if self.left_out > 0 {
                self.probe.detach();
            }
            (self.from_ns, self.hits) = (t_ns, hits);
            let is_asked = rows.iter().any(|row| row.is_accepted());
            self.quiet = if is_asked { 0 } else { self.quiet.saturating_add(1) };
            self.was_asked |= is_asked;
        }
        tables.extend(rows);
        tables.extend(windows);
        self.take(shared.start_ns)?;
        let mut requests = std::mem::take(&mut self.requests);
        // Hooks come off one after the other: what the last ones see has no waits.
        requests.retain(|request| !end.last || request.t_ns <= t_ns);
        tables.extend(requests);
        if let Some(labels) = &mut self.labels {
            tables.extend(labels.rows(t_ns));
        }
        if let Some(bursts) = &mut self.bursts {
            let is_told = shared.has_wakeups && !self.is_stopped;
            let burst = bursts.slice(shared.start_ns, is_told && self.left_out == 0 && self.quiet < QUIET)?;
            // One in which waits or exchanges stopped being told is no burst of full detail.
            tables.extend(burst.into_iter().filter(|_| is_told));
        }
        Ok(())
    }

    /// Leaves who has requests in hand, if they are followed now.
    fn conclude(&mut self, shared: &mut Shared<'_>) -> Result<()> {
        if self.left_out == 0 {
            shared.in_hand = self.probe.in_hand()?;
        }
        Ok(())
    }

    fn come(&mut self, processes: &[Process]) {
        self.probe.listen(tcp_ports_of(processes));
    }

    /// That answers are seen late, where the kernel shows writes only when they are done; and that there are more peers than are told
    /// apart.
    fn gaps(&mut self, _: &Shared<'_>) -> Result<Vec<Gap>> {
        let late = || Gap::partial("where answers begin", 0.0, WRITES_ARE_SEEN_DONE);
        let (peers, ports) = self.probe.has_more();
        let peers = peers.then(|| Gap::partial("response times of single peers", 0.0, MORE_PEERS));
        let ports = ports.then(|| Gap::partial("response times of single ports", 0.0, MORE_PORTS));
        let late = (self.was_asked && !self.probe.sees_writes_begin()).then(late);
        Ok([late, peers, ports].into_iter().flatten().collect())
    }

    fn probe<'a>(&'a self, _: &'a Shared<'_>) -> Option<&'a dyn Probe> {
        Some(&self.probe)
    }

    fn probe_mut<'a>(&'a mut self, _: &'a mut Shared<'_>) -> Option<&'a mut dyn Probe> {
        Some(&mut self.probe)
    }

    /// The service is left alone for longer.
    fn shed(&mut self) -> bool {
        let longer = more_left_out(self.least_left_out);
        std::mem::replace(&mut self.least_left_out, longer) < longer
    }

    /// Leaves out all slices from this one on.
    fn stop(&mut self, _: &mut Shared<'_>) -> bool {
        self.probe.detach();
        (self.is_stopped, self.left_out) = (true, 1);
        true
    }
}

/// Slices that are followed one after the other.
#[derive(Default)]
struct Stretch {
    slices: u64,
    began: u64,
    ended: u64,
}

impl Stretch {
    /// How many slices are to be left out now, of which `each` are due for each that was followed; 0 = it goes on.
    fn after(&mut self, groups: &[Group], each: u64) -> u64 {
        if each == 0 {
            *self = Self::default();
            return 0;
        }
        self.slices += 1;
        self.began += groups.iter().map(|group| group.began).sum::<u64>();
        self.ended += groups.iter().map(|group| group.response.count + group.unanswered).sum::<u64>();
        let open = self.began.saturating_sub(self.ended);
        if self.slices < LONGEST && open as f64 >= (self.began as f64 * STILL_OPEN).max(1.0) {
            return 0;
        }
        let followed = std::mem::take(self).slices.min(LONGEST);
        each * followed
    }
}

/// Runs of the hooks for a handshake of TLS: two reads, and two writes.
const OF_A_HANDSHAKE: u64 = 4;

/// Runs of the hooks for a group of the target's: about one for each read and each write.
fn runs_for(group: &Group) -> u64 {
    group.began + group.response.count + group.more + group.pushed + group.handshake.count * OF_A_HANDSHAKE
}

/// Runs, of which so many were for the target, in runs for the target.
fn weighed(runs: u64, own: u64) -> u64 {
    let own = own.min(runs);
    own + (runs - own) / OF_A_BYSTANDERS
}

/// One step further: 1, 3, 7 slices, to the most that are left out.
fn more_left_out(slices: u64) -> u64 {
    (slices * 2 + 1).min(MOST_LEFT_OUT)
}

/// How many slices are left out after one of this length with so many runs, of which there may be `most` a second.
fn slices_to_leave(hits: u64, length_ns: u64, most: u64) -> u64 {
    let a_second = (hits as f64 * 1e9 / (length_ns.max(1) as f64)) as u64;
    (a_second / most).min(MOST_LEFT_OUT)
}

fn of_group(t_ns: u64, group: Group) -> Vec<tables::Exchange> {
    let role = if group.accepted { role::ACCEPTED } else { role::MADE };
    let peer = group.peer.map_or(role::OTHERS.to_string(), |peer| peer.to_string());
    let of_all = tables::Exchange {
        t_ns,
        role: role.into(),
        port: group.port.into(),
        peer: if group.accepted { String::new() } else { peer },
        ..tables::Exchange::default()
    };
    let row = |stage: &str, h: Histogram| {
        let (length_ns, counts) = h.bins.into_iter().unzip();
        tables::Exchange { stage: stage.into(), count: h.count, sum_ns: h.sum_ns, length_ns, counts, ..of_all.clone() }
    };
    let whole = tables::Exchange {
        began: group.began,
        unanswered: group.unanswered,
        hung_up: group.hung_up,
        dismissed: group.dismissed,
        more: group.more,
        pushed: group.pushed,
        continued: group.continued,
        continued_ns: group.continued_ns,
        apart: group.apart,
        apart_ns: group.apart_ns,
        streams: group.streams,
        streams_ns: group.streams_ns,
        stood_ns: group.stood_ns,
        stood: group.stood,
        nagled: group.nagled,
        ..row("response", group.response)
    };
    let parts = [
        ("first_read", group.first_read),
        ("read_wait", group.read_wait),
        ("service", group.service),
        ("rest", group.rest),
        ("handshake", group.handshake),
    ];
    let parts = parts.into_iter().filter(|(_, h)| h.count > 0).map(|(stage, h)| row(stage, h));
    std::iter::once(whole).chain(parts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_says_much_is_left_alone_for_a_while() {
        let after = |hits| slices_to_leave(hits, 1_000_000_000, HITS);
        assert_eq!((after(0), after(24_000), after(60_000), after(10_000_000)), (0, 0, 2, 9));
        assert_eq!(slices_to_leave(60_000, 2_000_000_000, HITS), 1);
        assert_eq!(slices_to_leave(60_000, 1_000_000_000, HITS_OF_GENERATOR), 0);
    }

    #[test]
    fn bystanders_count_less() {
        assert_eq!((weighed(60_000, 60_000), weighed(60_000, 0), weighed(60_000, 80_000)), (60_000, 15_000, 60_000));
    }

    #[test]
    fn what_is_still_open_is_followed_for_longer() {
        let slice = |began, count| Group { began, response: Histogram { count, ..Histogram::default() }, ..Group::default() };
        let quick = || [slice(50_000, 49_990)];
        let mut stretch = Stretch::default();
        assert_eq!((stretch.after(&quick(), 4), stretch.after(&quick(), 4), stretch.after(&quick(), 0)), (4, 4, 0));
        assert_eq!([0, 0, 0, 0, 4].map(|each| stretch.after(&quick(), each)), [0, 0, 0, 0, 4], "one busy slice after calm ones");
        let slow = || [slice(1_000, 500)];
        let mut stretch = Stretch::default();
        assert_eq!([0; 4].map(|_| stretch.after(&slow(), 4)), [0, 0, 12, 0], "three, and their part");
        let mut stretch = Stretch::default();
        assert_eq!([slow(), [slice(0, 500)]].map(|slice| stretch.after(&slice, 4)), [0, 8], "all have come");
    }

    #[test]
    fn whoever_is_to_be_left_alone_for_longer_is_so_to_a_bound() {
        let steps = std::iter::successors(Some(0), |slices| Some(more_left_out(*slices)));
        assert_eq!(steps.take(6).collect::<Vec<_>>(), [0, 1, 3, 7, 9, 9]);
    }

    #[test]
    fn a_group_is_a_row_for_each_stage() {
        let response = Histogram { count: 3, sum_ns: 90, bins: vec![(10, 2), (70, 1)] };
        let accepted = Group { accepted: true, port: 80, response: response.clone(), began: 4, ..Group::default() };
        let rows = of_group(7, Group { service: response.clone(), ..accepted });
        let told: Vec<_> = rows.iter().map(|r| (r.stage.as_str(), r.role.as_str(), r.port, r.count, r.began)).collect();
        assert_eq!(told, [("response", "accepted", 80, 3, 4), ("service", "accepted", 80, 3, 0)]);
        assert_eq!(
            (&rows[0].length_ns[..], &rows[0].counts[..], rows[0].peer.as_str()),
            (&[10, 70][..], &[2, 1][..], "")
        );
        let made = of_group(7, Group { response, ..Group::default() });
        assert_eq!((made[0].role.as_str(), made[0].peer.as_str()), ("made", "others"));
    }
}
