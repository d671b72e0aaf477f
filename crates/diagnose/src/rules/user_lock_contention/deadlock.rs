// SPDX-License-Identifier: Apache-2.0
//! Requests hang because threads wait for each other's mutexes, of which none is ever given back; or because whoever has one stands
//! still itself. No wait for these has ended, so that no walk leads there.

use super::super::{Outcome, Statement, evidence};
use super::RULE;
use crate::case::Case;
use crate::facts::stacks::Stacks;
use crate::facts::standers::{Stander, Standers, functions};
use crate::judgement::hung::{A_GOOD_PART, Hung, SEVERAL, any};
use crate::judgement::standers::{called_from, circle, how_long};
use crate::verdict::{Finding, Link, Subject};
use crate::wording::{capital, count, plural, seconds};

/// A request at a time, on average over looks that may have begun before it hung.
const ONE: f64 = 0.75;

/// Who keeps whom.
struct Deadlock<'s> {
    /// Each stands before a lock that the next has; the last before one of the first. Or one alone, whose own wait is for something else.
    keepers: Vec<&'s Stander>,
    /// It is a circle.
    is_circle: bool,
    /// Threads that stand before a lock of these, or behind one that does; those of the circle among them.
    threads: usize,
    /// Requests that any of them has in hand, as far as that was seen.
    requests: f64,
    /// The first thread of a process is one of them, as of one that serves by a loop.
    has_first: bool,
}

/// The finding, if there is such a one.
pub(super) fn check(case: &Case) -> Option<Outcome> {
    let hung = any(case).filter(|hung| hung.requests >= ONE)?;
    let (standers, stacks) = (case.fact::<Standers>().ok()?, case.fact::<Stacks>().ok()?);
    let deadlock = deadlock(&standers)?;
    // One or two may be long polls, while somebody has a mutex for long.
    if !deadlock.keeps(&hung) || !deadlock.is_circle && hung.requests < SEVERAL {
        return None;
    }
    let so_far = seconds(hung.owed_ns / 1e9);
    let headline = format!("{} requests hang, for {so_far} so far: {}", count(hung.requests), deadlock.short());
    let finding = finding(case, &hung, &deadlock, &stacks);
    Some(Outcome::Found(Box::new(finding), Statement::short(headline, deadlock.advice(&stacks))))
}

fn deadlock(standers: &Standers) -> Option<Deadlock<'_>> {
    if let Some(circle) = circle(standers) {
        return Some(Deadlock::of(standers, circle, true));
    }
    let mut kept: Vec<Deadlock<'_>> =
        keepers(standers).map(|keeper| Deadlock::of(standers, vec![keeper], false)).collect();
    kept.sort_by_key(|deadlock| deadlock.threads);
    kept.pop()
}

/// Threads that have a mutex and stand in something else, which is not work.
fn keepers(standers: &Standers) -> impl Iterator<Item = &Stander> {
    let keeps = |stander: &&Stander| {
        let is_waited_for = standers.all.iter().any(|other| other.owner == Some(stander.tid));
        is_waited_for && stander.owner.is_none() && !stander.is_for_work
    };
    standers.all.iter().filter(keeps)
}

impl<'s> Deadlock<'s> {
    fn of(standers: &Standers, keepers: Vec<&'s Stander>, is_circle: bool) -> Self {
        let is_kept = |stander: &&Stander| is_behind(standers, stander, &keepers);
        let behind: Vec<&Stander> = standers.all.iter().filter(is_kept).collect();
        Self {
            is_circle,
            threads: behind.len(),
            requests: behind.iter().map(|stander| stander.requests).sum(),
            has_first: behind.iter().any(|stander| stander.tid == stander.who.pid),
            keepers,
        }
    }

    /// Whether that is why requests hang. A thread that stands there has one in hand at least, if it serves anybody; a loop all of them, most
    /// of which it has not read.
    fn keeps(&self, hung: &Hung) -> bool {
        let in_hand = self.requests.max(self.threads as f64);
        in_hand >= hung.requests * A_GOOD_PART || !hung.others && (self.is_circle || self.has_first)
    }

    fn short(&self) -> String {
        let first = self.keepers[0];
        match (self.is_circle, self.keepers.len()) {
            (true, 1) => format!("thread {} stands before a mutex that it has itself", name(first)),
            (true, 2) => "two threads each stand before a mutex that the other has, a deadlock".into(),
            (true, n) => format!("{n} threads stand before each other's mutexes in a circle, a deadlock"),
            (false, _) => {
                let threads = plural(self.threads, "thread");
                let stand = if self.threads == 1 { "stands" } else { "stand" };
                format!(
                    "{threads} {stand} before a mutex that {} has, which stands in {}",
                    name(first),
                    first.who.call_words()
                )
            }
        }
    }

    fn advice(&self, stacks: &Stacks) -> String {
        let from = |stander: &Stander| functions(stacks, stander).into_iter().next().unwrap_or_else(|| name(stander));
        let mut places: Vec<String> = self.keepers.iter().map(|stander| from(stander)).collect();
        places.dedup();
        match (self.is_circle, self.keepers.len()) {
            (true, 1) => format!(
                "{}: do not take a lock twice; it never ends until the process is restarted",
                places.join(" and ")
            ),
            (true, _) => {
                format!("take these locks in one order everywhere ({}); restart it meanwhile", places.join(", "))
            }
            (false, _) => {
                format!("take that wait out of the lock, or limit how long it may take ({})", places.join(", "))
            }
        }
    }
}

/// Whether a thread waits, at once or by way of others, for one of the keepers' locks.
fn is_behind(standers: &Standers, stander: &Stander, keepers: &[&Stander]) -> bool {
    let (mut at, mut steps) = (stander.owner, 0);
    while let Some(owner) = at {
        if keepers.iter().any(|keeper| keeper.tid == owner) {
            return true;
        }
        steps += 1;
        let next = standers.all.iter().find(|other| other.tid == owner);
        at = next.filter(|_| steps <= standers.all.len()).and_then(|next| next.owner);
    }
    false
}

fn name(stander: &Stander) -> String {
    format!("{}/{}", stander.who.comm, stander.tid)
}

/// Where each of the keepers stands, and before whose lock.
fn told(case: &Case, deadlock: &Deadlock<'_>, stacks: &Stacks) -> String {
    let all = deadlock.keepers.iter().map(|stander| {
        let whose = stander.owner.map_or_else(String::new, |owner| format!(" before a mutex that thread {owner} has"));
        let (from, long) = (called_from(&functions(stacks, stander)), how_long(case, stander.wait_ns, ""));
        format!("{} stands in {}{whose}{from}, {long}", name(stander), stander.who.call_words())
    });
    all.collect::<Vec<_>>().join("; ")
}

fn finding(case: &Case, hung: &Hung, deadlock: &Deadlock<'_>, stacks: &Stacks) -> Finding {
    let others = if hung.others { "Others were answered, but" } else { "Nobody was answered, and" };
    let first = deadlock.keepers[0];
    let never = if deadlock.is_circle { " None of them ever goes on, unless a timeout ends its wait." } else { "" };
    let link = |stander: &&Stander| Link {
        who: name(stander),
        waits_on: stander.who.call_words(),
        seconds: stander.wait_ns / 1e9,
        stack: functions(stacks, stander),
    };
    let own = vec![
        evidence("threads that stand before these locks", deadlock.threads as f64, "threads", "0", ""),
        evidence("the first for so long so far", first.wait_ns / 1e9, "s", "well under 1", ""),
    ];
    Finding {
        summary: format!(
            "{others} {} requests wait, for {} so far. As the capture ended, {}.{never} {} stand before locks of these",
            count(hung.requests),
            seconds(hung.owed_ns / 1e9),
            told(case, deadlock, stacks),
            plural(deadlock.threads, "thread"),
        ),
        subject: Subject {
            pid: Some(first.who.pid),
            comm: Some(first.who.comm.clone()),
            syscall: Some(first.who.call.clone()),
            ..Subject::default()
        },
        explains: hung.explains(case),
        evidence: [hung.evidence(), own].concat(),
        chain: deadlock.keepers.iter().map(link).collect(),
        remedy: format!(
            "{}. To see all stacks: `gdb -p {} -batch -ex 'thread apply all bt'`.",
            capital(&deadlock.advice(stacks)),
            first.who.pid
        ),
        check: "Requests are answered again, and none hangs.".into(),
        // That requests are with these threads is told by their number alone, where it was not seen who read them.
        ..RULE.finding(case, if deadlock.requests > 0.0 || hung.requests >= SEVERAL { 2 } else { 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::asking::found;
    use super::*;
    use crate::judgement::hung::tests::{EPOLL, text};
    use recording::text::parse;

    const FRAMES: &str = "frame id=1 symbol=pthread_mutex_lock module=/lib/libc.so.6 kind=native
        frame id=2 symbol=debit module=/svc kind=native
        frame id=3 symbol=credit module=/svc kind=native
        frame id=4 symbol=refresh module=/svc kind=native
        stack id=1 frames=[1,2] complete=true
        stack id=2 frames=[1,3] complete=true
        stack id=3 frames=[4] complete=true
        wakeup\n";

    fn lock(tid: u32, owner: u32) -> String {
        format!(
            "standing pid=1 tid={tid} comm=w wait_ns=3e9 syscall=202 args=[64,128,2,0] user_stack={} owner={owner} requests=1\n",
            1 + tid % 2
        )
    }

    fn with(rows: &[String]) -> String {
        text(&[("loop", EPOLL)], &format!("{FRAMES}{}", rows.concat()))
    }

    #[test]
    fn two_that_wait_for_each_other_and_those_behind() {
        let rows: Vec<String> = [(2, 3), (3, 2), (4, 2), (5, 4), (6, 3)].map(|(tid, owner)| lock(tid, owner)).to_vec();
        let finding = found(&RULE, &with(&rows));
        assert!(
            finding
                .summary
                .contains("w/2 stands in futex (lock) before a mutex that thread 3 has, called from debit, for 3.0 s"),
            "{}",
            finding.summary
        );
        assert!(finding.summary.ends_with("5 threads stand before locks of these"), "{}", finding.summary);
        assert!(
            finding.remedy.starts_with("Take these locks in one order everywhere (debit, credit)"),
            "{}",
            finding.remedy
        );
        assert!(finding.explains.is_of_hanging());
    }

    #[test]
    fn a_keeper_that_stands_elsewhere() {
        let keeper = "standing pid=1 tid=9 comm=cron wait_ns=3e9 syscall=45 fd_kind=socket family=2 local_port=7 remote_port=5432 peer=10.0.0.9 user_stack=3\n";
        let mut rows: Vec<String> = (2..8).map(|tid| lock(tid, 9)).collect();
        rows.push(keeper.into());
        let Some(Outcome::Found(_, said)) = check(&Case::new(&parse(&with(&rows)).unwrap())) else {
            panic!("not found")
        };
        assert!(
            said.headline
                .ends_with("6 threads stand before a mutex that cron/9 has, which stands in recvfrom (10.0.0.9:5432)"),
            "{said:?}"
        );
        let accepts = keeper.replace("syscall=45 fd_kind=socket family=2", "syscall=43");
        let idle = [rows[..6].to_vec(), vec![accepts]].concat();
        assert!(check(&Case::new(&parse(&with(&idle)).unwrap())).is_none(), "workers that take turns to listen");
    }

    #[test]
    fn a_loop_that_stands_has_all_of_them_and_one_of_the_household_none() {
        let sleeps = "standing pid=1 tid=9 comm=cron wait_ns=3e9 syscall=230 user_stack=3\n";
        let stands = |tid: u32| check(&Case::new(&parse(&with(&[lock(tid, 9), sleeps.into()])).unwrap())).is_some();
        assert!(stands(1) && !stands(5));
    }

    #[test]
    fn two_requests_are_enough_for_a_circle_and_too_few_for_one_that_has_a_mutex() {
        let two = |rows: &[String]| {
            let text = with(rows)
                .replace("open=800 unread=760 unanswered=800 late=800", "open=80 unread=0 unanswered=80 late=80");
            check(&Case::new(&parse(&text.replace("late_ns=480e10", "late_ns=48e10")).unwrap())).is_some()
        };
        assert!(two(&[lock(2, 3), lock(3, 2)]));
        let sleeps = "standing pid=1 tid=9 comm=cron wait_ns=3e9 syscall=230 user_stack=3\n";
        assert!(!two(&[lock(2, 9), lock(3, 9), sleeps.into()]), "long polls, it may be");
    }

    #[test]
    fn two_of_the_household_beside_answers() {
        let answered =
            "exchange role=accepted port=80 stage=response count=9 sum_ns=1 length_ns=[1000000] counts=[9]\n";
        let text = with(&[lock(2, 3), lock(3, 2), answered.into()]);
        assert!(check(&Case::new(&parse(&text).unwrap())).is_none());
    }
}
