// SPDX-License-Identifier: Apache-2.0
//! System calls of the target: what sampled registers show, and what short windows counted.
//!
//! *Sampled* costs nothing and says where CPU time went and with which timeouts; *counted* comes
//! from windows in which every call was seen, and says how many calls found something.
//! Both are by thread and call.

use std::collections::{BTreeMap, BTreeSet};

use recording::tables;

use super::stacks::Stacks;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::statistics::{ratio, share};
use crate::syscall::{self, Family, Timeout, error_name};

/// -EAGAIN.
const EAGAIN: i64 = -11;

/// Waits shorter than about this give no CPU back: the sleep and the wake-up cost as much.
/// Buckets are powers of two, and this is the lower bound of the one that holds 1 ms, which is a
/// wait worth having.
pub const TINY_NS: i64 = 1 << 19;

/// A thread that gives up so soon wakes a hundred times a second for nothing; one costs little, a hundred are a CPU.
pub const SOON_NS: i64 = 1 << 24;

/// Thread and call number.
pub type Key = (u32, u32, i32);

/// What samples show of one call of one thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampled {
    /// Name of the call.
    pub name: String,
    /// Samples in the kernel inside this call.
    pub samples: u64,
    /// The same by timeout argument.
    pub timeouts: BTreeMap<Timeout, u64>,
    /// Samples that show the result of a call.
    pub results: u64,
    /// Of these results, the empty ones: nothing found.
    pub empty_results: u64,
}

/// What one file descriptor saw.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OnDescriptor {
    /// Calls.
    pub calls: u64,
    /// Calls that found nothing.
    pub empty: u64,
}

/// What windows counted of one call of one thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    /// Name of the call.
    pub name: String,
    /// What it is for.
    pub family: Family,
    /// Calls in all windows.
    pub calls: u64,
    /// Calls per second of window.
    pub per_second: f64,
    /// Calls that found nothing: 0 from the poll family, EAGAIN or 0 bytes from receives and
    /// accepts, and every yield and sleep.
    pub empty: u64,
    /// Empty calls whose argument tells that they were to wait for less than [`SOON_NS`].
    pub empty_soon: u64,
    /// Empty calls that did not wait, or hardly ([`TINY_NS`]), as far as the argument tells.
    pub empty_at_once: u64,
    /// Calls, empty or not, that were not to wait, or hardly: `empty_at_once` are the empty ones of these.
    pub at_once: u64,
    /// Empty calls whose argument does not tell how long they were to wait.
    pub empty_unknown_wait: u64,
    /// Calls that brought something: events, bytes, a connection.
    pub found: u64,
    /// By timeout argument.
    pub timeouts: BTreeMap<Timeout, u64>,
    /// By size argument, lower bound in bytes.
    pub sizes: BTreeMap<i64, u64>,
    /// By result: -errno exact, 0, or the lower bound of the bucket.
    pub results: BTreeMap<i64, u64>,
    /// By first argument, where it is a descriptor.
    pub descriptors: BTreeMap<i32, OnDescriptor>,
    /// By time taken, lower bound in ns; from windows that took times.
    pub latency: BTreeMap<u64, u64>,
}

impl Counted {
    /// Adds the same call of another thread; calls per second become those of both.
    pub fn merge(&mut self, other: &Counted) {
        self.per_second += other.per_second;
        let sums = [
            (&mut self.calls, other.calls),
            (&mut self.empty, other.empty),
            (&mut self.empty_soon, other.empty_soon),
            (&mut self.empty_at_once, other.empty_at_once),
            (&mut self.at_once, other.at_once),
            (&mut self.empty_unknown_wait, other.empty_unknown_wait),
            (&mut self.found, other.found),
        ];
        sums.into_iter().for_each(|(to, n)| add(to, n));
        other.timeouts.iter().for_each(|(timeout, n)| add(self.timeouts.entry(*timeout).or_default(), *n));
        for (fd, on) in &other.descriptors {
            let to = self.descriptors.entry(*fd).or_default();
            add(&mut to.calls, on.calls);
            add(&mut to.empty, on.empty);
        }
    }

    /// Share of calls that found nothing.
    pub fn empty_share(&self) -> f64 {
        share(self.empty as f64, self.calls as f64)
    }

    /// Results by name: `EAGAIN`, `0`, `1`, `2..3`.
    pub fn named_results(&self) -> Vec<(String, u64)> {
        let name = |r: i64| match r {
            ..0 => error_name(r),
            0 | 1 => r.to_string(),
            _ => format!("{r}..{}", r.saturating_mul(2) - 1),
        };
        self.results.iter().map(|(&r, &n)| (name(r), n)).collect()
    }
}

/// The windows in which every call was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Windows {
    /// How many.
    pub count: u64,
    /// Length of those that counted calls and their results, ns.
    pub counted_ns: f64,
    /// Length of all of them, ns.
    pub open_ns: f64,
    /// Calls seen.
    pub calls: u64,
    /// Calls that found no room in the kernel's map.
    pub lost: u64,
}

/// Calls of the target.
pub struct Calls {
    /// From registers, by thread and call.
    pub sampled: BTreeMap<Key, Sampled>,
    /// From windows, by thread and call.
    pub counted: BTreeMap<Key, Counted>,
    /// The windows.
    pub windows: Windows,
    /// Calls that moved bytes or took a connection, per second of window, by process.
    pub useful_per_second: BTreeMap<u32, f64>,
}

impl Sampled {
    /// Adds the same call of another thread.
    pub fn merge(&mut self, other: &Sampled) {
        add(&mut self.samples, other.samples);
        add(&mut self.results, other.results);
        add(&mut self.empty_results, other.empty_results);
        other.timeouts.iter().for_each(|(timeout, n)| add(self.timeouts.entry(*timeout).or_default(), *n));
    }
}

impl Fact for Calls {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let windows = windows(case);
        let mut counted = BTreeMap::new();
        for row in case.recording.rows::<tables::Call>() {
            let name = case.syscall(row.syscall);
            let entry = counted.entry((row.pid, row.tid, row.syscall)).or_insert_with(|| empty_entry(name));
            add_call(entry, row);
        }
        for row in case.recording.rows::<tables::CallLatency>() {
            let name = case.syscall(row.syscall);
            let entry = counted.entry((row.pid, row.tid, row.syscall)).or_insert_with(|| empty_entry(name));
            add(entry.latency.entry(row.from_ns).or_default(), row.count);
        }
        let mut useful_per_second: BTreeMap<u32, f64> = BTreeMap::new();
        for (&(pid, _, _), call) in &mut counted {
            call.per_second = ratio(call.calls as f64, windows.counted_ns / 1e9);
            if matches!(call.family, Family::Receive | Family::Accept | Family::Send) {
                *useful_per_second.entry(pid).or_default() += ratio(call.found as f64, windows.counted_ns / 1e9);
            }
        }
        let stacks = case.fact::<Stacks>()?;
        Ok(Calls { sampled: sampled(case, &stacks), counted, windows, useful_per_second })
    }
}

impl Calls {
    /// Calls of one thread that windows counted.
    pub fn of_thread(&self, pid: u32, tid: u32) -> impl Iterator<Item = (i32, &Counted)> {
        self.counted.range((pid, tid, i32::MIN)..=(pid, tid, i32::MAX)).map(|(k, c)| (k.2, c))
    }

    /// Threads that were seen in calls of such families: in a window, in a sample, or waiting in one, and not for a file.
    pub fn threads_in(&self, case: &Case, wanted: impl Fn(Family) -> bool) -> BTreeSet<(u32, u32)> {
        let is_one = |name: &str| wanted(syscall::family(name));
        let waits = case.recording.rows::<tables::Wait>().iter().filter(|row| is_one(&case.syscall(row.syscall)));
        let counted = self.counted.iter().filter(|(_, call)| is_one(&call.name)).map(|(key, _)| key);
        let sampled = self.sampled.iter().filter(|(_, call)| is_one(&call.name)).map(|(key, _)| key);
        // What a call that was counted was about is not known, but what its thread waited for in such ones is.
        let of_files = of_files(case);
        let called = counted.chain(sampled).filter(|key| !of_files.contains(key)).map(|&(pid, tid, _)| (pid, tid));
        waits.filter(|row| !is_file(row)).map(|row| (row.pid, row.tid)).chain(called).collect()
    }
}

fn is_file(row: &tables::Wait) -> bool {
    matches!(row.fd_kind.as_str(), "file" | "block")
}

/// Threads and calls in which they waited for files, and for nothing else.
fn of_files(case: &Case) -> BTreeSet<(u32, u32, i32)> {
    let of = |wanted: bool| {
        let rows = case.recording.rows::<tables::Wait>().iter().filter(move |row| is_file(row) == wanted);
        rows.map(|row| (row.pid, row.tid, row.syscall)).collect::<BTreeSet<_>>()
    };
    of(true).difference(&of(false)).copied().collect()
}

/// A window that took times may have counted results as well: then its rows tell.
fn windows(case: &Case) -> Windows {
    let with_rows: BTreeSet<u32> = case.recording.rows::<tables::Call>().iter().map(|c| c.window).collect();
    let mut all = Windows::default();
    for w in case.recording.rows::<tables::CallWindow>() {
        add(&mut all.count, 1);
        add(&mut all.calls, w.calls);
        add(&mut all.lost, w.lost);
        let length_ns = w.length_ns as f64;
        all.open_ns += length_ns;
        all.counted_ns += if w.kind != "latency" || with_rows.contains(&w.id) { length_ns } else { 0.0 };
    }
    all
}

fn empty_entry(name: String) -> Counted {
    Counted {
        family: syscall::family(&name),
        name,
        calls: 0,
        per_second: 0.0,
        empty: 0,
        empty_soon: 0,
        empty_at_once: 0,
        at_once: 0,
        empty_unknown_wait: 0,
        found: 0,
        timeouts: BTreeMap::new(),
        sizes: BTreeMap::new(),
        results: BTreeMap::new(),
        descriptors: BTreeMap::new(),
        latency: BTreeMap::new(),
    }
}

/// Whether a call of this family with this result found nothing. A receive of 0 bytes counts: at
/// the end of a stream one is normal, a loop of them is the classic spin on a closed connection.
pub(crate) fn is_empty(family: Family, result: i64) -> bool {
    match family {
        Family::Poll => result == 0,
        Family::Receive => result == EAGAIN || result == 0,
        Family::Accept => result == EAGAIN,
        Family::Yield | Family::Sleep => true,
        _ => false,
    }
}

pub(crate) fn is_found(family: Family, result: i64) -> bool {
    match family {
        Family::Poll | Family::Receive | Family::Send => result > 0,
        Family::Accept => result >= 0,
        _ => false,
    }
}

fn add(to: &mut u64, n: u64) {
    *to = to.saturating_add(n);
}

fn add_call(entry: &mut Counted, row: &tables::Call) {
    let n = row.count;
    add(&mut entry.calls, n);
    add(entry.results.entry(row.result).or_default(), n);
    let timeout = match row.argument_kind.as_str() {
        "timeout" => Some(row.argument),
        _ => None,
    };
    match row.argument_kind.as_str() {
        "timeout" => add(entry.timeouts.entry(Timeout::from_nanos(row.argument)).or_default(), n),
        "size" => add(entry.sizes.entry(row.argument).or_default(), n),
        _ if entry.family == Family::Poll => add(entry.timeouts.entry(Timeout::Unknown).or_default(), n),
        _ => {}
    }
    let tells = syscall::result_tells(&entry.name);
    let empty = tells && is_empty(entry.family, row.result);
    let at_once = match entry.family {
        // An empty receive returned at once, or it would have blocked.
        Family::Receive | Family::Accept | Family::Yield => true,
        _ => timeout.is_some_and(|ns| (0..TINY_NS).contains(&ns)),
    };
    add(&mut entry.at_once, if at_once { n } else { 0 });
    if empty {
        add(&mut entry.empty, n);
        add(&mut entry.empty_at_once, if at_once { n } else { 0 });
        let soon = at_once || timeout.is_some_and(|ns| (0..SOON_NS).contains(&ns));
        add(&mut entry.empty_soon, if soon { n } else { 0 });
        add(&mut entry.empty_unknown_wait, if !at_once && timeout.is_none() { n } else { 0 });
    } else if tells && is_found(entry.family, row.result) {
        add(&mut entry.found, n);
    }
    if row.fd >= 0 {
        let on = entry.descriptors.entry(row.fd).or_default();
        add(&mut on.calls, n);
        add(&mut on.empty, if empty { n } else { 0 });
    }
}

fn sampled(case: &Case, stacks: &Stacks) -> BTreeMap<Key, Sampled> {
    let mut all: BTreeMap<Key, Sampled> = BTreeMap::new();
    let rows = case.recording.rows::<tables::Sample>();
    for row in rows.iter().filter(|r| r.syscall >= 0) {
        let entry = all
            .entry((row.pid, row.tid, row.syscall))
            .or_insert_with(|| Sampled { name: case.syscall(row.syscall), ..Sampled::default() });
        let weight = u64::from(row.weight.max(1));
        add(&mut entry.samples, if row.kernel { weight } else { 0 });
        if let Some(result) = row.result {
            add_result(entry, result, weight);
        }
        if !row.args.is_empty() {
            let timeout = syscall::timeout(&entry.name, &row.args);
            add(entry.timeouts.entry(timeout).or_default(), weight);
        }
    }
    // Right after a call the thread is in user mode: the result is there, the number is gone.
    for row in rows.iter().filter(|r| r.syscall < 0) {
        let leaf = stacks.user(row.stack).next().map_or("", |c| c.symbol.as_str());
        if let (Some(result), Some(key)) = (row.result, just_left(&all, (row.pid, row.tid), leaf))
            && let Some(entry) = all.get_mut(&key)
        {
            add_result(entry, result, u64::from(row.weight.max(1)));
        }
    }
    all
}

fn add_result(entry: &mut Sampled, result: i64, weight: u64) {
    if !syscall::result_tells(&entry.name) {
        return;
    }
    add(&mut entry.results, weight);
    let empty = is_empty(syscall::family(&entry.name), result);
    add(&mut entry.empty_results, if empty { weight } else { 0 });
}

/// The call that a thread has just left: the one that the leaf function is named after, else the
/// one that holds nine of ten of its samples in calls.
fn just_left(all: &BTreeMap<Key, Sampled>, (pid, tid): (u32, u32), leaf: &str) -> Option<Key> {
    let bare = leaf.trim_start_matches("__libc_").trim_start_matches('_');
    let mine = || all.range((pid, tid, i32::MIN)..=(pid, tid, i32::MAX));
    let total: u64 = mine().map(|(_, s)| s.samples).sum();
    let named = mine().find(|(_, s)| s.name == bare);
    named.or_else(|| mine().find(|(_, s)| s.samples as f64 >= 0.9 * total as f64)).map(|(key, _)| *key)
}

#[cfg(test)]
mod tests;
