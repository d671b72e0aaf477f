// SPDX-License-Identifier: Apache-2.0
//! The verdict: every rule asked, findings ranked by explained time, the rest ruled out or gaps.

mod by_path;
mod request_times;

use std::collections::BTreeMap;

use recording::{Recording, tables};

use crate::answer::{Gap, Host, Reason, RuledOut, SCHEMA, TOOL, Target, Window};
use crate::case::Case;
use crate::facts::limits::Limits;
use crate::facts::quality::Quality;
use crate::facts::requests::Requests;
use crate::judgement::{errors, hanging, paths};
use crate::ledger::connections::Lives;
use crate::ledger::threads::Threads;
use crate::remarks::{
    self, Remark, besides_hang, hidden_queues, inner_queues, largest_line, own_clients, slo, slow_label, unnamed,
};
use crate::rules::{Check, NotIt, Outcome, RULES};
use crate::statement::Statement;
use crate::statistics::ratio;
use crate::verdict::{Finding, Ledger, Link, Symptom, Verdict};
use crate::wording::percent;

/// Diagnoses a recording. Never fails: what is missing is a gap, and too many gaps are the verdict
/// `not-determined`.
pub fn diagnose(recording: &Recording) -> Verdict {
    judge(&Case::new(recording))
}

/// Adds to the capture's cost what making the verdict cost, which is known once it is made. A verdict that is made of the
/// recording later, with that row in it, says the same.
pub fn add_cost(verdict: &mut Verdict, recording: &Recording, more: &tables::Cost) {
    let rows = recording.rows::<tables::Cost>().iter().chain([more]);
    let all_ns: f64 = rows.map(|c| c.cpu_ns as f64).sum();
    let cost = &mut verdict.cost;
    cost.cpu_seconds = all_ns / 1e9;
    cost.share_of_machine = ratio(cost.cpu_seconds, verdict.window.seconds * f64::from(recording.meta.host.cpus));
}

/// The verdict of a case: the same as [`diagnose`] for whoever asks more, or goes on asking the case for facts.
pub fn judge(case: &Case<'_>) -> Verdict {
    let recording = &*case.recording;
    let mut asked = Asked::default();
    // A recording of the whole host names no target whose time could be explained.
    if recording.meta.kind != "host" {
        asked.accusing(case);
    }
    let (mut verdict, mut statement) = asked.outcome(case);
    name_requests(case, &verdict, &mut statement);
    if let Some(missed) = slo::missed(case) {
        verdict = slo::tell(case, missed, verdict, &mut statement);
    }
    let quality = case.fact::<Quality>().ok();
    asked.gaps.extend(quality.iter().flat_map(|q| q.gaps.clone()));
    asked.gaps.extend(unnamed::function_names(case));
    asked.unseen_pools(case);
    asked.gaps.extend(hidden_queues::gap_of(case));
    asked.gaps.extend(slo::unseen(case));
    asked.gaps.dedup();
    asked.gaps.extend(case.not_compared.clone());
    Verdict {
        schema: SCHEMA,
        tool: TOOL.to_string(),
        host: Host::of(recording),
        target: Target::of(recording),
        window: Window::of(recording),
        symptom: symptom(case, !asked.findings.is_empty()),
        verdict,
        headline: statement.headline,
        advice: statement.advice,
        detail: statement.detail,
        findings: asked.findings.into_iter().map(|(finding, _)| finding).collect(),
        ruled_out: asked.ruled_out,
        gaps: asked.gaps,
        requests: request_times::all(case),
        ledger: ledger(case),
        coverage: quality.as_ref().map_or_else(Default::default, |q| q.coverage.clone()),
        cost: quality.as_ref().map_or_else(Default::default, |q| q.cost.clone()),
        slo: slo::held(case),
        timeline: Vec::new(),
        comparison: case.comparison.clone(),
    }
}

/// Adds what clients get instead of answers, where a verdict is about the time of those that got one; and which requests are slow,
/// where something is wrong and they have labels.
fn name_requests(case: &Case, verdict: &str, statement: &mut Statement) {
    let failed = errors::instead_of_answers(case);
    if let Some(failed) = failed.filter(|failed| !statement.headline.contains(&failed.what)) {
        statement.headline += &format!("; {}", failed.what);
        statement.detail += format!(" Besides, {}. {}", failed.what, failed.about).trim_end();
    }
    if let Some(slow) = slow_label::headline(case).filter(|_| verdict != "healthy") {
        statement.headline += &format!("; {slow}");
    }
}

/// Answers of the rules so far.
#[derive(Default)]
struct Asked {
    findings: Vec<(Finding, Statement)>,
    ruled_out: Vec<RuledOut>,
    gaps: Vec<Gap>,
}

impl Asked {
    fn accusing(&mut self, case: &Case) {
        for rule in RULES {
            let Check::Accuses(check) = rule.check else { continue };
            match check(case) {
                Ok(Outcome::Found(finding, said)) => self.found(case, *finding, said),
                Ok(Outcome::RuledOut(not_it)) => self.rule_out(rule.cause, not_it),
                Err(gap) => self.gaps.push(gap.of_cause(rule.cause)),
            }
        }
        let known = |cause: &str| self.findings.iter().any(|(finding, _)| finding.cause == cause);
        let by_path = by_path::found(case, known);
        self.ruled_out.retain(|ruled| !by_path.iter().any(|(finding, _)| finding.cause == ruled.cause));
        self.gaps.retain(|gap| !by_path.iter().any(|(finding, _)| gap.cause.as_deref() == Some(&finding.cause)));
        self.findings.extend(by_path);
        rank(&mut self.findings, |finding| felt(case, finding));
        self.ruled_out.sort_by_key(|ruled| !ruled.could_be);
    }

    /// A finding stands unless requests were seen not to wait for it, or those that hang are not explained by it.
    fn found(&mut self, case: &Case, finding: Finding, said: Statement) {
        let of_answered = |_: &f64| !finding.explains.is_of_hanging() && !finding.explains.is_of_queued();
        let followed = paths::not_for_requests(case, &finding.cause, asked(&finding)).filter(of_answered).map(|part| {
            let part = percent(part);
            format!("threads waited for it, but requests that were followed from end to end spent {part} of their time on it")
        });
        let hang = || hanging::not_for(case, &finding).filter(|_| paths::are_waits(&finding.cause));
        let Some(why) = followed.or_else(hang) else {
            return self.findings.push((finding, said));
        };
        let why = format!("{why}: {}", said.headline);
        self.rule_out(&finding.cause, NotIt { why, could_be: true, reason: Reason::Explained, measured: None });
    }

    fn rule_out(&mut self, cause: &str, NotIt { why, could_be, reason, measured }: NotIt) {
        self.ruled_out.push(RuledOut { cause: cause.to_string(), why, could_be, reason, measured });
    }

    /// A pool that may be empty where nobody sees it: then it is not ruled out. One that was found is not unseen.
    fn unseen_pools(&mut self, case: &Case) {
        let found = |gap: &Gap| self.findings.iter().any(|(finding, _)| Some(&finding.cause) == gap.cause.as_ref());
        let Some(gap) = inner_queues::unseen(case).filter(|gap| !found(gap)) else { return };
        self.ruled_out.retain(|ruled| Some(&ruled.cause) != gap.cause.as_ref());
        self.gaps.push(gap);
    }

    /// The verdict's cause, and what it says.
    fn outcome(&self, case: &Case) -> (String, Statement) {
        if let Some((first, said)) = self.findings.first() {
            let mut said = said.clone();
            let besides = besides_hang::remark(case, first);
            let besides = besides.or_else(|| largest_line::beside(case, first, &said.headline));
            remarks::add(&mut said, &besides.into_iter().collect::<Vec<_>>());
            return (first.cause.clone(), said);
        }
        for rule in RULES {
            let Check::Neutral(check) = rule.check else { continue };
            if let Some(mut statement) = check(case, &self.gaps) {
                temper(case, &mut statement);
                return (rule.cause.to_string(), statement);
            }
        }
        (
            "not-determined".to_string(),
            Statement::short("the evidence does not carry a verdict", "record again, for longer"),
        )
    }
}

/// Adds to a verdict that accuses nobody what a reader must know before relying on it.
fn temper(case: &Case, statement: &mut Statement) {
    let largest = largest_line::remark(case, &statement.headline);
    let said: Vec<Remark> = own_clients::remark(case).into_iter().chain(largest).collect();
    remarks::add(statement, &said);
    if let Some(advice) = said.into_iter().find_map(|remark| remark.advice) {
        statement.advice = advice;
    }
}

/// Whom a finding says to be slow, over a socket.
fn asked(finding: &Finding) -> Option<&str> {
    finding.subject.socket.as_deref().filter(|_| finding.cause == "slow-dependency")
}

/// What a finding explains, s; of the time of threads, no more than clients were seen to wait for it.
fn felt(case: &Case, finding: &Finding) -> f64 {
    let is_of_answers = !finding.explains.is_of_hanging() && !finding.explains.is_of_queued();
    let felt = paths::felt_seconds(case, &finding.cause, asked(finding)).filter(|_| is_of_answers);
    felt.map_or(finding.explains.seconds, |felt| felt.min(finding.explains.seconds))
}

/// Causes that are told by CPU time, or by the want of it.
const OF_CPU: [&str; 4] = ["cpu-throttled", "run-queue-wait", "cpu-steal", "hot-code"];

/// By the time that each explains; but waste comes before the quota that it uses up: without the waste there
/// would be less to throttle, while a larger quota would only be wasted too. And a root comes before what stands on it.
fn rank(findings: &mut [(Finding, Statement)], seconds: impl Fn(&Finding) -> f64) {
    findings.sort_by(|(a, _), (b, _)| seconds(b).total_cmp(&seconds(a)));
    let is_waste = |(f, _): &(Finding, Statement)| f.cause == "busy-poll" && f.explains.share >= 0.5;
    if let Some(waste) = findings.iter().position(is_waste) {
        let of_cpu = findings[..waste].iter().position(|(finding, _)| OF_CPU.contains(&finding.cause.as_str()));
        findings[of_cpu.unwrap_or(waste)..=waste].rotate_right(1);
    }
    for at in 1..findings.len() {
        let stands_on = |earlier: &(Finding, Statement)| is_root(&findings[at].0, &earlier.0);
        if let Some(first) = findings[..at].iter().position(stands_on) {
            findings[first..=at].rotate_right(1);
        }
    }
    findings.sort_by_key(|(finding, _)| place(finding));
}

/// Of causes that lead to others whatever those took: where nothing can be opened, accept() fails at once, is asked again and
/// leaves a queue. And where connections are not taken, why is the cause: a full queue only passes it on to the clients, unless it is
/// too short for those that come at once, and is soon empty again.
fn place(finding: &Finding) -> u8 {
    match finding.cause.as_str() {
        "fd-exhausted" => 0,
        "accept-queue-full" if !finding.is_root => 2,
        _ => 1,
    }
}

/// Whether what one finding begins with is a later link of the other's chain. Or both are told of the same waits, and those of a
/// loop that keep all others waiting explain no less than half as much: whom it asks may take as long where nobody stands behind.
fn is_root(root: &Finding, other: &Finding) -> bool {
    let Some(first) = root.chain.first() else { return false };
    let is_first = |link: &Link| link.who == first.who && link.waits_on == first.waits_on;
    let loop_asks = root.cause == "event-loop-blocked" && other.cause == "slow-dependency";
    let is_felt = root.explains.seconds * 2.0 >= other.explains.seconds;
    other.chain.iter().skip(1).any(is_first) || loop_asks && is_felt && other.chain.first().is_some_and(is_first)
}

/// What is explained: how long its clients wait, where that was seen. Else its CPU time; a target that uses less than a
/// twentieth of a CPU shows no symptom there.
fn symptom(case: &Case, found: bool) -> Symptom {
    if let Some(main) = case.fact::<Requests>().ok().as_ref().and_then(|requests| requests.main()) {
        let p99 = main.response.quantile_ns(0.99) / 1e9;
        let (kind, unit, source) = ("response-time".into(), "s".into(), "sockets".into());
        return Symptom { kind, value: p99, unit, baseline: None, source };
    }
    let cores = case.fact::<Limits>().map_or(0.0, |l| l.cores);
    let kind = if cores >= 0.05 || found { "cpu" } else { "none-seen" };
    let baseline = case.comparison.as_ref().map(|c| c.a.cores);
    Symptom { kind: kind.into(), value: cores, unit: "cores".into(), baseline, source: "counters".into() }
}

fn ledger(case: &Case) -> Ledger {
    let mut threads = BTreeMap::new();
    if let Ok(ledger) = case.fact::<Threads>() {
        threads.extend(ledger.total.named().into_iter().map(|(line, ns)| (line.to_string(), ns / 1e9)));
        threads.insert("wall".to_string(), ledger.total.wall_ns / 1e9);
    }
    let lives = case.fact::<Lives>();
    let lives = lives.iter().flat_map(|lives| lives.lines.iter());
    let connections = lives.filter(|(_, ns)| **ns > 0.0).map(|(line, ns)| ((*line).to_string(), ns / 1e9));
    Ledger { threads, connections: connections.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Explains;

    fn finding(cause: &str, seconds: f64, chain: &[&str]) -> (Finding, Statement) {
        let link = |who: &&str| Link { who: (*who).into(), waits_on: "read".into(), ..Link::default() };
        let chain = chain.iter().map(link).collect();
        let explains = Explains { seconds, ..Explains::default() };
        (Finding { cause: cause.into(), explains, chain, ..Finding::default() }, Statement::default())
    }

    #[test]
    fn a_root_comes_before_what_stands_on_it() {
        let mut findings = [
            finding("other", 1.0, &["x"]),
            finding("root", 2.0, &["b", "c"]),
            finding("queue", 9.0, &["a", "b", "c"]),
            finding("middle", 5.0, &[]),
        ];
        rank(&mut findings, |finding| finding.explains.seconds);
        let order: Vec<&str> = findings.iter().map(|(f, _)| f.cause.as_str()).collect();
        assert_eq!(order, ["root", "queue", "middle", "other"]);
    }

    #[test]
    fn a_queue_that_is_too_short_for_bursts_is_a_root() {
        let first = |is_root: bool| {
            let (mut queue, said) = finding("accept-queue-full", 99.0, &[]);
            queue.is_root = is_root;
            let mut findings = [finding("sleep-in-path", 2.0, &[]), (queue, said)];
            rank(&mut findings, |finding| finding.explains.seconds);
            findings[0].0.cause.clone()
        };
        assert_eq!((first(false).as_str(), first(true).as_str()), ("sleep-in-path", "accept-queue-full"));
    }

    #[test]
    fn a_loop_that_waits_for_an_answer_comes_before_whom_it_asks() {
        let first = |seconds: f64, asked: &[&str]| {
            let mut findings =
                [finding("event-loop-blocked", seconds, &["a", "b"]), finding("slow-dependency", 9.0, asked)];
            rank(&mut findings, |finding| finding.explains.seconds);
            findings[0].0.cause.clone()
        };
        assert_eq!(first(5.0, &["a", "b"]), "event-loop-blocked");
        assert_eq!(first(5.0, &["c", "b"]), "slow-dependency");
        assert_eq!(first(4.0, &["a", "b"]), "slow-dependency");
    }

    #[test]
    fn waste_comes_before_what_the_want_of_cpu_explains_and_not_before_a_wait() {
        let order = |first: &str, share: f64| {
            let mut findings =
                [finding("busy-poll", 2.0, &[]), finding(first, 9.0, &[]), finding("disk-wait", 5.0, &[])];
            findings[0].0.explains.share = share;
            rank(&mut findings, |finding| finding.explains.seconds);
            findings.map(|(f, _)| f.cause)
        };
        assert_eq!(order("cpu-throttled", 0.8), ["busy-poll", "cpu-throttled", "disk-wait"]);
        assert_eq!(order("slow-dependency", 0.8), ["slow-dependency", "disk-wait", "busy-poll"]);
        assert_eq!(order("cpu-throttled", 0.3), ["cpu-throttled", "disk-wait", "busy-poll"]);
    }
}
