// SPDX-License-Identifier: Apache-2.0
//! Most of the CPU time goes into a garbage collector for which nobody waits: it costs CPUs, and no time.

use super::Remark;
use crate::case::Case;
use crate::facts::garbage::Garbage;
use crate::facts::limits::Limits;
use crate::wording::{cores, percent};

/// Of the on-CPU time, and in CPUs: less is the price of a heap.
const MIN_SHARE: f64 = 0.4;
const MIN_CORES: f64 = 0.1;

/// What there is to say about it.
pub(crate) fn remark(case: &Case) -> Option<Remark> {
    let seen = case.fact::<Garbage>().ok()?.0?;
    let spent = case.fact::<Limits>().ok()?.cores * seen.part;
    (seen.part >= MIN_SHARE && spent >= MIN_CORES).then(|| Remark {
        headline: format!("{} of its CPU time is its garbage collector", percent(seen.part)),
        advice: Some(seen.collector.less_often.into()),
        detail: format!(
            "The garbage collector of {} takes {} of its CPU time, {}, beside the program: requests did not wait for it, but \
             that CPU time is lost to others.",
            seen.collector.runtime,
            percent(seen.part),
            cores(spent)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    fn of(marking: u32, cpu: &str) -> Option<String> {
        let text = format!(
            "meta host.arch=x86_64 length_ns=1e9 target.pids=[1] target.comm=svc target.sample_hz=100
             frame id=1 symbol=runtime.scanobject module=svc kind=native
             frame id=2 symbol=runtime.gcBgMarkWorker module=svc kind=native
             frame id=3 symbol=main.handle module=svc kind=native
             stack id=1 frames=[1,2] complete=true
             stack id=2 frames=[3] complete=true
             thread t_ns=1e9 pid=1 tid=1 comm=svc wall_ns=1e9 cpu_ns={cpu} blocked_ns=1e8
             sample pid=1 tid=1 comm=svc stack=1 weight={marking}
             sample pid=1 tid=1 comm=svc stack=2 weight=20"
        );
        remark(&Case::new(&parse(&text).unwrap())).map(|remark| remark.headline)
    }

    #[test]
    fn most_of_the_cpu_time() {
        assert_eq!(of(80, "7e8").as_deref(), Some("80 % of its CPU time is its garbage collector"));
        assert_eq!((of(8, "7e8"), of(80, "5e7")), (None, None));
    }
}
