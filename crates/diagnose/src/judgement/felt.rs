// SPDX-License-Identifier: Apache-2.0
//! What clients feel: their requests, the slow ones among them, or the handshakes of TLS before them.

use std::sync::Arc;

use super::paths::{MIN_SHARE, mostly_late, one_thread, slow, telling, telling_handshakes};
use super::tail;
use crate::case::Case;
use crate::facts::requests::{Endpoint, LATE_NS, Requests};
use crate::statistics::{ratio, share};
use crate::verdict::{Evidence, Explains, evidence};
use crate::walk::paths::{Group, Part, Paths, RequestPaths};
use crate::wording::{count, seconds};

/// Which of what clients wait for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    All,
    Slow,
    Handshakes,
}

/// Requests whose time somebody feels, and what most of it went to; or the handshakes before them.
pub(crate) struct Felt {
    paths: Arc<RequestPaths>,
    which: Which,
}

impl Felt {
    /// Handshakes of TLS, if clients wait for those most of the time and they take long.
    pub(crate) fn of_handshakes(case: &Case) -> Option<Self> {
        Some(Self { paths: telling_handshakes(case)?, which: Which::Handshakes })
    }

    /// All requests, if they take long, half of them or most of their time; or the slow ones, if they are slow again and again.
    pub(crate) fn of(case: &Case) -> Option<Self> {
        let (paths, requests) = (telling(case)?, case.fact::<Requests>().ok()?);
        let long = |group: &Group| ratio(group.ns, group.requests as f64) >= LATE_NS;
        let all = paths.main().is_some_and(|main| long(&main.half));
        if !all && tail::is_one_moment(&requests, requests.main()?) {
            return None;
        }
        let of_slow = !all && slow(case, &paths).is_some_and(long);
        let which = if of_slow { Which::Slow } else { Which::All };
        (all || of_slow || mostly_late(&requests)).then_some(Self { paths, which })
    }

    fn paths(&self) -> &Paths {
        &self.paths.ports[0]
    }

    /// All requests, whatever most of them take.
    pub(crate) fn with_quick_ones(&self) -> Self {
        Self { paths: Arc::clone(&self.paths), which: Which::All }
    }

    /// How many there were in all, followed or not, as far as requests were seen.
    pub(crate) fn number(&self, case: &Case) -> Option<f64> {
        let requests = case.fact::<Requests>().ok()?;
        let main = requests.main()?;
        match self.which {
            Which::All => Some(main.response.count),
            Which::Slow => tail::of(main).map(|slow| slow.count),
            Which::Handshakes => Some(main.handshake.count),
        }
    }

    /// Them.
    pub(crate) fn group(&self) -> &Group {
        if self.which == Which::Slow { &self.paths().tail } else { &self.paths().all }
    }

    /// The target's own port at which they are asked.
    pub(crate) fn port(&self) -> u32 {
        self.paths().port
    }

    /// The thread that gives their answers, if one does.
    pub(crate) fn one_thread(&self, case: &Case) -> Option<(u32, u32)> {
        one_thread(case, self.paths().port)
    }

    /// How long each took on average, ns.
    pub(crate) fn mean_ns(&self) -> f64 {
        ratio(self.group().ns, self.group().requests as f64)
    }

    /// Whether they are all requests, and not only slow ones.
    pub(crate) fn are_all(&self) -> bool {
        self.which != Which::Slow
    }

    /// They, in words.
    pub(crate) fn whose(&self) -> &'static str {
        match self.which {
            Which::All => "requests",
            Which::Slow => "slow requests",
            Which::Handshakes => "TLS handshakes",
        }
    }

    /// What is meant by how long they take.
    pub(crate) fn time(&self) -> &'static str {
        match self.which {
            Which::All | Which::Slow => "response time",
            Which::Handshakes => "time from hello to answer",
        }
    }

    /// Of how many of them it is known, and how long they took, in words.
    pub(crate) fn words(&self) -> String {
        format!(
            "Of {} {} that were followed from end to end, the {} was {} on average",
            count(self.group().requests as f64),
            self.whose(),
            self.time(),
            seconds(self.mean_ns() / 1e9)
        )
    }

    /// What a part of their time is, of all that clients waited there in the window.
    pub(crate) fn explains(&self, case: &Case, part: f64) -> Explains {
        let sum_ns = |main: &Endpoint| match self.which {
            Which::All | Which::Slow => main.response.sum_ns,
            Which::Handshakes => main.handshake.sum_ns,
        };
        let waited = |requests: Arc<Requests>| Some(sum_ns(requests.main()?) * requests.scale() / 1e9);
        let waited = case.fact::<Requests>().ok().and_then(waited).unwrap_or(0.0);
        let of_all = share(self.group().ns, self.paths().all.ns);
        let of = match self.which {
            Which::All | Which::Slow => format!("response time of {}", self.whose()),
            Which::Handshakes => "time to answer hellos of TLS".into(),
        };
        Explains { share: part, of, seconds: waited * of_all * part }
    }

    /// What a finding rests on.
    pub(crate) fn evidence(&self, what: &str, part: f64) -> Vec<Evidence> {
        vec![
            evidence("followed from end to end", self.group().requests as f64, self.whose(), "", ""),
            evidence(&format!("their {}, on average", self.time()), self.mean_ns() / 1e9, "s", "", ""),
            evidence(what, part * 100.0, "%", "a small part", ""),
        ]
    }

    /// The part of their time that a cause took, if it took most.
    pub(crate) fn most(&self, is_it: impl Fn(&Part) -> bool) -> Option<f64> {
        Some(self.group().share(is_it)).filter(|share| *share >= MIN_SHARE)
    }
}
