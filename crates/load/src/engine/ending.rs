// SPDX-License-Identifier: Apache-2.0
//! When a load is over: before the end of its plan, and before its last answers.

use std::time::Duration;

use super::Engine;
use crate::client::{Spent, Taken, Threads};
use crate::run::EndedBy;

/// So many failures without a single answer, after so long, and nobody is there to be loaded. A service that is started again refuses as
/// many in a moment.
const HOPELESS: u64 = 200;
const PATIENCE: Duration = Duration::from_secs(3);

impl Engine<'_> {
    /// Nothing is due any more: what it takes from now on, waiting, says nothing of whether it could ask.
    pub(super) fn has_asked(&mut self, now: Duration) {
        if self.run.threads.is_none() {
            let asked = Taken { spent: Spent::now().since(self.before), within: now };
            self.run.threads = Some(Threads { busiest: asked, all: asked, cpus: 0.0 });
        }
    }

    /// Who ends it early, if somebody does.
    pub(super) fn ended_by(&self, stop: &dyn Fn() -> bool, now: Duration, end: Duration) -> Option<EndedBy> {
        let gives_up = || now < end && self.is_hopeless(now);
        if stop() { Some(EndedBy::Somebody) } else { gives_up().then_some(EndedBy::Silence) }
    }

    fn is_hopeless(&self, now: Duration) -> bool {
        let is_silent = || self.run.statuses.is_empty() && self.run.answered() == 0;
        now >= PATIENCE && self.run.failed() >= HOPELESS && is_silent()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::arrivals::Spread;
    use crate::plan::{Plan, Rate, Request};
    use crate::run::Failure;

    /// A thousand a second for so long, over two connections that nobody takes.
    fn plan(listener: &TcpListener, length: Duration) -> Plan {
        Plan {
            to: format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap(),
            request: Request::default(),
            rate: Rate::PerSecond(1000.0),
            spread: Spread::Uniform,
            length,
            connections: 2,
            new_connections: false,
            sources: Vec::new(),
            timeout: Duration::from_secs(1),
            may_be_silent: false,
        }
    }

    /// It sends for a tenth of a second, and waits for a second.
    #[test]
    fn a_wait_for_the_last_answers_is_no_time_in_which_it_asked() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (length, timeout) = (Duration::from_millis(100), Duration::from_secs(1));
        let plan = plan(&listener, length);
        let run = Engine::new(&plan).unwrap().run(&|| false, &mut |_, _| {}).unwrap();
        let within = run.threads.unwrap().busiest.within;
        assert!(within >= length && within + timeout / 2 < run.lasted, "{within:?} of {:?}", run.lasted);
    }

    #[test]
    fn a_service_that_is_started_again_is_waited_for() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let plan = plan(&listener, Duration::from_secs(60));
        let mut engine = Engine::new(&plan).unwrap();
        (0..5 * HOPELESS).for_each(|_| engine.count(Failure::Refused, Duration::ZERO));
        let ended_by = |engine: &Engine<'_>, ms| engine.ended_by(&|| false, Duration::from_millis(ms), plan.length);
        assert_eq!([200, 2900, 3000].map(|ms| ended_by(&engine, ms)), [None, None, Some(EndedBy::Silence)]);
        engine.run.statuses.insert(503, 1);
        assert_eq!(ended_by(&engine, 5000), None, "somebody is there");
    }
}
