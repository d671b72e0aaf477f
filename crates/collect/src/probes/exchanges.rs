// SPDX-License-Identifier: Apache-2.0
//! Exchanges on the target's TCP connections: how long each took from what was asked to its answer, as histograms by port
//! and peer. The kernel adds them up; what is new is what a slice gets. In a burst of full detail it tells single ones too.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Read as _;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

use anyhow::{Context, Result, bail};
use libbpf_rs::skel::Skel;
use libbpf_rs::{Iter, Link, MapCore, MapFlags, OpenObject, ProgramMut, RingBuffer, RingBufferBuilder};
use plain::Plain;

use super::ledger::Ledger;
use super::wakeups::Bursts;
use super::{Kept, Probe, address, kernel_map, kernel_types, mark_listening, read_all, refusal, run_stats};
use crate::{clock, courtesy};

mod groups;
mod histogram;
mod skel {
    #![allow(missing_docs, clippy::all, clippy::pedantic, clippy::unwrap_used, clippy::expect_used)]
    include!(concat!(env!("OUT_DIR"), "/exchanges.skel.rs"));
}

pub use groups::Group;
use groups::difference;
pub use histogram::Histogram;
use skel::types;

/// One exchange from end to end; times are CLOCK_MONOTONIC ns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// A client asked.
    pub accepted: bool,
    /// A hello of TLS, and what was said to it.
    pub handshake: bool,
    /// The target's own port where a client asked.
    pub port: u16,
    /// The other end.
    pub peer: SocketAddr,
    /// Process of the target.
    pub tgid: u32,
    /// The first byte arrived, or was written.
    pub began_ns: u64,
    /// Thread that read the question, or asked it.
    pub began_tid: u32,
    /// The question was read, or the answer to it.
    pub read_ns: u64,
    /// The last bytes of a client's question came, after the first were read; 0 = all were there.
    pub rest_ns: u64,
    /// The answer was begun, or arrived.
    pub ended_ns: u64,
    /// Thread that answered, or read the answer.
    pub ended_tid: u32,
    /// It ended in a burst.
    pub told: bool,
    /// Its first bytes, where they were wanted of it.
    pub opening: Option<Opening>,
}

/// The first bytes of what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// How many exchanges it stands for; 0 = it was taken for the burst alone.
    pub weight: u32,
    /// Its port or peer is told apart from others.
    pub is_apart: bool,
    /// How many bytes there are; none = they could not be read.
    pub length: usize,
    /// They.
    pub bytes: [u8; 128],
    /// How the answer begins; none = that could not be read, or is shorter than one that failed.
    pub answer: Option<[u8; 12]>,
}

impl Opening {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length.min(self.bytes.len())]
    }
}

/// Requests of clients that one thread has read, and that nobody has answered yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InHand {
    /// How many.
    pub requests: u32,
    /// When the first of them began, CLOCK_MONOTONIC ns.
    pub since_ns: u64,
}

/// Of them, at most: more say no more.
const MOST_IN_HAND: usize = 100_000;

// SAFETY: integers only, and no padding that is read: any bytes are valid. Generated from the C source.
unsafe impl Plain for types::group_key {}
// SAFETY: as above.
unsafe impl Plain for types::in_hand {}
// SAFETY: as above.
unsafe impl Plain for types::request {}
// SAFETY: as above.
unsafe impl Plain for types::opened_request {}
// SAFETY: as above.
unsafe impl Plain for types::exchange_counts {}

/// Bytes of the ring where requests are told with their openings.
const LARGE_RING: u32 = 1 << 20;

/// The loaded and attached probe.
pub struct Exchanges<'o> {
    skel: skel::ExchangesSkel<'o>,
    ring: RingBuffer<'o>,
    requests: Requests,
    links: Vec<Link>,
    /// What was told so far, by the number of the group.
    told: Vec<types::group>,
}

impl<'o> Exchanges<'o> {
    /// Loads the programs beside a ledger, whose threads' connections they look at, and attaches them. `bursts` are those of
    /// the wakeups; at `ports` somebody listens. With openings, requests get their first bytes.
    ///
    /// # Errors
    /// The kernel refuses, or shows no writes to sockets (before 6.3).
    pub fn load(
        storage: &'o mut MaybeUninit<OpenObject>,
        ledger: &Ledger<'_>,
        bursts: Option<&Bursts>,
        ports: impl IntoIterator<Item = u16>,
        with_openings: bool,
    ) -> Result<Self> {
        let mut open = refusal::open(skel::ExchangesSkelBuilder::default(), storage, "the programs of exchanges")?;
        open.maps.threads.reuse_fd(ledger.threads().as_fd()).context("failed to share the map of threads")?;
        if let Some(bursts) = bursts {
            open.maps.bursts.reuse_fd(bursts.map.as_fd()).context("failed to share the map of bursts")?;
        }
        let has_write = kernel_types::has_hook("tcp_sendmsg_locked");
        if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
            rodata.task_type = kernel_types::task();
            rodata.writes_begin = has_write;
            rodata.sock_type = kernel_types::sock();
            rodata.tick_ns = clock::tick_ns();
            rodata.with_openings = with_openings;
        }
        if with_openings {
            // Room for all that the kernel may label, at its slowing pace, before a look that comes late.
            open.maps.requests.set_max_entries(LARGE_RING).context("failed to size the ring of requests")?;
        }
        if !has_write && !kernel_types::has_hook("sock_send_length") {
            bail!("this kernel has no tracepoint at which writes to sockets show (Linux 6.3 and later have one)");
        }
        open.progs.on_write.set_autoload(has_write);
        open.progs.on_sent.set_autoload(!has_write);
        let skel = refusal::load(open, "the kernel refused the programs of exchanges")?;
        let (requests, ring) = collected(&skel.maps.requests)?;
        let mut loaded = Self { skel, ring, requests, links: Vec::new(), told: Vec::new() };
        loaded.listen(ports); // before a connection is met
        loaded.follow()?;
        Ok(loaded)
    }

    /// Follows connections from now on; what was said before, or since [`Probe::detach`], is not known.
    ///
    /// # Errors
    /// The kernel refuses a hook.
    pub fn follow(&mut self) -> Result<()> {
        let attach = |program: &ProgramMut<'_>| {
            program.attach().with_context(|| format!("failed to attach `{}`", program.name().to_string_lossy()))
        };
        let programs = [&self.skel.progs.on_read, self.write(), &self.skel.progs.on_state];
        self.links = courtesy::urgently(|| programs.into_iter().map(attach).collect::<Result<_>>())?;
        // One hook comes after the other: of what began before all were there, the answer may have gone unseen. And nobody knows who
        // was answered before: a time without an answer begins here at the earliest.
        let now = clock::monotonic_ns();
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            bss.stretch = bss.stretch.wrapping_add(1);
            bss.all_groups.iter_mut().for_each(|group| group.answered = group.answered.max(now));
        }
        self.fresh().map(drop)
    }

    /// Whether there were more peers that the target asks, and more ports at which clients ask, than are told apart: those that came last
    /// are told together.
    pub fn has_more(&self) -> (bool, bool) {
        let any = |group: Option<&types::group>| group.is_some_and(|group| group.began > 0);
        let groups = self.skel.maps.bss_data.as_deref().map_or(&[][..], |bss| &bss.all_groups[..]);
        (any(groups.first()), any(groups.last()))
    }

    /// How often its programs have run.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn hits(&self) -> Result<u64> {
        let c = self.counts()?;
        Ok(c.reads + c.writes + c.states)
    }

    /// Says at which more ports somebody listens. A connection that was met before stays what it was taken for.
    pub fn listen(&mut self, ports: impl IntoIterator<Item = u16>) {
        let Some(bss) = self.skel.maps.bss_data.as_deref_mut() else { return };
        mark_listening(&mut bss.listening, ports);
    }

    /// What is new since the last call, by group; groups without anything new are left out.
    ///
    /// # Errors
    /// The map of groups cannot be read.
    pub fn fresh(&mut self) -> Result<Vec<Group>> {
        let Some(bss) = self.skel.maps.bss_data.as_deref_mut() else { return Ok(Vec::new()) };
        let others = bss.all_groups.len() - 1;
        let used = usize::try_from(bss.last_group).unwrap_or(0).min(others - 1);
        self.told.resize(bss.all_groups.len(), types::group::default());
        let mut keys: Vec<Option<types::group_key>> = vec![None; bss.all_groups.len()];
        for key in self.skel.maps.groups.keys() {
            let number = self.skel.maps.groups.lookup(&key, MapFlags::ANY).context("failed to read the groups")?;
            let number = number.and_then(|bytes| Some(u32::from_ne_bytes(bytes.try_into().ok()?) as usize));
            if let Some(slot) = number.and_then(|at| keys.get_mut(at)) {
                *slot = kernel_map::row(&key);
            }
        }
        let mut all = Vec::new();
        for number in (0..=used).chain([others]) {
            let (key, now) = (keys[number].as_ref(), bss.all_groups[number]);
            // The longest since the last call: an answer that comes in between may be left out.
            bss.all_groups[number].stood_ns = 0;
            let accepted = key.map_or(number == others, |key| key.accepted != 0);
            let group = difference(key, accepted, &now, &self.told[number]);
            self.told[number] = now;
            if group.has_any() {
                all.push(group);
            }
        }
        Ok(all)
    }

    /// Takes the opening of one exchange in so many, at random; of those in bursts, that of each.
    pub fn open_every(&mut self, exchanges: u32) {
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            (bss.opening_every, bss.openings_begun) = (exchanges, 0);
        }
    }

    /// Exchanges that ended in bursts since the last call, and those whose opening was taken.
    ///
    /// # Errors
    /// The ring fails.
    pub fn requests(&self) -> Result<Vec<Request>> {
        self.ring.consume().context("failed to read the ring of requests")?;
        Ok(self.requests.take())
    }

    /// What is read and not answered at this moment, by the thread that read it.
    ///
    /// # Errors
    /// The iterator fails.
    pub fn in_hand(&self) -> Result<HashMap<u32, InHand>> {
        const ROW: usize = size_of::<types::in_hand>();
        let link = self.skel.progs.read_in_hand.attach_iter(self.skel.maps.exchanges.as_fd());
        let rows = Iter::new(&link.context("failed to attach the iterator over connections")?)?;
        let mut bytes = Vec::new();
        read_all(&mut rows.take((MOST_IN_HAND * ROW) as u64), &mut bytes).context("failed to read the connections")?;
        let mut by_thread: HashMap<u32, InHand> = HashMap::new();
        for row in bytes.chunks_exact(ROW).filter_map(kernel_map::row::<types::in_hand>) {
            let own = by_thread.entry(row.tid).or_insert(InHand { requests: 0, since_ns: row.began });
            own.requests += 1;
            own.since_ns = own.since_ns.min(row.began);
        }
        Ok(by_thread)
    }

    fn counts(&self) -> Result<types::exchange_counts> {
        let mut sum = types::exchange_counts::default();
        for c in kernel_map::per_cpu::<types::exchange_counts>(&self.skel.maps.exchange_counts)? {
            sum.reads += c.reads;
            sum.writes += c.writes;
            sum.states += c.states;
            sum.kept += c.kept;
            sum.lost += c.lost;
            sum.requests += c.requests;
            sum.requests_lost += c.requests_lost;
        }
        Ok(sum)
    }

    /// Whether a write is seen when it begins, and not only when it is over.
    pub fn sees_writes_begin(&self) -> bool {
        self.skel.progs.on_write.autoload()
    }

    fn write(&self) -> &ProgramMut<'_> {
        let progs = &self.skel.progs;
        if self.sees_writes_begin() { &progs.on_write } else { &progs.on_sent }
    }
}

impl Probe for Exchanges<'_> {
    fn programs(&self) -> Vec<(&'static str, BorrowedFd<'_>)> {
        let progs = &self.skel.progs;
        vec![
            ("socket_read", progs.on_read.as_fd()),
            ("socket_write", self.write().as_fd()),
            ("socket_state", progs.on_state.as_fd()),
        ]
    }

    fn runs(&self) -> Result<Vec<(&'static str, u64)>> {
        let c = self.counts()?;
        Ok(vec![("socket_read", c.reads), ("socket_write", c.writes), ("socket_state", c.states)])
    }

    fn losses(&self) -> Result<Vec<Kept>> {
        let c = self.counts()?;
        Ok(vec![
            Kept { what: "connections", kept: c.kept, lost: c.lost },
            Kept { what: "requests told in full", kept: c.requests, lost: c.requests_lost },
        ])
    }

    fn map_bytes(&self) -> u64 {
        run_stats::map_bytes(self.skel.object(), &["threads", "bursts"])
    }

    fn detach(&mut self) {
        self.links.clear();
    }
}

/// What a ring of requests holds, as it is read.
type Requests = Rc<RefCell<Vec<Request>>>;

fn collected<'o>(map: &dyn MapCore) -> Result<(Requests, RingBuffer<'o>)> {
    let requests = Requests::default();
    let sink = Rc::clone(&requests);
    let mut rings = RingBufferBuilder::new();
    rings.add(map, move |bytes| {
        sink.borrow_mut().extend(parse(bytes));
        0
    })?;
    Ok((requests, rings.build().context("failed to map the ring of requests")?))
}

/// One record of the ring; `None` = it is too short.
pub(crate) fn parse(bytes: &[u8]) -> Option<Request> {
    let Some(raw) = kernel_map::row::<types::opened_request>(bytes) else {
        return Some(request(&kernel_map::row(bytes)?));
    };
    let opening = Opening {
        weight: raw.weight,
        is_apart: raw.group > 0,
        length: raw.length as usize,
        bytes: raw.bytes,
        answer: (raw.answered > 0).then_some(raw.answer),
    };
    Some(Request { told: raw.told != 0, opening: Some(opening), ..request(&raw.request) })
}

fn request(raw: &types::request) -> Request {
    let accepted = raw.accepted != 0;
    Request {
        accepted,
        handshake: raw.hello != 0,
        port: if accepted { raw.ports.local } else { 0 },
        peer: address(raw.ports.family, raw.ports.peer, raw.ports.remote),
        tgid: raw.tgid,
        began_ns: raw.began,
        began_tid: raw.began_tid,
        read_ns: raw.read,
        rest_ns: raw.rest,
        ended_ns: raw.ended,
        ended_tid: raw.ended_tid,
        told: true,
        opening: None,
    }
}

/// A request at port 80, for tests.
#[cfg(test)]
pub(crate) fn nobody() -> Request {
    let raw = types::request { accepted: 1, ..types::request::default() };
    Request { port: 80, ..request(&raw) }
}
