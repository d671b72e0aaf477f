// SPDX-License-Identifier: Apache-2.0
//! Requests stand in line before the one thread that answers them all: it is not full, but busy enough that they come while it has
//! others to answer. What is lost is their time and not the thread's, so no CPU shows it.

use super::Remark;
use crate::case::Case;
use crate::facts::limits::Limits;
use crate::judgement::felt::Felt;
use crate::judgement::loops::{self, Loop};
use crate::walk::paths::{Part, What};
use crate::wording::{percent, seconds};

/// Of the time of requests that somebody feels.
const MOST: f64 = 0.5;

/// What there is to say about the main port.
pub(crate) fn remark(case: &Case) -> Option<Remark> {
    let felt = Felt::of(case)?;
    let part = felt.most(stands_in_line).filter(|part| *part >= MOST)?;
    let Loop { thread: (pid, tid), of } = loops::of(case, felt.port())?;
    let limits = case.fact::<Limits>().ok()?;
    let thread = limits.threads.iter().find(|thread| (thread.pid, thread.tid) == (pid, tid))?;
    let (line, all) = (seconds(felt.mean_ns() * part / 1e9), seconds(felt.mean_ns() / 1e9));
    let busy = percent(thread.demand);
    Some(Remark {
        headline: format!("{} stand in line for {line} of {all}: thread {} is {busy} busy", felt.whose(), thread.comm),
        advice: Some(format!("shorten what thread {} does for a request, or let more of them answer", thread.comm)),
        detail: format!(
            "{}; for {} of it they stood before {}, which had others in hand, each for a \
             short time. It wanted a CPU for {busy} of the time: a line grows long before that is all of it.",
            felt.words(),
            percent(part),
            match of {
                1 => format!("thread {} (tid {tid}), which answers all", thread.comm),
                _ => format!("threads of which {of} each answer some, most of all {} (tid {tid})", thread.comm),
            }
        ),
    })
}

/// Whether the thread was awake for others before this one's turn came, or wanted to be.
fn stands_in_line(part: &Part) -> bool {
    part.before && matches!(part.what, What::Awake { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    /// A thread answers a request every 100 ms that lay unread for most of `held` ms.
    fn of(held: u32, tids: u32) -> Option<String> {
        let mut text = format!(
            "meta host.arch=x86_64 length_ns=10e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
             process pid=1 listen=[\"tcp 0.0.0.0:80\"]
             thread t_ns=10e9 pid=1 tid=1 comm=node wall_ns=10e9 cpu_ns=7e9 run_queue_ns=1e9 blocked_ns=2e9
             burst t_ns=10e9 length_ns=10e9
             exchange_window t_ns=10e9 length_ns=10e9
             wakeup
             exchange role=accepted port=80 stage=response count=90 sum_ns=3e9 length_ns=[{held}000000] counts=[90]\n"
        );
        for (nth, at) in (0..90u32).map(|nth| (nth, 50 + nth * 100)) {
            let (tid, end) = (1 + nth % tids, at + held);
            text += &format!(
                "request t_ns={end}e6 role=accepted port=80 pid=1 began_ns={at}e6 began_tid={tid} read_ns={}e6 ended_tid={tid}
                 wakeup t_ns={}e6 pid=1 tid={tid} comm=node wait_ns=1e6 blocked_ns=1e6 since_ns={}e6 waits=1 cpu_ns=1e6 syscall=232 context=interrupt family=2 local_port=80 remote_port=9\n",
                end - 1,
                at - 20,
                at.saturating_sub(70),
            );
        }
        remark(&Case::new(&parse(&text).unwrap())).map(|remark| remark.headline)
    }

    #[test]
    fn before_one_thread() {
        assert_eq!(of(30, 1).unwrap(), "requests stand in line for 29 ms of 30 ms: thread node is 80 % busy");
        assert_eq!((of(3, 1), of(30, 3)), (None, None), "nobody feels it; several answer");
    }
}
