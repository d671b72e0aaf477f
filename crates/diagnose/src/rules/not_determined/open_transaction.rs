// SPDX-License-Identifier: Apache-2.0
//! Requests that stand before a lock whose holder has nothing to do but to wait for its own client, as in the middle of a transaction.
//! It is nobody's fault in the service that this client takes its time; but the others wait for it. Where the service stands before that
//! lock in whomever it asks, the client that takes its time is often itself.

use recording::tables::Wakeup;

use super::super::Statement;
use crate::case::Case;
use crate::facts::unexplained::Unexplained;
use crate::judgement::paths::{is_at_nobody_asked, stands_before_peers};
use crate::judgement::standing::MIN_REST;
use crate::remarks::hidden_queues;
use crate::statistics::ratio;
use crate::syscall::{Family, family};
use crate::walk::chains::Chain;
use crate::walk::paths::{Group, Part, RequestPaths, What};
use crate::walk::{Kind, Walk};
use crate::wording::{count, percent, seconds};

/// Of the time of slow requests: most of it.
const MOSTLY: f64 = 0.5;

/// The statement about them.
pub(super) fn check(case: &Case) -> Option<Statement> {
    if case.fact::<Unexplained>().ok()?.late < MIN_REST {
        return None;
    }
    let paths = case.fact::<RequestPaths>().ok()?;
    let slow = &paths.main()?.slow;
    here(case, slow).or_else(|| there(slow))
}

/// They stand in the target.
fn here(case: &Case, slow: &Group) -> Option<Statement> {
    let part = slow.share(is_held_for_a_client);
    if part < MOSTLY || is_news(case) {
        return None;
    }
    let late = case.fact::<Unexplained>().ok()?.late;
    let (part, mean) = (percent(part), mean(slow));
    Some(Statement {
        headline: format!(
            "slow requests spend {part} of their {mean} before a lock, and whoever holds it waits for its own client (as in a \
             transaction that is kept open)"
        ),
        advice: format!("see who holds it, and what that client does meanwhile: {}", hidden_queues::look(case).look),
        detail: format!(
            "On average {late:.1} connections had been waiting for their answer for 10 ms or longer. The slowest {} requests that were \
             followed spent {part} of their time before a lock, until a thread let go of it that had waited for what its own client \
             sends next. What is held so long is a matter between these two: a row of a table until its transaction is over, or a \
             lock of the service's that is kept over several requests of one client.",
            count(slow.requests as f64)
        ),
    })
}

/// Between two of several wakeups by one thread, ns.
const AT_ONCE_NS: u64 = 1_000_000;

/// Whether threads that end the waits of others mostly end several at once: what a lock keeps only one of them can have next, news is for
/// all.
fn is_news(case: &Case) -> bool {
    let Ok(walk) = case.fact::<Walk>() else { return false };
    let among = |row: &&Wakeup| {
        let own = walk.target.contains(&row.pid) && walk.target.contains(&row.waker_pid);
        own && row.context == "thread"
            && row.wait_ns >= AT_ONCE_NS
            && family(&case.syscall(row.syscall)) == Family::Futex
    };
    let mut rows: Vec<&Wakeup> = case.recording.rows::<Wakeup>().iter().filter(among).collect();
    rows.sort_by_key(|row| (row.waker_tid, row.t_ns));
    let is_next = |a: &Wakeup, b: &Wakeup| {
        a.waker_tid == b.waker_tid && a.tid != b.tid && b.t_ns.saturating_sub(a.t_ns) <= AT_ONCE_NS
    };
    let together: usize = rows.chunk_by(|a, b| is_next(a, b)).map(<[_]>::len).filter(|len| *len > 1).sum();
    together * 2 > rows.len()
}

fn is_held_for_a_client(part: &Part) -> bool {
    let What::Waits(chain) = &part.what else { return false };
    !part.before && stands_before_peers(part) && chain.end.kind == Kind::Client
}

/// They wait for somebody who stands there.
fn there(slow: &Group) -> Option<Statement> {
    let part = slow.share(|part| kept(part).is_some());
    let chain = slow.parts.iter().find_map(kept).filter(|_| part >= MOSTLY)?;
    let (peer, part, mean) = (&chain.links[0].who.peer, percent(part), mean(slow));
    let (keeper, advice) = match chain.comes_back() {
        true => (
            format!("{} itself", chain.links[0].who.comm),
            "commit sooner: take what it does between two questions to it out of the transaction".to_string(),
        ),
        false => (
            "another client".into(),
            format!("see at {peer} who has a transaction open, and what that client does meanwhile"),
        ),
    };
    Some(Statement {
        headline: format!("requests wait {part} of their {mean} for {peer}, where {keeper} keeps a transaction open"),
        advice,
        detail: format!(
            "The slowest {} requests that were followed spent {part} of their time until {peer} had answered. There a thread stood before \
             a lock, as that of a row of a table, until another one let go of it, which had waited for what its own client sends \
             next: that client is {keeper}. {}",
            count(slow.requests as f64),
            besides(slow).unwrap_or_default()
        ),
    })
}

/// The chain of a part in which whoever was asked stood before such a lock.
fn kept(part: &Part) -> Option<&Chain> {
    let What::Waits(chain) = &part.what else { return None };
    (!part.before && is_at_nobody_asked(chain)).then_some(chain)
}

/// What they did besides for most of the time, which is what they do while they keep the others waiting.
fn besides(slow: &Group) -> Option<String> {
    let part = slow.parts.iter().find(|part| kept(part).is_none())?;
    let each = seconds(ratio(part.ns, slow.requests as f64) / 1e9);
    Some(format!("Besides that, they spent most time, {each} each, in this: {}.", part.words()))
}

/// How long they take on average, in words.
fn mean(group: &Group) -> String {
    seconds(ratio(group.ns, group.requests as f64) / 1e9)
}

#[cfg(test)]
mod tests {
    use super::super::super::asking::stated;
    use super::super::RULE;

    const HEAD: &str = "meta host.arch=x86_64 length_ns=9e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
            process pid=1 listen=[\"tcp 0.0.0.0:80\"]\nprocess pid=11\nprocess pid=12
            thread t_ns=9e9 pid=11 tid=11 comm=db wall_ns=9e9 cpu_ns=1e8 blocked_ns=89e8
            thread t_ns=9e9 pid=12 tid=12 comm=db wall_ns=9e9 cpu_ns=1e8 blocked_ns=89e8
            frame id=1 symbol=__send_signal_locked module=kernel kind=kernel
            frame id=2 symbol=it_real_fn module=kernel kind=kernel
            stack id=1 frames=[1]\nstack id=2 frames=[2,1]
            burst t_ns=9e9 length_ns=9e9
            exchange_window t_ns=9e9 length_ns=9e9
            exchange role=accepted port=80 stage=response count=270 sum_ns=83e8 length_ns=[1000000,93000000] counts=[180,90]
            connection t_ns=9e9 role=accepted port=80 looks=100 open=200 unanswered=92 late=80 late_ns=4e9\n";

    /// Two backends of a database, each with a client of its own. One has a row for 91 of 100 ms, in which it waits for its client; the
    /// other stands before it in a set of files without its client, with an alarm now and then, until the first one sends it a signal.
    fn text(set: u32) -> String {
        let mut text = HEAD.to_string();
        for at in (0..90u32).map(|nth| 10 + nth * 100) {
            let mut woken = |after: u32, tid: u32, wait: u32, set: u32, rest: &str| {
                text += &format!(
                    "wakeup t_ns={t}e6 since_ns={since}e6 pid={tid} tid={tid} comm=db wait_ns={wait}e6 blocked_ns={wait}e6 waits=1 cpu_ns=1e5 syscall=232 args=[{set},0,1,0] {rest}\n",
                    t = at + after,
                    since = at + after - wait,
                );
            };
            let client = |port: u32| format!("context=interrupt family=2 local_port=80 remote_port={port}");
            woken(0, 11, 8, 4, &client(35001));
            woken(1, 12, 8, 4, &client(35002));
            woken(41, 12, 40, set, "context=interrupt waker_stack=2");
            woken(91, 11, 90, 4, &client(35001));
            woken(
                92,
                12,
                51,
                set,
                "context=thread waker_pid=11 waker_tid=11 waker_comm=db waker_syscall=62 waker_stack=1",
            );
            for (tid, port, began, ended) in [(11, 35001, 0, 1), (11, 35001, 91, 92), (12, 35002, 1, 93)] {
                text += &format!(
                    "request t_ns={}e6 role=accepted port=80 peer=10.0.0.2:{port} pid={tid} began_ns={began}e6 began_tid={tid} read_ns={began}e6 ended_tid={tid}\n",
                    at + ended,
                    began = at + began,
                );
            }
        }
        text
    }

    #[test]
    fn a_backend_whose_client_takes_its_time_to_commit() {
        let said = stated(&RULE, &text(9), &[]).unwrap();
        let begins = "slow requests spend 9";
        assert!(said.headline.starts_with(begins) && said.headline.contains("waits for its own client"), "{said:?}");
    }

    /// The same in the set in which it waits for its client as well, where nobody knows what it waited for; and where the other one does
    /// not signal, but answers over a socket.
    #[test]
    fn one_set_for_everything_and_an_answer_are_no_turn() {
        for other in [text(4), text(9).replace("waker_syscall=62", "waker_syscall=44")] {
            let said = stated(&RULE, &other, &[]);
            assert!(said.is_none_or(|said| !said.headline.contains("its own client")));
        }
    }

    /// Threads whose waits in futex one other thread ends, each so long after the one before it.
    fn news(apart_us: u32) -> bool {
        let mut text = "meta host.arch=x86_64 length_ns=9e9 target.pids=[1]\n".to_string();
        for (event, tid) in (1..9u32).flat_map(|event| (10..14).map(move |tid| (event, tid))) {
            text += &format!(
                "wakeup t_ns={}e3 pid=1 tid={tid} comm=w wait_ns=900e6 blocked_ns=900e6 waits=1 syscall=202 args=[64,393,0,9] context=thread waker_pid=1 waker_tid=2 waker_comm=w waker_syscall=202\n",
                event * 1_000_000 + tid * apart_us
            );
        }
        super::is_news(&super::Case::new(&recording::text::parse(&text).unwrap()))
    }

    #[test]
    fn what_ends_the_waits_of_all_at_once_is_news() {
        assert!(news(20) && !news(20_000), "a lock is given to one after the other");
    }
}
