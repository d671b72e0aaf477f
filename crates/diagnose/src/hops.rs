// SPDX-License-Identifier: Apache-2.0
//! The verdict hop by hop: clients, the target, everybody whom it asks. Who of them is to blame for what requests take, and why.
//!
//! Nothing is judged anew: guilty is whom a finding accuses, and the numbers say why the others are not.

#[cfg(test)]
pub(crate) mod tests;

use crate::case::Case;
use crate::facts::requests::{Endpoint, Requests};
use crate::facts::sending::{Endpoint as Sent, Sending};
use crate::facts::stages::{Stage, Stages};
use crate::judgement::asked;
use crate::judgement::clients_wait::part_of_peer;
use crate::judgement::paths::stands_before_peers;
use crate::statistics::{ratio, share};
use crate::verdict::{Finding, Verdict};
use crate::walk::paths::{Group, Part, RequestPaths, What};
use crate::wording::{count, percent, seconds};

/// Peers and ports that are told of, each.
const MOST: usize = 12;

/// Of the response time: a peer with less is none that anybody waits for, with more it is a witness at least.
const MUCH: f64 = 0.5;

/// Of the response time: less needs no word.
const WORTH_A_WORD: f64 = 0.05;

/// Who a hop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Whoever asks at one of the target's ports.
    Client,
    /// The target.
    Target,
    /// Whom it asks.
    Upstream,
    /// What lies between or under them.
    Around,
}

/// Whether a hop is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// A finding accuses it.
    Guilty,
    /// No finding does, but its part is not accounted for either.
    NotCleared,
    /// It is not.
    Innocent,
}

impl Blame {
    /// In a word or two.
    pub fn word(self) -> &'static str {
        match self {
            Self::Guilty => "guilty",
            Self::NotCleared => "not cleared",
            Self::Innocent => "innocent",
        }
    }
}

/// One hop.
#[derive(Clone, Debug, PartialEq)]
pub struct Hop {
    /// Who.
    pub role: Role,
    /// Its name: address and port, or the target's.
    pub name: String,
    /// Of the response time of clients, passed there with the request in hand.
    pub share: Option<f64>,
    /// Its own time for each exchange, on average, s: of the target without those that it asks, of those without the wire where
    /// that can be told.
    pub own: Option<f64>,
    /// How long its answers take, with whom it asks and the wire: 99 in a hundred not longer, s.
    pub p99: Option<f64>,
    /// On the wire for each exchange, on average, s.
    pub wire: Option<f64>,
    /// Segments sent again towards it.
    pub retransmits: Option<f64>,
    /// Whether it is to blame.
    pub blame: Blame,
    /// Why.
    pub why: String,
}

/// All hops.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hops {
    /// From the clients on.
    pub all: Vec<Hop>,
    /// Peers and ports that are left out, the least busy ones.
    pub left_out: usize,
    /// Requests of which the shares are; 0 = none were followed from end to end.
    pub followed: u64,
}

/// The hops of a verdict; none where no exchange was seen.
pub fn hops(case: &Case, verdict: &Verdict) -> Option<Hops> {
    let requests = case.fact::<Requests>().ok()?;
    let teller = Teller {
        verdict,
        requests: &requests,
        sending: case.fact::<Sending>().ok(),
        stages: case.fact::<Stages>().ok(),
        paths: case.fact::<RequestPaths>().ok(),
    };
    let answered = |accepted: bool| {
        let all = requests.endpoints.iter().filter(move |e| e.accepted == accepted && e.response.count > 0.0);
        all.collect::<Vec<_>>()
    };
    let (clients, peers) = (answered(true), answered(false));
    if clients.is_empty() && peers.is_empty() {
        return None;
    }
    let told = |endpoints: &[&Endpoint]| endpoints.len().min(MOST);
    let mut all: Vec<Hop> = clients.iter().take(MOST).map(|endpoint| teller.client(endpoint)).collect();
    all.push(teller.target());
    all.extend(peers.iter().take(MOST).map(|endpoint| teller.upstream(endpoint)));
    all.extend(teller.around(&all));
    let left_out = clients.len() + peers.len() - told(&clients) - told(&peers);
    Some(Hops { all, left_out, followed: teller.group().map_or(0, |group| group.requests) })
}

/// Whom a finding accuses.
#[derive(Clone, Debug, PartialEq)]
enum Accused {
    Clients,
    Target,
    /// By its address.
    Peer(String),
    /// In words.
    Around(String),
}

/// What a cause says of who it is. What it says nothing of is the target's own.
fn accused(finding: &Finding) -> Accused {
    let socket = finding.subject.socket.clone();
    if finding.subject.clients {
        return Accused::Clients;
    }
    match (finding.cause.as_str(), socket) {
        ("slow-dependency" | "slow-dns" | "receiver-limited", Some(peer)) => Accused::Peer(peer),
        ("receiver-limited", None) => Accused::Clients,
        ("slow-dependency" | "slow-dns", None) => {
            Accused::Around(finding.chain.first().map_or_else(String::new, |link| link.waits_on.clone()))
        }
        ("packet-loss", _) if finding.subject.function.is_some() => {
            Accused::Around("what filters and queues packets on this host".to_string())
        }
        ("packet-loss" | "no-return-path" | "conntrack-full" | "time-wait-collision" | "link-saturated", _) => {
            Accused::Around("the network between them".to_string())
        }
        ("cpu-steal" | "run-queue-wait" | "memory-pressure" | "disk-wait", _) => {
            Accused::Around("the host under it".to_string())
        }
        _ => Accused::Target,
    }
}

/// What hops are told from.
struct Teller<'v> {
    verdict: &'v Verdict,
    requests: &'v Requests,
    sending: Option<std::sync::Arc<Sending>>,
    stages: Option<std::sync::Arc<Stages>>,
    paths: Option<std::sync::Arc<RequestPaths>>,
}

impl Teller<'_> {
    /// Requests that were followed at the main port.
    fn group(&self) -> Option<&Group> {
        self.paths.as_ref()?.main().map(|paths| &paths.all)
    }

    fn stage(&self, endpoint: &Endpoint, stage: Stage) -> Option<f64> {
        let of = |e: &&crate::facts::stages::OfEndpoint| e.accepted == endpoint.accepted && e.name == endpoint.name;
        self.stages.as_ref()?.endpoints.iter().find(of)?.of(stage)
    }

    fn sent(&self, endpoint: &Endpoint) -> Option<&Sent> {
        self.sending.as_ref()?.of(endpoint.accepted, &endpoint.name)
    }

    /// Why a hop is guilty, if a finding accuses it.
    fn guilt(&self, of: &Accused) -> Option<String> {
        let findings = self.verdict.findings.iter().filter(|finding| accused(finding) == *of);
        let why = |finding: &Finding| {
            format!("{}: {} of {}", finding.cause, percent(finding.explains.share), finding.explains.of)
        };
        let whys: Vec<String> = findings.map(why).collect();
        (!whys.is_empty()).then(|| whys.join("; "))
    }

    fn client(&self, endpoint: &Endpoint) -> Hop {
        let guilt = self.guilt(&Accused::Clients);
        let sent = self.sent(endpoint);
        let retransmits = sent.map(|sent| sent.retransmits);
        let window = sent.map_or(0.0, |sent| share(sent.rwnd_ns, sent.busy_ns));
        let held = if window >= WORTH_A_WORD {
            format!("their window held answers for {} of the time in which they were sent", percent(window))
        } else {
            "they take their answers as they are sent".to_string()
        };
        Hop {
            role: Role::Client,
            name: format!("clients at {}", endpoint.name.trim_start_matches("tcp ")),
            share: None,
            own: None,
            p99: None,
            wire: self.stage(endpoint, Stage::Wire),
            retransmits,
            blame: if guilt.is_some() { Blame::Guilty } else { Blame::Innocent },
            why: guilt.unwrap_or(held),
        }
    }

    fn target(&self) -> Hop {
        let guilt = self.guilt(&Accused::Target);
        let main = self.requests.main();
        let rest = self.group().map(|group| 1.0 - group.share(|part| peer(part).is_some()));
        let blame = match (&guilt, self.verdict.verdict.as_str()) {
            (Some(_), _) => Blame::Guilty,
            (None, "not-determined" | "at-capacity") => Blame::NotCleared,
            (None, _) => Blame::Innocent,
        };
        Hop {
            role: Role::Target,
            name: self.verdict.target.comm.clone(),
            share: rest,
            own: self.own(rest),
            p99: main.map(|endpoint| endpoint.response.quantile_ns(0.99) / 1e9),
            wire: None,
            retransmits: None,
            blame,
            why: guilt.unwrap_or_else(|| self.of_target()),
        }
    }

    /// Its part of the requests that were followed, s for each; where none were, all between read and answer.
    fn own(&self, rest: Option<f64>) -> Option<f64> {
        match (rest, self.group()) {
            (Some(rest), Some(group)) => Some(rest * ratio(group.ns, group.requests as f64) / 1e9),
            _ => self.stage(self.requests.main()?, Stage::Service),
        }
    }

    /// What the time at the target itself is, in words.
    fn of_target(&self) -> String {
        let neutral = match self.verdict.verdict.as_str() {
            verdict @ ("at-capacity" | "not-determined") => Some(verdict.to_string()),
            _ => None,
        };
        let of = |is: fn(&Part) -> bool| self.group().map_or(0.0, |group| group.share(is));
        let on_cpu: fn(&Part) -> bool =
            |part| matches!(part.what, What::Awake { kind: crate::walk::Kind::OnCpu, .. }) && !part.before;
        let parts = [
            (of(on_cpu), "on a CPU"),
            (of(|part| part.before), "before their turn"),
            (of(|part| matches!(part.what, What::Inside { .. })), "inside, where the kernel sees no wait"),
            (of(|part| matches!(part.what, What::Asking { .. })), "until clients had sent all of it"),
        ];
        let told = parts.iter().filter(|(part, _)| *part >= WORTH_A_WORD);
        let told: Vec<String> = told.map(|(part, what)| format!("{} {what}", percent(*part))).collect();
        let told = (!told.is_empty()).then(|| told.join(", "));
        let words: Vec<String> = neutral.into_iter().chain(told).collect();
        if words.is_empty() { "no finding accuses it".to_string() } else { words.join(": ") }
    }

    fn upstream(&self, endpoint: &Endpoint) -> Hop {
        let guilt = self.guilt(&Accused::Peer(endpoint.name.clone()));
        let in_hand = self.group().map(|group| group.share(|part| peer(part) == Some(&endpoint.name)));
        // Where none were followed, the sockets tell, if it is asked for clients at all.
        let of_time = in_hand.or_else(|| part_of_peer(self.requests, &endpoint.name).filter(|part| *part <= 1.0));
        let mean = endpoint.response.mean_ns() / 1e9;
        let own = self.stage(endpoint, Stage::Peer).or_else(|| self.stage(endpoint, Stage::PeerOrWire));
        // A question that was not sent yet is no time of the peer's.
        let its = of_time.unwrap_or(0.0) * own.map_or(1.0, |own| share(own, mean));
        let much = its >= MUCH && mean >= asked::MIN_WAIT_NS / 1e9 && self.verdict.verdict != "healthy";
        Hop {
            role: Role::Upstream,
            name: endpoint.name.clone(),
            share: of_time,
            own,
            p99: Some(endpoint.response.quantile_ns(0.99) / 1e9),
            wire: self.stage(endpoint, Stage::Wire),
            retransmits: self.sent(endpoint).map(|sent| sent.retransmits),
            blame: match guilt {
                Some(_) => Blame::Guilty,
                None if much => Blame::NotCleared,
                None => Blame::Innocent,
            },
            why: guilt.unwrap_or_else(|| self.of_peer(endpoint, mean)),
        }
    }

    fn of_peer(&self, endpoint: &Endpoint, mean: f64) -> String {
        let each = self.requests.main().map_or(0.0, |main| ratio(endpoint.response.count, main.response.count));
        let asked = match each {
            0.0 => String::new(),
            each if (0.95..1.05).contains(&each) => ", asked once for each request".to_string(),
            each => format!(", asked {} times for each request", count((each * 100.0).round() / 100.0)),
        };
        let held = self.stage(endpoint, Stage::Held).map_or(0.0, |held| share(held, mean));
        let unsent = match held >= WORTH_A_WORD {
            true => format!(", {} of that before all of the question was sent", percent(held)),
            false => String::new(),
        };
        format!("{} each{unsent}{asked}", seconds(mean))
    }

    /// What findings accuse that is none of the hops.
    fn around(&self, hops: &[Hop]) -> Vec<Hop> {
        let mut found: Vec<Accused> = Vec::new();
        for accused in self.verdict.findings.iter().map(accused) {
            let told = match &accused {
                Accused::Peer(name) => hops.iter().any(|hop| hop.role == Role::Upstream && hop.name == *name),
                Accused::Around(_) => false,
                Accused::Clients | Accused::Target => true,
            };
            if !told && !found.contains(&accused) {
                found.push(accused);
            }
        }
        let hop = |accused: Accused| {
            let why = self.guilt(&accused)?;
            let (Accused::Peer(name) | Accused::Around(name)) = accused else { return None };
            let (share, own, p99, wire, retransmits) = (None, None, None, None, None);
            let (role, blame) = (Role::Around, Blame::Guilty);
            Some(Hop { role, name, share, own, p99, wire, retransmits, blame, why })
        };
        found.into_iter().filter_map(hop).collect()
    }
}

/// The peer that a part of a path was spent at with the request in hand. Before a lock or for one of a few permits it is spent
/// at the service itself, whomever the holder asks.
pub(crate) fn peer(part: &Part) -> Option<&String> {
    let What::Waits(chain) = &part.what else { return None };
    if part.before || stands_before_peers(part) {
        return None;
    }
    chain.links.iter().map(|link| &link.who.peer).find(|peer| !peer.is_empty())
}
