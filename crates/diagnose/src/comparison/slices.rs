// SPDX-License-Identifier: Apache-2.0
//! A recording as time slices: what happened in each, as columns that add up.
//!
//! Slices are those of the thread ledger; counters are read at their ends, samples and call windows fall
//! into the one that they lie in. Measures are formulas over sums of columns, so that any choice of slices
//! gives a value, which is what resampling needs.

use std::collections::{BTreeMap, BTreeSet};

use recording::counters::{
    self, cgroup_cpu, diskstats, net_dev, netstat, pid, pressure, snmp, softnet_stat, speed, stat,
};
use recording::tables::{Call, CallWindow, Counter, Exchange, Gap as NotRecorded, Sample, Thread};

use super::functions::{Key, Names, own};
use crate::answer::Gap;
use crate::case::Case;
use crate::facts::calls::{is_empty, is_found};
use crate::facts::requests::{Requests, weights};
use crate::syscall::{Family, family, result_tells};

/// More slices than this are joined: an hour needs no finer ones, and resampling has its price.
const MOST: usize = 120;

/// Counters that are compared, each with its entity (empty = all of them together).
pub(super) const COUNTERS: &[(counters::Key, &str)] = &[
    (pid::READ_CALLS, ""),
    (pid::WRITE_CALLS, ""),
    (pid::READ_BYTES, ""),
    (pid::WRITE_BYTES, ""),
    (pid::MINFLT, ""),
    (pid::MAJFLT, ""),
    (netstat::ORIG_DATA_SENT, "TcpExt"),
    (netstat::LISTEN_OVERFLOWS, "TcpExt"),
    (netstat::TIMEOUTS, "TcpExt"),
    (snmp::PASSIVE_OPENS, "Tcp"),
    (snmp::RETRANS_SEGS, "Tcp"),
    (snmp::OUT_DATAGRAMS, "Udp"),
    (snmp::RCVBUF_ERRORS, "Udp"),
    (net_dev::RX_BYTES, ""),
    (net_dev::TX_BYTES, ""),
    (softnet_stat::DROPPED, ""),
    (softnet_stat::TIME_SQUEEZE, ""),
    (diskstats::IO_NS, ""),
    (pressure::SOME_NS, "cpu"),
    (pressure::SOME_NS, "memory"),
    (pressure::SOME_NS, "io"),
    (cgroup_cpu::THROTTLED_NS, ""),
];

/// Column of answers to clients, where all were followed.
pub(super) const ANSWERS: &str = "answers";

/// Answers of which it is known how long they took, and how long all of them took together, s.
pub(super) const RESPONSES: &str = "responses";
pub(super) const RESPONSE_TIME: &str = "response time";

/// Of a recording: so much of it has to be followed.
const FOLLOWED: f64 = 0.9;

/// Name of a counter's column.
pub(super) fn column(key: counters::Key, entity: &str) -> String {
    // Only pressure has entities that are apart in the list above.
    let entity = if key.source == pressure::SOURCE { format!("{entity} ") } else { String::new() };
    format!("{} {entity}{}", key.source, key.name)
}

fn is_of(row: &Counter, key: counters::Key) -> bool {
    row.source == key.source && row.name == key.name
}

/// Columns by name, each with a value a slice.
pub(super) struct Slices {
    /// Number of slices.
    pub count: usize,
    columns: BTreeMap<String, Vec<f64>>,
    ends: Vec<u64>,
}

impl Slices {
    /// Of a recording; `names` are the functions that get columns.
    pub fn of(case: &Case<'_>, names: &Names) -> Result<Self, Gap> {
        let rows = case.recording.rows::<Thread>();
        let ends = ends(rows);
        let mut slices = Slices { count: ends.len(), columns: BTreeMap::new(), ends };
        slices.seconds();
        slices.threads(rows);
        slices.counters(case);
        slices.answers(case);
        slices.machine(case);
        slices.calls(case);
        slices.samples(case, names)?;
        Ok(slices)
    }

    /// Names of the columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.keys().map(String::as_str)
    }

    /// A column's sum; none where there is none.
    pub fn sum(&self, name: &str) -> Option<f64> {
        Some(self.columns.get(name)?.iter().sum())
    }

    /// Columns as rows of slices, in the order of `names`; a missing one is 0.
    pub fn rows(&self, names: &[&str]) -> Vec<Vec<f64>> {
        let column = |name: &&str| self.columns.get(*name);
        let columns: Vec<_> = names.iter().map(column).collect();
        (0..self.count).map(|i| columns.iter().map(|c| c.map_or(0.0, |c| c[i])).collect()).collect()
    }

    fn add(&mut self, name: &str, slice: usize, value: f64) {
        if !self.columns.contains_key(name) {
            self.columns.insert(name.to_string(), vec![0.0; self.count]);
        }
        if let Some(cell) = self.columns.get_mut(name).and_then(|c| c.get_mut(slice)) {
            *cell += value;
        }
    }

    /// The slice of a moment; what is after the last end belongs to the last.
    fn at(&self, t_ns: u64) -> usize {
        self.ends.partition_point(|end| *end < t_ns).min(self.count.saturating_sub(1))
    }

    fn seconds(&mut self) {
        let mut before = 0;
        for (i, end) in self.ends.clone().into_iter().enumerate() {
            self.add("seconds", i, (end - before) as f64 / 1e9);
            before = end;
        }
    }

    fn threads(&mut self, rows: &[Thread]) {
        for row in rows {
            let i = self.at(row.t_ns);
            let columns = [
                ("cpu", row.cpu_ns as f64 / 1e9),
                ("run_queue", row.run_queue_ns as f64 / 1e9),
                ("preempted", row.preempted_ns as f64 / 1e9),
                ("throttled", row.throttled_ns as f64 / 1e9),
                ("blocked", row.blocked_ns as f64 / 1e9),
                ("interrupted", row.interrupted_ns as f64 / 1e9),
                ("voluntary_switches", row.voluntary_switches as f64),
                ("involuntary_switches", row.involuntary_switches as f64),
            ];
            columns.into_iter().for_each(|(name, value)| self.add(name, i, value));
        }
    }

    fn counters(&mut self, case: &Case<'_>) {
        let (rows, gaps) = (case.recording.rows::<Counter>(), case.recording.rows::<NotRecorded>());
        // Of some of its processes, counts are none of the service.
        let is_partial =
            |key: counters::Key| key.source == pid::SOURCE && gaps.iter().any(|gap| gap.what == pid::SOURCE);
        for &(key, entity) in COUNTERS.iter().filter(|(key, _)| !is_partial(*key)) {
            let wanted = |r: &&Counter| is_of(r, key) && (entity.is_empty() || r.entity == entity);
            self.growth(&column(key, entity), &rows.iter().filter(wanted).collect::<Vec<_>>());
        }
    }

    /// Growth of a counter in each slice, its entities together. One that went backwards did not grow.
    fn growth(&mut self, column: &str, rows: &[&Counter]) {
        let mut entities: BTreeMap<(&str, &str), Vec<(u64, f64)>> = BTreeMap::new();
        for row in rows.iter().filter(|r| r.value.is_finite()) {
            entities.entry((&row.entity, &row.name)).or_default().push((row.t_ns, row.value));
        }
        let ends = self.ends.clone();
        for readings in entities.values_mut() {
            readings.sort_by_key(|r| r.0);
            let mut last = readings[0].1;
            for (i, end) in ends.iter().enumerate() {
                let now = readings[..readings.partition_point(|r| r.0 <= *end)].last().map_or(last, |r| r.1);
                self.add(column, i, (now - last).max(0.0));
                last = now;
            }
        }
    }

    fn answers(&mut self, case: &Case<'_>) {
        let Ok(requests) = case.fact::<Requests>() else { return };
        let all = requests.followed_ns >= case.length_ns() * FOLLOWED;
        let weights = weights::of(case);
        let rows = case.recording.rows::<Exchange>().iter();
        for row in rows.filter(|row| row.is_accepted() && row.stage == "response") {
            let (at, count) = (self.at(row.t_ns), row.count as f64);
            if all {
                self.add(ANSWERS, at, count);
            }
            let weight = weights.get(&row.t_ns).copied().unwrap_or(1.0);
            // Where the target streams, nobody waits for an answer.
            if !requests.streams_at(row.port) {
                self.add(RESPONSES, at, count * weight);
                self.add(RESPONSE_TIME, at, row.sum_ns as f64 * weight / 1e9);
            }
        }
    }

    /// Time of the CPUs that the target may use, in seconds.
    fn machine(&mut self, case: &Case<'_>) {
        let allowed: BTreeSet<String> =
            case.recording.meta.target.allowed_cpus.iter().map(|cpu| format!("cpu{cpu}")).collect();
        let rows = case.recording.rows::<Counter>();
        let ours = |r: &&Counter| {
            let numbered = r.entity.len() > 3;
            r.source == stat::SOURCE && numbered && (allowed.is_empty() || allowed.contains(&r.entity))
        };
        let rows: Vec<&Counter> = rows.iter().filter(ours).collect();
        let busy = [stat::USER_NS, stat::NICE_NS, stat::SYSTEM_NS, stat::IRQ_NS, stat::SOFTIRQ_NS];
        let stolen = [stat::STEAL_NS];
        let all = [&busy[..], &stolen, &[stat::IDLE_NS, stat::IOWAIT_NS]].concat();
        for (column, keys) in [("machine busy", &busy[..]), ("machine stolen", &stolen), ("machine all", &all)] {
            let counted: Vec<&Counter> = rows.iter().copied().filter(|r| keys.iter().any(|k| is_of(r, *k))).collect();
            self.growth(column, &counted);
        }
        for key in [speed::WORK_NS, speed::WORKS] {
            let rows = case.recording.rows::<Counter>().iter().filter(|r| is_of(r, key));
            self.growth_from_nothing(&format!("speed {}", key.name), &rows.collect::<Vec<_>>());
        }
    }

    /// Growth of a counter that began with the recording: its first reading is growth too.
    fn growth_from_nothing(&mut self, column: &str, rows: &[&Counter]) {
        let began = rows.iter().min_by_key(|r| r.t_ns).filter(|r| r.t_ns > 0).map(|r| Counter {
            t_ns: 0,
            value: 0.0,
            ..(*r).clone()
        });
        self.growth(column, &began.iter().chain(rows.iter().copied()).collect::<Vec<_>>());
    }

    /// Calls that windows counted.
    fn calls(&mut self, case: &Case<'_>) {
        let rows = case.recording.rows::<Call>();
        let counted: BTreeSet<u32> = rows.iter().map(|c| c.window).collect();
        let windows = case.recording.rows::<CallWindow>();
        let windows = windows.iter().filter(|w| w.kind != "latency" || counted.contains(&w.id));
        let mut slice_of = BTreeMap::new();
        for window in windows {
            let slice = self.at(window.t_ns);
            slice_of.insert(window.id, slice);
            self.add("window seconds", slice, window.length_ns as f64 / 1e9);
        }
        for row in rows {
            let Some(&slice) = slice_of.get(&row.window) else { continue };
            let (name, count) = (case.syscall(row.syscall), row.count as f64);
            let family = family(&name);
            self.add(&format!("call {name}"), slice, count);
            if family == Family::Poll && result_tells(&name) {
                self.add("polls", slice, count);
                self.add("empty polls", slice, if is_empty(family, row.result) { count } else { 0.0 });
            }
            let useful = matches!(family, Family::Receive | Family::Accept | Family::Send);
            if useful && is_found(family, row.result) {
                self.add("useful calls", slice, count);
            }
        }
    }

    fn samples(&mut self, case: &Case<'_>, names: &Names) -> Result<(), Gap> {
        let stacks = case.fact::<crate::facts::stacks::Stacks>()?;
        // Samples are many more than stacks.
        let mut alike: BTreeMap<(usize, u32, bool), (&Sample, f64)> = BTreeMap::new();
        for row in case.recording.rows::<Sample>() {
            let key = (self.at(row.t_ns), row.stack, row.kernel);
            alike.entry(key).or_insert((row, 0.0)).1 += f64::from(row.weight.max(1));
        }
        for ((slice, ..), (row, weight)) in alike {
            self.add("samples", slice, weight);
            self.add("kernel samples", slice, if row.kernel { weight } else { 0.0 });
            self.add("user samples", slice, if row.kernel { 0.0 } else { weight });
            if let Some((_, index)) = own(&stacks, row).and_then(|code| names.find(code)) {
                self.add(&format!("self {index}"), slice, weight);
            }
            let mut seen: Vec<&Key> = Vec::new();
            for code in stacks.frames(row.stack) {
                let Some((key, index)) = names.find(code) else { continue };
                if !seen.contains(&key) {
                    seen.push(key);
                    self.add(&format!("inclusive {index}"), slice, weight);
                }
            }
        }
        Ok(())
    }
}

/// Ends of the slices. A last one that is much shorter than the others belongs to the one before.
fn ends(rows: &[Thread]) -> Vec<u64> {
    let distinct: BTreeSet<u64> = rows.iter().map(|t| t.t_ns).filter(|t| *t > 0).collect();
    let mut ends: Vec<u64> = distinct.into_iter().collect();
    if let [.., before, last] = ends[..] {
        let usual = before / (ends.len() as u64 - 1);
        if last - before < usual / 2 {
            let at = ends.len() - 2;
            ends.remove(at);
        }
    }
    let joined = ends.len().div_ceil(MOST).max(1);
    let whole = ends.len() / joined * joined;
    let mut out: Vec<u64> = ends[..whole].iter().copied().skip(joined - 1).step_by(joined).collect();
    // What is left over belongs to the last one.
    if let (Some(last), Some(end)) = (out.last_mut(), ends.last()) {
        *last = *end;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn columns_add_up_and_counters_hold_until_they_change() {
        let recording = parse(
            "meta host.arch=x86_64 target.allowed_cpus=[1]
             thread t_ns=1e9 pid=1 tid=1 cpu_ns=5e8\nthread t_ns=1e9 pid=1 tid=2 cpu_ns=1e8
             thread t_ns=2e9 pid=1 tid=1 cpu_ns=2e8\nthread t_ns=21e8 pid=1 tid=1 cpu_ns=1e8
             counter t_ns=0 source=proc/pid entity=p1 name=write_calls value=100
             counter t_ns=2e9 source=proc/pid entity=p1 name=write_calls value=150
             counter t_ns=0 source=proc/pid entity=p2 name=write_calls value=7
             counter t_ns=1e9 source=proc/pid entity=p2 name=write_calls value=9
             counter t_ns=1e9 source=proc/pid entity=p2 name=write_calls value=3
             counter t_ns=0 source=proc/stat entity=cpu1 name=user_ns value=0
             counter t_ns=1e9 source=proc/stat entity=cpu1 name=user_ns value=9e8
             counter t_ns=0 source=proc/stat entity=cpu0 name=user_ns value=0
             counter t_ns=1e9 source=proc/stat entity=cpu0 name=user_ns value=4e8
             call_window id=1 t_ns=15e8 length_ns=5e7 kind=results
             call window=1 syscall=232 result=0 count=90\ncall window=1 syscall=232 result=1 count=10
             call window=1 syscall=0 result=64 count=5
             sample t_ns=5e8 kernel=true\nsample t_ns=15e8 weight=3",
        )
        .unwrap();
        let slices = Slices::of(&Case::new(&recording), &Names::default()).unwrap();
        // The last tenth of a second is no slice of its own.
        assert_eq!(slices.count, 2);
        let names =
            ["seconds", "cpu", "proc/pid write_calls", "machine busy", "polls", "useful calls", "samples", "none"];
        let rows = slices.rows(&names);
        let near = |row: &[f64], wanted: [f64; 8]| row.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-9 || *a == b);
        assert!(near(&rows[0], [1.0, 0.6, 0.0, 9e8, 0.0, 0.0, 1.0, 0.0]), "{rows:?}");
        assert!(near(&rows[1], [1.1, 0.3, 50.0, 0.0, 100.0, 5.0, 3.0, 0.0]), "{rows:?}");
        assert_eq!(slices.sum("empty polls"), Some(90.0));
    }

    #[test]
    fn long_recordings_have_joined_slices() {
        let rows: Vec<Thread> = (1..=601).map(|i| Thread { t_ns: i * 1_000_000_000, ..Thread::default() }).collect();
        let ends = ends(&rows);
        assert!(ends.len() <= MOST && ends.len() > MOST / 2 - 1, "{}", ends.len());
        assert_eq!((ends[0], *ends.last().unwrap()), (6_000_000_000, 601_000_000_000));
        assert!(super::ends(&[]).is_empty());
    }
}
