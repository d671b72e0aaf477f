// SPDX-License-Identifier: Apache-2.0
//! When a load is over: before the end of its plan, and before its last answers.

use std::time::Duration;

use super::Engine;
use crate::client::{Spent, Taken, Threads};
use crate::run::{EndedBy, Failure, together};

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

    /// Whoever ends it: what has waited for longer than any answer took is slower than all of them, as if its time were over.
    pub(super) fn leave(&mut self, now: Duration) {
        let Some(longest) = together(&self.run.seconds).0.quantile(1.0).map(Duration::from_secs_f64) else { return };
        let under_way = self.connections.iter().filter(|connection| connection.busy).map(|connection| connection.due);
        let waiting: Vec<Duration> = under_way.chain(self.waiting.iter().copied()).collect();
        let is_slower = |due: &Duration| now.saturating_sub(*due) > longest;
        waiting.into_iter().filter(is_slower).for_each(|due| self.count(Failure::Timeout, due));
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

    /// Half of the requests hang: two connections each get one answer of 10 ms, and then none.
    #[test]
    fn what_hangs_when_it_is_ended_has_no_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let plan = plan(&listener, Duration::from_secs(60));
        let mut engine = Engine::new(&plan).unwrap();
        let ms = Duration::from_millis;
        engine.run.add_answer(ms(0), (ms(10), ms(10)), 1, true);
        for (connection, due) in engine.connections.iter_mut().zip([ms(100), ms(995)]) {
            (connection.busy, connection.due) = (true, due);
        }
        engine.waiting.extend([ms(500), ms(999)]);
        engine.leave(ms(1000));
        assert_eq!(engine.run.failures.get(&Failure::Timeout), Some(&2), "those that may still come in time are none");
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
