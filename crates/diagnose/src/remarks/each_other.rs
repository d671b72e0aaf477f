// SPDX-License-Identifier: Apache-2.0
//! Requests that wait for each other, for too short a time to be felt: more of them wait longer, and nothing else fills up first.

use super::Remark;
use crate::case::Case;
use crate::facts::requests::Requests;
use crate::judgement::paths::stands_before_peers;
use crate::statistics::ratio;
use crate::walk::paths::RequestPaths;
use crate::wording::{percent, seconds};

/// Requests followed from end to end, from which on shares say something.
const FOLLOWED: u64 = 50;

/// Of the response time.
const MIN_SHARE: f64 = 0.5;

/// Requests that wait at a time: with fewer, two of them met by chance.
const MIN_QUEUE: f64 = 1.0;

/// What there is to say about it.
pub(crate) fn remark(case: &Case) -> Option<Remark> {
    let (requests, paths) = (case.fact::<Requests>().ok()?, case.fact::<RequestPaths>().ok()?);
    let all = &paths.main()?.all;
    let part = all.share(stands_before_peers);
    let queue = requests.at_once(&requests.main()?.response) * part;
    if all.requests < FOLLOWED || part < MIN_SHARE || queue < MIN_QUEUE {
        return None;
    }
    let (part, each) = (percent(part), seconds(ratio(all.ns, all.requests as f64) / 1e9));
    Some(Remark {
        headline: format!("requests wait for each other for {part} of their {each}"),
        advice: Some("nothing yet, but more load makes that queue longer; with --full, what the one ahead does".into()),
        detail: format!(
            "Of the response time, {part} is waiting for another thread that is at another request: {queue:.1} requests at a time, \
             which is the limit that comes first."
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    /// Threads that answer 100 requests, each after it was woken by another thread of its own after `ms`.
    fn said(ms: u32) -> Option<String> {
        let mut text = "meta host.arch=x86_64 length_ns=1e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
             process pid=1 listen=[\"tcp 0.0.0.0:80\"]
             thread t_ns=1e9 pid=1 tid=2 comm=w wall_ns=1e9 cpu_ns=1e8 blocked_ns=9e8
             thread t_ns=1e9 pid=1 tid=3 comm=w wall_ns=1e9 cpu_ns=9e8 blocked_ns=1e8
             burst t_ns=1e9 length_ns=1e9\nexchange_window t_ns=1e9 length_ns=1e9
             exchange role=accepted port=80 stage=response count=400 sum_ns=24e8 length_ns=[6000000] counts=[400]\n"
            .to_string();
        for end in (0..80).map(|nth| 100 + nth * 10) {
            let (began, woken) = (end - 7, end - 1);
            text += &format!(
                "request t_ns={end}e6 role=accepted port=80 pid=1 began_ns={began}e6 began_tid=2 read_ns={began}e6 ended_tid=2
                 wakeup t_ns={woken}e6 pid=1 tid=2 comm=w wait_ns={ms}e6 blocked_ns={ms}e6 since_ns={}e6 waits=1 syscall=202 args=[4096,128,2,0] context=thread waker_pid=1 waker_tid=3 waker_comm=w waker_syscall=202\n",
                woken - ms
            );
        }
        remark(&Case::new(&parse(&text).unwrap())).map(|remark| remark.headline)
    }

    #[test]
    fn a_queue_before_one_of_its_own_threads() {
        let headline = said(5).unwrap();
        assert!(headline.starts_with("requests wait for each other for 7"), "{headline}");
        assert_eq!(said(1), None);
    }
}
