// SPDX-License-Identifier: Apache-2.0
//! Requests that are answered when another client sends something: long polls, a chat, a batch that must fill.

use super::Remark;
use crate::case::Case;
use crate::facts::connections::Connections;
use crate::judgement::felt::Felt;
use crate::judgement::paths::is_until_said;
use crate::wording::percent;

/// Of their response time.
const MOST: f64 = 0.5;

/// What there is to say about them, if that is most of their time.
pub(crate) fn remark(case: &Case) -> Option<Remark> {
    let felt = Felt::of(case)?;
    let part = felt.group().share(is_until_said);
    (part >= MOST).then(|| {
        let (whose, part) = (felt.whose(), percent(part));
        let standing = case.fact::<Connections>().map_or(0.0, |connections| connections.accepted.unanswered);
        let standing = if standing >= 1.0 {
            format!(" {standing:.1} connections are owed an answer at a time, for whatever reason.")
        } else {
            String::new()
        };
        Remark {
            headline: format!("{whose} wait until something comes on another connection for {part} of their response time"),
            advice: Some(
                "if they are meant to (long polls, a chat, a queue, a batch), nothing is slow; else see why they are not \
                 answered before"
                    .into(),
            ),
            detail: format!(
                "For {part} of their response time {whose} waited while the target, or whoever it asked, had next to nothing to \
                 do, until something came on another connection; then they were answered. Whether that is meant is not seen: \
                 a peer whose workers are kept by others looks the same.{standing}"
            ),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use recording::text::parse;

    /// Polls of 300 ms over connections of one address; what ends the loop's wait comes on the connection of `by`.
    fn told(address: &str, by: u32) -> Option<String> {
        let family = if address.contains('[') { 10 } else { 2 };
        let mut text = "meta host.arch=x86_64 length_ns=30e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
            process pid=1 listen=[\"tcp 0.0.0.0:80\"]
            thread t_ns=30e9 pid=1 tid=1 comm=chat wall_ns=30e9 cpu_ns=1e8 blocked_ns=299e8
            burst t_ns=30e9 length_ns=30e9
            exchange_window t_ns=30e9 length_ns=30e9
            exchange role=accepted port=80 stage=response count=60 sum_ns=18e9 length_ns=[300000000] counts=[60]\n"
            .to_string();
        for at in 0..60 {
            let (read, end) = (at * 400 + 100, at * 400 + 400);
            let _ = writeln!(
                text,
                "request t_ns={end}e6 role=accepted port=80 peer={address}:5000 pid=1 began_ns={read}e6 began_tid=1 read_ns={read}e6 ended_tid=1
                 wakeup t_ns={read}e6 pid=1 tid=1 comm=chat wait_ns=90e6 blocked_ns=90e6 since_ns={}e6 waits=1 cpu_ns=1e5 syscall=232 \
                 context=thread waker_pid=9 waker_tid=9 waker_family={family} waker_local_port=5000 waker_remote_port=80
                 wakeup t_ns={}e6 pid=1 tid=1 comm=chat wait_ns=298e6 blocked_ns=298e6 since_ns={read}e6 waits=1 cpu_ns=1e5 syscall=232 \
                 context=thread waker_pid=9 waker_tid=9 waker_family={family} waker_local_port={by} waker_remote_port=80",
                read - 95,
                end - 1,
            );
        }
        remark(&Case::new(&parse(&text).unwrap())).map(|remark| remark.headline)
    }

    #[test]
    fn what_another_client_ends() {
        for address in ["127.0.0.1", "[::1]"] {
            let said = told(address, 6000).unwrap_or_default();
            assert!(said.starts_with("requests wait until something comes on another connection for 99"), "{said}");
            assert_eq!(told(address, 5000), None, "its own client sent more");
        }
    }
}
