// SPDX-License-Identifier: Apache-2.0
//! Errors that the kernel counted for the target: what was dropped, refused, reset or sent again, beside all that there was.
//! Most counters are those of a whole network namespace; where a source tells how many of them were the target's own, that
//! is said.

use recording::counters::{Key, cgroup_memory, netstat, snmp, snmp6, udp_sockets};

use super::broken_off::{Broken, BrokenOff};
use super::calls::Calls;
use super::connections::Connections;
use super::counters::Counters;
use super::deaths::Deaths;
use super::drops::Drops;
use super::handshakes::Handshakes;
use super::listening::Listening;
use super::losses::Losses;
use super::nobody_there::NobodyThere;
use super::refused::Refused;
use super::retransmits::Retransmits;
use super::turned_away::TurnedAway;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::statistics::share;
use recording::tables::{self, Wait};

/// Of an error: below, chance decides.
pub const MIN_COUNT: f64 = 10.0;

/// What can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Datagrams that nobody read in time.
    Unread,
    /// Segments that were sent again.
    SentAgain,
    /// Handshakes that met a full accept queue.
    QueueFull,
    /// Handshakes that met too many half-open ones.
    HalfOpenFull,
    /// Handshakes that a listener dropped for another reason.
    ListenDropped,
    /// Segments by which clients ask for a connection, dropped on this host before they came to the listener.
    Filtered,
    /// Connections that could not be made.
    NotMade,
    /// Connections of clients that the target closed before it had answered anything.
    TurnedAway,
    /// Connections to its port that the kernel refused: nobody listens at the address that was asked.
    NobodyThere,
    /// Questions of the target's that whom it asks broke off: by a reset, or by closing.
    BrokenOff,
    /// Requests that clients broke off by a reset.
    GivenUp,
    /// Requests of clients whose connection the target closed instead of answering.
    HungUp,
    /// Segments that came damaged.
    Damaged,
    /// Packets that connection tracking had no entry for.
    NotTracked,
    /// Processes of the target that crashed.
    Crashed,
    /// Processes killed for want of memory.
    Killed,
    /// Calls with this result.
    Failed(i64),
}

/// How often it did.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// What.
    pub kind: Kind,
    /// How often, in the target's network namespace.
    pub count: f64,
    /// Of these, the target's own; none = nothing tells.
    pub own: Option<f64>,
    /// What there was in all.
    pub of: f64,
}

impl Error {
    /// How often, as far as it may be the target's.
    pub fn at_most(&self) -> f64 {
        self.own.map_or(self.count, |own| own.min(self.count))
    }

    /// The same as a share of all.
    pub fn share(&self) -> f64 {
        share(self.at_most(), self.of)
    }
}

/// All that were counted.
pub struct Errors {
    /// Them, also those that never happened.
    pub all: Vec<Error>,
}

impl Fact for Errors {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let (counters, handshakes) = (case.fact::<Counters>()?, case.fact::<Handshakes>()?);
        let mut all = of_handshakes(case, &counters, &handshakes);
        all.push(unread(case, &counters));
        let (kills, tracked) = (killed(&counters), handshakes.tracking_drops);
        all.push(Error { kind: Kind::Killed, count: kills, own: Some(kills), of: kills });
        let crashed = case.fact::<Deaths>().map_or(0.0, |deaths| deaths.count);
        all.push(Error { kind: Kind::Crashed, count: crashed, own: Some(crashed), of: crashed });
        let begun = tracked + handshakes.taken + handshakes.made;
        all.push(Error { kind: Kind::NotTracked, count: tracked, own: None, of: begun });
        all.extend(failed(case));
        Ok(Self { all })
    }
}

fn of_handshakes(case: &Case, counters: &Counters, h: &Handshakes) -> Vec<Error> {
    let grew = |key: Key| counters.grew(key).unwrap_or(0.0);
    let half_open = h.half_open_drops + grew(netstat::REQ_Q_FULL_DO_COOKIES);
    let (failed, segments) = (grew(snmp::ATTEMPT_FAILS), grew(snmp::IN_SEGS));
    let again = case.fact::<Retransmits>().ok().map(|retransmits| retransmits.own_share() * h.again);
    let turned_away = case.fact::<TurnedAway>().map_or(0.0, |turned_away| turned_away.0);
    let nobody_there = case.fact::<NobodyThere>().map_or(0.0, |nobody_there| nobody_there.count);
    let filtered = case.fact::<Drops>().map_or(0.0, |drops| drops.begins_of_clients());
    // What connection tracking has no entry for is counted there.
    let filtered = (filtered - h.tracking_drops).max(0.0);
    // Who takes no connections has no handshakes.
    let on_tcp = case.fact::<Listening>().map_or(true, |listening| listening.on_tcp());
    let broken = case.fact::<BrokenOff>().map_or_else(|_| BrokenOff::default(), |broken| (*broken).clone());
    let error = |kind, count, own, of| Error { kind, count, own, of };
    let beside = |count: f64, own: Option<f64>| own.unwrap_or(count) + h.taken_beside(own);
    let (own, own_not_made) = (h.own_drops, not_made(case, failed, syns_again(case, h)));
    vec![
        // Not those whose first copy had arrived: nothing was lost.
        sent_again(case, h).unwrap_or_else(|| error(Kind::SentAgain, (h.again - h.needless).max(0.0), again, h.sent)),
        error(Kind::QueueFull, h.overflows, own, beside(h.overflows, own.map(|own| own.min(h.overflows)))),
        error(Kind::HalfOpenFull, half_open, (!on_tcp).then_some(0.0), half_open + h.taken),
        error(Kind::ListenDropped, h.other_drops(), own, beside(h.drops, own)),
        error(Kind::Filtered, filtered, Some(filtered), beside(filtered, Some(filtered))),
        error(Kind::TurnedAway, turned_away, Some(turned_away), taken_or_not(h, turned_away)),
        error(Kind::NobodyThere, nobody_there, Some(nobody_there), beside(nobody_there, Some(nobody_there))),
        broken_off(Kind::BrokenOff, &broken.by_peer),
        broken_off(Kind::GivenUp, &broken.by_clients),
        broken_off(Kind::HungUp, &broken.by_target),
        error(Kind::NotMade, failed, own_not_made, own_not_made.map_or(h.made + h.taken, |own| h.made.max(own))),
        error(Kind::Damaged, grew(snmp::IN_ERRS), None, segments),
    ]
}

fn broken_off(kind: Kind, broken: &Broken) -> Error {
    Error { kind, count: broken.count, own: Some(broken.count), of: broken.of }
}

/// Connections that clients made, with those that were turned away, which may have asked for something before.
fn taken_or_not(h: &Handshakes, turned_away: f64) -> f64 {
    (h.taken_beside(Some(turned_away)) + turned_away).min(h.taken).max(turned_away)
}

/// Towards one of those that the target talks to, if that is a larger part of what is sent there than of all.
fn sent_again(case: &Case, h: &Handshakes) -> Option<Error> {
    let losses = case.fact::<Losses>().ok()?;
    let worst = losses.worst(h)?;
    let lost = worst.again * (1.0 - share(h.needless, h.again));
    Some(Error { kind: Kind::SentAgain, count: lost, own: Some(lost), of: worst.sent })
}

/// Calls that the windows should have met: of so many, that all were missed is no chance. It decides only whose a count is; whether
/// that is too many, `judgement/errors` says.
const SURELY_MET: f64 = 4.0;

/// SYNs that were sent again, of everybody's.
fn syns_again(case: &Case, h: &Handshakes) -> f64 {
    case.fact::<Retransmits>().map_or(h.syn_again, |retransmits| retransmits.syns)
}

/// Of the connections that could not be made, those that may have been the target's; none = all of them. The counter has also the
/// half-open ones that a client resets, as health checks do: only what was reset while it asked, or had to ask again, can have failed.
fn not_made(case: &Case, failed: f64, asked_again: f64) -> Option<f64> {
    // Who asks nobody for a connection has none that fails; the half-open ones of its clients belong to another kind.
    if !asks(case) {
        return Some(0.0);
    }
    let refused = case.fact::<Refused>().ok()?;
    let is_neighbours = refused.seen == 0 && refused.expected >= SURELY_MET;
    let others = if is_neighbours { refused.by_others } else { 0.0 };
    let is_told = !case.recording.rows::<tables::Gap>().iter().any(|gap| gap.what == "retransmit");
    let most = if is_told { refused.by_asked + refused.by_others + asked_again } else { f64::INFINITY };
    Some((most.min(failed) - others).max(0.0))
}

/// Whether the target was ever seen to ask for a connection.
pub fn asks(case: &Case) -> bool {
    let is_connect = |number: i32| case.syscall(number) == "connect";
    case.recording.rows::<Wait>().iter().any(|row| is_connect(row.syscall))
        || case.fact::<Connections>().is_ok_and(|connections| connections.made.open > 0.0)
        || case.fact::<Calls>().is_ok_and(|calls| {
            calls.sampled.keys().chain(calls.counted.keys()).any(|(_, _, number)| is_connect(*number))
        })
}

fn unread(case: &Case, counters: &Counters) -> Error {
    let grew = |key: Key| counters.grew(key).unwrap_or(0.0);
    let of_v6 = grew(snmp6::RCVBUF_ERRORS) + grew(snmp6::MEM_ERRORS);
    let count = grew(snmp::RCVBUF_ERRORS) + grew(snmp::MEM_ERRORS) + of_v6;
    let own = counters.entities(udp_sockets::SOURCE).map(|socket| counters.delta(udp_sockets::DROPS, socket));
    let own = own.reduce(|sum, drops| Some(sum? + drops?));
    let has_none = || {
        case.fact::<Listening>().is_ok_and(|listening| !listening.on_udp() && (is_told(case) || !listening.on_tcp()))
    };
    let own = own.unwrap_or_else(|| has_none().then_some(0.0));
    Error { kind: Kind::Unread, count, own, of: grew(snmp::IN_DATAGRAMS) + grew(snmp6::IN_DATAGRAMS) + count }
}

/// Whether this recording says what single sockets dropped.
fn is_told(case: &Case) -> bool {
    case.fact::<Handshakes>().is_ok_and(|handshakes| handshakes.own_drops.is_some())
}

fn killed(counters: &Counters) -> f64 {
    let of_groups =
        counters.entities(cgroup_memory::SOURCE).filter_map(|group| counters.delta(cgroup_memory::OOM_KILL, group));
    of_groups.fold(0.0, f64::max)
}

/// Calls that failed, in the windows in which calls were counted.
fn failed(case: &Case) -> Vec<Error> {
    let Ok(calls) = case.fact::<Calls>() else { return Vec::new() };
    let mut by_error = std::collections::BTreeMap::<i64, u64>::new();
    for (&error, &count) in calls.counted.values().flat_map(|call| &call.results).filter(|(error, _)| **error < 0) {
        *by_error.entry(error).or_default() += count;
    }
    let error = |(error, count): (i64, u64)| {
        let count = count as f64;
        Error { kind: Kind::Failed(error), count, own: Some(count), of: count }
    };
    by_error.into_iter().map(error).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    fn error(kind: Kind, more: &str) -> Error {
        let text = format!(
            "meta host.arch=x86_64 length_ns=1e9 target.listen=[\"tcp 0.0.0.0:80\"]
             counter source=proc/net/snmp entity=Udp name=RcvbufErrors value=0
             counter t_ns=9 source=proc/net/snmp entity=Udp name=RcvbufErrors value=540
             counter source=proc/net/snmp entity=Udp name=InDatagrams value=0
             counter t_ns=9 source=proc/net/snmp entity=Udp name=InDatagrams value=460
             counter source=proc/net/snmp entity=Tcp name=AttemptFails value=0
             counter t_ns=9 source=proc/net/snmp entity=Tcp name=AttemptFails value=70
             {more}"
        );
        let errors = Case::new(&parse(&text).unwrap()).fact::<Errors>().unwrap();
        errors.all.iter().find(|error| error.kind == kind).unwrap().clone()
    }

    #[test]
    fn whose_they_are_where_that_is_told() {
        let all = error(Kind::Unread, "");
        assert_eq!((all.count, all.own, all.of, all.share()), (540.0, None, 1000.0, 0.54));
        let socket = "counter source=proc/net/udp entity=\"udp 0.0.0.0:5\" name=drops value=1
            counter t_ns=9 source=proc/net/udp entity=\"udp 0.0.0.0:5\" name=drops value=11";
        assert_eq!(error(Kind::Unread, socket).share(), 0.01);
        let of_v6 = "counter source=proc/net/snmp6 entity=Udp6 name=RcvbufErrors value=0
            counter t_ns=9 source=proc/net/snmp6 entity=Udp6 name=RcvbufErrors value=1000
            counter source=proc/net/snmp6 entity=Udp6 name=InDatagrams value=0
            counter t_ns=9 source=proc/net/snmp6 entity=Udp6 name=InDatagrams value=2000";
        assert_eq!((error(Kind::Unread, of_v6).count, error(Kind::Unread, of_v6).of), (1540.0, 4000.0));
        let tcp_only = "counter source=proc/net/listeners entity=\"tcp 0.0.0.0:80\" name=drops value=0";
        assert_eq!(error(Kind::Unread, tcp_only).at_most(), 0.0);
    }

    #[test]
    fn connections_that_it_never_asked_for() {
        assert_eq!(error(Kind::NotMade, "").at_most(), 0.0);
        let waits = "wait pid=1 tid=1 syscall=42 total_ns=9";
        let reset = "retransmit kind=reset_received state=SYN_SENT role=made peer=10.0.0.9:1 count=60";
        assert_eq!(error(Kind::NotMade, &format!("{waits}\n{reset}")).at_most(), 60.0);
        assert_eq!(error(Kind::NotMade, waits).at_most(), 0.0, "half-open health checks of its own port");
        let unseen = format!("{waits}\ngap what=retransmit reason=refused");
        assert_eq!(error(Kind::NotMade, &unseen).at_most(), 70.0, "nobody knows");
    }

    /// Thirty of its own clients met a full queue and a hundred did not, beside a neighbour that takes 35,000.
    #[test]
    fn what_is_its_own_is_beside_its_own() {
        let grew = |source: &str, entity: &str, name: &str, by: u32| {
            format!(
                "counter source={source} entity={entity} name={name} value=0\ncounter t_ns=9 source={source} entity={entity} name={name} value={by}\n"
            )
        };
        let text = grew("proc/net/snmp", "Tcp", "PassiveOpens", 35_100)
            + &grew("proc/net/netstat", "TcpExt", "ListenOverflows", 90)
            + &grew("proc/net/listeners", "\"tcp 0.0.0.0:80\"", "drops", 30);
        let of = |more: &str| {
            let error = error(Kind::QueueFull, &format!("{text}{more}"));
            (error.at_most(), error.of)
        };
        let taken = "exchange role=accepted port=80 stage=first_read count=100
            exchange role=accepted port=80 stage=response count=100";
        assert_eq!(of(taken), (30.0, 130.0));
        let greets = format!("{taken}\nexchange role=accepted port=25 stage=response count=9000");
        assert_eq!(of(&greets).1, 35_130.0, "where the server speaks first, nothing tells who was taken");
        assert_eq!(of(""), (30.0, 35_130.0), "whose they were that were taken is not known");
    }

    #[test]
    fn calls_that_fail() {
        let text = "call_window length_ns=1e9\ncall pid=1 tid=1 syscall=42 result=-99 count=300";
        assert_eq!(error(Kind::Failed(-99), text).count, 300.0);
    }
}
