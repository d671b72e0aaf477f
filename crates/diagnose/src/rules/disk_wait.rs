// SPDX-License-Identifier: Apache-2.0
//! Threads of the target wait for a disk.

use super::{Check, Checked, Rule, evidence, explained, found, too_little, too_short};
use crate::answer::{Gap, Measured, Unit};
use crate::case::Case;
use crate::facts::listening::Listening;
use crate::facts::memory::Memory;
use crate::facts::requests::{LATE_NS, Requests};
use crate::facts::stacks::Stacks;
use crate::facts::waiting::{Waiting, sum};
use crate::judgement::enough::{little, not_for_requests};
use crate::judgement::holders::Locks;
use crate::judgement::short_memory;
use crate::ledger::blocked::{Blocked, symbols};
use crate::ledger::file_system;
use crate::ledger::threads::Threads;
use crate::phrases::chain::{called_from, links};
use crate::remarks::hidden_queues;
use crate::statistics::{ratio, share};
use crate::syscall::{Family, family};
use crate::verdict::{Explains, Finding, Subject};
use crate::walk::Kind;
use crate::walk::chains::Chain;
use crate::wording::{percent, seconds, waits_in};

mod background;

use background::{Background, Parts};

pub(super) static RULE: Rule =
    Rule { cause: "disk-wait", explain: explain!("disk-wait"), check: Check::Accuses(check) };

const MIN_SHARE: f64 = 0.5;

/// Of the window, over all threads.
const MIN_TIME: f64 = 0.05;

/// For each answer, however many waits that are, where 99 % of many answers are not late: clients feel nothing of less.
const FELT_NS: f64 = 1e6;
const MANY: f64 = 100.0;

/// What the walk's picking of waits may blur a share by: nearer to the threshold, it is told as being at it.
const ERROR: f64 = 0.02;

fn check(case: &Case) -> Checked {
    let ledger = case.fact::<Threads>()?;
    let waiting = case.fact::<Waiting>()?;
    let memory = case.fact::<Memory>()?;
    // Pages of files that are read for the first time come from the disk too, without a call.
    let faults = if short_memory::shortage(&memory).is_some() { 0.0 } else { memory.fault_io_ns };
    let parts = Parts::of(case);
    let background = Background::of(&ledger, |thread| parts.as_ref().is_none_or(|parts| parts.has(thread)));
    let behind = behind_locks(&Locks::of(case)?, &waiting, &background);
    let ns = ledger.total.blocked(Blocked::Disk) - background.ns() + faults + behind;
    let part = share(ns, waiting.demand_ns + (waiting.waiting_ns - background.ns()).max(ns));
    if let Some((seen, why)) = little(case, (ns, part), MIN_SHARE, MIN_TIME) {
        let is_near = part >= MIN_SHARE - ERROR;
        let at = if is_near { format!(", {:.1} %, is at the threshold", part * 100.0) } else { String::new() };
        return too_little(seen, format!("blocked on disks for {why}{at}{}", background.words()));
    }
    if let Some(each_ns) = unfelt(case, ns) {
        let seen = Measured::new(each_ns / 1e9, FELT_NS / 1e9, Unit::Seconds);
        let each = seconds(each_ns / 1e9);
        let words = format!("blocked on disks for {} of its active time, for {each} for each answer", percent(part));
        return too_short(seen, format!("{words}, and its answers are quick{}", background.words()));
    }
    if let Some(why) = not_for_requests(case, &waiting, ns) {
        return explained(format!("blocked on disks for {why}{}", background.words()));
    }
    if nobody_asks(case, &waiting) {
        return explained(format!(
            "blocked on disks for {} of its active time, but no client was seen to ask it for anything meanwhile",
            percent(part)
        ));
    }
    let stacks = case.fact::<Stacks>()?;
    let (chains, _) = waiting.of(|chain| is_file(chain, &stacks) && !background.has(chain));
    let call = chains.first().map_or("file calls".to_string(), |c| c.links[0].who.call_words());
    let from = match chains.first() {
        Some(chain) => called_from(&*case.fact()?, &chain.links[0].who, &stacks),
        None => String::new(),
    };
    let headline = format!("waits for a disk {} of its active time, in {call}", percent(part));
    let place = format!("{call}{from}{}{}", behind_words(behind), background.words());
    found(finding(case, &chains, &place, (ns, part))?, headline, Use::of(chains.first()).advice())
}

/// Whether it listens for clients, and none was seen to ask anything: what it does meanwhile is housekeeping.
fn nobody_asks(case: &Case, waiting: &Waiting) -> bool {
    let answers = case.fact::<Requests>().is_ok_and(|requests| requests.main().is_some());
    case.fact::<Listening>().is_ok_and(|listening| listening.on_tcp()) && !waiting.serves && !answers
}

/// For how long threads stood before a lock of which the holder waited for the disk: where one writes what several have to say, the
/// others wait for that as well.
fn behind_locks(locks: &Locks, waiting: &Waiting, background: &Background) -> f64 {
    let by_holder = |chain: &Chain| chain.end.kind == Kind::Disk && chain.links.len() > 1;
    let is_one = |chain: &&Chain| by_holder(chain) && locks.keep(chain) && !background.has(chain);
    sum(waiting.chains.iter().filter(is_one))
}

fn behind_words(behind: f64) -> String {
    if behind > 0.0 {
        format!("; {} of it before a lock whose holder waited for it", seconds(behind / 1e9))
    } else {
        String::new()
    }
}

/// Time on disks for each answer, ns, if that is too short for clients to feel, who get quick answers.
fn unfelt(case: &Case, ns: f64) -> Option<f64> {
    let requests = case.fact::<Requests>().ok()?;
    let asked = requests.main().filter(|asked| asked.response.count >= MANY && !asked.is_mixed())?;
    let accepted = requests.endpoints.iter().filter(|endpoint| endpoint.accepted);
    let answers = accepted.map(|endpoint| endpoint.response.count).sum::<f64>() * requests.scale();
    let each_ns = ratio(ns, answers);
    (each_ns < FELT_NS && asked.response.quantile_ns(0.99) < LATE_NS).then_some(each_ns)
}

/// What the disk is used for.
enum Use {
    Sync,
    Read,
    Other,
}

impl Use {
    fn of(chain: Option<&&Chain>) -> Self {
        match chain.map_or("", |chain| chain.links[0].who.call.as_str()) {
            "fsync" | "fdatasync" | "sync_file_range" | "msync" | "sync" | "syncfs" => Self::Sync,
            "none" => Self::Read,
            call if family(call) == Family::Receive => Self::Read,
            _ => Self::Other,
        }
    }

    /// In a line.
    fn advice(&self) -> &'static str {
        match self {
            Self::Sync => "sync once for several requests, or on a faster disk",
            Self::Read => "keep what is read in memory, read less, or a faster disk",
            Self::Other => "do it less often, beside the request, or on a faster disk",
        }
    }

    fn remedy(&self) -> &'static str {
        match self {
            Self::Sync => {
                "Sync once for several requests, or after the answer where that is allowed; move other writers to another \
                 disk. Direct and buffered writes of others on the same file system make an fsync wait for theirs too."
            }
            Self::Read => {
                "What is read was not in the page cache: leave more memory for it, read less or ahead of time \
                 (posix_fadvise, readahead), or keep it in the program. Only the requests that read it are slow; a thread \
                 or queue of its own keeps them from the others."
            }
            Self::Other => "Do it beside the request or less often; move other users of the same disk to another one.",
        }
    }
}

fn is_file(chain: &Chain, stacks: &Stacks) -> bool {
    let who = &chain.links[0].who;
    let is_elsewhere = || file_system::elsewhere(&symbols(stacks, chain.links[0].stack)).is_some();
    let on_file = matches!(who.fd_kind.as_str(), "file" | "block") && !is_elsewhere();
    on_file || who.call == "none" && chain.end.kind == Kind::Disk
}

fn finding(case: &Case, chains: &[&Chain], call: &str, (ns, part): (f64, f64)) -> Result<Finding, Gap> {
    let stacks = case.fact::<Stacks>()?;
    let first = chains.first();
    let pid = first.map(|c| c.links[0].who.pid);
    let of_process = pid.or_else(|| hidden_queues::who_answers(case)).map_or(String::new(), |pid| format!(" -p {pid}"));
    let trace = first.map_or("fsync,fdatasync,read,write,pread64,pwrite64", |c| &c.links[0].who.call);
    Ok(Finding {
        summary: format!(
            "The target was blocked on a disk for {} of thread time, {} of its active time, mostly in {call}",
            seconds(ns / 1e9),
            percent(part)
        ),
        subject: Subject {
            pid,
            comm: first.map(|c| c.links[0].who.comm.clone()),
            syscall: first.map(|c| c.links[0].who.call.clone()),
            ..Subject::default()
        },
        explains: Explains { share: part, of: "active time".into(), seconds: ns / 1e9 },
        evidence: vec![evidence(
            "blocked on disks",
            ns / 1e9,
            "s",
            "a small part of active time",
            waits_in(trace, &of_process),
        )],
        chain: first.map_or_else(Vec::new, |c| links(c, &stacks)),
        remedy: Use::of(first).remedy().into(),
        check: "After the change the ledger's line `blocked_disk` falls at the same load.".into(),
        ..RULE.finding(case, 1 + usize::from(first.is_some() && part >= MIN_SHARE + ERROR))
    })
}

#[cfg(test)]
mod tests {
    use super::super::asking::{found, silent};
    use super::RULE;

    fn text(cpu: &str, disk: &str) -> String {
        format!(
            "meta host.arch=x86_64 length_ns=1e9 target.pids=[1]
             frame id=1 symbol=blk_mq_end_request module=kernel kind=kernel
             stack id=1 frames=[1]
             thread pid=1 tid=1 comm=db wall_ns=1e9 cpu_ns={cpu} blocked_ns={disk}
             wait pid=1 tid=1 syscall=74 fd_kind=file state=2 io_wait=true count=9 total_ns={disk}
             wakeup t_ns=900e6 pid=1 tid=1 comm=db wait_ns=20e6 blocked_ns={disk} syscall=74 fd_kind=file state=2 context=interrupt waker_stack=1"
        )
    }

    #[test]
    fn a_database_that_syncs() {
        let finding = found(&RULE, &text("1e8", "9e8"));
        assert!(finding.summary.contains("mostly in fsync (file)"), "{}", finding.summary);
        assert_eq!(finding.confidence, "high");
    }

    /// Another thread serves a client, and `waker` ends its waits.
    fn beside(waker: &str) -> String {
        format!(
            "process pid=1 listen=[\"tcp 0.0.0.0:80\"]
             frame id=2 symbol=hrtimer_wakeup module=kernel kind=kernel
             stack id=2 frames=[2]
             thread pid=1 tid=2 comm=client wall_ns=1e9 cpu_ns=2e8 blocked_ns=8e8
             wait pid=1 tid=2 syscall=0 fd_kind=socket state=1 count=9 total_ns=8e8
             wakeup t_ns=800e6 pid=1 tid=2 comm=client wait_ns=20e6 blocked_ns=4e8 syscall=0 fd_kind=socket family=2 local_port=80 remote_port=5555 context=interrupt
             {waker}
             wakeup t_ns=700e6 pid=1 tid=1 comm=db wait_ns=20e6 blocked_ns=2e7 syscall=230 context=interrupt waker_stack=2\n"
        )
    }

    #[test]
    fn a_checkpointer_that_no_request_waits_for() {
        let why = silent(&RULE, &(text("1e8", "9e8") + "\n" + &beside("")));
        assert!(why.ends_with("; background: db, 900 ms"), "{why}");
        let asked = "wakeup t_ns=810e6 pid=1 tid=2 comm=client wait_ns=20e6 blocked_ns=4e8 syscall=202 context=thread waker_pid=1 waker_tid=1";
        found(&RULE, &(text("1e8", "9e8") + "\n" + &beside(asked)));
    }

    /// As Redis' own that syncs once a second what another one has written: it is given work, and nobody waits for it.
    #[test]
    fn who_is_given_work_that_nobody_waits_for() {
        let given = "wakeup t_ns=500e6 pid=1 tid=1 comm=db wait_ns=1e6 blocked_ns=1e6 syscall=202 context=thread waker_pid=1 waker_tid=2 waker_comm=client\n";
        let requests = |tid: u32| {
            let row = |t: u32| {
                format!(
                    "request t_ns={t}e6 role=accepted port=80 pid=1 began_ns={t}e6 began_tid=2 read_ns={t}e6 ended_tid={tid}\n"
                )
            };
            (1..=20).map(row).collect::<String>()
        };
        let with = |requests: &str| text("1e8", "9e8") + "\n" + &beside("") + given + requests;
        assert!(silent(&RULE, &with(&requests(2))).ends_with("; background: db, 900 ms"));
        found(&RULE, &with(&requests(1)));
        found(&RULE, &with("")); // it may have answered the client itself
    }

    #[test]
    fn at_the_threshold_it_is_said() {
        let why = silent(&RULE, &text("10.01e8", "10e8"));
        assert!(why.ends_with("(under 50 %), 50.0 %, is at the threshold"), "{why}");
        assert_eq!(found(&RULE, &text("10e8", "10.01e8")).confidence, "medium");
    }

    #[test]
    fn locks_of_the_kernel_and_files_of_other_programs_are_no_disk() {
        let lock = text("1e8", "9e8")
            .replace("syscall=74 fd_kind=file state=2 io_wait=true", "syscall=9 state=2 stack=7")
            + "\nframe id=7 symbol=vm_mmap_pgoff module=kernel kind=kernel\nstack id=7 frames=[7]";
        silent(&RULE, &lock);
        let fuse = text("1e8", "9e8").replace("state=2 io_wait=true", "file_system=1702057286 state=2 io_wait=true");
        silent(&RULE, &fuse);
        let memory = text("1e8", "9e8").replace("state=2 io_wait=true", "file_system=16914836 state=2");
        silent(&RULE, &memory);
    }

    #[test]
    fn what_each_answer_waits_counts_and_not_each_wait() {
        let answers = |count: u32, ms: u32| {
            let (sum, each) = (count * ms, f64::from(ms) * 1e6);
            text("1e8", "9e8").replace("count=9", "count=3000")
                + "\nprocess pid=1 listen=[\"tcp 0.0.0.0:80\"]\nexchange_window t_ns=1e9 length_ns=1e9\n"
                + &format!(
                    "exchange role=accepted port=80 stage=response count={count} sum_ns={sum}e6 length_ns=[{each}] counts=[{count}]"
                )
        };
        // Ten waits of 0.3 ms in each of 300 answers; one in each of 3,000.
        found(&RULE, &answers(300, 4));
        let why = silent(&RULE, &answers(3000, 1));
        assert!(why.contains("for 300 µs for each answer, and its answers are quick"), "{why}");
        found(&RULE, &answers(3000, 40)); // late all the same
    }

    /// One thread syncs for several, which stand before its lock meanwhile.
    #[test]
    fn those_that_wait_for_the_one_who_syncs() {
        let behind = "thread pid=1 tid=2 comm=session wall_ns=1e9 cpu_ns=1e7 blocked_ns=8e8
             wait pid=1 tid=2 syscall=202 state=1 count=40 total_ns=8e8
             wakeup t_ns=901e6 pid=1 tid=2 comm=session wait_ns=20e6 blocked_ns=8e8 syscall=202 args=[7,128,2,0] context=thread waker_pid=1 waker_tid=1 waker_comm=db waker_syscall=202";
        let finding = found(&RULE, &format!("{}\n{behind}", text("1e8", "2e8")));
        assert!(
            finding.summary.contains("; 760 ms of it before a lock whose holder waited for it"),
            "{}",
            finding.summary
        );
        let busy = behind.replace("cpu_ns=1e7", "cpu_ns=20e8");
        silent(&RULE, &format!("{}\n{busy}", text("1e8", "2e8")));
    }

    #[test]
    fn one_that_computes_longer_than_it_syncs() {
        assert!(silent(&RULE, &text("12e8", "7e8")).contains("under 50 %"));
    }
}
