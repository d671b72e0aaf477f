// SPDX-License-Identifier: Apache-2.0
//! A service stood still once because the one thread that serves all computed: too seldom for shares of the window, and whoever
//! waited was not followed.

use recording::tables::Thread;

use super::super::{Outcome, Statement, evidence};
use super::place::{self, Place};
use super::{RULE, mostly_in};
use crate::case::Case;
use crate::judgement::paths::one_thread;
use crate::judgement::standstill::{Standstill, look};
use crate::statistics::ratio;
use crate::verdict::{Explains, Finding, Subject};
use crate::wording::{count, percent, seconds, short};

/// Of the time without an answer, on a CPU: the rest is what the slices around it have besides.
const COMPUTED: f64 = 0.7;

/// The finding, if the thread is known.
pub(super) fn check(case: &Case) -> Option<Outcome> {
    let seen = look(case).filter(|seen| seen.is_followed)?;
    let thread = one_thread(case, seen.port)?;
    let (comm, on_cpu_ns) = computed(case, thread, &seen)?;
    if on_cpu_ns < seen.ns * COMPUTED {
        return None;
    }
    let function = place::name(case, thread);
    let headline = format!(
        "for {} nobody got an answer, while {} requests waited and the one thread that serves them computed",
        seconds(seen.ns / 1e9),
        count(seen.requests as f64)
    );
    let place = function.as_ref().map_or_else(|| "what it computes for long".to_string(), |place| short(&place.whole));
    let finding = finding(case, &seen, (thread, comm, on_cpu_ns), function);
    Some(Outcome::Found(Box::new(finding), Statement::short(headline, format!("take {place} out of the loop"))))
}

/// The thread's name, and its CPU time in the slices around the standstill beyond what it uses otherwise, ns.
fn computed(case: &Case, thread: (u32, u32), seen: &Standstill) -> Option<(String, f64)> {
    let rows = case.recording.rows::<Thread>().iter().filter(|row| (row.pid, row.tid) == thread);
    let begin = seen.until_ns - seen.ns;
    // It ended within the slice before `until_ns`, whose length is not known better than this.
    let around = |row: &&Thread| row.t_ns as f64 > begin - row.wall_ns as f64 && row.t_ns as f64 <= seen.until_ns;
    let (then, otherwise): (Vec<&Thread>, Vec<&Thread>) = rows.partition(around);
    // What it uses beside a standstill is not known of a part that has nothing beside it.
    if otherwise.is_empty() {
        return None;
    }
    let sum = |of: &[&Thread], ns: fn(&Thread) -> u64| of.iter().map(|row| ns(row) as f64).sum::<f64>();
    let usual = ratio(sum(&otherwise, |row| row.cpu_ns), sum(&otherwise, |row| row.wall_ns));
    let beside = (sum(&then, |row| row.wall_ns) - seen.ns).max(0.0);
    Some((then.first()?.comm.clone(), sum(&then, |row| row.cpu_ns) - usual * beside))
}

fn finding(
    case: &Case,
    seen: &Standstill,
    ((pid, tid), comm, on_cpu_ns): ((u32, u32), String, f64),
    function: Option<Place>,
) -> Finding {
    let mostly = function.as_ref().map_or(String::new(), mostly_in);
    let part = ratio(seen.ns, case.length_ns()).min(1.0);
    Finding {
        summary: format!(
            "Nobody was answered at {} for {}, where {} answers were due; {} requests that stood then were answered after it. \
             Thread {comm} (tid {tid}), which serves all, was on a CPU for {} of that.{mostly}",
            seen.endpoint,
            seconds(seen.ns / 1e9),
            count(seen.due.round()),
            count(seen.requests as f64),
            percent(ratio(on_cpu_ns, seen.ns).min(1.0))
        ),
        subject: Subject { pid: Some(pid), tid: Some(tid), comm: Some(comm), ..Subject::default() },
        explains: Explains { share: part, of: "the window".into(), seconds: seen.ns / 1e9 },
        evidence: vec![
            evidence("the longest time without an answer", seen.ns / 1e9, "s", "as long as an answer takes", ""),
            evidence("requests that waited then", seen.requests as f64, "requests", "", ""),
            evidence(
                "the thread's CPU time then",
                on_cpu_ns / 1e9,
                "s",
                "a small part",
                format!("pidstat -t -p {pid} 1"),
            ),
        ],
        remedy: RULE.explained().what_to_do,
        check: "The longest time without an answer is as short as an answer takes, at the same load.".into(),
        ..RULE.finding(case, 2)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::asking::{found, silent};
    use super::super::RULE;

    /// Six seconds, in the fourth of which nobody got an answer for 800 ms; the thread used so much of a CPU then.
    fn text(cpu_ns: &str, others: u32) -> String {
        let mut text = "meta host.arch=x86_64 length_ns=6e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"] target.sample_hz=100
            wakeup
            exchange_window t_ns=6e9 length_ns=6e9
            exchange t_ns=4e9 role=accepted port=80 stage=response count=600 sum_ns=6e8 length_ns=[1000000] counts=[600] stood_ns=8e8 stood=9\n"
            .to_string();
        for slice in 1..7 {
            let cpu = if slice == 4 { cpu_ns } else { "5e7" };
            text += &format!("thread t_ns={slice}e9 pid=1 tid=1 comm=loop wall_ns=1e9 cpu_ns={cpu} blocked_ns=1e8\n");
        }
        for nth in 0..100 {
            let tid = if nth < others { 2 } else { 1 };
            let at = 10 + nth * 20;
            text += &format!(
                "request t_ns={}e6 role=accepted port=80 pid=1 began_ns={at}e6 began_tid={tid} read_ns={at}e6 ended_tid={tid}\n",
                at + 1
            );
        }
        text
    }

    #[test]
    fn a_loop_that_computes_once_for_long() {
        let finding = found(&RULE, &text("84e7", 0));
        assert!(finding.summary.contains("for 800 ms, where 80 answers were due; 9 requests"), "{}", finding.summary);
        assert_eq!(finding.subject.tid, Some(1));
    }

    #[test]
    fn one_that_waited_or_is_not_alone() {
        silent(&RULE, &text("2e8", 0));
        silent(&RULE, &text("84e7", 40));
    }
}
