// SPDX-License-Identifier: Apache-2.0
//! Parts of many paths, added up.

use std::collections::BTreeMap;

use super::Group;
use crate::syscall::is_loop;
use crate::walk::chains::Chain;
use crate::walk::programs::Programs;
use crate::walk::who::{HAND_OFF, LOCK, LOOP};
use crate::walk::{AGAIN, End, Kind, Node, Who, name};

/// What a part of a path was.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A thread was awake: on a CPU, ready, or in waits too short to be looked at.
    Awake {
        /// Which.
        kind: Kind,
        /// Its process.
        pid: u32,
        /// Its name.
        comm: String,
    },
    /// A thread waited, and where that ends.
    Waits(Box<Chain>),
    /// One thing in the program waited for another: a task, a queue, a lock of the runtime's. The kernel sees none of them.
    Inside {
        /// Process.
        pid: u32,
        /// Thread that answered.
        comm: String,
        /// What the process was at meanwhile.
        meanwhile: Meanwhile,
    },
    /// The client had not sent all of it.
    Asking {
        /// Process.
        pid: u32,
        /// Thread that answered.
        comm: String,
    },
}

/// What a process was at while the kernel saw nothing that a request waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Meanwhile {
    /// Its threads were on a CPU all the time: a runtime may have carried on with the request in another one.
    Computing,
    /// Its loop had next to nothing to do until another client sent something, and answered then.
    Listening,
    /// Nobody knows.
    Unknown,
}

/// A part of the time of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// What it was.
    pub what: What,
    /// The thread had not come to the request yet: it was at something else.
    pub before: bool,
    /// Time, ns.
    pub ns: f64,
}

/// Somebody who was awake.
type Awake = (Kind, u32, String);

/// The sums.
#[derive(Default)]
pub struct Tree {
    requests: u64,
    ns: f64,
    /// What was done for the request, and what the thread was at before it came to it.
    sides: [Side; 2],
    inside: BTreeMap<(u32, String, Meanwhile), f64>,
    asking: BTreeMap<(u32, String), f64>,
}

/// One of both.
#[derive(Default)]
pub struct Side {
    pub awake: BTreeMap<Awake, f64>,
    pub waits: BTreeMap<Who, Node>,
}

/// Where the walk of a request puts its parts.
pub trait Book {
    /// Begins a request of some length.
    fn begin(&mut self, ns: f64);

    /// The sums that what a thread did in a span belongs to. Where it was awake, its waits lie within the span.
    fn at(&mut self, tid: u32, span: (f64, f64)) -> &mut Tree;
}

impl Book for Tree {
    fn begin(&mut self, ns: f64) {
        self.requests += 1;
        self.ns += ns;
    }

    fn at(&mut self, _tid: u32, _span: (f64, f64)) -> &mut Tree {
        self
    }
}

impl Tree {
    /// What a thread did before it came to the request, or for it.
    pub fn side(&mut self, before: bool) -> &mut Side {
        &mut self.sides[usize::from(before)]
    }

    /// Time in which the kernel saw nothing that the request waited for, and what the process was at.
    pub fn inside(&mut self, pid: u32, comm: String, meanwhile: Meanwhile, ns: f64) {
        if ns > 0.0 {
            *self.inside.entry((pid, comm, meanwhile)).or_default() += ns;
        }
    }

    /// Time in which the client had not sent all of what it asks, and nothing was done for it.
    pub fn asking(&mut self, pid: u32, comm: String, ns: f64) {
        if ns > 0.0 {
            *self.asking.entry((pid, comm)).or_default() += ns;
        }
    }

    /// The same, where what processes of a program did that is started again and again, as for each connection, is one.
    pub fn by_program(self, programs: &Programs) -> Self {
        let pid = |pid, comm: &str| programs.pid(pid, comm);
        Self {
            sides: self.sides.map(|side| Side {
                awake: added_up(side.awake, |(kind, of, comm)| (kind, pid(of, &comm), comm)),
                waits: programs.by_program(side.waits),
            }),
            inside: added_up(self.inside, |(of, comm, meanwhile)| (pid(of, &comm), comm, meanwhile)),
            asking: added_up(self.asking, |(of, comm)| (pid(of, &comm), comm)),
            ..self
        }
    }

    /// The sums as a list; `chains` reads those off waits.
    pub fn group(mut self, chains: impl Fn(&BTreeMap<Who, Node>) -> Vec<Chain>) -> Group {
        let mut parts = Vec::new();
        for (before, side) in [false, true].into_iter().zip(std::mem::take(&mut self.sides)) {
            let awake = side.awake.into_iter().map(|((kind, pid, comm), ns)| (What::Awake { kind, pid, comm }, ns));
            let waits = chains(&side.waits).into_iter().map(|chain| {
                let ns = chain.ns;
                (What::Waits(Box::new(chain)), ns)
            });
            parts.extend(awake.chain(waits).map(|(what, ns)| Part { what, before, ns }));
        }
        // Whose bytes end the wait of a loop, is any of its clients: the request waited for something that nobody saw.
        parts.retain(|part| match &part.what {
            What::Waits(chain) if !part.before && is_sent_by_client(chain) && waits_for_any(chain) => {
                let who = &chain.links[0].who;
                *self.inside.entry((who.pid, who.comm.clone(), Meanwhile::Unknown)).or_default() += part.ns;
                false
            }
            _ => true,
        });
        let inside = |(pid, comm, meanwhile)| What::Inside { pid, comm, meanwhile };
        let inside = self.inside.into_iter().map(|(at, ns)| (inside(at), ns));
        let asking = self.asking.into_iter().map(|((pid, comm), ns)| (What::Asking { pid, comm }, ns));
        parts.extend(inside.chain(asking).map(|(what, ns)| Part { what, before: false, ns }));
        parts.sort_by(|a, b| b.ns.total_cmp(&a.ns));
        Group { requests: self.requests, ns: self.ns, parts, labels: Vec::new() }
    }
}

/// Sums under other keys, of which some are alike.
fn added_up<K: Ord>(sums: BTreeMap<K, f64>, key: impl Fn(K) -> K) -> BTreeMap<K, f64> {
    let mut other = BTreeMap::new();
    sums.into_iter().for_each(|(of, ns)| *other.entry(key(of)).or_default() += ns);
    other
}

impl Part {
    /// Whose part it is, as `nginx/17`.
    pub fn who(&self) -> String {
        match &self.what {
            What::Awake { pid, comm, .. } | What::Inside { pid, comm, .. } | What::Asking { pid, comm } => {
                name(comm, *pid)
            }
            What::Waits(chain) => chain.links[0].who.name(),
        }
    }

    /// What it was, in words.
    pub fn words(&self) -> String {
        self.told("", End::words)
    }

    /// The same for little room: without the name of whom all parts are, and without the kernel's function that tells a timer.
    pub fn short_words(&self, of_all: &str) -> String {
        self.told(of_all, |end| match end.kind {
            Kind::Timer | Kind::TcpTimer | Kind::RunQueue | Kind::OnCpu => end.kind.words().to_string(),
            _ => end.words(),
        })
    }

    fn told(&self, known: &str, end_words: fn(&End) -> String) -> String {
        let name = Some(self.who()).filter(|name| name != known);
        let of = |between: &str| name.as_ref().map_or(String::new(), |name| format!("{name}{between}"));
        let inside = name.as_ref().map_or(String::new(), |name| format!(" {name}"));
        let what = match &self.what {
            What::Awake { kind: Kind::OnCpu, .. } => format!("{}on a CPU", of(" ")),
            What::Awake { kind, .. } => format!("{}{}", of(": "), kind.words()),
            // What a client sent ends its wait at once: that is no wait of the request's.
            What::Waits(chain) if is_sent_by_client(chain) => {
                format!(
                    "{}{}",
                    of(": "),
                    if self.before { "waiting for a client" } else { "more of what the client sends" }
                )
            }
            What::Waits(chain) => format!("{}{}", of(" in "), waits(chain, end_words)),
            What::Asking { .. } => format!("{}until the client had sent the rest of it", of(": ")),
            What::Inside { meanwhile: Meanwhile::Computing, .. } => {
                format!("inside{inside}, while its threads computed")
            }
            What::Inside { meanwhile: Meanwhile::Listening, .. } => {
                format!("{}until something came on another connection", of(": "))
            }
            What::Inside { .. } => format!("inside{inside}, where the kernel sees no wait"),
        };
        if self.before { format!("before its turn: {what}") } else { what }
    }
}

/// Whether a wait ended with what the thread's own client sent. Before a lock it is the holder who had nothing to do but to wait for
/// its client; and where the thread had asked a peer, that one.
fn is_sent_by_client(chain: &Chain) -> bool {
    let first = &chain.links[0].who.fd_kind;
    let is_of_others = [LOCK, HAND_OFF].contains(&first.as_str()) || chain.is_of_idle_peer();
    chain.end.kind == Kind::Client && chain.links.len() == 1 && !is_of_others
}

/// Whether it was one for many files at once.
fn waits_for_any(chain: &Chain) -> bool {
    is_loop(&chain.links[0].who.call)
}

/// The call of the first link, and where the last one ends.
fn waits(chain: &Chain, end_words: fn(&End) -> String) -> String {
    let (first, last) = (&chain.links[0].who, chain.links.last());
    let same = if first.pid == AGAIN { "another one" } else { "another of its threads" };
    let another = |name: String| if name == first.name() { same.to_string() } else { name };
    let end = match last.filter(|_| chain.links.len() > 1) {
        Some(last) if last.who.sleeps() => format!("{} in a sleep of its own", another(last.who.name())),
        Some(last) if chain.is_kept_for_another() => format!("{}: what its own client sends next", last.who.name()),
        // Whoever ended the last wait was at something, or the last one itself was.
        Some(last) => {
            let by = Some(chain.end.name()).filter(|name| !name.is_empty()).unwrap_or_else(|| last.who.name());
            format!("{}: {}", another(by), end_words(&chain.end))
        }
        None if (first.sleeps() || first.fd_kind == LOOP) && chain.end.kind == Kind::Timer => {
            return first.call_words();
        }
        None if chain.is_of_idle_peer() => {
            format!("{}: nothing to do until it is asked something else", chain.end.process())
        }
        None if chain.end.kind == Kind::Client => "whoever holds it waits for its client".to_string(),
        None if chain.end.name().is_empty() => end_words(&chain.end),
        None => format!("{}: {}", another(chain.end.name()), end_words(&chain.end)),
    };
    format!("{} < {end}", first.call_words())
}
