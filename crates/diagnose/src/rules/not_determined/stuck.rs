// SPDX-License-Identifier: Apache-2.0
//! Requests hang while threads stand in one thing all the time: what that is for nobody saw, because it began before and did not end.

use recording::tables::Process;

use super::super::Statement;
use crate::case::Case;
use crate::judgement::hung::{ALL_THE_TIME_WORDS, look, telling};
use crate::ledger::blocked::Blocked;
use crate::remarks::hidden_queues;
use crate::wording::{plural, seconds};

/// The statement about it.
pub(super) fn check(case: &Case) -> Option<Statement> {
    let hung = look(case)?;
    let (threads, line) = telling(case, &hung)?;
    let pid = hidden_queues::who_answers(case).map_or("PID".to_string(), |pid| pid.to_string());
    let stands = match line {
        Blocked::Child => {
            format!("waits for {}", child(case, &pid).unwrap_or_else(|| "a child that does not end".into()))
        }
        Blocked::FileLock => "stands before a lock on a file".into(),
        Blocked::Sleep => "sleeps".into(),
        Blocked::SocketRead => "waits for bytes on a socket".into(),
        Blocked::Connect => "waits for a connection to be made".into(),
        Blocked::SocketSend => "waits for somebody to take what it sends".into(),
        Blocked::Pipe => "stands at a pipe".into(),
        line => format!("is blocked ({})", line.line().replacen("blocked_", "", 1).replace('_', " ")),
    };
    let look_there = match line {
        Blocked::Child => format!("see what its children do: `ps --ppid {pid} -o pid,stat,wchan:32,args`"),
        Blocked::FileLock => "see who holds it: `cat /proc/locks` names the process and the file's inode".into(),
        Blocked::SocketRead | Blocked::SocketSend | Blocked::Connect => {
            format!("see whose socket that is: `ss -xtnp | grep pid={pid}`; then {}", hidden_queues::look(case).look)
        }
        _ => format!("see where in its code: {}", hidden_queues::look(case).look),
    };
    let who = if threads == 1 { "a thread".to_string() } else { format!("each of {}", plural(threads, "thread")) };
    let others = if hung.others { ", others are answered" } else { "" };
    Some(Statement::short(
        format!(
            "{:.1} requests hang, for {} so far{others}: {ALL_THE_TIME_WORDS} {who} {stands}",
            hung.requests,
            seconds(hung.owed_ns / 1e9)
        ),
        look_there,
    ))
}

/// The program that most of a process's children run, with one of them.
fn child(case: &Case, pid: &str) -> Option<String> {
    let children = || case.recording.rows::<Process>().iter().filter(|row| row.ppid.to_string() == pid);
    let number = |comm: &str| children().filter(|row| row.comm == comm).count();
    let most = children().max_by_key(|row| number(&row.comm))?;
    Some(format!("a child that does not end ({}, as pid {})", most.comm, most.pid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judgement::hung::tests::{EPOLL, FUTEX, SLEEP, text};
    use recording::text::parse;

    fn said(threads: &[(&str, &str)], more: &str) -> Option<Statement> {
        check(&Case::new(&parse(&text(threads, more).replace("unread=760", "unread=0")).unwrap()))
    }

    #[test]
    fn a_child_a_sleep_and_what_says_nothing() {
        // wait4
        let workers = [("loop", EPOLL), ("w", "61"), ("w", "61"), ("w", "61"), ("w", "61"), ("w", "61")];
        let child = said(&workers, "process pid=7 ppid=1 comm=convert").unwrap();
        let told = "20.0 requests hang, for 6.0 s so far: all the time each of 5 threads waits for a child that does not end (convert, as pid 7)";
        assert_eq!(child.headline, told);
        assert!(child.advice.contains("ps --ppid 1 "), "{child:?}");
        assert!(said(&[("w", SLEEP)], "").is_none(), "one of the household, beside twenty");
        assert!(said(&[("w", FUTEX), ("loop", EPOLL)], "").is_none());
    }
}
