// SPDX-License-Identifier: Apache-2.0
//! Requests hang because threads wait for each other's mutexes, of which none is ever given back; or because whoever has one stands
//! still itself, or computes without an end. No wait for these has ended, so that no walk leads there.

use super::super::{Outcome, Statement, evidence};
use super::RULE;
use crate::case::Case;
use crate::facts::stacks::Stacks;
use crate::facts::standers::{Standers, functions};
use crate::judgement::deadlocks::{Deadlock, Keeper, how_long, look};
use crate::judgement::hung::{Hung, SEVERAL, any};
use crate::phrases::chain;
use crate::verdict::{Finding, Link, Subject};
use crate::wording::{plural, requests, seconds};

/// The finding, if there is such a one.
pub(super) fn check(case: &Case) -> Option<Outcome> {
    let hung = any(case)?;
    let (standers, stacks) = (case.fact::<Standers>().ok()?, case.fact::<Stacks>().ok()?);
    let deadlock = look(case, &standers).filter(|deadlock| deadlock.keeps(&hung))?;
    let so_far = seconds(hung.owed_ns / 1e9);
    let headline = format!("{}, for {so_far} so far: {}", requests(hung.requests, "hang"), deadlock.short());
    let finding = finding(case, &hung, &deadlock, &stacks);
    Some(Outcome::Found(Box::new(finding), Statement::short(headline, advice(&deadlock, &stacks))))
}

fn from(keeper: &Keeper<'_>, stacks: &Stacks) -> Vec<String> {
    match keeper {
        Keeper::Stands(stander) => functions(stacks, stander),
        Keeper::Runs { .. } => Vec::new(),
    }
}

fn advice(deadlock: &Deadlock<'_>, stacks: &Stacks) -> String {
    let place = |keeper: &Keeper<'_>| from(keeper, stacks).into_iter().next().unwrap_or_else(|| keeper.name());
    let mut places: Vec<String> = deadlock.keepers.iter().map(place).collect();
    places.dedup();
    match &deadlock.keepers[..] {
        [_] if deadlock.is_circle => {
            format!("take no mutex twice ({}); it never ends until the process is restarted", places.join(", "))
        }
        [Keeper::Runs { pid, .. }] => {
            format!(
                "see what {} computes (`sudo perf top -p {pid}`), and end that: it has the mutex meanwhile",
                places.join(", ")
            )
        }
        [_] => format!("take that wait out of the lock, or limit how long it may take ({})", places.join(", ")),
        _ => format!("take these locks in one order everywhere ({}); restart it meanwhile", places.join(", ")),
    }
}

/// Where each of the keepers stands, and before whose mutex.
fn told(case: &Case, deadlock: &Deadlock<'_>, stacks: &Stacks) -> String {
    let one = |keeper: &Keeper<'_>| {
        let Keeper::Stands(stander) = keeper else { return format!("{} {}", keeper.name(), keeper.does()) };
        let whose = match stander.owner {
            Some(owner) if owner == stander.tid => " before a mutex that it has itself".into(),
            Some(owner) => format!(" before a mutex that thread {owner} has"),
            None => String::new(),
        };
        let (from, long) = (chain::from(functions(stacks, stander)), how_long(case, stander.wait_ns, ""));
        format!("{} {}{whose}{from}, {long}", keeper.name(), keeper.does())
    };
    deadlock.keepers.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// In what a keeper is, and for how long so far, ns.
fn wait(case: &Case, keeper: &Keeper<'_>) -> (String, f64) {
    match keeper {
        Keeper::Stands(stander) => (stander.who.call_words(), stander.wait_ns),
        Keeper::Runs { .. } => ("on a CPU".to_string(), case.length_ns()),
    }
}

fn summary(case: &Case, hung: &Hung, deadlock: &Deadlock<'_>, stacks: &Stacks) -> String {
    let others = hung.others.words();
    let never = match (deadlock.is_circle, deadlock.keepers.len()) {
        (false, _) => "",
        (true, 1) => " It never goes on, unless a timeout ends its wait.",
        (true, _) => " None of them ever goes on, unless a timeout ends its wait.",
    };
    let stand = if deadlock.threads == 1 { "stands" } else { "stand" };
    format!(
        "{others} {}, for {} so far. As the capture ended, {}.{never} {} {stand} in all, at once or behind others, before what {} \
         has",
        requests(hung.requests, "wait"),
        seconds(hung.owed_ns / 1e9),
        told(case, deadlock, stacks),
        plural(deadlock.threads, "thread"),
        if deadlock.keepers.len() == 1 { "that one" } else { "one of these" }
    )
}

fn finding(case: &Case, hung: &Hung, deadlock: &Deadlock<'_>, stacks: &Stacks) -> Finding {
    let first = &deadlock.keepers[0];
    let link = |keeper: &Keeper<'_>| {
        let (waits_on, ns) = wait(case, keeper);
        Link { who: keeper.name(), waits_on, seconds: ns / 1e9, stack: from(keeper, stacks) }
    };
    let call = match first {
        Keeper::Stands(stander) => Some(stander.who.call.clone()),
        Keeper::Runs { .. } => None,
    };
    let own = vec![
        evidence("threads that stand there for good", deadlock.threads as f64, "threads", "0", ""),
        evidence("the one that keeps them, so far", wait(case, first).1 / 1e9, "s", "well under 1", ""),
    ];
    Finding {
        summary: summary(case, hung, deadlock, stacks),
        subject: Subject {
            pid: Some(first.pid()),
            comm: Some(first.comm().into()),
            syscall: call,
            ..Subject::default()
        },
        explains: hung.explains(case),
        evidence: [hung.evidence(), own].concat(),
        chain: deadlock.keepers.iter().map(link).collect(),
        remedy: format!("What to do: {}. To see all stacks: `eu-stack -p {}`.", advice(deadlock, stacks), first.pid()),
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

    fn headline(text: &str) -> Option<String> {
        match check(&Case::new(&parse(text).unwrap()))? {
            Outcome::Found(_, said) => Some(said.headline),
            _ => None,
        }
    }

    #[test]
    fn two_that_wait_for_each_other_and_those_behind() {
        let rows: Vec<String> = [(2, 3), (3, 2), (4, 2), (5, 4), (6, 3)].map(|(tid, owner)| lock(tid, owner)).to_vec();
        let finding = found(&RULE, &with(&rows));
        let told = "As the capture ended, w/2 stands in futex (lock) before a mutex that thread 3 has, called from debit, for 3.0 s; w/3";
        assert!(finding.summary.contains(told), "{}", finding.summary);
        assert!(finding.summary.contains("5 threads stand in all"), "{}", finding.summary);
        assert!(finding.remedy.contains("in one order everywhere (debit, credit)"), "{}", finding.remedy);
        assert!(finding.explains.is_of_hanging());
    }

    const KEEPER: &str = "standing pid=1 tid=9 comm=cron wait_ns=3e9 syscall=45 fd_kind=socket family=2 local_port=7 remote_port=5432 peer=10.0.0.9 user_stack=3\n";

    #[test]
    fn one_that_stands_elsewhere_or_computes() {
        let rows = |keeper: &str| {
            let mut rows: Vec<String> = (2..8).map(|tid| lock(tid, 9)).collect();
            rows.push(keeper.into());
            with(&rows)
        };
        let stands = headline(&rows(KEEPER)).unwrap();
        assert!(
            stands
                .ends_with("6 threads stand before a mutex that cron/9 has, which stands in recvfrom (10.0.0.9:5432)"),
            "{stands}"
        );
        let runs = headline(&rows("thread t_ns=4e9 pid=1 tid=9 comm=cron wall_ns=4e9 cpu_ns=4e9\n")).unwrap();
        assert!(runs.ends_with("before a mutex that cron/9 has, which computes all the time"), "{runs}");
        let accepts = KEEPER.replace("syscall=45 fd_kind=socket family=2", "syscall=43");
        assert_eq!(headline(&rows(&accepts)), None, "workers that take turns to listen");
        assert_eq!(headline(&rows("")), None, "nobody knows what it does");
    }

    #[test]
    fn requests_that_others_have_in_hand() {
        let long_polls: String = (20..40)
            .map(|tid| format!("standing pid=1 tid={tid} comm=w wait_ns=3e9 syscall=202 args=[64,128,7,0] user_stack=3 requests=1\n"))
            .collect();
        let household = [lock(2, 3), lock(3, 2)].map(|row| row.replace("requests=1", ""));
        assert_eq!(headline(&with(&[household.concat(), long_polls])), None);
    }
}
