// SPDX-License-Identifier: Apache-2.0
//! A process has as many files open as it may: it can take no connection and open nothing more.

use recording::counters::pid;

use super::{Check, Checked, Rule, absent, evidence, explained, found, too_little};
use crate::answer::{Measured, Unit};
use crate::case::Case;
use crate::facts::counters::Counters;
use crate::facts::errors::{Errors, Kind};
use crate::facts::workers::Workers;
use crate::judgement::errors::MIN_COUNT;
use crate::verdict::{Explains, Finding, Subject};
use crate::wording::{count, percent};

pub(super) static RULE: Rule =
    Rule { cause: "fd-exhausted", explain: explain!("fd-exhausted"), check: Check::Accuses(check) };

/// Of the window, with all descriptors in use: one that is closed now and then is taken at once.
const MIN_FULL: f64 = 0.5;

/// Of the window: whoever stands at his limit all the time is not there by chance, and whatever he wants to open next fails. That is
/// one witness, which calls that failed, or connections that wait, make two.
const ALWAYS_FULL: f64 = 0.98;

/// Connections in the accept queue on average, and the share of the window with one: somebody waits to be taken.
const MIN_QUEUE: f64 = 1.0;
const MIN_QUEUED: f64 = 0.7;

/// Times the limit: who has so many open has lowered it on purpose, to open nothing more. (A few beyond it are seen of others too,
/// for the number and the limit are not read at one moment.)
const LOWERED: f64 = 2.0;

/// EMFILE.
const TOO_MANY: i64 = -24;

/// A process and its descriptors.
struct Files {
    pid: u32,
    most: f64,
    limit: f64,
    /// Share of the window in which all were in use.
    full: f64,
}

fn check(case: &Case) -> Checked {
    let counters = case.fact::<Counters>()?;
    let used = |files: &Files| files.most / files.limit;
    let by_use = |a: &Files, b: &Files| a.full.total_cmp(&b.full).then(used(a).total_cmp(&used(b)));
    let Some(files) = counters.entities(pid::SOURCE).filter_map(|pid| files(case, &counters, pid)).max_by(by_use)
    else {
        return absent("no process with a limit of open files was seen");
    };
    if files.most < files.limit {
        let (most, limit) = (count(files.most), count(files.limit));
        let told = format!("process {} had {most} of {limit} descriptors open at most", files.pid);
        return too_little(Measured::new(used(&files), 1.0, Unit::Share), told);
    }
    let told = format!("process {} had all of its {} descriptors open", files.pid, count(files.limit));
    if files.full < MIN_FULL {
        let why = format!("{told}, but only for {} of the window (under 50 %)", percent(files.full));
        return too_little(Measured::new(files.full, MIN_FULL, Unit::Share), why);
    }
    let workers = case.fact::<Workers>()?;
    // While all are in use: before that, nobody stands there.
    let stands = workers.queue >= MIN_QUEUE * files.full && workers.queued >= MIN_QUEUED * files.full;
    let failed = case.fact::<Errors>()?.all.iter().find(|e| e.kind == Kind::Failed(TOO_MANY)).map_or(0.0, |e| e.count);
    if !stands && failed < MIN_COUNT && files.full < ALWAYS_FULL {
        return explained(format!("{told}, and nobody was seen to want another: no queue, no call that failed"));
    }
    let finding = finding(case, &files, &workers, (stands, failed));
    let headline =
        format!("process {} has all of its {} descriptors open: it can take no more", files.pid, count(files.limit));
    found(
        finding,
        headline,
        "raise its limit of open files, or close what is idle; `ls -l /proc/PID/fd` shows what it is"
            .replace("PID", &files.pid.to_string()),
    )
}

fn files(case: &Case, counters: &Counters, pid: &str) -> Option<Files> {
    let limit = counters.last(pid::OPEN_FILES_LIMIT, pid).filter(|limit| *limit > 0.0)?;
    let most = counters.max(pid::OPEN_FILES, pid).filter(|most| *most < limit * LOWERED)?;
    Some(Files {
        // It becomes a word of commands: what is no number names no process.
        pid: pid.parse().ok()?,
        most,
        limit,
        full: counters.share_of_time(pid::OPEN_FILES, pid, case.length_ns(), |open| open >= limit)?,
    })
}

fn finding(case: &Case, files: &Files, workers: &Workers, (stands, failed): (bool, f64)) -> Finding {
    let queue = match stands {
        true => format!("; {:.1} connections waited for accept() at {} meanwhile", workers.queue, workers.listener),
        false => String::new(),
    };
    let calls =
        if failed > 0.0 { format!("; {} counted calls failed with EMFILE", count(failed)) } else { String::new() };
    let see = |what: &str| what.replace("PID", &files.pid.to_string());
    Finding {
        // The table of descriptors is one source; the queue, or the calls, the other.
        summary: format!(
            "Process {} had {} descriptors open, its limit, for {} of the window{queue}{calls}",
            files.pid,
            count(files.limit),
            percent(files.full)
        ),
        subject: Subject { pid: Some(files.pid), ..Subject::default() },
        explains: Explains { share: files.full, of: "the window".into(), seconds: files.full * case.seconds() },
        evidence: vec![
            evidence(
                "open descriptors, at most",
                files.most.min(files.limit),
                "files",
                "below the limit",
                see("ls /proc/PID/fd | wc -l"),
            ),
            evidence("the soft limit", files.limit, "files", "", see("grep 'open files' /proc/PID/limits")),
            evidence("of the window, all in use", files.full * 100.0, "%", "0", ""),
            evidence("in the accept queue, on average", workers.queue, "connections", "near 0", workers.look()),
            evidence("counted calls that failed with EMFILE", failed, "calls", "0", see("strace -f -Z -c -p PID")),
        ],
        remedy: see(
            "Raise the limit: LimitNOFILE= in the unit, ulimit -n before it starts, prlimit --pid PID --nofile= while it runs. \
             If the number grows for ever, something is not closed: ls -l /proc/PID/fd shows of what there are most. A timeout \
             for idle connections gives descriptors back.",
        ),
        check: see("ls /proc/PID/fd | wc -l stays below the limit under the same load, and the accept queue is empty."),
        ..RULE.finding(case, 1 + usize::from(stands || failed >= MIN_COUNT))
    }
}

#[cfg(test)]
mod tests {
    use super::super::asking::{found, silent};
    use super::RULE;

    fn text(open: u32, queue: u32) -> String {
        format!(
            "meta host.arch=x86_64 length_ns=1e9 target.pids=[1]
             wakeup
             thread t_ns=1e9 pid=1 tid=1 wall_ns=1e9 cpu_ns=1e8 blocked_ns=9e8
             counter source=proc/pid entity=\"1\" name=open_files value={open}
             counter source=proc/pid entity=\"1\" name=open_files_limit value=64
             counter source=proc/net/listeners entity=\"tcp 0.0.0.0:80\" name=accept_queue value={queue}"
        )
    }

    #[test]
    fn all_descriptors_in_use_and_somebody_waits() {
        let finding = found(&RULE, &text(64, 20));
        assert!(
            finding.summary.contains("64 descriptors open, its limit, for 100 % of the window; 20.0 connections"),
            "{}",
            finding.summary
        );
        assert_eq!((finding.confidence.as_str(), finding.subject.pid), ("high", Some(1)));
        let failed = text(64, 0) + "\ncall_window length_ns=1e9\ncall pid=1 tid=1 syscall=43 result=-24 count=300";
        assert!(found(&RULE, &failed).summary.contains("300 counted calls failed with EMFILE"));
    }

    /// Who is at the limit from the first look to the last has a call that fails, seen or not.
    #[test]
    fn at_the_limit_all_the_time() {
        let finding = found(&RULE, &text(64, 0));
        assert_eq!((finding.confidence.as_str(), finding.subject.pid), ("medium", Some(1)));
    }

    #[test]
    fn room_or_nobody_who_wants_more() {
        assert!(silent(&RULE, &text(63, 20)).contains("63 of 64"));
        // As sshd for a login that is under way.
        assert!(silent(&RULE, &text(320, 20)).contains("no process with a limit"));
        let mostly = text(64, 0)
            + "\ncounter t_ns=1e8 source=proc/pid entity=\"1\" name=open_files value=63
             counter t_ns=4e8 source=proc/pid entity=\"1\" name=open_files value=64";
        assert!(silent(&RULE, &mostly).contains("nobody was seen to want another"), "{}", silent(&RULE, &mostly));
        let once = text(3, 20) + "\ncounter t_ns=9e8 source=proc/pid entity=\"1\" name=open_files value=64";
        assert!(silent(&RULE, &once).contains("only for 10 % of the window"));
    }
}
