// SPDX-License-Identifier: Apache-2.0
//! The service waits for another process or host, more than for anything else.

mod hanging;
mod opening;
mod rest;
mod sockets;
mod way;

use super::{Check, Checked, Outcome, Rule, absent, evidence, explained, found, too_little, too_short};
use crate::answer::{Gap, Measured, Unit, Unseen};
use crate::case::Case;
use crate::facts::requests::Requests;
use crate::facts::stacks::Stacks;
use crate::facts::waiting::{Waiting, sum, wait_ns};
use crate::judgement::asked::words::{advice, remedy, what_it_does};
use crate::judgement::asked::{MIN_TIME, MIN_WAIT_NS, doubt, is_untold, subject, worst};
use crate::judgement::clients_wait::{part_of_peer, waited_longer};
use crate::judgement::drips::Drips;
use crate::judgement::enough::{little, not_for_requests};
use crate::judgement::felt::Felt;
use crate::judgement::often::Often;
use crate::judgement::paths::stands_before_peers;
use crate::judgement::secure::Shaking;
use crate::judgement::{aside, nagle, streams};
use crate::phrases::chain::{links, timer};
use crate::statistics::share;
use crate::verdict::{Evidence, Explains, Finding};
use crate::walk::Kind;
use crate::walk::chains::Chain;
use crate::walk::paths::{Part, What};
use crate::wording::{percent, plural, seconds, waits_in};

pub(super) static RULE: Rule =
    Rule { cause: "slow-dependency", explain: explain!("slow-dependency"), check: Check::Accuses(check) };

/// Twice as long waiting as everything else: a service that calls others waits for a good part of the time when all is well.
const MIN_SHARE: f64 = 0.66;

/// [`MIN_TIME`] of a target that serves no client.
const MIN_TIME_UNASKED: f64 = 0.5;

/// Of the time that clients wait for their answers: a peer that is waited for less than that is asked for something else.
const MIN_OF_ANSWERS: f64 = 0.1;

/// Of that time, from which on it is a witness of its own.
const MOST_OF_ANSWERS: f64 = 0.5;

/// Waits that were picked: one that is idle is woken now and then by something that its peer does of itself.
const MIN_WAITS: u64 = 5;

fn check(case: &Case) -> Checked {
    if let Some(found) = hanging::check(case).or_else(|| opening::check(case)) {
        return Ok(found);
    }
    match by_threads(case) {
        Ok(found @ Outcome::Found(..)) => Ok(found),
        otherwise => sockets::check(case).or_else(|| rest::check(case)).map_or(otherwise, Ok),
    }
}

fn by_threads(case: &Case) -> Checked {
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
    let peer = &chains[0].links[0].who.peer;
    let (often, drips) = (Often::of(case, peer), Drips::of(case, peer, ns));
    let is_felt = drips.is_some() || often.as_ref().is_some_and(Often::is_felt);
    if let Some(few_or_short) = few_or_short(&chains, &who, (part, is_felt)) {
        return few_or_short;
    }
    if let Some(why) = streams::awaited(case, &chains) {
        return explained(format!("it waited for {who} and its timer {} of its active time, but {why}", percent(part)));
    }
    // What the sockets tell ends with the first bytes of answers.
    if let Some(why) = not_for_clients(case, (&waiting, ns), &chains, &who).filter(|_| drips.is_none()) {
        return explained(why);
    }
    if let Some(why) = doubt(case, &who, &chains, ns) {
        return Err(Gap::new(RULE.cause, Unseen::Undecided, why));
    }
    let first = chains[0];
    let timer = timer(first, &*case.fact()?);
    let shaking = Shaking::of(case, peer);
    let (how, advised) = said(&who, (&chains, ns), (often, drips, shaking), timer);
    let headline = format!("waits for {who} {} of its active time, {how}", percent(part));
    let finding = finding(case, &waiting, &who, &chains, ns)?;
    let (finding, advised) = before_own_lock(case, peer, finding, advised);
    let (finding, advised) = way::told(case, first, finding, advised);
    found(finding, headline, advised)
}

/// Of the time of requests: one in four is felt.
const MUCH_BEFORE: f64 = 0.25;

/// Says what part of the time of requests passes before a lock or a permit of the target's own whose holder asks that peer, if it is a good
/// part.
fn before_own_lock(case: &Case, peer: &str, finding: Finding, advised: String) -> (Finding, String) {
    let asks = |chain: &Chain| chain.links[1..].iter().any(|link| !peer.is_empty() && link.who.peer == peer);
    let is_one = |part: &Part| matches!(&part.what, What::Waits(chain) if asks(chain)) && stands_before_peers(part);
    let part = Felt::of(case).map_or(0.0, |felt| felt.group().share(is_one));
    if part < MUCH_BEFORE {
        return (finding, advised);
    }
    let before = format!("{} of requests' time is before a lock of its own", percent(part));
    let remedy = format!(
        "{} Who asks it holds a lock or a permit meanwhile: {before}. Let go of it before asking, or let more ask at once.",
        finding.remedy
    );
    (Finding { remedy, ..finding }, format!("{advised}; {before}"))
}

/// How it waits, and what to do first.
fn said(
    who: &str,
    (chains, ns): (&[&Chain], f64),
    (often, drips, shaking): (Option<Often>, Option<Drips>, Option<Shaking>),
    timer: Option<&str>,
) -> (String, String) {
    match (often, drips, shaking, connecting(chains, ns)) {
        (Some(often), ..) => (often.words(), often.advice(who)),
        (None, Some(drips), ..) => (drips.words(), drips.advice(who)),
        (None, None, Some(shaking), _) => (shaking.words(), shaking.advice()),
        (None, None, None, Some(part)) => (
            format!("{} of that to connect", percent(part)),
            "keep connections to it open and use them again (a pool, keep-alive)".into(),
        ),
        (None, None, None, None) => (what_it_does(chains[0]), advice(chains[0], timer)),
    }
}

/// Of the waiting, until connections are made: a round trip each, which none that is kept open costs.
const MUCH_CONNECTING: f64 = 0.25;

/// What part of the waiting is for connections to be made, if it is a good part and they are.
fn connecting(chains: &[&Chain], ns: f64) -> Option<f64> {
    let connects = |chain: &&&Chain| chain.links[0].who.call == "connect" && chain.end.kind != Kind::Timer;
    let part = share(sum(chains.iter().filter(connects).copied()), ns);
    (part >= MUCH_CONNECTING).then_some(part)
}

/// Why those waits are not worth a finding, if so: too few were picked, or each is short and not one of many for a request.
fn few_or_short(chains: &[&Chain], who: &str, (part, is_felt): (f64, bool)) -> Option<Checked> {
    let waits: u64 = chains.iter().map(|c| c.waits).sum();
    if waits < MIN_WAITS {
        let seen = Measured::new(waits as f64, MIN_WAITS as f64, Unit::Waits);
        let why = format!("only {} for {who} (under {MIN_WAITS})", plural(waits as usize, "long wait"));
        return Some(too_little(seen, why));
    }
    let length_ns = wait_ns(chains);
    (length_ns < MIN_WAIT_NS && !is_felt).then(|| {
        let (part, length) = (percent(part), seconds(length_ns / 1e9));
        let why = format!("it waited for {who} {part} of its active time, but for {length} at a time (under 5 ms)");
        too_short(Measured::new(length_ns / 1e9, MIN_WAIT_NS / 1e9, Unit::Seconds), why)
    })
}

/// Why no client waits for it, or it is not to blame, if so.
fn not_for_clients(case: &Case, (waiting, ns): (&Waiting, f64), chains: &[&Chain], who: &str) -> Option<String> {
    if let Some(why) = not_for_requests(case, waiting, ns) {
        return Some(format!("waiting for {who} was {why}"));
    }
    let peer = &chains[0].links[0].who.peer;
    if let Some(part) = aside::of_peer(case, peer) {
        return Some(format!(
            "it waited for {who} {} of its active time, {} of that in threads that take no part in what clients ask, as a consumer of \
             a queue",
            percent(waiting.share(ns)),
            percent(part)
        ));
    }
    if let Some(held) = nagle::cause(case).filter(|held| held.endpoint.name == *peer && !peer.is_empty()) {
        return Some(format!(
            "for {} of the time that it waited for {who}, part of its own question stood unsent: see nagle-delayed-ack",
            percent(held.part)
        ));
    }
    let requests = case.fact::<Requests>().ok();
    if let Some((other, longest, part)) = requests.as_ref().and_then(|requests| waited_longer(requests, peer)) {
        return Some(format!(
            "it waited for {who} {} of its active time, but its clients {} of the time that their answers take, and {} for {other}",
            percent(waiting.share(ns)),
            percent(part),
            percent(longest)
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
    part_of_peer(&*case.fact().ok()?, peer)
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
        + usize::from(of_answers.is_some_and(|part| (MOST_OF_ANSWERS..=sockets::AT_MOST).contains(&part)));
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

fn rows(
    waiting: &Waiting,
    who: &str,
    first: &Chain,
    (ns, followed): (f64, f64),
    of_answers: Option<f64>,
) -> Vec<Evidence> {
    let call = &first.links[0].who;
    let see = waits_in(&call.call, &format!(" -p {}", call.pid));
    let of_answers = of_answers
        .map(|part| evidence("for each second that its clients wait, by the sockets", part, "s", "a small part", ""));
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
