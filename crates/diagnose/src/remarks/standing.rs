// SPDX-License-Identifier: Apache-2.0
//! Requests that stand in the target for long for what is not seen, too few of them to doubt that it is healthy: how many, and
//! from how many on it would be doubted.

use super::Remark;
use crate::case::Case;
use crate::facts::unexplained::Unexplained;
use crate::judgement::standing::{HARDLY_ANY, MIN_REST, matters};

/// What there is to say about them.
pub(crate) fn remark(case: &Case) -> Option<Remark> {
    let requests = case.fact::<Unexplained>().ok()?;
    if matters(&requests) || requests.rest() < HARDLY_ANY {
        return None;
    }
    Some(Remark {
        headline: format!("what a few requests wait for is not seen ({:.1} at a time)", requests.rest()),
        advice: None,
        detail: format!(
            "On average {:.1} connections had been waiting for their answer for 10 ms or longer, {:.1} of them for what is not \
             seen, such as long polls, or queues inside the process. From {MIN_REST} on, and a quarter of all that wait so long, \
             the verdict would be not-determined.",
            requests.late,
            requests.rest()
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    fn of(late: f64) -> Option<String> {
        let text = format!(
            "meta length_ns=1e9 target.pids=[1]
             thread t_ns=1e9 pid=1 tid=1 wall_ns=1e9 cpu_ns=0 blocked_ns=1e9
             connection t_ns=1 role=accepted port=80 looks=100 open=1600 late={} late_ns={}",
            late * 100.0,
            late * 100.0 * 8e7
        );
        remark(&Case::new(&parse(&text).unwrap())).map(|remark| remark.headline)
    }

    #[test]
    fn some_but_too_few_to_doubt() {
        assert!(of(0.3).unwrap().contains("(0.3 at a time)"));
        assert_eq!((of(0.02), of(0.8)), (None, None));
    }
}
