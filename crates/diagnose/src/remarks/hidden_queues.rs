// SPDX-License-Identifier: Apache-2.0
//! Queues inside the program, of its language runtime or its own: requests stand there where the kernel sees nothing. That
//! is said of every such target, with the means that the runtime itself has to look.

use std::collections::{BTreeMap, BTreeSet};

use recording::tables::{Process, Request, Sample, Standing, WaitStack};

use crate::answer::{Gap, Unseen};
use crate::case::Case;
use crate::facts::requests::{Endpoint, LATE_NS, Requests};
use crate::facts::stacks::Stacks;
use crate::facts::unexplained::Unexplained;
use crate::facts::waiting::Waiting;
use crate::judgement::standing::{HARDLY_ANY, MIN_SHARE, matters};
use crate::runtimes::opaque::{self, Opaque};
use crate::statistics::share;
use crate::wording::percent;

/// What may wait unseen, and how to see it.
pub(crate) struct Hidden {
    /// Words for what waits.
    pub what: String,
    /// A command, or where to look.
    pub look: String,
}

/// What may stand in the target's own queues.
pub(crate) fn look(case: &Case) -> Hidden {
    look_at(case, who_answers(case))
}

/// The same, to be seen in one of its processes.
pub(crate) fn look_at(case: &Case, pid: Option<u32>) -> Hidden {
    by_runtime(case, pid).unwrap_or_else(|| Hidden {
        what: "tasks in a pool or behind a lock of its own".to_string(),
        look: format!("a debugger's stacks of all threads, such as `eu-stack -p {}`", words(pid)),
    })
}

/// By the means that its runtime has, if it is known.
pub(crate) fn by_its_runtime(case: &Case) -> Option<Hidden> {
    by_runtime(case, who_answers(case))
}

fn by_runtime(case: &Case, pid: Option<u32>) -> Option<Hidden> {
    let runtime = runtime(case)?;
    Some(Hidden { what: runtime.what.to_string(), look: runtime.look.replace("PID", &words(pid)) })
}

fn words(pid: Option<u32>) -> String {
    pid.map_or("PID".to_string(), |pid| pid.to_string())
}

/// The number of that process for a command, or `PID`.
pub(crate) fn pid_of_who_answers(case: &Case) -> String {
    words(who_answers(case))
}

/// The process that has most of the requests in hand: of a master and its workers, a worker. One that comes and goes with its connection
/// nobody can look at any more.
pub(crate) fn who_answers(case: &Case) -> Option<u32> {
    let mut by_pid: BTreeMap<u32, f64> = BTreeMap::new();
    let lasting: BTreeSet<u32> = case.recording.rows::<Process>().iter().map(|row| row.pid).collect();
    let is_there = |row: &&Request| lasting.is_empty() || lasting.contains(&row.pid);
    for row in case.recording.rows::<Request>().iter().filter(|row| row.is_accepted()).filter(is_there) {
        *by_pid.entry(row.pid).or_default() += row.t_ns.saturating_sub(row.began_ns) as f64;
    }
    let most = by_pid.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    most.map(|(pid, _)| pid).or_else(|| case.recording.meta.target.pids.first().copied())
}

/// The gap that every target has whose runtime keeps such queues and that serves somebody; with what the connections say.
pub(crate) fn gap_of(case: &Case) -> Option<Gap> {
    let (runtime, waiting) = (runtime(case)?, case.fact::<Waiting>().ok()?);
    if !waiting.serves {
        return None;
    }
    let so_far = match case.fact::<Unexplained>() {
        Ok(u) if !matters(&u) => match u.late {
            few if few < HARDLY_ANY => few_late(case),
            late if u.rest() < late * MIN_SHARE => format!(
                "; {late:.1} answers at a time were owed for 10 ms or longer, and what was measured explains them"
            ),
            late => format!(
                "; {late:.1} answers at a time were owed for 10 ms or longer, and what for was not seen: too few to call it more \
                 than chance"
            ),
        },
        _ => String::new(),
    };
    let Hidden { what, look } = look(case);
    let why = format!("{what} wait where the kernel sees nothing ({}){so_far}; to see them: {look}", runtime.name);
    Some(Gap::new("queues inside the program", Unseen::InsideTheProgram, why))
}

/// What can have been lost there, where hardly any answer was owed for long when it was looked: looks are ten a second, and
/// answers that took long are counted one by one.
fn few_late(case: &Case) -> String {
    let requests = case.fact::<Requests>().ok();
    let main = requests.as_ref().and_then(|requests| requests.main());
    if main.is_some_and(Endpoint::is_mixed) {
        return "; requests are not told apart on their connections, so that how long each takes is not seen".into();
    }
    let late = main.map(|main| {
        let times = &main.response;
        (share(times.count_from(LATE_NS), times.count), times.share_of_time_from(LATE_NS))
    });
    match late.filter(|(number, _)| *number > 0.0) {
        Some((number, time)) => format!(
            "; {} of the answers took 10 ms or longer, {} of all the time that clients waited: hardly more than that can have been \
             lost there",
            percent(number),
            percent(time)
        ),
        None => "; no answer was owed for 10 ms or longer, so little can have been lost there".into(),
    }
}

/// The runtime of the target, told by the functions in its samples and waits; where it has none, as while it stands still, by its
/// program.
fn runtime(case: &Case) -> Option<&'static Opaque> {
    by_functions(case).or_else(|| {
        let answers = who_answers(case)?;
        let process = case.recording.rows::<Process>().iter().rfind(|row| row.pid == answers)?;
        opaque::of_program(&process.exe)
    })
}

fn by_functions(case: &Case) -> Option<&'static Opaque> {
    let stacks = case.fact::<Stacks>().ok()?;
    let samples = case.recording.rows::<Sample>().iter().map(|row| row.stack);
    let waits = case.recording.rows::<WaitStack>().iter().filter(|row| !row.wakes).map(|row| row.stack);
    let stand = case.recording.rows::<Standing>().iter().map(|row| row.user_stack);
    let mut ids: Vec<u32> = samples.chain(waits).chain(stand).collect();
    ids.sort_unstable();
    ids.dedup();
    opaque::of(ids.into_iter().flat_map(|id| stacks.user(id)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    const GO: &str = "meta host.arch=x86_64 length_ns=1e9 target.pids=[7]
        process pid=7 listen=[\"tcp 0.0.0.0:80\"]
        thread t_ns=1e9 pid=7 tid=7 wall_ns=1e9 cpu_ns=3e7 blocked_ns=97e7
        frame id=1 symbol=runtime.findRunnable module=svc kind=native
        stack id=1 frames=[1]
        sample pid=7 tid=7 stack=1
        wakeup t_ns=5e8 pid=7 tid=7 wait_ns=1e6 syscall=232 family=2 local_port=80 remote_port=5 context=interrupt\n";

    #[test]
    fn a_runtime_that_serves_is_named_with_what_to_run() {
        let recording = parse(GO).unwrap();
        let gap = gap_of(&Case::new(&recording)).unwrap();
        assert!(gap.why.contains("goroutines") && gap.why.contains("pprof"), "{gap:?}");
        let few = format!("{GO}connection t_ns=1 role=accepted port=80 looks=100 open=800 late=20");
        assert!(gap_of(&Case::new(&parse(&few).unwrap())).unwrap().why.contains("0.2 answers at a time"));
    }

    #[test]
    fn nobody_is_served_or_nothing_is_hidden() {
        let unasked = GO.replace("local_port=80", "local_port=90");
        assert!(gap_of(&Case::new(&parse(&unasked).unwrap())).is_none());
        let plain = GO.replace("runtime.findRunnable", "handle");
        assert!(gap_of(&Case::new(&parse(&plain).unwrap())).is_none());
        assert!(look(&Case::new(&parse(&plain).unwrap())).look.contains("eu-stack -p 7"));
        let worker =
            format!("{plain}request t_ns=9e8 role=accepted port=80 pid=9 began_ns=1e8 began_tid=9 ended_tid=9\n");
        let gone = look(&Case::new(&parse(&worker).unwrap())).look;
        assert!(gone.contains("eu-stack -p 7"), "{gone}: it came and went with its connection");
        let there = format!("{worker}process pid=9\n");
        assert!(look(&Case::new(&parse(&there).unwrap())).look.contains("eu-stack -p 9"));
    }
}
