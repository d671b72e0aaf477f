// SPDX-License-Identifier: Apache-2.0
//! The service waits for another process or host, more than for anything else.

mod hanging;
mod words;

use std::collections::BTreeMap;

use super::{Check, Checked, Rule, absent, evidence, explained, found, too_little, too_short};
use crate::answer::{Gap, Measured, Unseen};
use crate::case::Case;
use crate::facts::connections::Connections;
use crate::facts::requests::Requests;
use crate::facts::stacks::Stacks;
use crate::facts::unexplained::Unexplained;
use crate::facts::waiting::{Waiting, links, little, sum, timer, wait_ns};
use crate::judgement::nagle;
use crate::judgement::often::Often;
use crate::judgement::standing::matters;
use crate::statistics::share;
use crate::syscall::{Family, family};
use crate::verdict::{Evidence, Explains, Finding, Subject};
use crate::walk::chains::Chain;
use crate::walk::programs::lasting;
use crate::walk::{DNS, Kind};
use crate::wording::{percent, plural, seconds};

pub(crate) use words::next;
use words::{advice, remedy, what_it_does};

pub(super) static RULE: Rule =
    Rule { cause: "slow-dependency", explain: explain!("slow-dependency"), check: Check::Accuses(check) };

/// Twice as long waiting as everything else: a service that calls others waits for a good part of the time when all is well.
const MIN_SHARE: f64 = 0.66;

/// Of the window, over all threads: less is a call now and then.
const MIN_TIME: f64 = 0.02;

/// The same for a target that serves no client.
const MIN_TIME_UNASKED: f64 = 0.5;

/// One wait, on average, where there is not one after the other for each request: a database or a service in the same data centre that answers within a few ms does what is expected
/// of it, and what a user feels begins there.
pub(crate) const MIN_WAIT_NS: f64 = 5e6;

/// Of the waiting, with an end that nobody saw.
const MAX_UNSEEN: f64 = 0.5;

/// Of the answers that were owed, so many to questions that had not been sent: then whoever was asked is innocent.
const MAX_HELD_BACK: f64 = 0.25;

/// Of the time that clients wait for their answers: a peer that is waited for less than that is asked for something else.
const MIN_OF_ANSWERS: f64 = 0.1;

/// Of that time, from which on it is a witness of its own.
const MOST_OF_ANSWERS: f64 = 0.5;

/// Waits that were picked: one that is idle is woken now and then by something that its peer does of itself.
const MIN_WAITS: u64 = 5;

fn check(case: &Case) -> Checked {
    if let Some(found) = hanging::check(case) {
        return Ok(found);
    }
    let waiting = case.fact::<Waiting>()?;
    let Some((who, chains, ns)) = worst(&waiting) else {
        let why = "no wait of the target was ended by a process or host that it had asked";
        return otherwise(case, &waiting, (None, why.into()));
    };
    let part = waiting.share(ns);
    // One that has no CPU either still waits for whom it asked.
    let enough = waiting.share_without_queue(ns);
    // Whom nobody asks may take its work from there: only if it hardly ever has none is that a wait.
    let min_time = if waiting.serves { MIN_TIME } else { MIN_TIME_UNASKED };
    if let Some((seen, why)) = little(case, (ns, enough), MIN_SHARE, min_time) {
        return otherwise(
            case,
            &waiting,
            (Some(seen), format!("waiting for {who} was {why}, the wait for a CPU apart")),
        );
    }
    let often = Often::of(case, &chains[0].links[0].who.peer);
    if let Some(few_or_short) = few_or_short(&chains, &who, (part, often.as_ref())) {
        return few_or_short;
    }
    if let Some(why) = not_for_clients(case, (&waiting, ns), &chains, &who) {
        return explained(why);
    }
    if let Some(why) = doubt(case, &who, &chains, ns) {
        return Err(Gap::new(RULE.cause, Unseen::Undecided, why));
    }
    let first = chains[0];
    let timer = timer(first, &*case.fact()?);
    let (how, advised) = match often {
        Some(often) => (often.words(), often.advice(&who)),
        None => (what_it_does(first), advice(first, timer)),
    };
    let headline = format!("waits for {who} {} of its active time, {how}", percent(part));
    found(finding(case, &waiting, &who, &chains, ns)?, headline, advised)
}

/// Why those waits are not worth a finding, if so: too few were picked, or each is short and not one of many for a request.
fn few_or_short(chains: &[&Chain], who: &str, (part, often): (f64, Option<&Often>)) -> Option<Checked> {
    let waits: u64 = chains.iter().map(|c| c.waits).sum();
    if waits < MIN_WAITS {
        let seen = Measured::new(waits as f64, MIN_WAITS as f64, "waits");
        let why = format!("only {} for {who} (under {MIN_WAITS})", plural(waits as usize, "long wait"));
        return Some(too_little(seen, why));
    }
    let length_ns = wait_ns(chains);
    (length_ns < MIN_WAIT_NS && !often.is_some_and(Often::is_felt)).then(|| {
        let (part, length) = (percent(part), seconds(length_ns / 1e9));
        let why = format!("it waited for {who} {part} of its active time, but for {length} at a time (under 5 ms)");
        too_short(Measured::new(length_ns / 1e9, MIN_WAIT_NS / 1e9, "s"), why)
    })
}

/// Why no client waits for it, or it is not to blame, if so.
fn not_for_clients(case: &Case, (waiting, ns): (&Waiting, f64), chains: &[&Chain], who: &str) -> Option<String> {
    if let Some(why) = waiting.not_for_requests(case, ns) {
        return Some(format!("waiting for {who} was {why}"));
    }
    let peer = &chains[0].links[0].who.peer;
    if let Some(held) = nagle::cause(case).filter(|held| held.endpoint.name == *peer && !peer.is_empty()) {
        return Some(format!(
            "for {} of the time that it waited for {who}, part of its own question stood unsent: see nagle-delayed-ack",
            percent(held.part)
        ));
    }
    let small = of_answers(case, &chains[0].links[0].who.peer).filter(|part| *part < MIN_OF_ANSWERS)?;
    Some(format!(
        "it waited for {who} {} of its active time, but {} of the time that its clients waited for their answers",
        percent(waiting.share(ns)),
        percent(small)
    ))
}

/// Of the time that clients waited for their answers, as the sockets tell.
fn of_answers(case: &Case, peer: &str) -> Option<f64> {
    case.fact::<Requests>().ok()?.part_of_peer(peer)
}

/// What speaks for whoever was asked, if anything does.
fn doubt(case: &Case, who: &str, chains: &[&Chain], ns: f64) -> Option<String> {
    let peer = &chains[0].links[0].who.peer;
    let waited = format!("It waited for {who} for {}", seconds(ns / 1e9));
    if let Some(held_back) = held_back(case, peer) {
        return Some(format!(
            "{waited}, but in {} of the connections in which an answer was owed, part of the question itself stood unsent \
             (small writes without TCP_NODELAY, or a full window): look at `ss -tino dst {peer}`",
            percent(held_back)
        ));
    }
    let unseen = sum(chains.iter().copied().filter(|chain| chain.end.kind == Kind::Unseen));
    (share(unseen, ns) >= MAX_UNSEEN)
        .then(|| format!("{waited}, and what that one did meanwhile was not seen: {}", look_there(chains[0])))
}

/// Whom a chain waits for first: process, or address.
pub(crate) fn who(chain: &Chain) -> String {
    let name = chain.links.get(1).map_or_else(|| chain.end.name(), |link| link.who.name());
    if name.is_empty() { chain.links[0].who.peer.clone() } else { name }
}

/// Whether something speaks for whoever is asked in these chains, of which the first has most of the time.
pub(crate) fn is_doubted(case: &Case, chains: &[&Chain]) -> bool {
    let Some(first) = chains.first() else { return true };
    doubt(case, &who(first), chains, sum(chains.iter().copied())).is_some()
}

/// In how many of the connections to a peer in which an answer was owed, part of the question stood unsent, if in many.
fn held_back(case: &Case, peer: &str) -> Option<f64> {
    let held_back = case.fact::<Connections>().ok()?.held_back(peer);
    (!peer.is_empty() && held_back >= MAX_HELD_BACK).then_some(held_back)
}

/// Whom it waited for most, if that one did not have the whole question: name and address.
pub(super) fn unsent(case: &Case) -> Option<(String, String)> {
    let waiting = case.fact::<Waiting>().ok()?;
    let (who, chains, _) = worst(&waiting)?;
    let peer = chains.first()?.links[0].who.peer.clone();
    held_back(case, &peer).map(|_| (who, peer))
}

fn look_there(chain: &Chain) -> String {
    match (lasting(chain.end.pid), chain.end.name()) {
        (Some(pid), _) => format!("`sudo wakewalk diagnose --pid {pid}`"),
        (None, name) if name.is_empty() => "look at the other end".to_string(),
        (None, name) => format!("look at what {name} does"),
    }
}

/// Whether too much of the waiting cannot be told from idleness. Where all clients got their answers, it was some.
pub(super) fn is_untold(case: &Case, waiting: &Waiting) -> bool {
    let untold = waiting.untold_ns;
    let answered = || {
        let seen = case.fact::<Connections>().is_ok_and(|c| c.tells()) && !waiting.other_clients;
        seen && case.fact::<Unexplained>().is_ok_and(|u| !matters(&u))
    };
    untold >= (waiting.demand_ns + waiting.waiting_ns) && untold >= case.length_ns() * MIN_TIME && !answered()
}

/// Rules it out, unless too much of the waiting cannot be told from idleness.
fn otherwise(case: &Case, waiting: &Waiting, (seen, why): (Option<Measured>, String)) -> Checked {
    if !is_untold(case, waiting) {
        return match seen {
            Some(seen) => too_little(seen, why),
            None => absent(why),
        };
    }
    let untold = waiting.untold_ns;
    let whom = match waiting.untold_of.as_str() {
        "" => "who ended it was not seen".to_string(),
        peer => format!("it waited for {peer}, and no client asked for anything meanwhile"),
    };
    Err(Gap::new(
        RULE.cause,
        Unseen::Undecided,
        format!("For {} it cannot be told whether the target was idle: {whom}", seconds(untold / 1e9)),
    ))
}

/// Whom the target waits for most: chains by the first process after its own, or by the host that it asked.
fn worst(waiting: &Waiting) -> Option<(String, Vec<&Chain>, f64)> {
    let mut by: BTreeMap<String, (Vec<&Chain>, f64)> = BTreeMap::new();
    for chain in &waiting.chains {
        let Some(who) = asked(waiting, chain) else { continue };
        let entry = by.entry(who).or_default();
        entry.0.push(chain);
        entry.1 += chain.ns;
    }
    let (who, (chains, ns)) = by.into_iter().max_by(|a, b| a.1.1.total_cmp(&b.1.1))?;
    Some((who, chains, ns))
}

/// Who was asked, if it is another process or host. Where the target writes and the other one is slow to read, nothing was
/// asked; and one whose own waits the target never ended only brings what it has, like a client.
fn asked(waiting: &Waiting, chain: &Chain) -> Option<String> {
    let own = &chain.links[0].who;
    if family(&own.call) == Family::Send || own.fd_kind == DNS {
        return None;
    }
    let (pid, name) = match chain.links.get(1) {
        Some(link) => (link.who.pid, link.who.name()),
        None => (chain.end.pid, chain.end.name()),
    };
    if name.is_empty() || pid == own.pid {
        return Some(own.peer.clone()).filter(|peer| !peer.is_empty());
    }
    let was_asked = !own.peer.is_empty() || waiting.asked.get(&pid).copied().unwrap_or(true);
    was_asked.then_some(name)
}

fn finding(
    case: &Case,
    waiting: &Waiting,
    who: &str,
    chains: &[&Chain],
    ns: f64,
) -> Result<Finding, crate::verdict::Gap> {
    let stacks = case.fact::<Stacks>()?;
    let first = chains[0];
    let followed = sum(chains.iter().copied().filter(|c| !matches!(c.end.kind, Kind::Unseen | Kind::Short)));
    let of_answers = of_answers(case, &first.links[0].who.peer);
    // Who woke the target is one source; what that process's own waits say is another, what the sockets say a third.
    let sources = 1
        + usize::from(followed >= ns * 0.8 && first.links.len() > 1)
        + usize::from(of_answers.is_some_and(|part| part >= MOST_OF_ANSWERS));
    Ok(Finding {
        summary: format!(
            "The target waited for {who} for {} of thread time, {} of its active time, {}",
            seconds(ns / 1e9),
            percent(waiting.share(ns)),
            what_it_does(first)
        ),
        subject: subject(first),
        explains: Explains { share: waiting.share(ns), of: "active time".into(), seconds: ns / 1e9 },
        evidence: rows(waiting, who, first, (ns, followed), of_answers),
        chain: links(first, &stacks),
        remedy: remedy(first, timer(first, &stacks)),
        check: "After the change the same diagnosis shows a smaller share of waiting for it, and more requests served."
            .into(),
        ..RULE.finding(case, sources)
    })
}

/// Where the chain ends, who computes or the last one who waits, and through which connection it was asked.
pub(crate) fn subject(chain: &Chain) -> Subject {
    let socket = Some(chain.links[0].who.peer.clone()).filter(|peer| !peer.is_empty());
    Subject { socket, ..at_end(chain) }
}

fn at_end(chain: &Chain) -> Subject {
    let (end, last) = (&chain.end, chain.links.last().filter(|_| chain.links.len() > 1));
    match (end.kind, last) {
        (Kind::OnCpu | Kind::RunQueue | Kind::Unseen, _) => {
            Subject { pid: lasting(end.pid), comm: Some(end.comm.clone()), ..Subject::default() }
        }
        (_, Some(link)) => Subject {
            pid: lasting(link.who.pid),
            comm: Some(link.who.comm.clone()),
            syscall: Some(link.who.call.clone()),
            ..Subject::default()
        },
        _ => Subject::default(),
    }
}

fn rows(
    waiting: &Waiting,
    who: &str,
    first: &Chain,
    (ns, followed): (f64, f64),
    of_answers: Option<f64>,
) -> Vec<Evidence> {
    let call = &first.links[0].who;
    let see = format!("strace -f -T -e trace={} -p {}", call.call, call.pid);
    let of_answers = of_answers.map(|part| {
        evidence("of its clients' response time, by the sockets", part.min(1.0), "share", "a small part", "")
    });
    let rows = vec![
        evidence(&format!("waiting for {who}"), ns / 1e9, "s", "a small part of active time", see),
        evidence(
            "CPU demand",
            waiting.demand_ns / 1e9,
            "s",
            "most of active time",
            format!("cat /proc/{}/schedstat", call.pid),
        ),
        evidence("of that waiting, followed to an end", followed / ns, "share", "", ""),
        evidence("of that waiting, in the first chain", first.ns / ns, "share", "", ""),
    ];
    rows.into_iter().chain(of_answers).collect()
}

#[cfg(test)]
mod tests;
