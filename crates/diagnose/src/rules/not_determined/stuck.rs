// SPDX-License-Identifier: Apache-2.0
//! Requests hang while threads stand in one thing all the time: what that is for nobody saw, because it began before and did not end.

use std::collections::{BTreeMap, BTreeSet};

use recording::tables::{FileLock, Process};

use super::super::Statement;
use crate::case::Case;
use crate::facts::servers::Servers;
use crate::judgement::hung::{A_GOOD_PART, ALL_THE_TIME, Hung, Others, look, telling};
use crate::judgement::standers;
use crate::ledger::blocked::Blocked;
use crate::ledger::threads::Threads;
use crate::remarks::hidden_queues;
use crate::wording::{plural, requests, seconds};

/// The statement about it.
pub(super) fn check(case: &Case) -> Option<Statement> {
    let hung = look(case)?;
    let answers = hidden_queues::who_answers(case)?;
    let (who, stands, line) = match telling(case, &hung) {
        Some((threads, line)) => {
            let who = if threads == 1 { "a thread".into() } else { format!("each of {}", plural(threads, "thread")) };
            (who, stands(case, line, answers), line)
        }
        None => (children(case, &hung, answers)?, "run".to_string(), Blocked::Child),
    };
    let others = if hung.others == Others::Answered { ", others are answered" } else { "" };
    let owed = seconds(hung.owed_ns / 1e9);
    Some(Statement::short(
        format!("{}, for {owed} so far{others}: all the time {who} {stands}", requests(hung.requests, "hang")),
        look_there(case, line, answers),
    ))
}

/// That they hang, and where the threads stand that have them in hand.
pub(super) fn in_hand(case: &Case) -> Option<String> {
    let hung = look(case)?;
    let (where_they_stand, so_far) = (standers::of_those_in_hand(case, &hung)?, seconds(hung.owed_ns / 1e9));
    let others = if hung.others == Others::Answered { ", others are answered" } else { "" };
    Some(format!("{}, for {so_far} so far{others}: {where_they_stand}", requests(hung.requests, "hang")))
}

/// What a thread does that stands on a line of the ledger.
pub(super) fn stands(case: &Case, line: Blocked, answers: u32) -> String {
    match line {
        Blocked::Child => match most_common(&started_by(case, answers)) {
            Some((comm, pid)) => format!("waits for a child that does not end ({comm}, as pid {pid})"),
            None => "waits for a child that does not end".into(),
        },
        Blocked::FileLock => before_a_lock(case),
        Blocked::Sleep => "sleeps".into(),
        Blocked::SocketRead => "waits for bytes on a socket".into(),
        Blocked::Connect => "waits for a connection to be made".into(),
        Blocked::SocketSend => "waits for somebody to take what it sends".into(),
        Blocked::Pipe => "stands at a pipe".into(),
        line => format!("is blocked ({})", line.words()),
    }
}

/// The lock on a file before which most of its threads stand.
fn lock<'c>(case: &'c Case<'_>) -> Option<&'c FileLock> {
    case.recording.rows::<FileLock>().iter().max_by_key(|lock| lock.waiting)
}

fn before_a_lock(case: &Case) -> String {
    let Some(lock) = lock(case) else { return "stands before a lock on a file".into() };
    let file = if lock.path.is_empty() { "a file".to_string() } else { lock.path.clone() };
    let own = case.recording.rows::<Process>().iter().any(|row| row.pid == lock.pid);
    match (lock.pid, own) {
        (0, _) => format!("stands before the lock on {file}"),
        (pid, true) => format!("stands before the lock on {file}, which its own process {pid} ({}) has", lock.comm),
        (pid, false) => format!("stands before the lock on {file}, which process {pid} ({}) has", lock.comm),
    }
}

/// How to see more of it.
pub(super) fn look_there(case: &Case, line: Blocked, answers: u32) -> String {
    let look = hidden_queues::look_at(case, Some(answers)).look;
    match line {
        Blocked::Child => format!("see what its children do: `ps --ppid {answers} -o pid,stat,wchan:32,args`"),
        Blocked::FileLock => match lock(case) {
            Some(lock) if lock.pid > 0 => {
                format!("see what process {pid} does while it has the lock: `eu-stack -p {pid}`", pid = lock.pid)
            }
            _ => "see who holds it: `cat /proc/locks` names the process and the file's inode".into(),
        },
        Blocked::SocketRead | Blocked::SocketSend | Blocked::Connect => {
            format!("see whose socket that is: `ss -xtnp | grep pid={answers}`; then {look}")
        }
        _ => format!("see where in its code: {look}"),
    }
}

/// Programs that an event loop has started and that run all the time, as many as a good part of the requests that hang, in words.
fn children(case: &Case, hung: &Hung, answers: u32) -> Option<String> {
    let (ledger, servers) = (case.fact::<Threads>().ok()?, case.fact::<Servers>().ok()?);
    let least = case.length_ns() * ALL_THE_TIME;
    let live: BTreeSet<u32> = ledger.threads.iter().filter(|t| t.lines.wall_ns >= least).map(|t| t.pid).collect();
    let is_it = |row: &&Process| !servers.has(row.pid) && live.contains(&row.pid);
    let all: Vec<&Process> = started_by(case, answers).into_iter().filter(is_it).collect();
    let (comm, pid) = most_common(&all)?;
    (all.len() as f64 >= hung.requests * A_GOOD_PART)
        .then(|| format!("{} that it has started ({comm}, as pid {pid})", plural(all.len(), "program")))
}

/// As they were told last.
fn started_by<'c>(case: &'c Case<'_>, parent: u32) -> Vec<&'c Process> {
    let rows = case.recording.rows::<Process>().iter().filter(|row| row.ppid == parent);
    rows.map(|row| (row.pid, row)).collect::<BTreeMap<_, _>>().into_values().collect()
}

/// The program that most of them are, and one of these.
fn most_common(processes: &[&Process]) -> Option<(String, u32)> {
    let mut by_comm: BTreeMap<&str, (usize, u32)> = BTreeMap::new();
    for row in processes {
        let (number, pid) = by_comm.entry(&row.comm).or_default();
        (*number, *pid) = (*number + 1, row.pid);
    }
    by_comm.into_iter().max_by_key(|(_, (number, _))| *number).map(|(comm, (_, pid))| (comm.to_string(), pid))
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
        let told = "20 requests hang, for 6.0 s so far: all the time each of 5 threads waits for a child that does not end (convert, as pid 7)";
        assert_eq!(child.headline, told);
        assert!(child.advice.contains("ps --ppid 1 "), "{child:?}");
        let programs = "process pid=1 exe=/svc listen=[\"tcp 0.0.0.0:80\"]\n".to_string()
            + &(7..13)
                .map(|pid| {
                    format!(
                        "process pid={pid} ppid=1 comm=convert exe=/convert
                         thread t_ns=4e9 pid={pid} tid={pid} comm=convert wall_ns=4e9 blocked_ns=4e9\n"
                    )
                })
                .collect::<String>();
        let run = said(&[("loop", EPOLL)], &programs).unwrap().headline;
        assert!(run.ends_with("all the time 6 programs that it has started (convert, as pid 12) run"), "{run}");
        assert!(said(&[("w", SLEEP)], "").is_none(), "one of the household, beside twenty");
    }

    #[test]
    fn a_lock_on_a_file_has_a_holder() {
        // flock
        let workers = [("loop", EPOLL), ("w", "73"), ("w", "73"), ("w", "73"), ("w", "73"), ("w", "73")];
        let lock = "file_lock kind=FLOCK pid=50 comm=backup path=/var/lib/svc.lock inode=77 waiting=5\n";
        let told = said(&workers, lock).unwrap();
        assert!(told.headline.ends_with("the lock on /var/lib/svc.lock, which process 50 (backup) has"), "{told:?}");
        assert!(told.advice.contains("eu-stack -p 50"), "{told:?}");
        assert!(said(&workers, "").unwrap().headline.ends_with("stands before a lock on a file"));
    }

    #[test]
    fn other_waits_say_nothing() {
        assert!(said(&[("w", FUTEX), ("loop", EPOLL)], "").is_none());
    }
}
