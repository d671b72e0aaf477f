// SPDX-License-Identifier: Apache-2.0
//! Which hop has the time of requests, and whether it is to blame: the hops of a verdict, each with its time a request.
//!
//! Nothing is judged anew. A hop whose part was not seen is cleared of nothing: its word is `not-determined`, whatever the
//! verdict says of others.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer::{Quantiles, RequestTimes};
use crate::case::Case;
use crate::hops::{Blame, Hop, Role, hops, peer};
use crate::statistics::{ratio, share};
use crate::verdict::Verdict;
use crate::walk::paths::{Group, Part, Paths, RequestPaths, What};
use crate::wording::percent;

/// Requests of a group without which what they have in common is chance.
const ENOUGH: u64 = 10;
/// Of a peer's time: who has so much of it behind it is who it waits for, and with less than the second one nobody does.
const MUCH: f64 = 0.5;
const LITTLE: f64 = 0.05;
/// Processes that are told behind one peer.
const MOST_BEHIND: usize = 3;

/// What is said of a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// A finding accuses it.
    Guilty,
    /// It has too little of the time, or no finding accuses it of what it has.
    Innocent,
    /// Its part was not seen, or is not accounted for.
    NotDetermined,
}

/// A hop, and its time in a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HopTime {
    /// `client`, `service`, `upstream` (the service asks it), `behind` (an upstream waits for it, on the same host) or `around`
    /// (the network, the host).
    pub role: String,
    /// Its address and port, or the name of its process.
    pub name: String,
    /// Its own time in each request, on average, seconds: of the service without those that it asks; of clients how long answers
    /// stood unsent and unacknowledged, which comes after the response time.
    pub seconds: Option<f64>,
    /// Likewise in usual requests, those about as long as half of them.
    pub p50: Option<f64>,
    /// Likewise in the slowest one in a hundred.
    pub p99: Option<f64>,
    /// Its part of the response time of clients, 0 to 1.
    pub share: Option<f64>,
    /// What is said of it.
    pub word: Word,
    /// Why.
    pub why: String,
}

/// The hops of one service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bisection {
    /// Where clients wait most, and how long answers take there, seconds; none = no answer was seen.
    pub response: Option<Response>,
    /// Requests that were followed from end to end, of which the shares are; 0 = none were, and the sockets tell.
    pub followed: u64,
    /// From the clients on.
    pub hops: Vec<HopTime>,
    /// Less busy hops that are left out.
    pub left_out: usize,
}

/// How long answers take at one port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// The listening socket.
    pub endpoint: String,
    /// On average, seconds.
    pub mean: f64,
    /// Half take no longer.
    pub p50: f64,
    /// 99 in a hundred take no longer.
    pub p99: f64,
}

/// The hops of a verdict with their times; without any where no exchange was seen.
pub fn bisect(case: &Case, verdict: &Verdict) -> Bisection {
    let Some(found) = hops(case, verdict) else { return Bisection::default() };
    let paths = case.fact::<RequestPaths>().ok();
    let asked = verdict.requests.iter().find(|times| times.is_accepted() && times.exchanges > 0);
    let teller = Teller { verdict, asked, paths: paths.as_ref().and_then(|paths| paths.main()) };
    let of = |hop: &Hop| {
        let told = teller.hop(hop);
        let behind = if hop.role == Role::Upstream { teller.behind(&told) } else { Vec::new() };
        [vec![told], behind].concat()
    };
    let response = asked.map(|times| {
        let Quantiles { mean, p50, p99, .. } = times.seconds;
        Response { endpoint: times.endpoint.clone(), mean, p50, p99 }
    });
    let hops = found.all.iter().flat_map(of).collect();
    Bisection { response, followed: found.followed, hops, left_out: found.left_out }
}

struct Teller<'v> {
    verdict: &'v Verdict,
    /// The port at which clients wait most.
    asked: Option<&'v RequestTimes>,
    paths: Option<&'v Paths>,
}

impl Teller<'_> {
    fn hop(&self, hop: &Hop) -> HopTime {
        let [seconds, p50, p99] = self.times(hop);
        let is_seen = match hop.role {
            // Segments are counted where the connections were looked at, and what became of answers with them.
            Role::Client => hop.retransmits.is_some(),
            Role::Target | Role::Upstream => hop.share.is_some() && seconds.is_some(),
            Role::Around => true,
        };
        let (word, why) = match hop.blame {
            Blame::Guilty => (Word::Guilty, hop.why.clone()),
            Blame::Innocent if is_seen => (Word::Innocent, hop.why.clone()),
            Blame::Innocent => (Word::NotDetermined, format!("its part was not seen ({})", hop.why)),
            Blame::NotCleared => (Word::NotDetermined, format!("nothing accounts for its part ({})", hop.why)),
        };
        let share = hop.share.filter(|_| seconds.is_some());
        HopTime { role: role(hop.role).into(), name: hop.name.clone(), seconds, p50, p99, share, word, why }
    }

    /// On average, in usual requests and in slow ones, s.
    fn times(&self, hop: &Hop) -> [Option<f64>; 3] {
        let whose: &dyn Fn(&Part) -> bool = match hop.role {
            Role::Client => return [self.after_answers(&hop.name), None, None],
            Role::Around => return [None; 3],
            Role::Target => &|part| peer(part).is_none(),
            Role::Upstream => &|part| peer(part) == Some(&hop.name),
        };
        let Some(paths) = self.paths else { return [self.untraced(hop), None, None] };
        let enough = |group: &Group| (group.requests >= ENOUGH).then(|| of(group, whose));
        [Some(of(&paths.all, whose)), enough(&paths.half), enough(&paths.slow)]
    }

    /// The same where no request was followed: what the sockets tell of a peer that is asked for clients.
    fn untraced(&self, hop: &Hop) -> Option<f64> {
        let asks_others = self.verdict.requests.iter().any(|times| times.is_made() && times.exchanges > 0);
        match hop.role {
            Role::Target if asks_others => None,
            Role::Target => hop.own,
            _ => Some(hop.share? * self.asked?.seconds.mean),
        }
    }

    /// For how long answers to clients stood unsent and unacknowledged, s for each.
    fn after_answers(&self, name: &str) -> Option<f64> {
        let of =
            |times: &&RequestTimes| times.is_accepted() && name.ends_with(times.endpoint.trim_start_matches("tcp "));
        let times = self.verdict.requests.iter().find(of)?;
        let known = ["held", "wire"].map(|stage| times.on_average.get(stage).copied());
        known.iter().any(Option::is_some).then(|| known.into_iter().flatten().sum())
    }

    /// Processes of this host that a peer itself waited for while it was asked.
    fn behind(&self, upstream: &HopTime) -> Vec<HopTime> {
        let Some(paths) = self.paths else { return Vec::new() };
        // By process: its time, and what most of that was.
        let mut by: BTreeMap<String, (f64, BTreeMap<String, f64>)> = BTreeMap::new();
        let its = |part: &&Part| peer(part) == Some(&upstream.name);
        for part in paths.all.parts.iter().filter(its) {
            if let Some((name, doing)) = behind(part) {
                let (ns, doings) = by.entry(name).or_default();
                *ns += part.ns;
                *doings.entry(doing).or_default() += part.ns;
            }
        }
        let whole: f64 = paths.all.parts.iter().filter(its).map(|part| part.ns).sum();
        let mut all: Vec<_> = by.into_iter().filter(|(_, (ns, _))| share(*ns, whole) >= LITTLE).collect();
        all.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
        let told = |(name, (ns, doings)): (String, (f64, BTreeMap<String, f64>))| {
            let doing =
                doings.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(doing, _)| doing).unwrap_or_default();
            let part = share(ns, whole);
            let word = match upstream.word {
                Word::Guilty if part >= MUCH => Word::Guilty,
                Word::Guilty | Word::NotDetermined => Word::NotDetermined,
                Word::Innocent => Word::Innocent,
            };
            HopTime {
                role: "behind".into(),
                name,
                seconds: Some(ratio(ns, paths.all.requests as f64) / 1e9),
                p50: None,
                p99: None,
                share: Some(share(ns, paths.all.ns)),
                word,
                why: format!("{} of the time of {}, most of it {doing}", percent(part), upstream.name),
            }
        };
        all.into_iter().take(MOST_BEHIND).map(told).collect()
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Client => "client",
        Role::Target => "service",
        Role::Upstream => "upstream",
        Role::Around => "around",
    }
}

/// The parts of a kind in each request of a group, s.
fn of(group: &Group, whose: &dyn Fn(&Part) -> bool) -> f64 {
    let ns: f64 = group.parts.iter().filter(|part| whose(part)).map(|part| part.ns).sum();
    ratio(ns, group.requests as f64) / 1e9
}

/// The process at the end of a part that a peer had, and what it did, where that was seen.
fn behind(part: &Part) -> Option<(String, String)> {
    let What::Waits(chain) = &part.what else { return None };
    let (first, last) = (chain.links.first()?, chain.links.last()?);
    let name = if chain.links.len() > 1 { last.who.name() } else { chain.end.name() };
    let doing =
        if chain.links.len() > 1 && last.who.sleeps() { "a sleep of its own".into() } else { chain.end.words() };
    (!name.is_empty() && name != first.who.name()).then_some((name, doing))
}

#[cfg(test)]
mod tests {
    use recording::text::parse;

    use super::*;
    use crate::hops::tests::{STORE, finding, text};

    fn bisected(verdict: &str, findings: Vec<crate::verdict::Finding>, text: &str) -> Bisection {
        let recording = parse(text).unwrap();
        let judged = Verdict { verdict: verdict.into(), findings, ..crate::diagnose(&recording) };
        bisect(&Case::new(&recording), &judged)
    }

    fn words(bisection: &Bisection) -> Vec<(&str, Word)> {
        bisection.hops.iter().map(|hop| (hop.role.as_str(), hop.word)).collect()
    }

    #[test]
    fn the_times_of_hops_add_up_to_the_response_time() {
        let told = bisected("slow-dependency", vec![finding("slow-dependency", Some(STORE))], &text());
        assert_eq!(
            words(&told)[..3],
            [("client", Word::Innocent), ("service", Word::Innocent), ("upstream", Word::Guilty)]
        );
        let ms = |hop: &HopTime| hop.seconds.map(|s| (s * 1e3).round());
        assert_eq!([ms(&told.hops[1]), ms(&told.hops[2])], [Some(10.0), Some(30.0)], "{told:?}");
        assert!(told.hops[1].p50.is_none(), "three requests are no percentile");
        assert_eq!(told.response.map(|response| (response.mean * 1e3).round()), Some(40.0));
    }

    #[test]
    fn what_was_not_seen_is_not_cleared() {
        let without: String =
            text().lines().filter(|line| !line.contains("connection t_ns")).collect::<Vec<_>>().join("\n");
        let told = bisected("healthy", Vec::new(), &without);
        assert_eq!(told.hops[0].word, Word::NotDetermined, "{:?}", told.hops[0]);
        let untraced: String =
            text().lines().filter(|line| !line.contains("request t_ns")).collect::<Vec<_>>().join("\n");
        let told = bisected("healthy", Vec::new(), &untraced);
        assert_eq!(words(&told)[1], ("service", Word::NotDetermined), "it asks others, and nobody followed: {told:?}");
        assert_eq!(bisected("healthy", Vec::new(), "meta length_ns=1e9"), Bisection::default());
    }

    #[test]
    fn a_neutral_verdict_clears_nobody_of_most_of_the_time() {
        let told = bisected("not-determined", Vec::new(), &text());
        assert_eq!(words(&told)[1..], [("service", Word::NotDetermined), ("upstream", Word::NotDetermined)]);
    }
}
