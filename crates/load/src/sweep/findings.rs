// SPDX-License-Identifier: Apache-2.0
//! What a sweep found besides its limit.

use super::pool::Loads;
use super::{CLIENT, CpuLine, FACTOR, FALLS, KEPT, Step, Sweep};
use crate::lengths::Percentiles;
use crate::queued::too_short;
use crate::reason::Reason;
use crate::reasons::{FAILED, rounded, time, words};
use crate::run::Failure;
use crate::verdict::{Meanwhile, Verdict};

/// How much longer answers take at the lower of two loads, each time, if it is a paradox.
const LONGER: f64 = 1.3;
/// The same of the slowest in a hundred and in ten, which differ more by chance.
const TAIL_LONGER: f64 = 2.0;
/// Differences that nobody feels, s: cold caches, idle states of CPUs and timers cost what sleeps longer some of it.
const FELT: f64 = 5e-3;
/// Hand-overs of a request from one thread to the next: at each a CPU that sleeps may have to wake first, as it does for the client's
/// own timer. A dozen processes, there and back, with a thread more here and there.
const HANDOVERS: f64 = 30.0;
/// CPUs that a service takes without being asked, and their share of the most that it took, if that is worth a word.
const FLOOR: f64 = 0.05;
const FLOOR_SHARE: f64 = 0.3;
/// Of the floor, what a service takes at least at any load, if its CPU time is a line.
const STRAIGHT: f64 = 0.8;
/// Verdicts that accuse nobody.
const NEUTRAL: [&str; 2] = ["healthy", "not-determined"];
/// Of the requests that failed, those that did for one reason.
const MOSTLY: f64 = 0.8;

fn reason(code: &str, sentence: String) -> Reason {
    Reason { code: code.into(), sentence }
}

impl Step {
    /// Why the first load of a sweep was not sustained.
    fn too_many_already(&self) -> Reason {
        match self.verdict.reasons.iter().find(|reason| reason.code == "errors") {
            Some(errors) if self.may_be_too_much() => Reason {
                code: "over-from-the-start".into(),
                sentence: format!("already at {} a second {}: begin lower", rounded(self.rate), errors.sentence),
            },
            Some(errors) => Reason {
                code: "fails-from-the-start".into(),
                sentence: format!(
                    "already at {} a second {}: no question of load",
                    rounded(self.rate),
                    errors.sentence
                ),
            },
            None if self.verdict.is_too_short() => reason("too-short", too_short(&self.verdict)),
            None => Reason {
                code: "over-from-the-start".into(),
                sentence: format!("{} a second were too many already; begin lower", rounded(self.rate)),
            },
        }
    }
}

impl Step {
    /// Whether what failed most is what comes of too much: no answer in time, or one that says so.
    fn may_be_too_much(&self) -> bool {
        let most = self.verdict.errors.iter().max_by_key(|entry| entry.1).map(|entry| *entry.0);
        let status = self.verdict.statuses.iter().filter(|entry| *entry.0 >= 400).max_by_key(|entry| entry.1);
        match most {
            Some(Failure::Timeout | Failure::Unsent) => true,
            Some(Failure::Status) => status.is_some_and(|(status, _)| [429, 503].contains(status)),
            _ => false,
        }
    }
}

impl CpuLine {
    /// By least squares through requests a second and CPUs; none of fewer than three points, or of one load alone.
    pub fn through(points: &[(f64, f64)]) -> Option<Self> {
        let count = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (rate, cpus) = (mean(|point| point.0), mean(|point| point.1));
        let spread: f64 = points.iter().map(|point| (point.0 - rate).powi(2)).sum();
        if points.len() < 3 || spread <= 0.0 {
            return None;
        }
        let slope = points.iter().map(|point| (point.0 - rate) * (point.1 - cpus)).sum::<f64>() / spread;
        Some(Self { floor: cpus - slope * rate, seconds_per_request: slope })
    }
}

impl Sweep {
    /// What is to be known.
    pub(super) fn findings_of(&self, loads: &Loads<'_>) -> Vec<Reason> {
        let mut findings = Vec::new();
        if self.ended_early {
            findings.push(reason("ended-early", format!("it was ended after {} loads", self.steps.len())));
        }
        findings.extend(self.broken.clone());
        // Above the service's own limit it is nobody's concern.
        let is_in_question = |step: &&Step| self.knee.is_none_or(|knee| step.rate < knee.not_sustained);
        if let Some(step) = self.client_full().filter(is_in_question) {
            findings.push(self.no_more_by_the_client(step));
        } else if loads.is_out() {
            // No limit of the service, and said below.
        } else if let Some(first) = self.steps.first().filter(|step| self.broken.is_none() && self.is_too_much(step)) {
            findings.push(first.too_many_already());
        } else if self.knee.is_none() && !self.ended_early && self.broken.is_none() {
            findings.push(self.not_reached());
        }
        findings.extend(self.redirected());
        findings.extend(loads.findings());
        findings.extend(self.refuses());
        findings.extend(self.accused());
        findings.extend([self.paradox(), self.falls(), self.unasked(), self.promise()].into_iter().flatten());
        findings
    }

    /// That what it answers leads elsewhere: a limit of that says nothing of what is asked for.
    fn redirected(&self) -> Option<Reason> {
        let is_sustained = |step: &&Step| step.sustained;
        let all = self.steps.iter().filter(is_sustained).flat_map(|step| &step.verdict.reasons);
        all.into_iter().find(|reason| reason.code == "redirects").cloned()
    }

    /// That it has more than was asked for.
    fn not_reached(&self) -> Reason {
        let most = self.steps.iter().filter(|step| step.sustained).map(|step| step.rate).fold(0.0, f64::max);
        let sentence = format!(
            "{} a second, the most that was asked, are answered; its limit lies above: sweep further",
            rounded(most)
        );
        reason("not-reached", sentence)
    }

    /// That no further load could be tried.
    pub(super) fn broken_off(&self, rate: f64, why: &str) -> Reason {
        reason("broken-off", format!("at {} a second no load could be tried: {why}{}", rounded(rate), self.before()))
    }

    /// That nobody is there any more, and since which load.
    pub(super) fn gone(&self) -> Reason {
        let refused = self.steps.iter().rev().take_while(|step| step.verdict.errors.contains_key(&Failure::Refused));
        let since = refused.last().map_or(0.0, |step| step.rate);
        let why = "connections are refused, and nobody answers any more";
        reason("service-gone", format!("since a load of {} a second {why}{}", rounded(since), self.before()))
    }

    /// What was answered before that, and that it is no limit.
    fn before(&self) -> String {
        let below = self.steps.iter().filter(|step| step.sustained).map(|step| step.rate).max_by(f64::total_cmp);
        let below =
            below.map_or(String::new(), |below| format!("; up to {} a second were answered before", rounded(below)));
        format!("{below}, and what it could do is not known")
    }

    /// What the lowest load that was not sustained was answered instead: a service that says no to what is too much has its limit from
    /// whoever set that.
    pub(super) fn refuses(&self) -> Option<Reason> {
        let knee = self.knee?;
        let is_over = |step: &&Step| step.rate >= knee.not_sustained && !step.sustained && !step.is_of_client();
        let over = self.steps.iter().filter(is_over);
        let step = over.min_by(|a, b| a.rate.total_cmp(&b.rate))?;
        let failed = step.verdict.errors.values().sum::<u64>() as f64;
        let (failure, most) = step.verdict.errors.iter().max_by_key(|entry| entry.1)?;
        let says_no = matches!(failure, Failure::Status | Failure::Refused | Failure::Reset | Failure::Closed);
        let is_that = says_no && *most as f64 >= MOSTLY * failed && failed > FAILED * step.verdict.due as f64;
        let is_in_time = step.verdict.rate * step.verdict.length + failed >= KEPT * step.verdict.due as f64;
        let what = match (failure, step.verdict.statuses.iter().filter(|it| *it.0 >= 400).max_by_key(|it| it.1)) {
            (Failure::Status, Some((429, _))) => "with status 429: it limits the rate, as somebody has set it".into(),
            (Failure::Status, Some((status, _))) => format!("with status {status}"),
            (failure, _) => words(*failure).to_string(),
        };
        let part = 100.0 * failed / step.verdict.due.max(1) as f64;
        let sentence = format!(
            "what is too much is refused and not delayed: {part:.1} % at {} a second, {what}; more than 1 % is taken for too much",
            rounded(step.rate)
        );
        (is_that && is_in_time).then(|| reason("refuses", sentence))
    }

    /// The lowest load at which the client was at its limit, again and again: once may be a bad moment.
    pub(super) fn client_full(&self) -> Option<&Step> {
        let other = |rate: f64| self.steps.iter().any(|step| step.rate == rate && !step.is_of_client());
        let full = self.steps.iter().filter(|step| step.is_of_client() && !other(step.rate));
        full.min_by(|a, b| a.rate.total_cmp(&b.rate))
    }

    /// That the client could do no more at a load, and what was answered below.
    fn no_more_by_the_client(&self, step: &Step) -> Reason {
        let reasons = &step.verdict.reasons;
        let of_client = reasons.iter().find(|reason| CLIENT.contains(&reason.code.as_str()));
        let why = of_client.or(reasons.first()).map_or("", |reason| reason.sentence.as_str());
        let below = self.below_the_client();
        let below = below.map_or(String::new(), |at| format!("; {} a second were answered", rounded(at.sustained)));
        reason(
            "client-limited",
            format!("at {} a second the client was at its limit: {why}{below}", rounded(step.rate)),
        )
    }

    /// Whether a load was not sustained, and no such one or larger one ever was: once may be a cold start.
    fn is_too_much(&self, step: &Step) -> bool {
        let tries = self.steps.iter().filter(|other| other.rate == step.rate).count();
        let is_tried = tries > 1 || !self.ended_early;
        is_tried && !step.sustained && !self.steps.iter().any(|other| other.sustained && other.rate >= step.rate)
    }

    /// What the service is accused of at a load, or at the one above it.
    fn accused_at(&self, rate: f64) -> Option<&Meanwhile> {
        let near = |step: &&Step| (rate..=FACTOR * rate).contains(&step.rate);
        let mut near: Vec<&Step> = self.steps.iter().filter(near).collect();
        near.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        near.into_iter()
            .filter_map(|step| step.service.as_ref())
            .find(|service| !NEUTRAL.contains(&service.verdict.as_str()))
    }

    /// What the service is accused of at the lowest load that it did not sustain, else at the highest that it did.
    fn accused(&self) -> Option<Reason> {
        let knee = self.knee?;
        let at = |rate: f64| self.steps.iter().filter(move |step| step.rate == rate);
        let all = at(knee.not_sustained)
            .chain(at(knee.sustained))
            .filter_map(|step| Some((step.rate, step.service.as_ref()?)));
        let (rate, service) =
            all.clone().find(|(_, service)| !NEUTRAL.contains(&service.verdict.as_str())).or(all.clone().next())?;
        let rate = rounded(rate);
        let sentence = match service.verdict.as_str() {
            "not-determined" => {
                let Meanwhile { headline, advice, .. } = service;
                format!("at {rate} a second, what holds the service is not determined: {headline}; {advice}")
            }
            verdict => format!("at {rate} a second the service is diagnosed {verdict}: {}", service.headline),
        };
        Some(Reason { code: "service".into(), sentence })
    }

    fn most_cpus(&self) -> f64 {
        self.steps.iter().filter_map(|step| step.service.as_ref()).map(|service| service.cpus).fold(0.0, f64::max)
    }

    /// Least squares of CPUs over answers a second.
    pub(super) fn cpu_line(&self) -> Option<CpuLine> {
        let sustained = self.steps.iter().filter(|step| step.sustained);
        let points: Vec<(f64, f64)> =
            sustained.filter_map(|step| Some((step.verdict.rate, step.service.as_ref()?.cpus))).collect();
        let least = points.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
        // One that takes less at little load than the line says without any follows no line.
        CpuLine::through(&points).filter(|line| least >= STRAIGHT * line.floor)
    }

    /// Two sustained loads of which the lower one has the slower answers by a percentile, in each of its tries.
    fn quicker_when_loaded(&self, by: fn(&Percentiles) -> Option<f64>, longer: f64) -> Option<(f64, f64, [f64; 2])> {
        let sustained: Vec<&Step> = self.steps.iter().filter(|step| step.sustained).collect();
        let each = |rate: f64, of: &dyn Fn(&Verdict) -> Option<f64>| {
            let tries = sustained.iter().filter(|step| step.rate == rate);
            tries.filter_map(|step| of(&step.verdict)).collect::<Vec<f64>>()
        };
        let answers = |rate: f64| each(rate, &|verdict| by(&verdict.corrected));
        let lag = |rate: f64| each(rate, &|verdict| verdict.client.lag.p50);
        let least = |values: Vec<f64>| values.into_iter().min_by(f64::total_cmp);
        let most = |values: Vec<f64>| values.into_iter().max_by(f64::total_cmp);
        // What it costs here to be woken after a longer sleep, of which the service's own threads have no less.
        let wakes_later = |low: f64, high: f64| most(lag(low)).unwrap_or(0.0) - least(lag(high)).unwrap_or(0.0);
        let pairs = sustained.iter().flat_map(|low| sustained.iter().map(move |high| (low.rate, high.rate)));
        let found = pairs.filter(|(low, high)| low < high).filter_map(|(low, high)| {
            let (slow, quick) = (least(answers(low))?, most(answers(high))?);
            let felt = FELT.max(HANDOVERS * wakes_later(low, high));
            (slow > longer * quick && slow - quick > felt).then_some((low, high, [slow, quick]))
        });
        found.max_by(|a, b| (a.2[0] / a.2[1]).total_cmp(&(b.2[0] / b.2[1])))
    }

    fn falls_past_the_knee(&self) -> Option<(f64, f64)> {
        let best = self.steps.iter().max_by(|a, b| a.verdict.rate.total_cmp(&b.verdict.rate))?;
        let above = || self.steps.iter().filter(|step| step.rate > best.rate && !step.is_of_client());
        // One try may have met somebody else: the best of each load counts.
        let tries = |rate: f64| above().filter(move |step| step.rate == rate).map(|step| step.verdict.rate);
        let worst = above().filter_map(|step| tries(step.rate).max_by(f64::total_cmp)).min_by(f64::total_cmp)?;
        (worst < FALLS * best.verdict.rate).then_some((best.verdict.rate, worst))
    }
    /// That answers are slower at lower load, and why, if they are.
    fn paradox(&self) -> Option<Reason> {
        let half = self.quicker_when_loaded(|it| it.p50, LONGER).map(|found| ("p50", found));
        // The question may be held in a few of them alone.
        let tail = || self.quicker_when_loaded(|it| it.p90, TAIL_LONGER).map(|found| ("p90", found));
        let few = || self.quicker_when_loaded(|it| it.p99, TAIL_LONGER).map(|found| ("p99", found));
        let (name, (low, high, [slow, quick])) = half.or_else(tail).or_else(few)?;
        let by_itself =
            "what does not happen when requests follow closely is worth a `wakewalk diagnose` at the lower load";
        let why = self.accused_at(low).map_or_else(
            || by_itself.to_string(),
            |service| format!("there the service is diagnosed {}: {}", service.verdict, service.headline),
        );
        let sentence = format!(
            "answers are slower at lower load: {name} {} at {} a second, {} at {}, each time; {why}",
            time(slow),
            rounded(low),
            time(quick),
            rounded(high)
        );
        Some(reason("latency-falls", sentence))
    }

    /// That it does less past its limit, if it does.
    fn falls(&self) -> Option<Reason> {
        let (most, less) = self.falls_past_the_knee().filter(|_| self.broken.is_none())?;
        let sentence =
            format!("past its limit it does less: {} answers a second instead of {}", rounded(less), rounded(most));
        Some(reason("throughput-falls", sentence))
    }

    /// That its CPU time does not follow its load, if it does not.
    fn unasked(&self) -> Option<Reason> {
        let cpu = self.cpu.filter(|cpu| cpu.floor > FLOOR && cpu.floor > FLOOR_SHARE * self.most_cpus())?;
        let sentence = format!(
            "its CPU time does not follow its load: {:.2} CPUs whether or not it is asked, and {} for each request",
            cpu.floor,
            time(cpu.seconds_per_request.max(0.0))
        );
        Some(reason("cpu-floor", sentence))
    }
}
