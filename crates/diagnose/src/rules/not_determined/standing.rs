// SPDX-License-Identifier: Apache-2.0
//! Requests that stand in the target for long, and no rule has a cause for it.

use super::super::Statement;
use super::scattered::MIN_WAIT_NS;
use super::{stuck, unread};
use crate::case::Case;
use crate::facts::kernel_locks::KernelLocks;
use crate::facts::requests::{Endpoint, LATE_NS, Requests};
use crate::facts::unexplained::Unexplained;
use crate::judgement::felt::Felt;
use crate::judgement::full::is_at_capacity;
use crate::judgement::standing::{MIN_REST, MIN_SHARE, matters};
use crate::judgement::{hanging, hung, standers, streams};
use crate::phrases;
use crate::remarks::deadlocked;
use crate::remarks::hidden_queues::{self, Hidden};
use crate::remarks::response_times;
use crate::statistics::{ratio, share};
use crate::walk::Kind;
use crate::walk::paths::{Meanwhile, Part, RequestPaths, What};
use crate::wording::{self, count, percent, seconds};

/// The statement about them.
pub(super) fn check(case: &Case) -> Option<Statement> {
    if is_at_capacity(case) {
        return None;
    }
    let requests = case.fact::<Unexplained>().ok()?;
    let known = before_kernel_lock(&requests, case).or_else(|| unread::check(case));
    // Who asks for events waits for the first one as for all others; who is never answered asks for something else.
    if known.is_none() && streams::begin(case).is_some() && hanging::unexplained(case).is_none() {
        return None;
    }
    let standing = known.or_else(|| unexplained(&requests, case));
    standing.or_else(|| until_a_time_runs_out(case)).or_else(|| inside(&requests, case))
}

/// Fewer than stand at a time, but each for so long that somebody feels it, and for nothing but a time.
fn until_a_time_runs_out(case: &Case) -> Option<Statement> {
    let felt = Felt::of(case)?;
    Some(Statement {
        headline: runs_out(case)?,
        advice: format!("{MEANT}{}", hidden_queues::look(case).look),
        detail: format!(
            "{}. Who waits so long for news, as a long poll does, looks the same.{}",
            felt.words(),
            response_times::sentence(case).unwrap_or_default()
        ),
    })
}

/// Likewise, and inside the program.
fn inside(requests: &Unexplained, case: &Case) -> Option<Statement> {
    // What holds late ones is known: others owe the answers, on connections that many questions share.
    let is_known = requests.late <= 0.0 || requests.rest() < requests.late * MIN_SHARE;
    let felt = Felt::of(case).filter(|felt| felt.are_all() && !is_known)?;
    let part = felt.most(|part| matches!(part.what, What::Inside { meanwhile: Meanwhile::Unknown, .. }))?;
    let hidden = hidden_queues::look(case);
    let (there, all) = (seconds(felt.mean_ns() * part / 1e9), seconds(felt.mean_ns() / 1e9));
    Some(Statement {
        headline: format!(
            "requests take {all}, {there} of it inside the process, and what they wait for there is not seen"
        ),
        advice: format!("look inside: {}", hidden.look),
        detail: format!(
            "{}; for {} of it the kernel saw nothing that they waited for: {}. Answers that are long by design, as long polls are, \
             look the same.{}",
            felt.words(),
            percent(part),
            hidden.what,
            response_times::sentence(case).unwrap_or_default(),
        ),
    })
}

/// Of the time of all requests, as long as that before a lock, if all who stood there had one in hand.
const MOST_OF_THEIRS: f64 = 0.5;

/// Of each request, on average: less nobody looks for.
const OF_EACH_NS: f64 = 1e6;

/// While threads stand before a lock of the kernel, for so long at a time that a request feels it, or for most of the time of all
/// requests. Who holds it is mostly on a CPU then, so that the walk ends there; and a lock that is never free is no limit that a
/// load is a share of.
fn before_kernel_lock(requests: &Unexplained, case: &Case) -> Option<Statement> {
    let locks = case.fact::<KernelLocks>().ok()?;
    let most = locks.waits.first()?;
    let (at_a_time, each_ns) = (ratio(most.ns, case.length_ns()), ratio(most.ns, most.count as f64));
    let is_late = requests.late >= MIN_REST && at_a_time >= requests.late * MIN_SHARE && each_ns >= MIN_WAIT_NS;
    if !is_late && !is_most_of_all(case, most.ns) {
        return None;
    }
    let (words, each) = (phrases::ledger_lines::kernel_locks(&locks)?, seconds(each_ns / 1e9));
    let what = if is_late { "stand unanswered" } else { "are in hand" };
    Some(Statement {
        headline: format!("requests {what} while {at_a_time:.1} threads at a time were {words}"),
        advice: "see below who has the CPU meanwhile; `sudo perf lock contention -ab -- sleep 5` shows who waits"
            .into(),
        detail: format!(
            "On average {:.1} connections had been waiting for their answer for 10 ms or longer, and {at_a_time:.1} threads \
             were {words}, for {each} at a time. Who holds the lock is not recorded, so that none of its holders is \
             accused.{}",
            requests.late,
            response_times::sentence(case).unwrap_or_default(),
        ),
    })
}

/// Whether so much time of threads is most of what all clients waited for their answers, and worth a look for each.
fn is_most_of_all(case: &Case, ns: f64) -> bool {
    let Ok(requests) = case.fact::<Requests>() else { return false };
    let accepted = || requests.endpoints.iter().filter(|endpoint| endpoint.accepted);
    let sum = |of: fn(&Endpoint) -> f64| accepted().map(of).sum::<f64>() * requests.scale();
    let (waited_ns, answers) = (sum(|e| e.response.sum_ns), sum(|e| e.response.count));
    answers > 0.0 && ns >= waited_ns * MOST_OF_THEIRS && ns >= answers * OF_EACH_NS
}

/// While nothing that is known holds them.
fn unexplained(requests: &Unexplained, case: &Case) -> Option<Statement> {
    if !matters(requests) {
        return None;
    }
    let (known, hidden) = (known(requests), hidden_queues::look(case));
    let (hang, stands) = (hanging::unexplained(case), stuck::check(case));
    let stand = where_they_stand(case, hang.is_some(), &hidden);
    let alike_ns = if hang.is_none() { alike(case) } else { None };
    let same = if alike_ns.is_some() { SAME } else { "" };
    let one_way = hung::is_one_way(case);
    let meant = match alike_ns {
        _ if one_way => NOT_DUE,
        Some(_) => MEANT,
        None => "look inside: ",
    };
    let (headline, advice) = match stands {
        Some(stands) => (stands.headline, stands.advice),
        None => (
            stuck::in_hand(case)
                .or_else(|| runs_out(case))
                .unwrap_or_else(|| not_seen(case, requests, (hang, alike_ns, one_way))),
            format!("{meant}{}", hidden.look),
        ),
    };
    Some(Statement {
        headline,
        advice,
        detail: format!(
            "On average {:.1} connections had been waiting for their answer for 10 ms or longer ({} at the look); {known}.\
             {stand}{same} Long polls and uploads look the same.{}",
            requests.late,
            seconds(requests.late_ns / 1e9),
            response_times::sentence(case).unwrap_or_default(),
        ),
    })
}

/// Where they stand, in sentences with a space before each.
fn where_they_stand(case: &Case, hang: bool, hidden: &Hidden) -> String {
    let at_the_end = hung::look(case).and_then(|hung| standers::sentence(case, &hung));
    // Where threads are seen to stand, nothing needs to stand where the kernel sees nothing.
    let inside = at_the_end.is_none().then(|| format!("{}.", left(case, hidden)));
    let all_the_time = if hang { hung::where_threads_stand(case) } else { None };
    let deadlock = deadlocked::remark(case).map(|remark| remark.detail);
    let told = [inside, all_the_time, at_the_end, deadlock, hung::silent(case), hung::go_on(case)];
    told.into_iter().flatten().map(|said| format!(" {said}")).collect()
}

/// That they stand, for how long, and what little is known of why.
fn not_seen(
    case: &Case,
    requests: &Unexplained,
    (hang, alike_ns, one_way): (Option<(f64, f64)>, Option<f64>, bool),
) -> String {
    let so_far = hang.map_or_else(String::new, |(_, ns)| format!(", for {} so far", seconds(ns / 1e9)));
    let each = alike_ns.map_or(so_far, |ns| format!(", for {} each", seconds(ns / 1e9)));
    let threads = hang.and_then(|_| standers::meanwhile(case, requests.late));
    let late = |does| wording::requests(requests.late, does);
    match threads {
        Some(threads) => format!("{} unanswered{each}, and {threads}", late("stand")),
        None if one_way => {
            format!("{} clients send, all of it is read, and no answer ever comes", count(requests.late))
        }
        None => format!("{} unanswered{each}, and what for is not seen", late("at a time stand")),
    }
}

/// Of the time of all answers, in those that take the same time: nearly all of it.
const ALIKE: f64 = 0.9;

/// Answers that are enough to tell.
const ANSWERS: f64 = 10.0;

/// Before what to do about answers that take their time by design, or do not.
const MEANT: &str = "if they are meant to wait (long polls, a batch), nothing is slow; else look inside: ";

/// Likewise about clients that are never answered.
const NOT_DUE: &str = "if no answer is due (logs, measurements), nothing is slow; else look inside: ";

/// What gives all of them the same length. A queue does too, if as many clients as ever stand in it.
const SAME: &str = " All of them take the same time: a sleep, a timeout or a poll has its length by itself, and a queue if it is never shorter.";

/// How long requests stand each, ns, if nearly all that stand do so for the same time.
fn alike(case: &Case) -> Option<f64> {
    let requests = case.fact::<Requests>().ok()?;
    let response = &requests.main()?.response;
    let (length_ns, part) = response.most_alike();
    (part >= ALIKE && length_ns >= LATE_NS && response.count_from(LATE_NS) >= ANSWERS).then_some(length_ns)
}

/// Where those stand that nothing explains, in words.
fn left(case: &Case, hidden: &Hidden) -> String {
    match waits_of_slow(case) {
        Some((part, words)) => format!(
            "Of the time of slow requests that were followed, {} was: {words}. Who should have ended that wait is not seen",
            percent(part)
        ),
        None => {
            format!("They may stand in queues inside the process, where the kernel sees nothing: {}", hidden.what)
        }
    }
}

/// What is known to hold some of them, in words.
fn known(requests: &Unexplained) -> String {
    let known = [
        (requests.queued, "busy threads"),
        (requests.waiting, "known waits"),
        (requests.upstream, "others' answers"),
        (requests.asking, "questions that their clients had not sent in full"),
    ];
    let known: Vec<String> =
        known.iter().filter(|(n, _)| *n >= 0.05).map(|(n, what)| format!("{what} explain {n:.1}")).collect();
    if known.is_empty() { "nothing that was measured explains them".to_string() } else { known.join(", ") }
}

/// That requests wait until a time runs out which the target has set itself, in words, if they mostly do: it sleeps, looks at
/// intervals, or waits for what does not come. A long poll without news looks the same.
fn runs_out(case: &Case) -> Option<String> {
    let paths = case.fact::<RequestPaths>().ok()?;
    let all = &paths.main()?.all;
    let is_timer = |part: &Part| match &part.what {
        What::Waits(chain) => !part.before && chain.links.len() == 1 && chain.end.kind == Kind::Timer,
        _ => false,
    };
    let part = all.share(is_timer);
    (part >= MOSTLY).then(|| {
        let of = percent(part);
        format!("requests wait {of} of their time for a timer of its own: a sleep, an interval or a timeout")
    })
}

/// Of the time of slow requests: most of it.
const MOSTLY: f64 = 0.5;

/// The wait in which slow requests spent most of their time, and how much that was, where a thread had them in hand.
fn waits_of_slow(case: &Case) -> Option<(f64, String)> {
    let paths = case.fact::<RequestPaths>().ok()?;
    let slow = &paths.main()?.slow;
    let most = slow.parts.first().filter(|part| matches!(part.what, What::Waits(_)))?;
    let part = share(most.ns, slow.ns);
    (part >= MOSTLY).then(|| (part, most.words()))
}

#[cfg(test)]
mod tests;
