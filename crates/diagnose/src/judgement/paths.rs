// SPDX-License-Identifier: Apache-2.0
//! What the paths of requests say of a cause: how much of their time was spent for it.
//!
//! A cause for which requests hardly waited is none, however long threads did; and one for which they waited most of the time is
//! one, although the threads' own time tells less of it.

use std::collections::BTreeMap;
use std::iter;
use std::sync::Arc;

use recording::tables::Request;

use super::drips::Drips;
use super::enough::wants_little;
use super::later::rest_ns;
use super::secure::mostly_handshakes;
use super::{hanging, standing, tail};
use crate::case::Case;
use crate::facts::connections::Connections;
use crate::facts::requests::{Endpoint, LATE_NS, Lengths, Requests};
use crate::facts::waiting::Waiting;
use crate::runtimes::collectors::{Collector, Program};
use crate::statistics::share;
use crate::walk::chains::Chain;
use crate::walk::paths::{Group, HandshakePaths, Meanwhile, Part, RequestPaths, What};
use crate::walk::{AGAIN, HAND_OFF, INTERPRETER, Kind, LOCK, TIMED};
use crate::walk::{DNS, LOOP, Walk, Who};

/// Requests followed, from which on shares say something.
const ENOUGH: u64 = 20;

/// Of the time of all answers, in ones much longer than any that was followed: those may wait for something else.
const MOST_LONGER: f64 = 0.3;

/// How much longer that is.
const MUCH_LONGER: f64 = 1.5;

/// Of the time of requests: what is less, they did not wait for.
const HARDLY_ANY: f64 = 0.05;

/// Of their time, on a CPU or ready for one: of less, hardly any can have been stolen.
const STOLEN: f64 = 0.1;

/// Of their time, where nothing was seen: with more of it, the cause may be in there.
const MOST_UNSEEN: f64 = 0.25;

/// Of the time of requests, for a finding.
pub(super) const MIN_SHARE: f64 = 0.5;

/// Slow ones, of which a share says something.
pub(crate) const SEVERAL: u64 = 3;

/// Whether a part of a path is one of a cause.
type IsIt = fn(&Part) -> bool;

/// A cause that paths tell.
struct Told {
    cause: &'static str,
    is_it: IsIt,
    /// Of the time of requests: with less, it is none for them.
    least: f64,
    /// Whether it is told although a good part of their time was not seen.
    is_seen: fn(&Case) -> bool,
}

const fn told(cause: &'static str, is_it: IsIt) -> Told {
    Told { cause, is_it, least: HARDLY_ANY, is_seen: |_| false }
}

/// The causes that paths tell, and by which of their parts.
const TOLD: &[Told] = &[
    told("user-lock-contention", stands_before_peers),
    told("pool-exhausted", |part| part.before || stands_before_peers(part)),
    // Who waits for its turn to ask waits for nobody else yet, although threads wait for the answers to all.
    Told { least: MIN_SHARE, is_seen: questions_are_apart, ..told("slow-dependency", waits_for_others) },
    told("slow-dns", |part| any_wait(part, |who| who.fd_kind == DNS)),
    told("sleep-in-path", |part| any_wait(part, Who::sleeps)),
    // A thread of its own that only writes a log keeps nobody waiting.
    told("blocked-writer", |part| any_wait(part, Who::writes)),
    told("disk-wait", |part| chain(part).is_some_and(|chain| matches!(chain.end.kind, Kind::Disk | Kind::Kernel))),
    // A thread that is ready is seen, whatever the runtime does.
    Told { is_seen: |_| true, ..told("run-queue-wait", is_ready) },
    // What is stolen looks like running, or lets others stand ready.
    Told { least: STOLEN, is_seen: wants_little, ..told("cpu-steal", wants_a_cpu) },
];

/// Whether each question that the target asks has a connection for itself: of several at once none is told. Nor is one told before
/// there is a connection to ask over; nor the rest of an answer behind its first bytes.
fn questions_are_apart(case: &Case) -> bool {
    if Drips::of_most(case).is_some() {
        return false;
    }
    let Ok(requests) = case.fact::<Requests>() else { return false };
    if case.fact::<Connections>().is_ok_and(|connections| connections.made.opening >= standing::HARDLY_ANY) {
        return false;
    }
    let mut asked = requests.endpoints.iter().filter(|endpoint| !endpoint.accepted).peekable();
    asked.peek().is_some() && asked.all(|endpoint| !endpoint.is_mixed())
}

/// Whether somebody was ready and had no CPU: the thread itself, or who stands behind its wait.
fn is_ready(part: &Part) -> bool {
    match &part.what {
        What::Awake { kind, .. } => *kind == Kind::RunQueue,
        What::Waits(chain) => chain.end.kind == Kind::RunQueue,
        What::Inside { .. } | What::Asking { .. } => false,
    }
}

/// Whether somebody was on a CPU or ready for one, or may have been.
fn wants_a_cpu(part: &Part) -> bool {
    let is_it = |kind: Kind| matches!(kind, Kind::OnCpu | Kind::RunQueue | Kind::Short | Kind::Unseen);
    match &part.what {
        What::Awake { kind, .. } => is_it(*kind),
        What::Waits(chain) => is_it(chain.end.kind),
        What::Inside { meanwhile, .. } => *meanwhile == Meanwhile::Computing,
        What::Asking { .. } => false,
    }
}

fn chain(part: &Part) -> Option<&Chain> {
    if let What::Waits(chain) = &part.what { Some(chain) } else { None }
}

fn any_wait(part: &Part, wanted: impl Fn(&Who) -> bool) -> bool {
    chain(part).is_some_and(|chain| chain.links.iter().any(|link| wanted(&link.who)))
}

/// Whether somebody was asked: through a connection, or another process of this host stands behind the wait, as with a file
/// system in user space.
fn waits_for_others(part: &Part) -> bool {
    let Some(chain) = chain(part) else { return false };
    // Who stands before a lock waits for its holder, whoever answers that one.
    if stands_before_peers(part) || chain.is_of_idle_peer() || is_at_nobody_asked(chain) {
        return false;
    }
    let own = &chain.links[0].who;
    let is_other = |pid: u32| pid != own.pid || pid == AGAIN;
    let asked = |who: &Who| who.fd_kind != DNS && (!who.peer.is_empty() || is_other(who.pid));
    let is_at_end = !chain.end.name().is_empty() && is_other(chain.end.pid);
    own.fd_kind != DNS && !own.peer.is_empty() || chain.links[1..].iter().any(|link| asked(&link.who)) || is_at_end
}

/// Whether whoever is asked only waits itself: for the target, or for another one of its clients.
pub(crate) fn is_at_nobody_asked(chain: &Chain) -> bool {
    chain.is_kept_for_another() || chain.ends_at_home()
}

/// Whether the thread that had the request waited for an answer over a connection; the time in which its turn to ask had not come
/// is none, nor that in which the peer had nothing to do.
pub(crate) fn asks_a_peer(part: &Part) -> bool {
    !part.before && waits_for_a_peer(part)
}

/// The same, for whomever it asked.
pub(crate) fn waits_for_a_peer(part: &Part) -> bool {
    let of_peer = |who: &Who| who.fd_kind != DNS && !who.peer.is_empty();
    chain(part).is_some_and(|chain| of_peer(&chain.links[0].who) && !chain.is_of_idle_peer())
}

/// Whether nothing was done for the request until something came on another connection: by the target, or by whom it had asked.
pub(crate) fn is_until_said(part: &Part) -> bool {
    match &part.what {
        What::Inside { meanwhile, .. } => *meanwhile == Meanwhile::Listening,
        What::Waits(chain) => !part.before && chain.is_of_idle_peer(),
        What::Awake { .. } | What::Asking { .. } => false,
    }
}

/// Whether the thread that had the request, or its loop, waited for a program that is started for each.
pub(crate) fn awaits_a_program(part: &Part) -> bool {
    !part.before && chain(part).is_some_and(is_of_a_program)
}

/// Whether whoever is waited for is a program that is started again and again.
pub(crate) fn is_of_a_program(chain: &Chain) -> bool {
    // Of other ends it is nobody's process id, as an interrupt's.
    let is_at_work = matches!(chain.end.kind, Kind::OnCpu | Kind::RunQueue);
    let first = &chain.links[0].who;
    let is_alike = first.pid == AGAIN && first.comm == chain.end.comm;
    match chain.links.get(1) {
        Some(link) => link.who.pid == AGAIN && !link.is_own,
        None => is_at_work && chain.end.pid == AGAIN && !is_alike,
    }
}

/// The collector for which the program stood still: its threads computed, or wanted to, and the others waited for that.
pub(crate) fn collector(chain: &Chain) -> Option<&'static Collector> {
    let at_work = matches!(chain.end.kind, Kind::OnCpu | Kind::RunQueue);
    let (collector, program) = Collector::at(&chain.end.comm, iter::empty()).filter(|_| at_work)?;
    (program == Program::Pauses).then_some(collector)
}

/// Whether whoever had the request, or should have taken it, stood still for a collector.
pub(crate) fn stands_still(part: &Part) -> bool {
    chain(part).is_some_and(|chain| collector(chain).is_some())
}

/// Calls that wait for a permit that processes share.
const BETWEEN_PROCESSES: [&str; 3] = ["semop", "semtimedop", "semtimedop_time64"];

/// Whether a thread waited for another one of its kind, as before a lock or for one of a few permits. (One that waits for work
/// that it gave away waits for a thread of another kind.)
pub(crate) fn stands_before_peers(part: &Part) -> bool {
    let Some(chain) = chain(part) else { return false };
    let first = &chain.links[0].who;
    let is_shared = BETWEEN_PROCESSES.contains(&first.call.as_str());
    // Of a program that is started again and again, each is a process of its own.
    let is_one = |pid: u32| pid == first.pid && pid != AGAIN;
    let same = |pid: u32, comm: &str| comm == first.comm && (is_shared || is_one(pid));
    match chain.links.get(1) {
        // Threads that compute in turn are one load.
        _ if first.fd_kind == INTERPRETER => false,
        _ if [LOCK, HAND_OFF].contains(&first.fd_kind.as_str()) => true,
        Some(next) => first.peer.is_empty() && same(next.who.pid, &next.who.comm),
        None => chain.end.kind == Kind::OnCpu && first.peer.is_empty() && same(chain.end.pid, &chain.end.comm),
    }
}

/// The share of the time of requests in which their thread stood before the lock of its interpreter.
pub(crate) fn before_interpreter(walk: &Walk, group: &Group) -> f64 {
    // Where no address tells, a wait with a request in hand that its own timer ended is one for that lock too.
    let timed = |chain: &Chain| chain.links[0].who.fd_kind == TIMED && chain.end.kind == Kind::Timer;
    let is_it = |chain: &Chain| {
        chain.links[0].who.fd_kind == INTERPRETER || walk.mostly_interpreter() && chain.links.len() == 1 && timed(chain)
    };
    group.share(|part| chain(part).is_some_and(is_it))
}

/// Whether it waited for a disk, or before a lock whose holder did, as far as the end of the wait tells: a thread of the kernel writes to
/// disks as well.
pub(crate) fn waits_for_a_disk(part: &Part) -> bool {
    chain(part).is_some_and(|chain| matches!(chain.end.kind, Kind::Disk | Kind::Kernel))
}

/// Whether the thread that had the request, or that would have taken it, slept by itself.
pub(crate) fn is_own_sleep(part: &Part) -> bool {
    chain(part).is_some_and(Chain::is_own_sleep)
}

/// The same, or whoever it asked waited for another thread of the target that slept.
pub(crate) fn waits_for_a_sleep(part: &Part) -> bool {
    chain(part).is_some_and(|chain| chain.is_own_sleep() || chain.comes_back_to_sleep())
}

/// Of the time that all clients wait, at the main port: with less, what is waited for at other ones matters more.
const MUCH_WAITS_THERE: f64 = 0.3;

/// Likewise, for what is said of all clients.
const MOST_WAIT_THERE: f64 = 0.7;

/// The paths at the main port, if they stand for all requests there, and those for a good part of what clients wait.
pub(crate) fn telling(case: &Case) -> Option<Arc<RequestPaths>> {
    let paths = case.fact::<RequestPaths>().ok()?;
    let is_mixed = case.fact::<Requests>().ok()?.main()?.is_mixed();
    (!is_mixed && tell(case, &paths, |e| (&e.response, e.response.sum_ns))?).then_some(paths)
}

/// The same of handshakes of TLS, where clients wait for those most of the time, and long.
pub(crate) fn telling_handshakes(case: &Case) -> Option<Arc<RequestPaths>> {
    mostly_handshakes(case.fact::<Requests>().ok()?.main()?)?;
    let paths = Arc::clone(&case.fact::<HandshakePaths>().ok()?.0);
    tell(case, &paths, |e| (&e.handshake, e.awaited_ns()))?.then_some(paths)
}

/// Whether paths stand for all of these lengths at the main port, and that port for a good part of what clients wait.
fn tell(case: &Case, paths: &RequestPaths, of: fn(&Endpoint) -> (&Lengths, f64)) -> Option<bool> {
    let requests = case.fact::<Requests>().ok()?;
    let (main, times) = (paths.main()?, requests.main()?);
    let (lengths, owed_ns) = of(times);
    let waited_ns: f64 = requests.endpoints.iter().filter(|e| e.accepted).map(|e| of(e).1).sum();
    let tells = main.port == times.port
        && owed_ns >= waited_ns * MUCH_WAITS_THERE
        && main.all.requests >= ENOUGH
        && lengths.share_of_time_from(main.worst.ns * MUCH_LONGER) <= MOST_LONGER;
    Some(tells)
}

/// Whether what requests wait for at the main port is what clients wait for: nearly none ask elsewhere, or otherwise than over TCP.
fn stand_for_all(case: &Case) -> Option<bool> {
    let requests = case.fact::<Requests>().ok()?;
    let waited_ns: f64 = requests.endpoints.iter().filter(|e| e.accepted).map(Endpoint::awaited_ns).sum();
    let tcp_alone = case.fact::<Waiting>().is_ok_and(|waiting| !waiting.other_clients);
    Some(tcp_alone && requests.main()?.awaited_ns() >= waited_ns * MOST_WAIT_THERE)
}

/// Whether a cause is something that threads wait for, so that requests may be seen not to.
pub(crate) fn are_waits(cause: &str) -> bool {
    TOLD.iter().any(|told| told.cause == cause)
}

/// Whether a peer is asked, by whoever had the request or by somebody that one waited for.
fn asks(part: &Part, peer: &str) -> bool {
    chain(part).is_some_and(|chain| chain.links.iter().any(|link| link.who.peer == peer))
}

/// Why a cause is none for the requests, if that can be told: they hardly waited for it; of a peer that is asked over a socket, for that one.
pub(crate) fn not_for_requests(case: &Case, cause: &str, peer: Option<&str>) -> Option<f64> {
    let told = TOLD.iter().find(|told| told.cause == cause)?;
    let is_of_peer = |part: &Part| (told.is_it)(part) && peer.is_none_or(|peer| asks(part, peer));
    // Those that hang are in no path, nor is what an answer waited for behind its first bytes.
    if !stand_for_all(case)?
        || hanging::unexplained(case).is_some()
        || case.fact::<Requests>().ok()?.main().and_then(rest_ns).is_some()
    {
        return None;
    }
    // What requests wait for says nothing of what clients wait for before they can ask.
    let paths = if waits_for_handshakes(case) { telling_handshakes(case) } else { telling(case) }?;
    let all = &paths.main()?.all;
    let unseen = all.share(is_unseen);
    let (part, slow) = (of_asked(all, is_of_peer), slow(case, &paths).map_or(0.0, |slow| of_asked(slow, is_of_peer)));
    ((unseen <= MOST_UNSEEN || (told.is_seen)(case)) && part.max(slow) < told.least).then_some(part)
}

/// Of a cause that paths tell, or of computing, how much of what clients waited they spent on it, s; none where that is not known.
pub(crate) fn felt_seconds(case: &Case, cause: &str, peer: Option<&str>) -> Option<f64> {
    let told = TOLD.iter().find(|told| told.cause == cause).map(|told| told.is_it);
    let is_of_cause = told.or((cause == "hot-code").then_some(wants_a_cpu as IsIt))?;
    let is_it = |part: &Part| is_of_cause(part) && peer.is_none_or(|peer| asks(part, peer));
    let (paths, requests) =
        (telling(case).filter(|_| stand_for_all(case) == Some(true))?, case.fact::<Requests>().ok()?);
    let all = &paths.main()?.all;
    let waited = requests.main()?.response.sum_ns * requests.scale() / 1e9;
    Some((all.share(is_it) + all.share(is_unseen)) * waited)
}

/// Whether clients wait for handshakes most of the time.
fn waits_for_handshakes(case: &Case) -> bool {
    case.fact::<Requests>().is_ok_and(|requests| requests.main().is_some_and(|b| mostly_handshakes(b).is_some()))
}

/// Of the time in which requests were there in full: what clients have not sent yet nobody can work on, and what wants no answer looks
/// like the beginning of a question.
fn of_asked(group: &Group, is_it: impl Fn(&Part) -> bool) -> f64 {
    share(group.share(is_it), 1.0 - group.share(|part| matches!(part.what, What::Asking { .. })))
}

/// Whether nobody knows what it was: a timer of a loop may be the timeout of anything, and who has nothing to do until it is asked
/// something else may be kept by whoever asks.
fn is_unseen(part: &Part) -> bool {
    matches!(part.what, What::Inside { .. } | What::Awake { kind: Kind::Unseen, .. })
        || chain(part).is_some_and(|chain| chain.links[0].who.fd_kind == LOOP || chain.is_of_idle_peer())
}

/// The label whose requests have most of the CPU time that requests take, and how much of it, if one has most.
pub(crate) fn label_on_cpu(case: &Case) -> Option<(String, f64)> {
    let paths = case.fact::<RequestPaths>().ok()?;
    let main = paths.main()?;
    let first = &main.labels.first().filter(|_| main.labels.len() > 1)?.label;
    let part = main.on_cpu(first)?;
    (part >= MIN_SHARE).then(|| (first.clone(), part))
}

/// The slow requests, where a few take much longer than most and make a good part of what clients wait.
pub(super) fn slow<'p>(case: &Case, paths: &'p RequestPaths) -> Option<&'p Group> {
    let slow = &paths.main()?.tail;
    let matters = || tail::of(case.fact::<Requests>().ok()?.main()?);
    (slow.requests >= SEVERAL && matters().is_some()).then_some(slow)
}

/// Whether most of what clients wait is for answers that are late, whatever half of them take. One of 100 ms, as a disk has them
/// now and then, is more than fifty usual ones together.
pub(crate) fn mostly_late(requests: &Requests) -> bool {
    let times = requests.main().map(|main| &main.response);
    times.is_some_and(|t| t.count_from(LATE_NS) >= tail::SEVERAL && t.share_of_time_from(LATE_NS) >= MIN_SHARE)
}

/// Of the answers, by one thread: then it serves all.
const ONE_SERVES: f64 = 0.9;

/// The thread that gives the answers at a port, if one does.
pub(crate) fn one_thread(case: &Case, port: u32) -> Option<(u32, u32)> {
    let mut by: BTreeMap<(u32, u32), f64> = BTreeMap::new();
    let asked = case.recording.rows::<Request>().iter().filter(|r| r.is_of_client() && r.port == port);
    asked.for_each(|row| *by.entry((row.pid, row.ended_tid)).or_default() += 1.0);
    let all: f64 = by.values().sum();
    by.into_iter().find(|(_, count)| share(*count, all) >= ONE_SERVES).map(|(thread, _)| thread)
}
