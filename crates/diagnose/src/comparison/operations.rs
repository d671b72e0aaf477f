// SPDX-License-Identifier: Apache-2.0
//! What counts as an operation: the unit that makes two loads comparable.
//!
//! Answers on the target's own connections are counted where all of them were followed. Else something that a service does a
//! fixed number of times for each serves: write calls, data segments, connections, as long as the change under study did not
//! change it too. So where several such counts are there and disagree, none is taken unless the user names it. The network's
//! counters are of a whole namespace, so beside answers of the target's own they say nothing.

use recording::counters::{Key, netstat, pid, snmp};

use super::result::Operation;
use super::slices::{ANSWERS, Slices, column};
use crate::wording::signed_percent;

/// What costs are counted per.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Per {
    /// The first count of work that is there and that the others do not contradict.
    #[default]
    Auto,
    /// Answers to clients on the target's TCP connections.
    Answers,
    /// Calls of write(2) and its kin by the target's processes.
    WriteCalls,
    /// TCP segments with data, sent in the target's network namespace.
    DataSegments,
    /// TCP connections accepted in the target's network namespace.
    Connections,
    /// UDP datagrams sent in the target's network namespace.
    Datagrams,
    /// Time.
    Second,
}

/// Fewer events on a side than this are no steady count of work.
const FEWEST: f64 = 200.0;
/// Of answers, which are nothing but work.
const FEWEST_ANSWERS: f64 = 100.0;
/// Of others, fewer a second than this come from housekeeping.
const FEWEST_PER_SECOND: f64 = 10.0;
/// Counts of work that grow by factors this far apart are not counts of the same work.
const AGREE: f64 = 1.1;

/// A count of work.
struct Count {
    per: Per,
    id: &'static str,
    name: &'static str,
    /// None = answers.
    key: Option<Key>,
}

impl Count {
    fn column(&self) -> String {
        self.key.map_or(ANSWERS.to_string(), |key| column(key, ""))
    }

    /// Whether it is the target's alone.
    fn is_own(&self) -> bool {
        self.key.is_none_or(|key| key.source == pid::SOURCE)
    }
}

/// By how closely they belong to the target.
const COUNTS: &[Count] = &[
    Count { per: Per::Answers, id: "answers", name: "answer", key: None },
    Count { per: Per::WriteCalls, id: "write-calls", name: "write call", key: Some(pid::WRITE_CALLS) },
    Count { per: Per::DataSegments, id: "data-segments", name: "TCP data segment", key: Some(netstat::ORIG_DATA_SENT) },
    Count { per: Per::Connections, id: "connections", name: "connection", key: Some(snmp::PASSIVE_OPENS) },
    Count { per: Per::Datagrams, id: "datagrams", name: "UDP datagram", key: Some(snmp::OUT_DATAGRAMS) },
];

/// The operation and its column; no column = time.
pub(super) struct Chosen {
    pub operation: Operation,
    pub column: Option<String>,
}

/// Chooses for two sides.
pub(super) fn choose(per: Per, a: &Slices, b: &Slices) -> Chosen {
    let answers = [a, b].iter().all(|side| side.sum(ANSWERS).is_some());
    let is_its = |count: &&Count| !answers || count.is_own() || count.per == per;
    let usable: Vec<(&Count, f64)> = COUNTS.iter().filter(is_its).filter_map(|c| Some((c, growth(c, a, b)?))).collect();
    let by_hand = COUNTS.iter().find(|c| c.per == per);
    match (per, by_hand, usable.first()) {
        (_, Some(count), _) if usable.iter().any(|(c, _)| c.per == per) => taken(count, "as asked for".into()),
        (_, Some(count), _) => time(format!("there are too few {}s on a side to count by", count.name)),
        (Per::Second, ..) => time("as asked for".into()),
        (_, _, None) => {
            time("neither its answers, its write calls nor the network's counters show a steady count of work".into())
        }
        (_, _, Some((first, _))) if first.key.is_none() => taken(first, "counted on its own connections".into()),
        (_, _, Some((first, _))) => match disagreement(&usable) {
            Some(why) => time(why),
            None => taken(
                first,
                if usable.len() > 1 { agreement(&usable) } else { "the only count of work there is".into() },
            ),
        },
    }
}

fn taken(count: &Count, why: String) -> Chosen {
    let operation = Operation { id: count.id.into(), name: count.name.into(), why };
    Chosen { operation, column: Some(count.column()) }
}

fn time(why: String) -> Chosen {
    Chosen { operation: Operation { id: "second".into(), name: "second".into(), why }, column: None }
}

/// By which factor the rate of a count grew; none if it is no steady count of work on both sides.
fn growth(count: &Count, a: &Slices, b: &Slices) -> Option<f64> {
    let rate = |s: &Slices| {
        let (events, seconds) = (s.sum(&count.column())?, s.sum("seconds")?);
        let fewest = if count.key.is_none() { FEWEST_ANSWERS } else { FEWEST };
        let is_steady = count.key.is_none() || events >= FEWEST_PER_SECOND * seconds;
        (events >= fewest && is_steady).then(|| events / seconds)
    };
    Some(rate(b)? / rate(a)?)
}

fn disagreement(usable: &[(&Count, f64)]) -> Option<String> {
    let least = usable.iter().min_by(|x, y| x.1.total_cmp(&y.1))?;
    let most = usable.iter().max_by(|x, y| x.1.total_cmp(&y.1))?;
    (most.1 / least.1 > AGREE).then(|| {
        format!(
            "counts of work disagree: {}s a second {} %, {}s {} %; name the right one with --per",
            least.0.name,
            signed_percent(least.1 - 1.0, 0),
            most.0.name,
            signed_percent(most.1 - 1.0, 0)
        )
    })
}

fn agreement(usable: &[(&Count, f64)]) -> String {
    let others: Vec<String> = usable[1..].iter().map(|(c, _)| format!("{}s", c.name)).collect();
    format!("the count closest to the target; {} changed alike", others.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::super::functions::Names;
    use super::*;
    use crate::case::Case;
    use recording::text::parse;

    /// Ten seconds with so many write calls and data segments.
    fn slices(writes: f64, segments: f64) -> Slices {
        let recording = parse(&format!(
            "thread t_ns=5e9 pid=1 tid=1 cpu_ns=1\nthread t_ns=10e9 pid=1 tid=1 cpu_ns=1
             counter source=proc/pid entity=p1 name=write_calls value=0
             counter t_ns=9e9 source=proc/pid entity=p1 name=write_calls value={writes}
             counter source=proc/net/netstat entity=TcpExt name=TCPOrigDataSent value=0
             counter t_ns=9e9 source=proc/net/netstat entity=TcpExt name=TCPOrigDataSent value={segments}"
        ))
        .unwrap();
        Slices::of(&Case::new(&recording), &Names::default()).unwrap()
    }

    fn chosen(per: Per, a: (f64, f64), b: (f64, f64)) -> String {
        choose(per, &slices(a.0, a.1), &slices(b.0, b.1)).operation.id
    }

    #[test]
    fn what_others_do_not_contradict() {
        assert_eq!(chosen(Per::Auto, (1000.0, 3000.0), (2000.0, 6100.0)), "write-calls");
        assert_eq!(chosen(Per::Auto, (40.0, 3000.0), (41.0, 1000.0)), "data-segments");
        assert_eq!(chosen(Per::Auto, (1000.0, 3000.0), (500.0, 3000.0)), "second", "writes were joined");
        assert_eq!(chosen(Per::Auto, (5.0, 3.0), (5.0, 3.0)), "second");
    }

    #[test]
    fn what_did_not_change_has_no_sign() {
        let why = choose(Per::Auto, &slices(1000.0, 3000.0), &slices(500.0, 2991.0)).operation.why;
        assert!(why.contains("write calls a second -50 %, TCP data segments 0 %"), "{why}");
    }

    #[test]
    fn what_the_user_names() {
        assert_eq!(chosen(Per::DataSegments, (1000.0, 3000.0), (500.0, 3000.0)), "data-segments");
        assert_eq!(chosen(Per::Connections, (1000.0, 3000.0), (500.0, 3000.0)), "second");
        assert_eq!(chosen(Per::Second, (1000.0, 3000.0), (1000.0, 3000.0)), "second");
    }

    /// The network's counters are of everybody in the namespace; the target's own answers are not.
    #[test]
    fn own_answers_come_before_what_everybody_sends() {
        let side = |answers: u32, followed: &str| {
            let recording = parse(&format!(
                "meta length_ns=10e9
                 thread t_ns=5e9 pid=1 tid=1 cpu_ns=1\nthread t_ns=10e9 pid=1 tid=1 cpu_ns=1
                 counter source=proc/net/netstat entity=TcpExt name=TCPOrigDataSent value=0
                 counter t_ns=9e9 source=proc/net/netstat entity=TcpExt name=TCPOrigDataSent value=40000
                 exchange_window t_ns=10e9 length_ns={followed}
                 exchange t_ns=9e9 role=accepted port=80 stage=response count={answers}"
            ));
            let recording = recording.unwrap();
            let case = Case::new(&recording);
            Slices::of(&case, &Names::of([&case, &case]).unwrap()).unwrap()
        };
        let chosen = |a: u32, b: u32, followed: &str| {
            let chosen = choose(Per::Auto, &side(a, followed), &side(b, followed));
            (chosen.operation.id, chosen.column.unwrap_or_default())
        };
        assert_eq!(chosen(660, 2540, "10e9"), ("answers".into(), "answers".into()));
        assert_eq!(chosen(90, 2540, "10e9").0, "second", "too few of its own, and the others are not its");
        assert_eq!(chosen(660, 2540, "1e9").0, "data-segments", "not all of them were followed");
        assert_eq!(chosen(101, 102, "10e9").0, "answers", "few a second are work too");
    }
}
