// SPDX-License-Identifier: Apache-2.0
//! Looks at the target's connections several times a second: how many there are, and in how many an answer is owed. It is
//! no ledger of requests (short ones pass between two looks), but it tells a service that answers from one in which
//! requests stand, whatever runtime keeps them, and why bytes stand in its send queues.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;

use anyhow::{Result, bail};
use recording::tables::connection::LATE_NS;
use recording::tables::{self, Gap, Process};
use recording::{Tables, role};

use crate::clock;
use crate::collector::{Collector, Kind, Shared, SliceEnd};
use crate::probes::connections::{Connection, Connections, Look};
use crate::target::tcp_ports_of;

mod last_word;
mod pace;
mod sending;

use last_word::{LastWord, ages_ns, last_word};
use pace::Pace;

/// Peers that are told apart in one slice.
const MAX_PEERS: usize = 256;

/// What stands for all processes of the target.
const ALL: [u32; 1] = [0];

/// Own port and peer; one of them is set.
type Group = (u32, String);

/// What is known of it before it is started.
pub const KIND: Kind = Kind {
    gap: "connection",
    facility: Some((
        "connections",
        "whether requests stand unanswered; without them a queue inside the program goes unnoticed",
    )),
    tables: |_| (),
    start: |start, slot| {
        let program = Connections::load(slot, start.ledger).map_err(|why| format!("{why:#}"));
        Ok(Box::new(Looks::new(program, start.plan.target.ports.iter().copied())))
    },
};

/// The looks so far.
struct Looks<'o> {
    /// Or why there is none: the table is there, and empty.
    program: Result<Connections<'o>, String>,
    ports: BTreeSet<u32>,
    pace: Pace,
    tick_ns: u64,
    looks: u64,
    /// Processes end within a slice: they are known too late to be looked at one by one.
    come_and_go: bool,
    before: sending::Before,
    groups: BTreeMap<Group, Seen>,
}

/// Connections of a group.
struct Seen {
    /// In this slice.
    row: tables::Connection,
    /// In this look, those in which an answer was owed.
    unanswered: u64,
    /// Of those, the late ones.
    late: u64,
}

impl<'o> Looks<'o> {
    fn new(program: Result<Connections<'o>, String>, ports: impl IntoIterator<Item = u32>) -> Self {
        Self {
            program,
            ports: ports.into_iter().collect(),
            pace: Pace::new(),
            tick_ns: clock::tick_ns(),
            looks: 0,
            come_and_go: false,
            before: sending::Before::default(),
            groups: BTreeMap::new(),
        }
    }

    /// The rows of a slice.
    fn rows(&mut self, t_ns: u64) -> Vec<tables::Connection> {
        let looks = take(&mut self.looks);
        let mut rows: Vec<tables::Connection> = take(&mut self.groups).into_values().map(|seen| seen.row).collect();
        rows.iter_mut().for_each(|row| (row.t_ns, row.looks) = (t_ns, looks));
        rows
    }

    fn see(&mut self, found: &Look) {
        self.looks += 1;
        self.pace.see(found.connections.len());
        let owed: Vec<Option<u64>> = found.connections.iter().map(|connection| self.owed_ns(connection)).collect();
        let late = owed.iter().map(|ns| ns.is_some_and(|ns| ns >= LATE_NS));
        let steps = self.before.next(&found.connections, late);
        for ((connection, step), owed_ns) in found.connections.iter().zip(&steps).zip(owed) {
            self.add(connection, step, owed_ns);
        }
        for seen in self.groups.values_mut() {
            seen.row.most_unanswered = seen.row.most_unanswered.max(take(&mut seen.unanswered));
            seen.row.most_late = seen.row.most_late.max(take(&mut seen.late));
        }
        for listener in found.listeners.iter().filter(|listener| listener.queued > 0) {
            self.group((listener.port.into(), String::new())).row.queued += u64::from(listener.queued);
        }
    }

    fn accepted(&self, c: &Connection) -> bool {
        self.ports.contains(&c.local_port.into())
    }

    /// For how long an answer has been owed, if one is.
    fn owed_ns(&self, c: &Connection) -> Option<u64> {
        // What is written is no longer owed, only held; and whoever waits for a client's next bytes owes it nothing.
        let has_done = c.unsent > 0 || c.awaited && c.unread == 0;
        match (self.accepted(c), last_word(c, self.tick_ns)) {
            _ if c.opening => None,
            // Something was said when it came, and nothing since: another question came with the one that was answered.
            (true, LastWord::Ours(_) | LastWord::Untold) if c.unread > 0 && c.unsent == 0 => {
                let (received_ns, sent_ns) = ages_ns(c, self.tick_ns);
                (received_ns.saturating_sub(sent_ns) <= LATE_NS).then_some(sent_ns)
            }
            (true, LastWord::Theirs(ns)) if !has_done => Some(ns),
            // Who has closed its side answers no more.
            (false, LastWord::Ours(ns)) if !c.closed => Some(ns),
            _ => None,
        }
    }

    fn add(&mut self, c: &Connection, step: &sending::Step, owed_ns: Option<u64>) {
        let (accepted, tick_ns) = (self.accepted(c), self.tick_ns);
        let late_ns = owed_ns.filter(|ns| *ns >= LATE_NS);
        let Seen { row, unanswered, late } = self.group(match accepted {
            true => (c.local_port.into(), String::new()),
            false => (0, std::net::SocketAddr::new(c.peer, c.remote_port).to_string()),
        });
        if c.opening {
            row.opening += 1;
            return;
        }
        row.open += 1;
        row.unread += u64::from(c.unread > 0);
        row.unsent += u64::from(c.unsent > 0);
        row.unanswered += u64::from(owed_ns.is_some());
        *unanswered += u64::from(owed_ns.is_some());
        row.late += u64::from(late_ns.is_some());
        *late += u64::from(late_ns.is_some());
        row.late_ns += late_ns.unwrap_or(0);
        row.went_on += u64::from(accepted && owed_ns.is_some() && step.went_on);
        row.kept += u64::from(accepted && is_kept(c, tick_ns));
        row.late_unread += u64::from(late_ns.is_some() && accepted && c.unread > 0);
        row.awaited += u64::from(late_ns.is_some() && !accepted && c.awaited);
        sending::add(row, c, step, tick_ns);
        sending::add_sums(row, step, tick_ns);
    }

    fn group(&mut self, mut key: Group) -> &mut Seen {
        // There are no more ports of its own than it listens on.
        if key.0 == 0 && self.groups.len() >= MAX_PEERS && !self.groups.contains_key(&key) {
            key = (0, role::OTHERS.to_string());
        }
        let role = if key.0 > 0 { role::ACCEPTED } else { role::MADE };
        let row = || tables::Connection { role: role.into(), port: key.0, peer: key.1.clone(), ..Default::default() };
        self.groups.entry(key.clone()).or_insert_with(|| Seen { row: row(), unanswered: 0, late: 0 })
    }
}

/// Whether a thread waits for the next question in a connection in which the last one was answered.
fn is_kept(c: &Connection, tick_ns: u64) -> bool {
    c.awaited && c.unread == 0 && c.said && !matches!(last_word(c, tick_ns), LastWord::Theirs(_))
}

impl Collector for Looks<'_> {
    fn prove(&mut self, _: &Shared<'_>) -> Result<()> {
        match &self.program {
            Ok(program) => program.look(&[std::process::id()]).map(drop),
            Err(why) => bail!("{why}"),
        }
    }

    fn begin(&mut self, _: &mut Shared<'_>, _: &mut Tables) -> Result<()> {
        self.pace.begin();
        Ok(())
    }

    /// Looks, if it is time to.
    fn tick(&mut self, shared: &mut Shared<'_>) -> Result<()> {
        if !self.pace.is_due() {
            return Ok(());
        }
        let Ok(program) = &self.program else { return Ok(()) };
        let before = clock::monotonic_ns();
        let pids = if self.come_and_go { ALL.to_vec() } else { shared.known.pids() };
        match program.look(&pids) {
            Ok(found) => self.see(&found),
            Err(why) => self.program = Err(format!("{why:#}")),
        }
        self.pace.wait(before, shared.plan.length);
        Ok(())
    }

    fn slice(&mut self, _: &mut Shared<'_>, end: &SliceEnd, tables: &mut Tables) -> Result<()> {
        self.come_and_go = end.ended.iter().any(|row| row.tid == row.tgid);
        tables.extend(self.rows(end.t_ns));
        Ok(())
    }

    fn come(&mut self, processes: &[Process]) {
        self.ports.extend(tcp_ports_of(processes).map(u32::from));
    }

    /// That nothing is known of connections, where the kernel refused; or too little, where looks took long.
    fn gaps(&mut self, shared: &Shared<'_>) -> Result<Vec<Gap>> {
        let gap = |why| {
            let why = format!("whether requests stand unanswered in its connections is unknown: {why}");
            Gap::refused(KIND.gap, why)
        };
        let refused = self.program.as_ref().err().map(gap);
        Ok(refused.or_else(|| self.pace.too_few(KIND.gap, shared.elapsed())).into_iter().collect())
    }

    /// Looks half as often.
    fn shed(&mut self) -> bool {
        self.pace.shed()
    }

    fn stop(&mut self, _: &mut Shared<'_>) -> bool {
        self.pace.stop();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::last_word::tests::{JIFFY, connection};
    use super::*;
    use crate::probes::connections::Listener;

    #[test]
    fn who_has_closed_its_side_answers_no_more() {
        let looks = Looks { tick_ns: JIFFY, ..Looks::new(Err(String::new()), [80]) };
        let asked = Connection { local_port: 9_999, ..connection(9, 5) };
        assert_eq!(looks.owed_ns(&asked), Some(5 * JIFFY));
        assert_eq!(looks.owed_ns(&Connection { closed: true, ..asked }), None);
    }

    #[test]
    fn what_was_not_read_is_not_answered() {
        let looks = Looks { tick_ns: JIFFY, ..Looks::new(Err(String::new()), [80]) };
        let answered = connection(9, 5);
        assert_eq!(looks.owed_ns(&answered), None);
        let more = Connection { unread: 40, ..connection(8, 7) };
        assert_eq!(looks.owed_ns(&more), Some(7 * JIFFY), "another one came with it");
        let at_once = Connection { unread: 40, ..connection(7, 7) };
        assert_eq!(looks.owed_ns(&at_once), Some(7 * JIFFY), "within a jiffy");
        assert_eq!(
            looks.owed_ns(&Connection { unread: 40, ..connection(90, 5) }),
            None,
            "it goes on writing for itself"
        );
        let asked = Connection { local_port: 9_999, unread: 40, ..connection(5, 9) };
        assert_eq!(looks.owed_ns(&asked), None, "an answer to the target");
    }

    #[test]
    fn who_is_kept_by_a_client_that_asks_nothing() {
        let waits = |c: Connection| is_kept(&Connection { awaited: true, ..c }, JIFFY);
        assert!(waits(connection(9, 5)) && !is_kept(&connection(9, 5), JIFFY));
        assert!(!waits(connection(5, 9)), "it has a part of a question");
        assert!(!waits(Connection { said: false, ..connection(9, 5) }), "nothing was ever asked");
    }

    fn seen(connections: &[Connection]) -> Look {
        Look { connections: connections.to_vec(), listeners: Vec::new() }
    }

    #[test]
    fn connections_are_added_up_by_port_and_peer() {
        let mut looks = Looks::new(Err(String::new()), [80]);
        let made = Connection { local_port: 9_999, remote_port: 5_432, ..connection(9, 5) };
        let held = Connection { unsent: 9, remote_port: 5_001, ..connection(5, 9) };
        looks.tick_ns = JIFFY;
        let opening = Connection { opening: true, remote_port: 5_433, ..made };
        looks.see(&seen(&[connection(5, 9), held, made, opening]));
        let rows = looks.rows(7);
        let told: Vec<_> = rows.iter().map(|r| (r.role.as_str(), r.peer.as_str(), r.open, r.late, r.unsent)).collect();
        let both =
            [("made", "127.0.0.1:5432", 1, 1, 0), ("made", "127.0.0.1:5433", 0, 0, 0), ("accepted", "", 2, 1, 1)];
        assert_eq!(told, both);
        assert_eq!((rows[0].looks, rows[0].t_ns, rows[1].opening, rows[2].late_ns), (1, 7, 1, 20_000_000));
        looks.see(&seen(&[connection(5, 9), Connection { remote_port: 5_001, ..connection(5, 9) }]));
        looks.see(&seen(&[connection(5, 9)]));
        let rows = looks.rows(9);
        assert_eq!((rows[0].unanswered, rows[0].most_unanswered), (3, 2), "of one look");
        assert_eq!((rows[0].late, rows[0].most_late), (3, 2));
    }

    /// A client that waits for its answer, one that goes on sending, one that got an answer and asked again.
    #[test]
    fn who_goes_on_sending_where_an_answer_is_late() {
        let mut looks = Looks::new(Err(String::new()), [80]);
        looks.tick_ns = JIFFY;
        let of = |remote_port, now: u32, segments, received, sent| {
            let sums = crate::probes::connections::Sums { segments, ..connection(0, 0).sums };
            let c = connection(received, sent);
            Connection { remote_port, now, received_at: now - received, sent_at: now - sent, sums, ..c }
        };
        looks.see(&seen(&[of(1, 2_500, 1, 20, 90), of(2, 2_500, 1, 20, 90), of(3, 2_500, 1, 20, 90)]));
        looks.see(&seen(&[of(1, 2_525, 1, 45, 115), of(2, 2_525, 2, 3, 115), of(3, 2_525, 2, 5, 9)]));
        let rows = looks.rows(1);
        assert_eq!((rows[0].unanswered, rows[0].went_on), (6, 1));
    }

    #[test]
    fn who_stands_in_accept_queues() {
        let mut looks = Looks::new(Err(String::new()), [80]);
        let listener = |queued| Listener { port: 80, inode: 1 + u64::from(queued), queued };
        looks.see(&Look { connections: Vec::new(), listeners: [0, 3, 4].map(listener).to_vec() });
        let rows = looks.rows(1);
        assert_eq!((rows.len(), rows[0].role.as_str(), rows[0].queued, rows[0].open), (1, "accepted", 7, 0));
    }

    #[test]
    fn too_many_peers_are_one() {
        let mut looks = Looks::new(Err(String::new()), [80]);
        looks.tick_ns = JIFFY;
        let made = |port: u16| Connection { local_port: 9_999, remote_port: port, ..connection(9, 5) };
        looks.see(&seen(&(1..=1_000).map(made).collect::<Vec<_>>()));
        let rows = looks.rows(1);
        assert_eq!((rows.len(), rows.iter().map(|row| row.open).sum::<u64>()), (MAX_PEERS + 1, 1_000));
    }
}
