// SPDX-License-Identifier: Apache-2.0
//! `/proc/PID`: descriptors, threads, memory, faults, CPU, and calls and bytes of I/O of the target's processes.

use std::collections::HashMap;
use std::fs;

use procfs::FromRead;
use procfs::process::{LimitValue, Limits, Stat};
use recording::counters::{Key, pid};
use recording::tables::Gap;

use super::reread::Reread;
use super::{Readings, Sampler, Scope};
use crate::proc::field;
use crate::seldom::Seldom;

/// Processes read at most: half a dozen files each. The first ones are the main ones, the others stand in the order in which
/// they came, so that those that stay are the same in each second.
pub(super) const PROCESSES: usize = 64;

/// Lines of `/proc/PID/io`. The calls are read(2), write(2), sendfile(2) and their vectored kin, on any
/// file; send(2) and recv(2) are not among them (fs/read_write.c counts, net/socket.c does not).
const IO: [(Key, &str); 4] =
    [(pid::READ_CALLS, "syscr"), (pid::WRITE_CALLS, "syscw"), (pid::READ_BYTES, "rchar"), (pid::WRITE_BYTES, "wchar")];

/// What is kept open of each process.
struct Kept {
    stat: Reread,
    io: Reread,
    status: Reread,
    /// Soft limit of open files; read again where it is met: many a runtime raises it when it begins.
    limit: Option<f64>,
    /// Open files, when they were counted last.
    open_files: Option<f64>,
}

/// The target's processes.
pub struct Pids {
    kept: HashMap<u32, Kept>,
    /// Most processes that there were at once.
    most: usize,
    /// Since Linux 6.2 the size of `/proc/PID/fd` is the number of descriptors; before, it is 0 and
    /// they have to be counted.
    size_is_count: bool,
    looks: Seldom,
}

pub fn sampler(scope: &Scope) -> Pids {
    let size = fs::metadata(scope.proc.path("self/fd")).map_or(0, |dir| dir.len());
    Pids { kept: HashMap::new(), most: 0, size_is_count: size > 0, looks: Seldom::default() }
}

impl Sampler for Pids {
    fn name(&self) -> &'static str {
        pid::SOURCE
    }

    fn needs(&self) -> &'static str {
        "root, or the rights of the target's user; without them its descriptors and memory are unknown"
    }

    fn sample(&mut self, scope: &Scope, out: &mut Readings) -> Result<(), String> {
        self.most = self.most.max(scope.pids.len());
        let read = &scope.pids[..scope.pids.len().min(PROCESSES)];
        self.kept.retain(|pid, _| read.contains(pid));
        let began = self.looks.begin();
        for pid in read {
            self.read(scope, *pid, began.is_some(), out);
        }
        if let Some(began) = began.filter(|_| !self.size_is_count) {
            self.looks.end(began);
        }
        Ok(())
    }

    fn left_out(&self) -> Option<Gap> {
        let why = format!(
            "of {} processes {PROCESSES} are read: descriptors, memory, faults and I/O of the others are unknown",
            self.most
        );
        let part = self.most.saturating_sub(PROCESSES) as f64 / self.most.max(1) as f64;
        (part > 0.0).then(|| Gap::partial(pid::SOURCE, part, why))
    }
}

impl Pids {
    /// Open files are counted where that is quick, or if it is time for what takes long.
    fn read(&mut self, scope: &Scope, pid: u32, is_time: bool, out: &mut Readings) {
        let counted = if self.size_is_count || is_time { self.open_files(scope, pid) } else { None };
        let kept = self.kept.entry(pid).or_insert_with(|| Kept {
            stat: Reread::new(scope.proc.of(pid, "stat")),
            io: Reread::new(scope.proc.of(pid, "io")),
            status: Reread::new(scope.proc.of(pid, "status")),
            limit: limit(scope, pid),
            open_files: None,
        });
        kept.open_files = counted.or(kept.open_files);
        let open_files = kept.open_files;
        if open_files.zip(kept.limit).is_some_and(|(open, limit)| open >= limit) {
            kept.limit = limit(scope, pid);
        }
        let Some(stat) = kept.stat.text().ok().and_then(|text| Stat::from_read(text.as_bytes()).ok()) else {
            self.kept.remove(&pid); // the process has gone; the next one of this number has other files
            return;
        };
        let tick_ns = 1e9 / procfs::ticks_per_second() as f64;
        let entity = pid.to_string();
        let values = [
            (pid::OPEN_FILES, open_files),
            (pid::OPEN_FILES_LIMIT, kept.limit),
            (pid::THREADS, Some(stat.num_threads as f64)),
            (pid::RSS_BYTES, Some(stat.rss as f64 * procfs::page_size() as f64)),
            (pid::MINFLT, Some(stat.minflt as f64)),
            (pid::MAJFLT, Some(stat.majflt as f64)),
            (pid::UTIME_NS, Some(stat.utime as f64 * tick_ns)),
            (pid::STIME_NS, Some(stat.stime as f64 * tick_ns)),
        ];
        for (key, value) in values {
            if let Some(value) = value {
                out.put(key, &entity, value);
            }
        }
        put_io(&mut kept.io, &entity, out);
        put_tracer(&mut kept.status, &entity, out);
    }

    fn open_files(&self, scope: &Scope, pid: u32) -> Option<f64> {
        let dir = scope.proc.of(pid, "fd");
        if self.size_is_count {
            // Looking at the folder is allowed to all; looking into it is not, and then the size is 0.
            return Some(fs::metadata(dir).ok()?.len() as f64);
        }
        Some(fs::read_dir(dir).ok()?.count() as f64)
    }
}

/// Some kernels do not count I/O by process, and some users may not ask: then there are no rows.
fn put_io(io: &mut Reread, entity: &str, out: &mut Readings) {
    let text = io.text().unwrap_or_default();
    for (key, name) in IO {
        if let Some(value) = field(text, name).and_then(|v| v.parse().ok()) {
            out.put(key, entity, value);
        }
    }
}

/// Who traces a process, if anybody does: it is stopped at each thing that is traced.
fn put_tracer(status: &mut Reread, entity: &str, out: &mut Readings) {
    let tracer = field(status.text().unwrap_or_default(), "TracerPid").and_then(|pid| pid.parse::<u32>().ok());
    if let Some(tracer) = tracer.filter(|pid| *pid > 0) {
        out.put(pid::TRACER_PID, entity, f64::from(tracer));
    }
}

fn limit(scope: &Scope, pid: u32) -> Option<f64> {
    match Limits::from_file(scope.proc.of(pid, "limits")).ok()?.max_open_files.soft_limit {
        LimitValue::Value(limit) => Some(limit as f64),
        LimitValue::Unlimited => None,
    }
}
