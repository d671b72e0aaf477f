// SPDX-License-Identifier: Apache-2.0
//! A service beside itself with one hop replaced, loaded by turns: how much of its response time that hop is answerable for.
//! What changes with time (a neighbour, a cache) meets both sides of a pair alike, and what pairs do not agree on is not told.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reason::Reason;
use crate::reasons::{FAILED, redirects_among, time};
use crate::sweep::is_client_full;
use crate::verdict::{Verdict, Word as OfLoad};

/// Of the response time: a hop with less is innocent, one with more is not.
const FELT: f64 = 0.1;
/// Differences that nobody feels, s.
const UNFELT: f64 = 100e-6;
/// Student's t for an interval of 95 %, by degrees of freedom from 1 on; of more than that the last one is a little wide.
const STUDENT: [f64; 20] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086,
];

/// What is said of the hop that was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Answerable {
    /// A tenth of the response time and more is gone without it.
    Guilty,
    /// Less is.
    Innocent,
    /// The pairs do not agree, or are no comparison.
    NotDetermined,
}

/// A mean over the pairs with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// On average.
    pub mean: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// What the hop does to one percentile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Effect {
    /// `p50` or `p99`, of times from when requests were due.
    pub of: String,
    /// With the hop as it is, seconds, on average over the pairs; none = it is not known of all of them.
    pub as_it_is: Option<f64>,
    /// With the hop replaced.
    pub replaced: Option<f64>,
    /// Seconds that are gone with it; none likewise.
    pub seconds: Option<Estimate>,
    /// The same as a part of the response time as it is; below 0 = it takes longer without.
    pub share: Option<Estimate>,
    /// What is said of the hop.
    pub word: Answerable,
    /// Why.
    pub why: String,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Beside {
    /// What is said of the hop: guilty if it is of any percentile, innocent if it is of all that could be told.
    pub word: Answerable,
    /// By percentile.
    pub effects: Vec<Effect>,
    /// What is to be known of the loads, each thing once.
    pub remarks: Vec<Reason>,
    /// The loads, as they are and with the hop replaced, in pairs.
    pub pairs: Vec<Pair>,
}

/// Two loads, one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    /// The service as it is.
    pub as_it_is: Verdict,
    /// With the hop replaced.
    pub replaced: Verdict,
}

/// Whether the service with the hop replaced comes first in a pair: each comes first and last as often.
pub const fn replaced_first(pair: usize) -> bool {
    pair % 2 == 1
}

/// Compares the loads.
pub fn beside(pairs: Vec<Pair>) -> Beside {
    let broken = broken(&pairs);
    let of = |name: &str, of: fn(&Verdict) -> Option<f64>| match &broken {
        Some(why) => untold(name, why.clone()),
        None => effect(name, &pairs, of),
    };
    let effects = vec![of("p50", |verdict| verdict.corrected.p50), of("p99", |verdict| verdict.corrected.p99)];
    // Of a percentile that was not measured nothing is said, and that is shown beside it.
    let told = || effects.iter().filter(|effect| effect.seconds.is_some());
    let is_innocent = told().count() > 0 && told().all(|effect| effect.word == Answerable::Innocent);
    let word = match effects.iter().any(|effect| effect.word == Answerable::Guilty) {
        true => Answerable::Guilty,
        false if is_innocent => Answerable::Innocent,
        false => Answerable::NotDetermined,
    };
    Beside { word, remarks: remarks(&pairs), effects, pairs }
}

/// Why the loads are no comparison: answers that are none come sooner or later than others, and tell of neither side.
fn broken(pairs: &[Pair]) -> Option<String> {
    let failed = |side: fn(&Pair) -> &Verdict| {
        let (all, failed) = pairs.iter().map(side).fold((0, 0), |(all, failed), verdict| {
            (all + verdict.due, failed + verdict.errors.values().sum::<u64>() + redirects(verdict))
        });
        failed as f64 / all.max(1) as f64
    };
    let sides = [("as it is", failed(|pair| &pair.as_it_is)), ("with the hop replaced", failed(|pair| &pair.replaced))];
    let measured_the_client =
        |pair: &Pair| is_client_full(&pair.as_it_is) || is_client_full(&pair.replaced) || is_over(pair);
    if pairs.iter().any(measured_the_client) {
        return Some("the client, or both sides, could do no more at this rate: ask for less (--rate)".into());
    }
    let (which, failed) = sides.into_iter().find(|(_, failed)| *failed > FAILED)?;
    Some(format!(
        "{:.1} % of the requests failed, or lead elsewhere, {which}: what is replaced has to answer what the service can use",
        failed * 100.0
    ))
}

/// Answers that only say where else to ask.
fn redirects(verdict: &Verdict) -> u64 {
    redirects_among(&verdict.statuses).map(|(_, count)| count).sum()
}

/// Whether neither side did what was asked for: then both are as long as the load.
fn is_over(pair: &Pair) -> bool {
    let is_over = |verdict: &Verdict| verdict.reasons.iter().any(|reason| reason.code == "over-capacity");
    is_over(&pair.as_it_is) && is_over(&pair.replaced)
}

fn untold(name: &str, why: String) -> Effect {
    let (as_it_is, replaced, seconds, share) = (None, None, None, None);
    Effect { of: name.into(), as_it_is, replaced, seconds, share, word: Answerable::NotDetermined, why }
}

fn effect(name: &str, pairs: &[Pair], of: fn(&Verdict) -> Option<f64>) -> Effect {
    let both = |pair: &Pair| Some((of(&pair.as_it_is)?, of(&pair.replaced)?));
    let Some(both) = pairs.iter().map(both).collect::<Option<Vec<(f64, f64)>>>().filter(|both| both.len() > 1) else {
        return untold(name, missing(name, pairs));
    };
    let mean = |side: fn(&(f64, f64)) -> f64| both.iter().map(side).sum::<f64>() / both.len() as f64;
    let seconds = estimate(both.iter().map(|(as_it_is, replaced)| as_it_is - replaced));
    let mut share = estimate(both.iter().map(|(as_it_is, replaced)| (as_it_is - replaced) / as_it_is.max(1e-9)));
    share.high = share.high.min(1.0); // more than all of it cannot be gone
    let agree = both.iter().all(|(as_it_is, replaced)| as_it_is > replaced);
    let (word, why) = judged(name, seconds, share, agree);
    let (as_it_is, replaced) = (Some(mean(|both| both.0)), Some(mean(|both| both.1)));
    Effect { of: name.into(), as_it_is, replaced, seconds: Some(seconds), share: Some(share), word, why }
}

/// What the pairs say.
fn judged(name: &str, seconds: Estimate, share: Estimate, agree: bool) -> (Answerable, String) {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let (low, high) = (percent(share.low), percent(share.high));
    if agree && share.low >= FELT && seconds.low >= UNFELT {
        let why = format!("{} of the {name} is gone without it ({low} to {high})", percent(share.mean));
        return (Answerable::Guilty, why);
    }
    if share.high <= 0.0 {
        return (Answerable::Innocent, format!("the {name} is no shorter without it"));
    }
    if share.high < FELT || seconds.high < UNFELT {
        let most = if share.high < FELT { high } else { time(seconds.high.max(0.0)) };
        return (Answerable::Innocent, format!("at most {most} of the {name} is gone without it"));
    }
    let why =
        format!("the pairs do not agree: {low} to {high} of the {name} may be its; more pairs, or longer ones, tell");
    (Answerable::NotDetermined, why)
}

/// Why a percentile is not known of all loads.
fn missing(name: &str, pairs: &[Pair]) -> String {
    let all = pairs.iter().flat_map(|pair| [&pair.as_it_is, &pair.replaced]);
    if let Some(limited) = all.clone().find(|verdict| verdict.verdict == OfLoad::ClientLimited) {
        let why = limited.reasons.first().map_or("", |reason| reason.sentence.as_str());
        return format!("not told: {why}");
    }
    if pairs.len() < 2 {
        return "one pair of loads does not tell what chance is".into();
    }
    let least = all.map(|verdict| verdict.answered).min().unwrap_or_default();
    format!("too few answers for a {name}: {least} in a load; a longer --for or a higher --rate has more")
}

/// Mean and interval of some values, at least two.
fn estimate(values: impl Iterator<Item = f64> + Clone) -> Estimate {
    let count = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / count;
    let variance = values.map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let student = STUDENT[(count as usize - 2).min(STUDENT.len() - 1)];
    let half = student * (variance / count).sqrt();
    Estimate { mean, low: mean - half, high: mean + half }
}

/// Reasons of all loads, those that are not of one load alone, each once.
fn remarks(pairs: &[Pair]) -> Vec<Reason> {
    let mut by: BTreeMap<&str, (usize, &Reason)> = BTreeMap::new();
    let all = pairs.iter().flat_map(|pair| [&pair.as_it_is, &pair.replaced]);
    for reason in all.flat_map(|verdict| &verdict.reasons).filter(|reason| reason.code != "few-answers") {
        by.entry(&reason.code).or_insert((0, reason)).0 += 1;
    }
    let of = |(code, (count, reason)): (&str, (usize, &Reason))| Reason {
        code: code.into(),
        sentence: format!("in {count} of {} loads: {}", 2 * pairs.len(), reason.sentence),
    };
    by.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lengths::Percentiles;

    fn verdict(p50: f64, p99: Option<f64>) -> Verdict {
        let mut verdict = crate::judge(&crate::Run::default(), None);
        (verdict.verdict, verdict.due, verdict.answered, verdict.reasons) = (OfLoad::Valid, 2000, 2000, Vec::new());
        verdict.corrected = Percentiles { p50: Some(p50), p99, ..Percentiles::default() };
        verdict
    }

    fn compared(pairs: &[(f64, f64)]) -> Beside {
        let of = |(as_it_is, replaced): &(f64, f64)| Pair {
            as_it_is: verdict(*as_it_is, Some(*as_it_is)),
            replaced: verdict(*replaced, Some(*replaced)),
        };
        beside(pairs.iter().map(of).collect())
    }

    #[test]
    fn a_hop_that_has_the_time_is_guilty() {
        let found = compared(&[(0.020, 0.002), (0.021, 0.002), (0.020, 0.0021), (0.0205, 0.002)]);
        assert_eq!(found.word, Answerable::Guilty, "{found:?}");
        let share = found.effects[0].share.unwrap();
        assert!(
            share.low > 0.85 && share.high < 0.95 && share.low < share.mean && share.mean < share.high,
            "{share:?}"
        );
        assert!(found.effects[0].why.starts_with("90 % of the p50"), "{}", found.effects[0].why);
    }

    #[test]
    fn a_hop_that_makes_no_difference_is_innocent() {
        let found = compared(&[(0.020, 0.0201), (0.0202, 0.020), (0.0199, 0.020), (0.020, 0.0199)]);
        assert_eq!(found.word, Answerable::Innocent, "{found:?}");
        // A third less, which nobody feels.
        let found = compared(&[(60e-6, 40e-6), (62e-6, 41e-6), (61e-6, 40e-6), (60e-6, 41e-6)]);
        assert_eq!(found.word, Answerable::Innocent, "{found:?}");
        let slower = compared(&[(0.010, 0.020), (0.011, 0.020), (0.010, 0.021), (0.010, 0.020)]);
        assert_eq!(slower.word, Answerable::Innocent, "it takes longer without: {slower:?}");
    }

    #[test]
    fn pairs_that_do_not_agree_tell_nothing() {
        let found = compared(&[(0.020, 0.010), (0.010, 0.012), (0.030, 0.009), (0.009, 0.020)]);
        assert_eq!(found.word, Answerable::NotDetermined);
        assert!(found.effects[0].why.contains("do not agree"), "{found:?}");
    }

    #[test]
    fn one_pair_alone_tells_nothing() {
        let found = compared(&[(0.020, 0.002)]);
        assert!(found.word == Answerable::NotDetermined && found.effects[0].why.starts_with("one pair"), "{found:?}");
    }

    #[test]
    fn what_fails_is_no_comparison() {
        let mut pairs: Vec<Pair> =
            (0..4).map(|_| Pair { as_it_is: verdict(0.02, None), replaced: verdict(0.002, None) }).collect();
        let found = beside(pairs.clone());
        assert_eq!(found.word, Answerable::Guilty, "of the p50");
        assert!(found.effects[1].why.contains("too few answers for a p99: 2000"), "{found:?}");
        let same: Vec<Pair> =
            (0..4).map(|_| Pair { as_it_is: verdict(0.02, None), replaced: verdict(0.02, None) }).collect();
        assert_eq!(beside(same).word, Answerable::Innocent, "of what could be told");
        pairs[2].replaced.errors = [(crate::Failure::Status, 1000)].into();
        let found = beside(pairs);
        assert!(found.word == Answerable::NotDetermined && found.effects[0].why.contains("12.5 %"), "{found:?}");
    }

    #[test]
    fn each_side_comes_first_as_often() {
        assert_eq!((0..4).map(replaced_first).collect::<Vec<_>>(), [false, true, false, true]);
    }
}
