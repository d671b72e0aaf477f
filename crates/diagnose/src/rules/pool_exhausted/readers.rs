// SPDX-License-Identifier: Apache-2.0
//! A pool of threads that take requests one at a time: requests lie unread, or stand in a queue of the program's own, while each of
//! the threads has one in hand and waits for something else.

use std::sync::Arc;

use super::super::{Outcome, Statement, evidence};
use super::held::Held;
use super::{MIN_WAIT_NS, RULE, all};
use crate::case::Case;
use crate::facts::connections::Connections;
use crate::facts::requests::Requests;
use crate::facts::stacks::Stacks;
use crate::judgement::holders::Locks;
use crate::judgement::one_each;
use crate::judgement::paths::{is_own_sleep, stands_still, telling};
use crate::phrases::chain::links;
use crate::statistics::{ratio, share};
use crate::verdict::{Explains, Finding, Subject};
use crate::walk::chains::{Chain, Nature};
use crate::walk::paths::{Part, RequestPaths, What};
use crate::walk::{Kind, lasting};
use crate::wording::{percent, seconds};

/// Of the response time without what clients take to send: a quarter of it would be gone with more threads.
const MIN_UNREAD: f64 = 0.25;

/// What requests lay unread for: the thread that read them later waited with another one in hand. While all threads stand still for
/// a collector, more of them would too.
fn is_taken(part: &Part) -> bool {
    let What::Waits(chain) = &part.what else { return false };
    let waits = chain.nature() == Nature::Waiting && !is_own_sleep(part) && !stands_still(part);
    part.before && (waits || is_of_client(chain))
}

/// Whether a thread waited for what a client sends: had it been free for anybody's, it would have read what lay unread.
fn is_of_client(chain: &Chain) -> bool {
    chain.end.kind == Kind::Client && chain.links.len() == 1 && chain.links[0].who.reads()
}

/// Likewise, of a part of a path.
fn is_at_client(part: &Part) -> bool {
    matches!(&part.what, What::Waits(chain) if is_taken(part) && is_of_client(chain))
}

/// What a request's own client had not sent yet: nobody could have worked on that any sooner.
fn is_still_sent(part: &Part) -> bool {
    !part.before
        && match &part.what {
            What::Asking { .. } => true,
            What::Waits(chain) => is_of_client(chain),
            What::Awake { .. } | What::Inside { .. } => false,
        }
}

/// Whether those threads stood before a lock that one of them holds at a time: more of them would stand there too.
fn is_before_lock(part: &Part, locks: &Locks) -> bool {
    matches!(&part.what, What::Waits(chain) if is_taken(part) && locks.keep(chain))
}

/// Of the time in which all are taken, before a lock, or at clients: then that is the root.
const MOSTLY: f64 = 0.5;

/// Of the threads, so many have a request in hand on average if all of them are taken again and again.
const TAKEN: f64 = 0.4;

/// Where requests stand meanwhile.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// The threads read them by themselves.
    Unread,
    /// Others read them and hand them on.
    Inside,
}

impl Place {
    /// Where the requests at the main port stand, and how many threads and requests tell it.
    fn of(case: &Case) -> Option<(Self, usize, usize)> {
        if let Some(readers) = one_each::threads(case) {
            return Some((Self::Unread, readers.who.len(), readers.requests));
        }
        let readers = one_each::behind_readers(case)?;
        Some((Self::Inside, readers.answerers, readers.requests))
    }

    /// Requests …
    fn words(self) -> &'static str {
        if self == Self::Unread { "lie unread" } else { "stand in a queue inside it" }
    }
}

/// Requests that stand while all threads of a pool are taken.
struct Standing {
    paths: Arc<RequestPaths>,
    place: Place,
    threads: usize,
    requests: usize,
    /// Of the response time; of that, while those threads stood before a lock.
    part: f64,
    locked: f64,
    held: Held,
    each_ns: f64,
    /// How long clients waited, s.
    seconds: f64,
}

impl Standing {
    fn of(case: &Case) -> Option<Self> {
        let (paths, requests) = (telling(case)?, case.fact::<Requests>().ok()?);
        let (place, threads, followed) = Place::of(case)?;
        let (all, times) = (&paths.main()?.all, requests.main()?);
        let part = all.share(is_taken);
        let at_once = requests.at_once(&times.response);
        let of_sent = share(part, 1.0 - all.share(is_still_sent));
        // What lies unread the sockets saw too.
        let sent_ns = times.response.sum_ns - times.rest.sum_ns;
        let (seen, standing) = match place {
            Place::Unread => (share(times.read_wait.sum_ns, sent_ns), requests.at_once(&times.read_wait)),
            Place::Inside => (of_sent, at_once * part),
        };
        let each_ns = ratio(all.ns, all.requests as f64) * part;
        let locks = Locks::of(case).ok()?;
        let locked = all.share(|part| is_before_lock(part, &locks));
        let held = match all.share(is_at_client) >= part * MOSTLY {
            // Who only reads, and hands on, is not what stands.
            true if place == Place::Inside => return None,
            true if requests.at_once(&times.rest) >= threads as f64 * TAKEN => Held::Senders,
            true => Held::Keepers,
            false => Held::Work,
        };
        let seconds = times.response.sum_ns * requests.scale() / 1e9 * part;
        let is_long = of_sent.min(seen) >= MIN_UNREAD && each_ns >= MIN_WAIT_NS;
        // Where most are free, requests were only given to those that are not. Who stands in the read of a connection on which nobody asks
        // has none, and is as little free.
        let kept = case.fact::<Connections>().map_or(0.0, |connections| connections.accepted.kept);
        let are_taken = at_once - standing + kept >= threads as f64 * TAKEN;
        let paths = Arc::clone(&paths);
        (is_long && are_taken).then_some(Self {
            paths,
            place,
            threads,
            requests: followed,
            part,
            locked,
            held,
            each_ns,
            seconds,
        })
    }

    /// The wait in which the threads are held most.
    fn chain(&self) -> Option<&Chain> {
        let mut taken = self.paths.main()?.all.parts.iter().filter(|part| is_taken(part));
        taken.find_map(|part| match &part.what {
            What::Waits(chain) if is_of_client(chain) == (self.held != Held::Work) => Some(&**chain),
            _ => None,
        })
    }

    /// That all are taken, in words.
    fn all(&self) -> String {
        match self.threads {
            1 => "the one thread that takes them has another in hand".into(),
            n => format!("{} are taken", all(n)),
        }
    }

    fn is_before_lock(&self) -> bool {
        self.locked >= self.part * MOSTLY
    }
}

/// Why more threads are no remedy although requests lie unread, if so.
pub(super) fn before_a_lock(case: &Case) -> Option<String> {
    let standing = Standing::of(case).filter(Standing::is_before_lock)?;
    let why = "that take them stand before a lock which one holds at a time; more threads would stand there too";
    let (place, part) = (standing.place.words(), percent(standing.part));
    Some(format!("requests {place} for {part} of their time because threads {why}"))
}

/// The finding, if requests stand for long.
pub(super) fn check(case: &Case) -> Option<Outcome> {
    let standing = Standing::of(case).filter(|standing| !standing.is_before_lock())?;
    let chain = standing.chain()?;
    let headline = format!(
        "requests {} for {} of their time: {}, {}",
        standing.place.words(),
        percent(standing.part),
        standing.all(),
        standing.held.words(&chain.links[0].who)
    );
    let finding = finding(case, chain, &standing)?;
    Some(Outcome::Found(Box::new(finding), Statement::short(headline, standing.held.advice())))
}

fn finding(case: &Case, chain: &Chain, standing: &Standing) -> Option<Finding> {
    let (who, stacks) = (&chain.links[0].who, case.fact::<Stacks>().ok()?);
    let Standing { place, threads, requests, part, each_ns, held, .. } = *standing;
    let see = if place == Place::Unread { "ss -tn  # Recv-Q" } else { "" };
    let measured = vec![
        evidence("threads that take requests, one at a time each", threads as f64, "threads", "", ""),
        evidence("requests that were followed", requests as f64, "requests", "", ""),
        evidence("standing while those waited, on average", each_ns / 1e9, "s", "near 0", see),
    ];
    Some(Finding {
        summary: format!(
            "Requests {} for {} on average, {} of their response time, while each of the {threads} threads that take them {}",
            place.words(),
            seconds(each_ns / 1e9),
            percent(part),
            held.of_each(who)
        ),
        subject: Subject {
            pid: lasting(who.pid),
            comm: Some(who.comm.clone()),
            syscall: Some(who.call.clone()),
            ..Subject::default()
        },
        explains: Explains { share: part, of: "response time of requests".into(), seconds: standing.seconds },
        evidence: measured,
        chain: links(chain, &stacks),
        remedy: held.remedy(),
        check: "Requests are taken as soon as they come, and the response time falls by this part at the same load."
            .into(),
        ..RULE.finding(case, 2)
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::asking::{found, silent};
    use super::super::RULE;

    /// Two threads take requests of 60 ms each from a queue and ask a database; each lies unread for `unread` ms of that.
    fn queue(unread: u32) -> String {
        let mut text = "meta host.arch=x86_64 length_ns=4e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
            process pid=1 listen=[\"tcp 0.0.0.0:80\"]
            thread t_ns=4e9 pid=1 tid=1 comm=w wall_ns=8e9 cpu_ns=1e8 blocked_ns=79e8
            frame id=1 symbol=net_rx_action module=kernel kind=kernel
            stack id=1 frames=[1]
            burst t_ns=4e9 length_ns=4e9\n"
            .to_string();
        let (length, busy) = (60, 60 - unread);
        for nth in 0..60 {
            for tid in 1..3 {
                let read = 100 + nth * busy;
                let (began, end) = (read - unread, read + busy);
                text += &format!(
                    "request t_ns={end}e6 role=accepted port=80 pid=1 began_ns={began}e6 began_tid={tid} read_ns={read}e6 ended_tid={tid}
                     wakeup t_ns={}e6 pid=1 tid={tid} comm=w wait_ns={}e6 blocked_ns={}e6 since_ns={read}e6 waits=1 syscall=0 family=2 local_port=40{tid} remote_port=5432 peer=10.0.0.9 context=interrupt waker_stack=1\n",
                    end - 1,
                    busy - 1,
                    busy - 1
                );
            }
        }
        text + &format!(
            "exchange role=accepted port=80 stage=response count=120 sum_ns={}e6 length_ns=[{length}000000] counts=[120]
             exchange role=accepted port=80 stage=read_wait count=120 sum_ns={}e6 length_ns=[{unread}000000] counts=[120]
             exchange_window t_ns=4e9 length_ns=4e9",
            120 * length,
            120 * unread
        )
    }

    #[test]
    fn all_threads_have_one_in_hand() {
        let finding = found(&RULE, &queue(30));
        assert!(finding.summary.contains("each of the 2 threads that take them"), "{}", finding.summary);
        assert!((finding.explains.share - 0.5).abs() < 0.05, "{:?}", finding.explains);
    }

    /// The same, and what each waits for comes from a client.
    fn before_clients(unread: u32) -> String {
        let peer = "remote_port=5432 peer=10.0.0.9 context=interrupt waker_stack=1";
        let client =
            "remote_port=6000 context=thread waker_pid=9 waker_family=2 waker_local_port=6000 waker_remote_port=80";
        let to_clients = queue(unread).replace(peer, client);
        ["401", "402"]
            .iter()
            .fold(to_clients, |text, port| text.replace(&format!("local_port={port} "), "local_port=80 "))
    }

    #[test]
    fn all_threads_wait_for_clients() {
        let rest =
            "\nexchange role=accepted port=80 stage=rest count=120 sum_ns=36e8 length_ns=[30000000] counts=[120]";
        let told = |text: &str, summary: &str, remedy: &str| {
            let finding = found(&RULE, text);
            assert!(finding.summary.contains(summary) && finding.remedy.contains(remedy), "{finding:?}");
        };
        told(&(before_clients(30) + rest), "waits until its client has sent the rest", "limit how long one may take");
        told(&before_clients(30), "waits until that one asks again", "keep-alive");
        silent(&RULE, &before_clients(3));
        let long = rest.replace("36e8", "56e8").replace("30000000", "47000000");
        told(
            &(before_clients(12) + &long),
            "for 11 ms on average, 18 % of their response time",
            "limit how long one may take",
        );
    }

    /// Hardly a request is in hand, while other threads are free, or stand in reads of connections on which nobody asks.
    #[test]
    fn threads_that_keep_to_idle_connections_are_not_free() {
        let few = before_clients(30).replace("length_ns=4e9", "length_ns=16e9").replace("t_ns=4e9", "t_ns=16e9");
        silent(&RULE, &few);
        let kept = "\nconnection t_ns=16e9 role=accepted port=80 looks=160 open=400 kept=320";
        assert!(found(&RULE, &(few + kept)).summary.contains("waits until that one asks again"));
    }

    /// As many threads of each again are there, and have no request: those that have were given too many.
    #[test]
    fn requests_that_were_given_to_a_few_of_many() {
        let longer = queue(30).replace("length_ns=4e9", "length_ns=16e9").replace("t_ns=4e9", "t_ns=16e9");
        assert!(!silent(&RULE, &longer).contains("each of the 2 threads"));
    }

    #[test]
    fn requests_that_are_read_at_once() {
        silent(&RULE, &queue(3));
    }
}
