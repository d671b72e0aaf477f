// SPDX-License-Identifier: Apache-2.0
//! Who woke whom: from wakeups to rows.

use std::collections::HashMap;
use std::fs;
use std::mem::take;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::Result;
use recording::Tables;
use recording::tables::{Process, Wakeup};

use crate::collector::{Collector, Kind, Shared, SliceEnd, Slot, Start};
use crate::probes::{Probe, shapes, wakeups};

/// What is known of it before it is started.
pub const KIND: Kind = Kind {
    gap: "wakeup",
    facility: Some((
        "wakeups",
        "whom the service waits for, walked to the end; without them a wait is not told from idleness",
    )),
    tables: |tables| tables.extend::<Wakeup>([]),
    start: |start, slot| Ok(Box::new(Wakeups::start(start, slot)?)),
};

/// The probe, and rows of this slice.
struct Wakeups<'o> {
    probe: wakeups::Wakeups<'o>,
    rows: Vec<Wakeup>,
    files: Files,
}

impl<'o> Wakeups<'o> {
    fn start(start: &mut Start<'_, 'o>, slot: Slot<'o>) -> Result<Self> {
        let snapshots = (start.sample_hz > 0).then_some(start.stack_bytes);
        let mut probe = wakeups::Wakeups::load_in(slot, start.ledger, snapshots, start.plan.room)?;
        probe.listen(&start.plan.target.listen);
        start.bursts = Some(probe.bursts()?);
        Ok(Self { probe, rows: Vec::new(), files: Files::new(&start.plan.root) })
    }
}

impl Collector for Wakeups<'_> {
    fn drain(&mut self, shared: &mut Shared<'_>) -> Result<()> {
        for raw in self.probe.rows()? {
            let stacks = (shared.kernel_stack(raw.sleeper.stack)?, shared.kernel_stack(raw.waker.stack)?);
            self.rows.push(row(&raw, shared.start_ns, stacks, self.files.name(&raw)));
        }
        Ok(())
    }

    fn slice(&mut self, _: &mut Shared<'_>, end: &SliceEnd, tables: &mut Tables) -> Result<()> {
        if end.last {
            self.rows.retain(|row| row.t_ns <= end.t_ns); // not what came while the hooks were taken off
        }
        self.files.names.clear(); // a number may be another file's in the next
        tables.extend(take(&mut self.rows));
        Ok(())
    }

    fn come(&mut self, processes: &[Process]) {
        self.probe.listen(processes.iter().flat_map(|process| &process.listen));
    }

    fn probe<'a>(&'a self, _: &'a Shared<'_>) -> Option<&'a dyn Probe> {
        Some(&self.probe)
    }

    fn probe_mut<'a>(&'a mut self, _: &'a mut Shared<'_>) -> Option<&'a mut dyn Probe> {
        Some(&mut self.probe)
    }

    /// Writes half as many rows, of fewer events in a burst too: each stands for more waits then.
    fn shed(&mut self) -> bool {
        self.probe.shed()
    }

    fn stop(&mut self, shared: &mut Shared<'_>) -> bool {
        self.probe.detach();
        shared.has_wakeups = false;
        true
    }
}

fn row(raw: &wakeups::Wakeup, start_ns: u64, (stack, waker_stack): (u32, u32), path: String) -> Wakeup {
    let (sleeper, waker) = (&raw.sleeper, &raw.waker);
    Wakeup {
        t_ns: raw.at_ns.saturating_sub(start_ns),
        pid: sleeper.tgid,
        tid: sleeper.tid,
        comm: sleeper.comm.clone(),
        wait_ns: raw.wait_ns,
        since_ns: raw.since_ns.saturating_sub(start_ns),
        blocked_ns: raw.blocked_ns,
        cpu_ns: raw.cpu_ns,
        run_queue_ns: raw.run_queue_ns,
        waits: raw.waits,
        asked: raw.asked,
        syscall: sleeper.syscall,
        args: if sleeper.syscall >= 0 { raw.args.to_vec() } else { Vec::new() },
        own_frame: sleeper.syscall >= 0 && shapes::is_in_own_frame(raw.args[0], raw.sp),
        fd_kind: raw.fd_kind.into(),
        file_system: raw.file_system,
        state: raw.state.into(),
        io_wait: raw.io_wait,
        stack,
        family: sleeper.ports.family.into(),
        local_port: sleeper.ports.local.into(),
        remote_port: sleeper.ports.remote.into(),
        peer: address(&sleeper.ports),
        path,
        context: raw.context.into(),
        waker_pid: waker.tgid,
        waker_tid: waker.tid,
        waker_comm: waker.comm.clone(),
        waker_syscall: waker.syscall,
        waker_stack,
        waker_family: waker.ports.family.into(),
        waker_local_port: waker.ports.local.into(),
        waker_remote_port: waker.ports.remote.into(),
    }
}

/// Names of files by process, descriptor and inode, of one slice.
struct Files {
    root: PathBuf,
    names: HashMap<(u32, u64, u64), String>,
}

/// Files whose names are looked up in a slice.
const MOST_NAMES: usize = 1024;

impl Files {
    fn new(root: &Path) -> Self {
        Self { root: root.to_path_buf(), names: HashMap::new() }
    }

    /// Name of the file that the sleeper's call is about. It is looked up while the process still has it, once.
    fn name(&mut self, raw: &wakeups::Wakeup) -> String {
        if !matches!(raw.fd_kind, "file" | "block" | "pipe" | "tty") {
            return String::new();
        }
        let key = (raw.sleeper.tgid, raw.args[0], raw.inode);
        if self.names.len() >= MOST_NAMES && !self.names.contains_key(&key) {
            return String::new();
        }
        self.names.entry(key).or_insert_with(|| name(&self.root, key)).clone()
    }
}

/// What a descriptor stands for by now, unless that is another file than the one that was waited for: the name is read before the
/// inode, so that both are of one file if it is the right one. (`stat` would ask a file system, which may not answer.)
fn name(root: &Path, (pid, descriptor, inode): (u32, u64, u64)) -> String {
    let of = |what: &str| root.join(format!("proc/{pid}/{what}/{descriptor}"));
    let path = fs::read_link(of("fd")).unwrap_or_default();
    let about = fs::read_to_string(of("fdinfo")).unwrap_or_default();
    let number = about.lines().find_map(|line| line.strip_prefix("ino:")?.trim().parse::<u64>().ok()); // since Linux 5.14
    let is_it = number.is_none_or(|number| number == inode);
    if is_it && path.is_absolute() { path.to_string_lossy().into_owned() } else { String::new() } // not `pipe:[812]`
}

/// The peer's address as people write it; empty = none.
fn address(ports: &wakeups::Ports) -> String {
    let [a, b, c, d, ..] = ports.peer;
    let address = match i32::from(ports.family) {
        libc::AF_INET => IpAddr::from([a, b, c, d]),
        libc::AF_INET6 => IpAddr::from(ports.peer).to_canonical(),
        _ => return String::new(),
    };
    if address.is_unspecified() { String::new() } else { address.to_string() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_asked_for_once_while_its_number_is_known() {
        let root = tempfile::tempdir().unwrap();
        let descriptors = root.path().join("proc/7/fd");
        fs::create_dir_all(&descriptors).unwrap();
        let points_to = |file: &str| {
            let _ = fs::remove_file(descriptors.join("3")); // the first time there is none
            symlink(file, descriptors.join("3")).unwrap();
        };
        let mut raw =
            wakeups::Wakeup { fd_kind: "file", args: [3, 0, 0, 0], inode: 11, ..wakeups::Wakeup::default() };
        raw.sleeper.tgid = 7;
        let mut files = Files::new(root.path());
        points_to("/data/one");
        assert_eq!(files.name(&raw), "/data/one");
        points_to("/data/two");
        assert_eq!(files.name(&raw), "/data/one", "once in a slice");
        files.names.clear();
        assert_eq!(files.name(&raw), "/data/two");
        fs::create_dir_all(root.path().join("proc/7/fdinfo")).unwrap();
        fs::write(root.path().join("proc/7/fdinfo/3"), "pos:\t0\nino:\t12\n").unwrap();
        files.names.clear();
        assert_eq!(files.name(&raw), "", "another file has the descriptor by now");
        raw.inode = 12;
        assert_eq!(files.name(&raw), "/data/two");
    }
}
