// SPDX-License-Identifier: Apache-2.0
//! Streams of events: their parts come by a timer, and the first one about as long after the question as each after the one before it.
//! Who waits for it by design is not kept waiting by anybody.

use crate::case::Case;
use crate::facts::requests::Requests;
use crate::walk::Kind;
use crate::walk::chains::Chain;
use crate::wording::seconds;

/// Of the time that clients wait for answers, at the port that streams: the others are nobody's concern.
const AT_THE_PORT: f64 = 0.8;

/// Of the waiting that is looked at, until timers: who computes for long is no ticker.
const BY_TIMERS: f64 = 0.8;

/// That the late answers at the port with most of the clients' time begin streams, in words.
pub(crate) fn begin(case: &Case) -> Option<String> {
    let requests = case.fact::<Requests>().ok()?;
    let main = requests.main().filter(|endpoint| endpoint.begins_streams(requests.followed_ns))?;
    let accepted = requests.endpoints.iter().filter(|endpoint| endpoint.accepted);
    let all: f64 = accepted.map(|endpoint| endpoint.response.sum_ns).sum();
    (main.response.sum_ns >= all * AT_THE_PORT).then(|| {
        let apart = seconds(main.parts_apart_ns() / 1e9);
        format!(
            "late answers are streams: their parts come {apart} apart, and the first about as long after the question"
        )
    })
}

/// The same, if requests wait for nothing but the first part of a stream: of chains with that time, nearly all end with a timer.
pub(crate) fn awaited(case: &Case, chains: &[&Chain]) -> Option<String> {
    let time = |only: fn(&Chain) -> bool| chains.iter().filter(|chain| only(chain)).map(|chain| chain.ns).sum::<f64>();
    let timers = time(|chain| chain.end.kind == Kind::Timer);
    if timers > 0.0 && timers >= time(|_| true) * BY_TIMERS { begin(case) } else { None }
}

#[cfg(test)]
mod tests {
    use recording::text::parse;

    use crate::diagnose;

    /// Forty requests, each answered after a sleep of 200 ms by the thread that read it, of which so many had further parts, so far apart.
    fn verdict(streams: u32, each_ms: u32) -> (String, String) {
        let mut text = format!(
            "meta host.arch=x86_64 length_ns=10e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
            process pid=1 listen=[\"tcp 0.0.0.0:80\"]
            thread t_ns=10e9 pid=1 tid=1 comm=worker wall_ns=10e9 cpu_ns=5e8 blocked_ns=95e8
            burst t_ns=10e9 length_ns=10e9
            exchange_window t_ns=10e9 length_ns=10e9
            frame id=1 symbol=hrtimer_wakeup module=kernel kind=kernel
            stack id=1 frames=[1]
            exchange role=accepted port=80 stage=response count=40 sum_ns=82e8 length_ns=[205000000] counts=[40] streams={streams} streams_ns={}e6\n",
            2 * streams * each_ms
        );
        for at in (0..40).map(|nth| 10 + nth * 210) {
            text += &format!(
                "request t_ns={}e6 role=accepted port=80 pid=1 began_ns={at}e6 began_tid=1 read_ns={at}e6 ended_tid=1
                 wakeup t_ns={}e6 pid=1 tid=1 comm=worker wait_ns=200e6 blocked_ns=200e6 since_ns={at}e6 waits=1 syscall=35 context=interrupt waker_stack=1\n",
                at + 205,
                at + 200
            );
        }
        let found = diagnose(&parse(&text).unwrap());
        (found.verdict, found.headline)
    }

    #[test]
    fn the_first_event_of_a_stream_is_no_delay() {
        let (verdict_of_stream, headline) = verdict(38, 200);
        assert_ne!(verdict_of_stream, "sleep-in-path", "{headline}");
        assert_eq!(verdict(38, 1).0, "sleep-in-path", "late, and then all at once");
        assert_eq!(verdict(0, 0).0, "sleep-in-path");
    }
}
