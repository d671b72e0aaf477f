// SPDX-License-Identifier: Apache-2.0
//! Over how many connections loads of a sweep are tried: more of them where their number, which is the client's, is the limit.

use anyhow::Result;

use super::Tried;
use crate::limits;
use crate::plan::Plan;
use crate::reason::Reason;
use crate::reasons::rounded;

/// Connections that a sweep goes up to by itself.
const MOST: usize = 4096;

/// Tries a load, requests a second, over so many connections; none = somebody ended it.
pub(super) type TryOver<'a> = dyn FnMut(f64, usize) -> Result<Option<Tried>> + 'a;

/// How many connections there are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pool {
    /// At first.
    pub connections: usize,
    /// At most.
    pub most: usize,
}

impl Pool {
    /// As many as a plan has, and as many as this process may open.
    pub fn of(plan: &Plan) -> Self {
        let most = usize::try_from(limits::room(MOST as u64)).unwrap_or(MOST);
        Self { connections: plan.connections, most: most.max(plan.connections) }
    }
}

/// A load that met the number of connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Met {
    /// Requests a second that were asked, and answered.
    rate: f64,
    answered: f64,
    connections: usize,
}

impl Met {
    /// That further ones were not taken.
    fn too_many(self) -> String {
        format!(
            "it takes {} connections at a time: at {} a second requests over further ones stood in its queue until their time was over, \
             so that further loads came over {0}; clients that keep theirs open keep others out",
            self.connections,
            rounded(self.rate)
        )
    }
}

/// What tries loads.
pub(super) struct Loads<'a> {
    pool: Pool,
    load: &'a mut TryOver<'a>,
    /// The first load for which there were more connections then, and the one for which there were not.
    grown: Option<Met>,
    out: Option<Met>,
    /// More of them were tried, and did not help.
    is_enough: bool,
    /// The load at which the service was seen to take no more of them.
    few: Option<Met>,
}

/// How it was before there were more connections.
pub(super) struct Before(Pool, Option<Met>);

impl<'a> Loads<'a> {
    pub(super) fn new(pool: Pool, load: &'a mut TryOver<'a>) -> Self {
        Self { pool, load, grown: None, out: None, is_enough: false, few: None }
    }

    pub(super) fn load(&mut self, rate: f64) -> Result<Option<Tried>> {
        (self.load)(rate, self.pool.connections)
    }

    /// Takes twice as many connections, where all were taken by a load: how it was before; none = there are no more of them.
    pub(super) fn grow(&mut self, rate: f64, answered: f64) -> Option<Before> {
        let connections = self.pool.connections;
        let (met, before) = (Met { rate, answered, connections }, Before(self.pool, self.grown));
        if connections >= self.pool.most {
            self.out = Some(met);
            return None;
        }
        self.pool.connections = (2 * connections).min(self.pool.most);
        self.grown = self.grown.or(Some(met));
        Some(before)
    }

    /// As it was: with more connections no more was answered. It stays so, for a service may take no more than so many of them.
    pub(super) fn shrink(&mut self, Before(pool, grown): Before) {
        (self.pool, self.grown, self.is_enough) = (pool, grown, true);
    }

    /// Takes only as many connections as the service does; as it was before; none = there were no more.
    pub(super) fn narrow(&mut self, rate: f64, answered: f64, takes: u64) -> Option<Pool> {
        let (before, connections) = (self.pool, usize::try_from(takes).ok()?);
        if connections >= before.connections {
            return None;
        }
        (self.pool.connections, self.is_enough) = (connections, true);
        self.few = Some(Met { rate, answered, connections });
        Some(before)
    }

    /// As it was: over few connections as much failed.
    pub(super) fn widen(&mut self, before: Pool) {
        (self.pool, self.is_enough, self.few) = (before, false, None);
    }

    /// Whether more connections were tried, and did not help.
    pub(super) fn is_enough(&self) -> bool {
        self.is_enough
    }

    /// Whether a load met the number of connections, and there are no more.
    pub(super) fn is_out(&self) -> bool {
        self.out.is_some()
    }

    /// What is to be known of it.
    pub(super) fn findings(&self) -> Vec<Reason> {
        let met = |code: &str, met: Met, then: &str| {
            let sentence = format!(
                "at {} a second all of {} connections were taken, and answers took no longer than below: {} a second are all that \
                 so many carry, {then}",
                rounded(met.rate),
                met.connections,
                rounded(met.answered)
            );
            Reason { code: code.into(), sentence }
        };
        let out = self.out.map(|it| met("connections", it, "whatever the service could do"));
        let then = format!("so that further loads came over up to {}", self.pool.connections);
        let grown = self.grown.map(|it| met("more-connections", it, &then));
        let few = self.few.map(|it| Reason { code: "few-connections".into(), sentence: it.too_many() });
        out.into_iter().chain(grown).chain(few).collect()
    }
}
