// SPDX-License-Identifier: Apache-2.0
//! A service stood still once while its collector was at work: too seldom for a share of the window, and everybody waited.

use super::super::{Outcome, Statement, evidence};
use super::RULE;
use crate::case::Case;
use crate::facts::garbage::{Collecting, Garbage};
use crate::judgement::standstill::{Standstill, look};
use crate::ledger::threads::Threads;
use crate::runtimes::collectors::Collector;
use crate::statistics::ratio;
use crate::verdict::{Explains, Finding, Subject};
use crate::wording::{count, percent, seconds};

/// Of the time without an answer: so much CPU time the collector has to have had beyond what it uses otherwise.
const COLLECTED: f64 = 0.7;

/// Of its time, with the program stopped or helping.
const PAUSES: f64 = 0.1;

/// The finding, if it is one.
pub(super) fn check(case: &Case) -> Option<Outcome> {
    let seen = look(case)?;
    let (collector, collected_ns) = collected(case, &seen)?;
    if collected_ns < seen.ns * COLLECTED {
        return None;
    }
    let headline = format!(
        "for {} nobody got an answer, while {} requests waited and the garbage collector of {} was at work",
        seconds(seen.ns / 1e9),
        count(seen.requests as f64),
        collector.runtime
    );
    let finding = finding(case, &seen, collector, collected_ns);
    Some(Outcome::Found(Box::new(finding), Statement::short(headline, collector.less_often)))
}

/// The collector, and its CPU time in the slices around the standstill beyond what it uses in as long otherwise, ns.
fn collected(case: &Case, seen: &Standstill) -> Option<(&'static Collector, f64)> {
    let then = case.part(seen.slices())?;
    let Collecting { collector, part, paused } = then.fact::<Garbage>().ok()?.0?;
    // One that works beside the program, on CPUs of its own, keeps nobody waiting.
    if paused < part * PAUSES {
        return None;
    }
    let of_window = case.fact::<Garbage>().ok()?.0.map_or(0.0, |collecting| collecting.part);
    let (then_ns, otherwise_ns) = (then.length_ns(), case.length_ns() - then.length_ns());
    // What it uses beside a standstill is not known of a part that has nothing beside it.
    if otherwise_ns <= 0.0 {
        return None;
    }
    let then_gc = part * then.fact::<Threads>().ok()?.total.cpu_ns;
    let all_gc = of_window * case.fact::<Threads>().ok()?.total.cpu_ns;
    Some((collector, then_gc - ratio((all_gc - then_gc).max(0.0), otherwise_ns) * then_ns))
}

fn finding(case: &Case, seen: &Standstill, collector: &Collector, collected_ns: f64) -> Finding {
    let meta = &case.recording.meta.target;
    let part = ratio(seen.ns, case.length_ns()).min(1.0);
    Finding {
        summary: format!(
            "Nobody was answered at {} for {}, {} of the window, where {} answers were due. In the slices around that the garbage \
             collector of {} had {} of CPU time more than it has in as long otherwise",
            seen.endpoint,
            seconds(seen.ns / 1e9),
            percent(part),
            count(seen.due.round()),
            collector.runtime,
            seconds(collected_ns / 1e9)
        ),
        subject: Subject { pid: meta.pids.first().copied(), comm: Some(meta.comm.clone()), ..Subject::default() },
        explains: Explains { share: part, of: "the window".into(), seconds: seen.ns / 1e9 },
        evidence: vec![
            evidence("the longest time without an answer", seen.ns / 1e9, "s", "as long as an answer takes", ""),
            evidence("requests that waited then", seen.requests as f64, "requests", "", ""),
            evidence("the collector's CPU time then, beyond its usual", collected_ns / 1e9, "s", "a small part", ""),
        ],
        remedy: format!(
            "Make it collect less often ({}), or keep less alive: how long the program stands still grows with what the collector \
             has to look through.",
            collector.less_often
        ),
        check: "The longest time without an answer is as short as an answer takes, at the same load.".into(),
        // Samples tell of the collector, sockets of the silence.
        ..RULE.finding(case, 2)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::asking::{found, silent};
    use super::super::RULE;

    /// Six seconds, in the fourth of which nobody got an answer for 400 ms, and so many of a hundred samples are the collector's.
    fn text(collecting: u32) -> String {
        let mut text = "meta host.arch=x86_64 length_ns=6e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"] target.sample_hz=100
            frame id=1 symbol=runtime.scanobject module=svc kind=native
            frame id=2 symbol=main.handle module=svc kind=native
            frame id=3 symbol=runtime.gcAssistAlloc module=svc kind=native
            stack id=1 frames=[1,3] complete=true
            stack id=2 frames=[2] complete=true
            exchange_window t_ns=6e9 length_ns=6e9
            exchange t_ns=4e9 role=accepted port=80 stage=response count=600 sum_ns=6e8 length_ns=[1000000] counts=[600] stood_ns=4e8 stood=9\n"
            .to_string();
        for slice in 1..7 {
            let collecting = if slice == 4 { collecting } else { 2 };
            text += &format!(
                "thread t_ns={slice}e9 pid=1 tid=1 comm=svc wall_ns=1e9 cpu_ns=6e8 blocked_ns=4e8
                 sample t_ns={at}e8 pid=1 tid=1 comm=svc stack=1 weight={collecting}
                 sample t_ns={at}e8 pid=1 tid=1 comm=svc stack=2 weight={}\n",
                100 - collecting,
                at = slice * 10 - 5
            );
        }
        text
    }

    #[test]
    fn a_collection_during_which_nobody_is_answered() {
        let finding = found(&RULE, &text(70));
        assert!(finding.summary.contains("for 400 ms, 6.7 % of the window, where 40 answers"), "{}", finding.summary);
        silent(&RULE, &text(30));
    }
}
