// SPDX-License-Identifier: Apache-2.0
//! Answers take long because what they need is computed: nothing waits and nothing is full, so no cause is to be accused, but whoever
//! asks why they take so long must be told.

use std::collections::BTreeSet;

use recording::tables::Request;

use super::Remark;
use crate::case::Case;
use crate::facts::profile::{Place, Profile};
use crate::facts::stacks::Stacks;
use crate::judgement::felt::Felt;
use crate::runtimes;
use crate::statistics::share;
use crate::walk::Kind;
use crate::walk::paths::{Meanwhile, Part, What};
use crate::wording::{percent, seconds, short};

/// Of the on-CPU samples of those that answer, in one function: that is where.
const MOSTLY: f64 = 0.4;

/// Of their time, what they feel besides.
const FELT: f64 = 0.25;

/// Samples that tell of such a part.
const ENOUGH: u64 = 50;

/// What there is to say about the main port.
pub(crate) fn remark(case: &Case) -> Option<Remark> {
    let felt = Felt::of(case)?;
    let part = felt.most(computes)?;
    let (own, all) = (seconds(felt.mean_ns() * part / 1e9), seconds(felt.mean_ns() / 1e9));
    let place = place(case);
    let mostly = place.as_ref().map_or(String::new(), |(name, _)| format!(", mostly in {}", short(name)));
    let what = place.as_ref().map_or("what they compute".to_string(), |(name, _)| short(name));
    let of_cpu = place.map_or(String::new(), |(name, part)| {
        format!(" {} of the on-CPU samples of the threads that answer are credited to {name}.", percent(part))
    });
    let waits = felt.group().share(|part| matches!(part.what, What::Waits(_)));
    let and = match waits {
        waits if waits >= FELT => {
            format!("; for {} of it they wait, see `What requests waited for`", seconds(felt.mean_ns() * waits / 1e9))
        }
        _ if part >= 1.0 - FELT => ": nothing else is in the way".into(),
        _ => String::new(),
    };
    Some(Remark {
        headline: format!("{} compute for {own} of {all}{mostly}", felt.whose()),
        advice: Some(format!("to answer sooner, make {what} quicker, or keep its results{and}")),
        detail: format!("{}; for {} of it their own threads were on a CPU.{of_cpu}", felt.words(), percent(part)),
    })
}

/// Whether whoever had the request computed for it.
fn computes(part: &Part) -> bool {
    match part.what {
        What::Awake { kind, .. } => kind == Kind::OnCpu && !part.before,
        What::Inside { meanwhile, .. } => meanwhile == Meanwhile::Computing,
        _ => false,
    }
}

/// The program's own function that most of their samples are in, and how many of them.
fn place(case: &Case) -> Option<(String, f64)> {
    let (profile, stacks) = (case.fact::<Profile>().ok()?, case.fact::<Stacks>().ok()?);
    let rows = case.recording.rows::<Request>().iter().filter(|row| row.is_of_client());
    let answer: BTreeSet<(u32, u32)> = rows.map(|row| (row.pid, row.ended_tid)).collect();
    let of_those = |place: &Place| answer.contains(&(place.pid, place.tid));
    let functions = profile.functions(&stacks, of_those);
    // Those in the kernel are nobody's own.
    let all: u64 = profile.places.iter().filter(|(place, _)| of_those(place)).map(|(_, weight)| weight).sum();
    let most = functions.iter().max_by_key(|f| f.credited)?;
    // An interpreter runs what somebody else has written.
    let is_own = matches!(most.part, runtimes::Part::Own | runtimes::Part::Lock);
    let is_telling = all >= ENOUGH && most.named && is_own;
    let part = share(most.credited as f64, all as f64);
    (is_telling && part >= MOSTLY).then(|| (most.name.clone(), part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    /// A thread of each process answers a request a second, for which it computes or waits for `ms`.
    fn of(ms: u32, waits: bool) -> Option<String> {
        let mut text = "meta host.arch=x86_64 length_ns=60e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
             process pid=1 listen=[\"tcp 0.0.0.0:80\"]
             thread t_ns=60e9 pid=1 tid=1 comm=w wall_ns=60e9 cpu_ns=15e9 blocked_ns=45e9
             frame id=1 symbol=render module=/srv/w kind=native
             stack id=1 frames=[1] complete=true
             burst t_ns=60e9 length_ns=60e9
             exchange_window t_ns=60e9 length_ns=60e9
             wakeup\n"
            .to_string();
        for nth in 0..60u32 {
            let (read, end, idle) = (nth * 1000 + 100, nth * 1000 + 100 + ms, 990 - ms);
            text += &format!(
                "request t_ns={end}e6 role=accepted port=80 pid=1 began_ns={read}e6 began_tid=1 read_ns={read}e6 ended_tid=1
                 wakeup t_ns={read}e6 pid=1 tid=1 comm=w wait_ns={idle}e6 blocked_ns={idle}e6 since_ns={}e6 waits=1 syscall=43 context=interrupt family=2 local_port=80 remote_port=9\n",
                (nth * 1000).saturating_sub(890)
            );
            if waits {
                let since = read + 1;
                text += &format!(
                    "wakeup t_ns={}e6 pid=1 tid=1 comm=w wait_ns={}e6 blocked_ns={}e6 since_ns={since}e6 waits=1 syscall=0 context=interrupt family=2 local_port=9 remote_port=5432 peer=10.0.0.9\n",
                    end - 1,
                    ms - 2,
                    ms - 2
                );
            }
            for sample in 0..4 {
                let at = read + (sample + 1) * ms / 5;
                text += &format!("sample t_ns={at}e6 pid=1 tid=1 stack=1 weight=1\n");
            }
        }
        text += &format!(
            "exchange role=accepted port=80 stage=response count=60 sum_ns={}e6 length_ns=[{ms}000000] counts=[60]",
            60 * ms
        );
        remark(&Case::new(&parse(&text).unwrap())).map(|remark| remark.headline)
    }

    #[test]
    fn answers_that_are_computed() {
        assert_eq!(of(250, false).unwrap(), "requests compute for 250 ms of 250 ms, mostly in render");
        assert_eq!((of(5, false), of(250, true)), (None, None), "nobody feels it; they wait for a database");
    }
}
