// SPDX-License-Identifier: Apache-2.0
//! What a chain that ends elsewhere says in words, and what to do about it.

use crate::facts::stacks::Stacks;
use crate::phrases::chain::timer;
use crate::runtimes::opaque::{self, Opaque};
use crate::walk::chains::Chain;
use crate::walk::{Kind, lasting};

/// The end in a few words, as a relative clause.
pub(crate) fn what_it_does(chain: &Chain) -> String {
    let (last, end) = (last(chain), chain.end.name());
    match chain.end.kind {
        Kind::OnCpu => format!("where {end} computes"),
        Kind::RunQueue => format!("where {end} has no CPU"),
        Kind::Timer if gave_up(chain) => "until it gave up".to_string(),
        Kind::Timer if database(chain).is_some() => format!("where {last} waits inside the database"),
        Kind::Timer => format!("where {last} waits for its own timer"),
        Kind::Packet => "over the network".to_string(),
        Kind::Unseen => "where nothing more was seen".to_string(),
        kind => format!("where {last} waits for {}", kind.words()),
    }
}

/// Whether nobody answered before the time was over.
fn gave_up(chain: &Chain) -> bool {
    chain.links.len() == 1 && chain.end.kind == Kind::Timer
}

/// The database whose session the last one who waits is: the time until it looks for a deadlock ends the wait for a lock as well.
fn database(chain: &Chain) -> Option<&'static Opaque> {
    opaque::of_program(&chain.links.last()?.who.comm).filter(|program| program.is_database)
}

/// The last one who waits.
fn last(chain: &Chain) -> String {
    chain.links.last().map_or(String::new(), |l| l.who.name())
}

pub(crate) fn advice(chain: &Chain, timer: Option<&str>) -> String {
    let (peer, last) = (&chain.links[0].who.peer, last(chain));
    match chain.end.kind {
        Kind::OnCpu => format!("{}: that is where the time goes", chain.end.to_see()),
        Kind::Unseen => format!("{}: it answers, and what it did before was not seen", chain.end.to_see()),
        Kind::Timer if gave_up(chain) && !peer.is_empty() => {
            format!("see why {peer} gives no answer: can it be reached, and what does it do")
        }
        _ if chain.links.len() == 1 && !peer.is_empty() => format!("go on at {peer}: the time goes there"),
        Kind::Timer if let Some(database) = database(chain) => {
            format!("see what its sessions wait for: {}", database.look)
        }
        Kind::Timer => {
            format!("look at the {} in {last}: the chain ends there", timer.unwrap_or("sleep or timeout"))
        }
        _ => format!("look at {last}: the chain ends there"),
    }
}

/// The next step and the remedy, for a chain.
pub(crate) fn next(chain: &Chain, stacks: Option<&Stacks>) -> (String, String) {
    let timer = stacks.and_then(|stacks| timer(chain, stacks));
    (advice(chain, timer), remedy(chain, timer))
}

pub(crate) fn remedy(chain: &Chain, timer: Option<&str>) -> String {
    const OTHERWISE: &str =
        "If it cannot be made faster, ask it less often, or do not wait for it (cache, parallel calls).";
    let (peer, last) = (&chain.links[0].who.peer, last(chain));
    if chain.end.kind == Kind::Unseen {
        return format!("{} answers late: {} says why. {OTHERWISE}", chain.end.name(), look(chain));
    }
    if gave_up(chain) && !peer.is_empty() {
        return format!(
            "{peer} gave no answer, or took no connection, before the time was over: see whether it can be reached and what it does. \
             Until then, give up sooner, ask another one, or remember for a while that it does not answer."
        );
    }
    if chain.links.len() == 1 && chain.end.kind != Kind::OnCpu && !peer.is_empty() {
        return format!("{peer} answers late: run wakewalk on that host or service. {OTHERWISE}");
    }
    let end = match chain.end.kind {
        Kind::OnCpu => {
            return format!("{} computes while it is waited for: {} says what.", chain.end.name(), look(chain));
        }
        Kind::Timer if let Some(database) = database(chain) => {
            return format!(
                "{last} waits inside the database, as sessions do before locks on rows and tables: `{}` names them. A transaction that \
                 stays open holds its locks as long.",
                database.look
            );
        }
        Kind::Timer => match timer {
            Some(timer) => {
                return format!("{last} waits for {timer} before it answers: find that in its code. {OTHERWISE}");
            }
            None => "sleeps or waits for a timeout of its own while it is waited for: find that timer in its code",
        },
        Kind::Disk => "waits for a disk while it is waited for",
        Kind::RunQueue => "is ready and has no CPU: give it one",
        Kind::Packet => "waits for another host: go on there",
        _ => "is where the chain ends",
    };
    format!("{last} {end}. {OTHERWISE}")
}

/// What looks at whoever stands at the end.
fn look(chain: &Chain) -> String {
    match lasting(chain.end.pid) {
        Some(pid) => format!("`wakewalk diagnose --pid {pid}`"),
        None => format!("a profile of {}, of which there is a new process each time,", chain.end.comm),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::chains::Link;
    use crate::walk::{End, Who};

    /// Waits for a program, whose process waits for its own timer.
    fn ends_at(comm: &str) -> Chain {
        let link = |pid, comm: &str, call: &str, peer: &str| Link {
            who: Who { pid, comm: comm.into(), call: call.into(), peer: peer.into(), ..Who::default() },
            is_own: pid == 1,
            ns: 1e9,
            length_ns: 1e8,
            stack: 0,
            code: 0,
        };
        let links = vec![link(1, "app", "recvfrom", "10.0.0.7:5432"), link(9, comm, "epoll_wait", "")];
        let end = End { kind: Kind::Timer, pid: 9, comm: comm.into(), detail: String::new() };
        Chain { links, end, answer: 0, ns: 1e9, waits: 10 }
    }

    #[test]
    fn a_database_that_looks_for_deadlocks_does_not_sleep() {
        let (database, store) = (ends_at("postgres"), ends_at("store"));
        assert!(next(&database, None).0.contains("pg_stat_activity"), "{:?}", next(&database, None));
        assert!(next(&database, None).1.contains("locks on rows and tables"));
        assert_eq!(what_it_does(&database), "where postgres/9 waits inside the database");
        assert_eq!(next(&store, None).0, "look at the sleep or timeout in store/9: the chain ends there");
    }
}
