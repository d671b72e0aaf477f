// SPDX-License-Identifier: Apache-2.0
//! Services that take few connections at a time and leave others in their queue, as workers do that each keep the one that they have:
//! who comes over another one waits in vain, however little there is to do.

use crate::reason::Reason;
use crate::run::{Run, together};

/// Of what failed, what was sent over connections that nobody took, if that is why.
const WHY: f64 = 0.8;

/// How many times longer those wait in vain than the longest answer takes, if nobody took them: before a service that is full all wait.
const IN_VAIN: f64 = 4.0;

/// Of the connections that there may be at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Those over which a request was sent.
    pub asked: u64,
    /// Those that had an answer.
    pub answered: u64,
    /// Requests that had none in time, over those that had none at all.
    pub in_vain: u64,
}

impl Run {
    /// Over how many connections a service answered that takes so few at a time, where most of what failed came over others.
    pub(crate) fn takes(&self) -> Option<u64> {
        let Taken { asked, answered, in_vain } = self.taken;
        let is_why = in_vain > 0 && in_vain as f64 >= WHY * self.failed() as f64;
        let longest = together(&self.seconds).1.quantile(1.0)?;
        let is_free = IN_VAIN * longest <= self.timeout.as_secs_f64();
        (is_why && is_free && answered > 0 && answered < asked).then_some(answered)
    }
}

/// That a service takes so few connections, in words.
pub(crate) fn not_taken(run: &Run, takes: u64) -> Reason {
    let sentence = format!(
        "{} of the {} requests that failed were sent over connections that the service never took: it answers over {takes} at a time, and \
         leaves further ones in its queue; --connections {takes} asks over no more",
        run.taken.in_vain,
        run.failed()
    );
    Reason { code: "not-taken".into(), sentence }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::run::Failure;

    /// A thousand requests over eight connections, of which so many are answered in at most so many ms; some of the others fail.
    fn run(answered: u64, longest_ms: u64, in_vain: u64) -> Run {
        let taken = Taken { asked: 8, answered, in_vain };
        let mut run = Run { taken, due: 1000, timeout: Duration::from_secs(1), ..Run::default() };
        run.failures = [(Failure::Timeout, in_vain)].into();
        let took = Duration::from_millis(longest_ms);
        run.add_answer(Duration::ZERO, (took, took), 2, true);
        run
    }

    #[test]
    fn connections_that_nobody_takes_are_told_from_a_service_that_is_full() {
        let takes = |answered, longest_ms| run(answered, longest_ms, 40).takes();
        assert_eq!(takes(3, 5), Some(3));
        assert_eq!((takes(3, 900), takes(8, 5), takes(0, 5)), (None, None, None), "slow, all, nobody there");
    }

    #[test]
    fn one_request_that_is_lost_is_no_reason() {
        let is_reason = |in_vain: u64| {
            let verdict = crate::judge::judge(&run(3, 5, in_vain), None);
            verdict.reasons.iter().any(|reason| reason.code == "not-taken")
        };
        assert!(is_reason(40) && !is_reason(1));
    }
}
