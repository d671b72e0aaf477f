// SPDX-License-Identifier: Apache-2.0
//! Questions that lie unread although the thread which should read them has nothing to do: it was told of them once, and did not
//! read on.

use recording::tables::Request;

use super::super::Statement;
use crate::case::Case;
use crate::facts::connections::Connections;
use crate::facts::requests::Requests;
use crate::facts::unexplained::Unexplained;
use crate::judgement::paths::one_thread;
use crate::judgement::standing::matters;
use crate::ledger::blocked::Blocked;
use crate::ledger::threads::Threads;
use crate::statistics::share;
use crate::wording::{count, percent, seconds};

/// Of the requests that stand for long.
const NEARLY_ALL: f64 = 0.8;

/// Of its time, the thread that serves waits in a poll: whoever is busy reads later.
const IDLE: f64 = 0.7;

/// The statement about them.
pub(super) fn check(case: &Case) -> Option<Statement> {
    let requests = case.fact::<Unexplained>().ok()?;
    let connections = case.fact::<Connections>().ok()?;
    let lie = connections.accepted.late_unread;
    // A proxy reads no more of what it cannot pass on.
    if !matters(&requests) || lie < requests.late * NEARLY_ALL || connections.made.unsent > 0.0 {
        return None;
    }
    let tid = reader(case)?;
    let threads = case.fact::<Threads>().ok()?;
    let thread = threads.threads.iter().find(|thread| thread.tid == tid)?;
    let polls = share(thread.lines.blocked(Blocked::Poll), thread.lines.wall_ns);
    (polls >= IDLE).then(|| {
        let ago = seconds(requests.late_ns / 1e9);
        Statement {
            headline: format!(
                "{} requests at a time lie unread, for {ago}, while thread {} (tid {tid}), which reads, waits in a poll",
                count(lie),
                thread.comm
            ),
            advice: "read until nothing is left (EAGAIN) whenever the poll tells of bytes, as edge-triggered epoll wants it"
                .into(),
            detail: format!(
                "On average {lie:.1} connections had bytes that had come {ago} ago and were not read, while the one thread that \
                 reads waited in a poll for {} of its time. Probably it was told of them, left a part, and is told again only when \
                 more comes (`ss -tn`: Recv-Q). Who leaves bytes unread on purpose looks the same.",
                percent(polls)
            ),
        }
    })
}

/// The thread that reads what clients ask, if the one that answers does.
fn reader(case: &Case) -> Option<u32> {
    let port = case.fact::<Requests>().ok()?.main()?.port;
    let (_, tid) = one_thread(case, port)?;
    let rows = case.recording.rows::<Request>().iter().filter(|row| row.is_of_client() && row.port == port);
    let (own, all) = rows.fold((0, 0), |(own, all), row| (own + u32::from(row.began_tid == tid), all + 1));
    (f64::from(own) >= f64::from(all) * NEARLY_ALL).then_some(tid)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::super::super::asking::stated;
    use super::super::RULE;

    /// Four requests at a time stand for 800 ms, so many of them unread, while the one thread polls for so much of the time.
    fn said(unread: u32, polls: f64) -> String {
        let mut text = format!(
            "meta host.arch=x86_64 length_ns=1e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
             process pid=1 listen=[\"tcp 0.0.0.0:80\"]
             thread t_ns=1e9 pid=1 tid=1 comm=loop wall_ns=1e9 cpu_ns={:.0} blocked_ns={:.0}
             wait t_ns=1e9 pid=1 tid=1 syscall=232 total_ns={:.0}
             exchange_window t_ns=1e9 length_ns=1e9
             exchange t_ns=1e9 role=accepted port=80 stage=response count=40 sum_ns=4e6 length_ns=[100000] counts=[40]
             connection t_ns=1e9 role=accepted port=80 looks=20 open=160 unread=80 unanswered=80 late=80 late_ns=64e9 late_unread={}\n",
            (1.0 - polls) * 1e9,
            polls * 1e9,
            polls * 1e9,
            unread * 20
        );
        for nth in 0..40 {
            let at = 10 + nth * 20;
            let _ = writeln!(
                text,
                "request t_ns={}e5 role=accepted port=80 pid=1 began_ns={at}e6 began_tid=1 read_ns={at}e6 ended_tid=1",
                at * 10 + 1
            );
        }
        stated(&RULE, &text, &[]).map(|said| said.headline).unwrap_or_default()
    }

    #[test]
    fn bytes_that_an_idle_loop_leaves_unread() {
        let told = said(4, 0.95);
        assert!(told.starts_with("4 requests at a time lie unread, for 800 ms, while thread loop (tid 1)"), "{told}");
        assert!(!said(1, 0.95).contains("lie unread"), "they were read");
        assert!(!said(4, 0.3).contains("lie unread"), "it is busy");
    }
}
