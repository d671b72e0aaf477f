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
    let response = &requests.busiest()?.response;
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
    let all = &paths.busiest()?.all;
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
    let slow = &paths.busiest()?.slow;
    let most = slow.parts.first().filter(|part| matches!(part.what, What::Waits(_)))?;
    let part = share(most.ns, slow.ns);
    (part >= MOSTLY).then(|| (part, most.words()))
}

#[cfg(test)]
mod tests {
    use super::super::super::asking::stated;

    /// Three requests at a time stand for 15 ms, and threads stand before the lock of the memory map, for `each_ms` at a time.
    fn standing(each_ms: u64) -> Option<super::Statement> {
        let text = format!(
            "meta host.arch=x86_64 length_ns=1e9 target.pids=[1]
             frame id=1 symbol=rwsem_down_write_slowpath module=kernel kind=kernel
             frame id=2 symbol=down_write_killable module=kernel kind=kernel
             frame id=3 symbol=vm_mmap_pgoff module=kernel kind=kernel
             stack id=1 frames=[1,2,3] complete=true
             thread t_ns=1e9 pid=1 tid=1 wall_ns=8e9 cpu_ns=8e8 blocked_ns=72e8
             wait t_ns=1e9 pid=1 tid=1 syscall=9 state=2 stack=1 count={} total_ns=3e9 max_ns=2e7
             connection t_ns=1e9 role=accepted port=80 looks=10 open=160 late=30 late_ns=45e7",
            3000 / each_ms
        );
        stated(&super::super::RULE, &text, &[])
    }

    #[test]
    fn requests_behind_a_lock_of_the_kernel() {
        let said = standing(10).unwrap();
        assert!(
            said.headline.contains("3.0 threads at a time were standing before a lock of the process's memory map"),
            "{said:?}"
        );
        assert!(said.detail.contains("wanted in vm_mmap_pgoff, for 10 ms at a time"), "{}", said.detail);
        let short = standing(1).map(|said| said.headline).unwrap_or_default();
        assert!(!short.contains("memory map"), "a millisecond is not what they stand for: {short}");
    }

    /// A thread waits with each request in hand for 58 ms, until its own timer ends that.
    fn naps() -> String {
        let mut text = "meta host.arch=x86_64 length_ns=10e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
            process pid=1 listen=[\"tcp 0.0.0.0:80\"]
            thread t_ns=10e9 pid=1 tid=1 comm=worker wall_ns=10e9 cpu_ns=5e8 blocked_ns=95e8
            burst t_ns=10e9 length_ns=10e9
            frame id=1 symbol=hrtimer_wakeup module=kernel kind=kernel
            stack id=1 frames=[1]
            connection t_ns=10e9 role=accepted port=80 looks=100 open=400 late=300 late_ns=9e9
            exchange role=accepted port=80 stage=response count=60 sum_ns=36e8 length_ns=[60000000] counts=[60]\n"
            .to_string();
        for at in (0..60).map(|nth| 10 + nth * 70) {
            let (end, woken) = (at + 60, at + 58);
            text += &format!(
                "request t_ns={end}e6 role=accepted port=80 pid=1 began_ns={at}e6 began_tid=1 read_ns={at}e6 ended_tid=1
                 wakeup t_ns={woken}e6 pid=1 tid=1 comm=worker wait_ns=58e6 blocked_ns=58e6 since_ns={at}e6 waits=1 syscall=202 context=interrupt waker_stack=1\n"
            );
        }
        text
    }

    #[test]
    fn requests_that_wait_until_a_time_runs_out() {
        let few = naps().replace("late=300 late_ns=9e9", "late=30 late_ns=9e8");
        for text in [naps(), few] {
            let said = stated(&super::super::RULE, &text, &[]).unwrap();
            assert!(said.headline.starts_with("requests wait 97 % of their time for a timer"), "{said:?}");
        }
    }

    /// Twenty long polls of three seconds among quick answers; then the same time in answers of all lengths.
    #[test]
    fn requests_that_stand_for_the_same_time() {
        let text = |lengths: &str, counts: &str| {
            format!(
                "meta host.arch=x86_64 length_ns=10e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
                 process pid=1 listen=[\"tcp 0.0.0.0:80\"]
                 thread t_ns=10e9 pid=1 tid=1 comm=worker wall_ns=10e9 cpu_ns=1e8 blocked_ns=99e8
                 connection t_ns=10e9 role=accepted port=80 looks=100 open=400 late=600 late_ns=9e11
                 exchange_window t_ns=10e9 length_ns=10e9
                 exchange t_ns=10e9 role=accepted port=80 stage=response count=220 sum_ns=60e9 length_ns=[{lengths}] counts=[{counts}]"
            )
        };
        let said = |text: String| stated(&super::super::RULE, &text, &[]).unwrap();
        let alike = said(text("300000,2936000000,3019898880", "200,8,12"));
        assert!(alike.headline.starts_with("6 requests at a time stand unanswered, for 3.0 s each, and"), "{alike:?}");
        assert!(alike.detail.contains(super::SAME), "{}", alike.detail);
        let spread = said(text("300000,1500000000,2000000000,4000000000", "200,8,6,6"));
        assert!(spread.headline.starts_with("6 requests at a time stand unanswered, and what"), "{spread:?}");
    }

    /// Quicker requests, of which most of the time is before the lock, a few ms at a time.
    #[test]
    fn most_of_the_time_of_requests_that_are_not_late() {
        let text = |requests: u64, sum: &str| {
            format!(
                "meta host.arch=x86_64 length_ns=1e9 target.pids=[1]
                 frame id=1 symbol=rwsem_down_write_slowpath module=kernel kind=kernel
                 frame id=2 symbol=vm_mmap_pgoff module=kernel kind=kernel
                 stack id=1 frames=[1,2] complete=true
                 thread t_ns=1e9 pid=1 tid=1 wall_ns=8e9 cpu_ns=8e8 blocked_ns=72e8
                 wait t_ns=1e9 pid=1 tid=1 syscall=9 state=2 stack=1 count=1000 total_ns=2e9 max_ns=2e7
                 connection t_ns=1e9 role=accepted port=80 looks=10 open=160 late=1 late_ns=1e7
                 exchange_window t_ns=1e9 length_ns=1e9
                 exchange t_ns=1e9 role=accepted port=80 stage=response count={requests} sum_ns={sum} length_ns=[6000000] counts=[{requests}]"
            )
        };
        let said = |text: String| stated(&super::super::RULE, &text, &[]).map(|said| said.headline).unwrap_or_default();
        let most = said(text(400, "24e8"));
        assert!(most.starts_with("requests are in hand while 2.0 threads at a time were standing before"), "{most}");
        assert!(!said(text(4000, "240e8")).contains("memory map"), "a small part of theirs");
        assert!(!said(text(4000, "24e8")).contains("memory map"), "half a millisecond each");
    }

    /// A loop answers 60 requests after 60 ms each, while it waits for other clients; others owe it so many answers of those.
    #[test]
    fn time_inside_that_somebody_feels() {
        let said = |upstream: u32| {
            let mut text = format!(
                "meta host.arch=x86_64 length_ns=10e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
                 process pid=1 listen=[\"tcp 0.0.0.0:80\"]
                 thread t_ns=10e9 pid=1 tid=1 comm=loop wall_ns=10e9 cpu_ns=1e8 blocked_ns=99e8
                 burst t_ns=10e9 length_ns=10e9
                 exchange_window t_ns=10e9 length_ns=10e9
                 frame id=2 symbol=net_rx_action module=kernel kind=kernel
                 stack id=2 frames=[2]
                 connection t_ns=10e9 role=accepted port=80 looks=100 open=400 late=36 late_ns=1e9
                 connection t_ns=10e9 role=made peer=10.0.0.9:1 looks=100 open=100 late={upstream} late_ns=1e9
                 exchange role=accepted port=80 stage=response count=60 sum_ns=36e8 length_ns=[60000000] counts=[60]\n"
            );
            for at in (0..60).map(|nth| 10 + nth * 150) {
                let end = at + 60;
                text += &format!(
                    "request t_ns={end}e6 role=accepted port=80 pid=1 began_ns={at}e6 began_tid=1 read_ns={at}e6 ended_tid=1
                     wakeup t_ns={}e6 pid=1 tid=1 comm=loop since_ns={at}e6 wait_ns=58e6 blocked_ns=58e6 waits=1 syscall=232 family=2 local_port=80 remote_port=9 context=interrupt waker_stack=2\n",
                    end - 1
                );
            }
            stated(&super::super::RULE, &text, &[]).map(|said| said.headline).unwrap_or_default()
        };
        let hidden = said(0);
        assert!(hidden.starts_with("requests take 60 ms, 5") && hidden.contains("inside the process"), "{hidden}");
        assert!(!said(34).contains("inside the process"), "others owe the answers");
    }
}
