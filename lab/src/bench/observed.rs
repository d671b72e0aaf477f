// SPDX-License-Identifier: Apache-2.0
//! wakewalk as its user starts it, timed and weighed from outside: when its first event came, when
//! its verdict was there, what CPU time and memory it took by the kernel's books.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use diagnose::verdict::Verdict;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use recording::tables::{CallWindow, Cost, Sample};
use recording::{Meta, Recording};

use crate::cell::Cell;
use crate::paths::Paths;
use crate::stop::Stop;

/// What wakewalk may take until it observes, and from the end of its window to its verdict.
const LIMIT: Duration = Duration::from_secs(60);

/// A running `wakewalk diagnose`.
pub struct Observer {
    child: Child,
    dir: PathBuf,
    stop: Stop,
    spawned_ns: u64,
    most: Memory,
}

/// A diagnosis that has ended well.
pub struct Ended {
    observer: Observer,
    ended_ns: u64,
    cpu_s: f64,
}

/// Memory by the kernel's books, bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    peak: u64,
    maps: u64,
}

/// One capture, seen from outside and with what it says of itself.
pub struct Observed {
    /// From the start of the process to the first event that it recorded.
    pub first_event_s: f64,
    /// From the end of the observed window to the end of the process.
    pub verdict_after_s: f64,
    /// CPU time of the whole process by the kernel's books, without that of a command that it started.
    pub cpu_s: f64,
    /// Peak resident memory, as the kernel told while it ran.
    pub peak_bytes: u64,
    /// Kernel memory of its maps, by its descriptors.
    pub map_bytes: u64,
    /// CLOCK_MONOTONIC ns of the observed window.
    pub from_ns: u64,
    /// Likewise its end.
    pub until_ns: u64,
    /// What it said.
    pub verdict: Verdict,
    /// What it kept.
    pub recording: Recording,
    /// What stood on its standard error.
    pub said: String,
}

impl Observed {
    /// CPU seconds of one row of its own account, such as `user` or `bpf:sched_switch`.
    pub fn own_account_s(&self, what: &str) -> f64 {
        self.recording.rows::<Cost>().iter().filter(|c| c.what == what).map(|c| c.cpu_ns as f64 / 1e9).sum()
    }

    /// What a system call of others took longer in a window, ns, as the verdict prints it.
    pub fn window_price_ns(&self) -> Option<f64> {
        Some(self.verdict.cost.call_window_price_ns).filter(|ns| *ns > 0.0)
    }

    /// Call windows of a kind as CLOCK_MONOTONIC ns, from and until; all of them where none is named.
    pub fn windows(&self, kind: Option<&str>) -> Vec<(u64, u64)> {
        let windows = self.recording.rows::<CallWindow>().iter();
        let windows = windows.filter(|w| kind.is_none_or(|kind| kind == w.kind));
        windows.map(|w| (self.from_ns + w.t_ns, self.from_ns + w.t_ns + w.length_ns)).collect()
    }
}

/// CLOCK_MONOTONIC, ns.
pub fn now_ns() -> Result<u64> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC)?;
    Ok(u64::try_from(Duration::from(now).as_nanos())?)
}

impl Observer {
    /// Starts a diagnosis of `seconds` in the cell's group for observers, apart from the service.
    /// `target` is how wakewalk is told what to look at.
    ///
    /// # Errors
    /// It could not be started.
    pub fn start(paths: &Paths, cell: &Cell, target: &[OsString], seconds: f64) -> Result<Self> {
        let dir = paths.bench().join("capture");
        if dir.exists() {
            fs::remove_dir_all(&dir).with_context(|| format!("failed to remove `{}`", dir.display()))?;
        }
        fs::create_dir_all(&dir)?;
        let mut command = Command::new(env::current_exe().context("failed to find the lab's own binary")?);
        command.arg("enter").arg("--group").arg(cell.group("observer")?.path()).arg("--").arg(&paths.wakewalk);
        command.args(["diagnose", "--for", &format!("{seconds}s"), "--json", "--save"]).arg(dir.join("recording"));
        command.args(target).current_dir(cell.dir()).stdin(Stdio::null());
        command.stdout(File::create(dir.join("out"))?).stderr(File::create(dir.join("err"))?);
        let spawned_ns = now_ns()?;
        let child = command
            .spawn()
            .with_context(|| format!("failed to run `{}`; build it with `make build`", paths.wakewalk.display()))?;
        Ok(Self { child, dir, stop: cell.stop.clone(), spawned_ns, most: Memory::default() })
    }

    /// Waits until its probes are attached and its window has begun.
    ///
    /// # Errors
    /// It ended before.
    pub fn wait_until_observing(&mut self) -> Result<()> {
        let meta = self.dir.join("recording/meta.json");
        let stop = self.stop.clone();
        let observing = stop.poll(LIMIT, || {
            if self.child.try_wait()?.is_some() {
                bail!("wakewalk could not diagnose: {}", self.last_words());
            }
            let text = fs::read_to_string(&meta).unwrap_or_default();
            Ok(serde_json::from_str::<Meta>(&text).is_ok_and(|meta| meta.start_ns > 0))
        })?;
        anyhow::ensure!(observing, "wakewalk did not begin to observe within {} s", LIMIT.as_secs());
        Ok(())
    }

    /// Resident memory now, bytes.
    ///
    /// # Errors
    /// It has ended.
    pub fn resident(&mut self) -> Result<u64> {
        if self.child.try_wait()?.is_some() {
            bail!("wakewalk ended before its time: {}", self.last_words());
        }
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        Ok(number(&status, "VmRSS:") * 1024)
    }

    /// Waits for the verdict and reads it.
    ///
    /// # Errors
    /// There is none within `window` and a minute.
    pub fn finish(self, window: Duration) -> Result<Observed> {
        self.wait(window)?.read()
    }

    /// Waits for the verdict.
    ///
    /// # Errors
    /// There is none within `window` and a minute.
    pub fn wait(mut self, window: Duration) -> Result<Ended> {
        let stop = self.stop.clone();
        let pid = self.child.id();
        let mut turn = 0u32;
        // Woken as rarely as a sleep: what the service's host pays for who waits here would be taken for wakewalk's cost.
        let early = stop.sleep_until(window, || {
            turn += 1;
            if turn.is_multiple_of(2) {
                self.most.peak = self.most.peak.max(peak(pid));
            }
            if turn.is_multiple_of(20) {
                self.most.maps = self.most.maps.max(maps(Path::new(&format!("/proc/{pid}/fdinfo"))));
            }
            is_over(pid)
        })?;
        let ended = early
            || stop.poll(LIMIT, || {
                self.most.peak = self.most.peak.max(peak(pid));
                is_over(pid)
            })?;
        let ended_ns = now_ns()?;
        if !ended {
            bail!("wakewalk did not end within {} s", (window + LIMIT).as_secs());
        }
        let cpu_s = super::service::cpu_ns(pid)? as f64 / 1e9; // while its last books are still there
        let status = self.child.wait()?;
        if !status.success() {
            bail!("wakewalk could not diagnose ({status}): {}", self.last_words());
        }
        Ok(Ended { observer: self, ended_ns, cpu_s })
    }

    /// Its own sentence; what libraries said before it is in the file.
    fn last_words(&self) -> String {
        self.said().lines().last().unwrap_or_default().to_string()
    }

    fn said(&self) -> String {
        fs::read_to_string(self.dir.join("err")).unwrap_or_default().trim().to_string()
    }
}

impl Ended {
    /// From the start of its process to the end, s.
    pub fn took_s(&self) -> f64 {
        seconds(self.observer.spawned_ns, self.ended_ns)
    }

    /// CPU time of the whole process by the kernel's books, s.
    pub fn cpu_s(&self) -> f64 {
        self.cpu_s
    }

    /// Peak resident memory, bytes.
    pub fn peak_bytes(&self) -> u64 {
        self.observer.most.peak
    }

    /// Begin and end of the observed window, CLOCK_MONOTONIC ns. Of another version's recording too, which cannot be read whole.
    ///
    /// # Errors
    /// It kept no such recording.
    pub fn window(&self) -> Result<(u64, u64)> {
        let file = self.observer.dir.join("recording/meta.json");
        let text = fs::read_to_string(&file).with_context(|| format!("wakewalk kept no `{}`", file.display()))?;
        let meta: Meta = serde_json::from_str(&text).with_context(|| format!("failed to read `{}`", file.display()))?;
        Ok((meta.start_ns, meta.start_ns + meta.length_ns))
    }

    /// The folder of what it kept.
    pub fn recording(&self) -> PathBuf {
        self.observer.dir.join("recording")
    }

    /// What it said.
    ///
    /// # Errors
    /// That is no verdict.
    pub fn verdict(&self) -> Result<Verdict> {
        let out = self.observer.dir.join("out");
        serde_json::from_str(&fs::read_to_string(&out)?)
            .with_context(|| format!("wakewalk printed no verdict in `{}`", out.display()))
    }

    /// Reads what it printed and kept.
    ///
    /// # Errors
    /// That is not what it should be.
    pub fn read(self) -> Result<Observed> {
        let (verdict, recording) = (self.verdict()?, recording::open(&self.recording())?);
        let Self { observer, ended_ns, cpu_s } = self;
        let (from_ns, length_ns) = (recording.meta.start_ns, recording.meta.length_ns);
        let first = recording.rows::<Sample>().iter().map(|s| s.t_ns).min().unwrap_or(0);
        Ok(Observed {
            first_event_s: seconds(observer.spawned_ns, from_ns + first),
            verdict_after_s: seconds(from_ns + length_ns, ended_ns),
            cpu_s,
            peak_bytes: observer.most.peak,
            map_bytes: observer.most.maps,
            from_ns,
            until_ns: from_ns + length_ns,
            verdict,
            said: observer.said(),
            recording,
        })
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        let _ = self.child.kill(); // an error is on its way; one that has ended is not hurt
        let _ = self.child.wait();
    }
}

/// Whether a child has ended; it stays a zombie, whose CPU time can still be asked for.
fn is_over(pid: u32) -> Result<bool> {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    Ok(waitid(Id::Pid(Pid::from_raw(pid.cast_signed())), flags)? != WaitStatus::StillAlive)
}

/// Peak resident memory of a process, bytes.
fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    number(&status, "VmHWM:") * 1024
}

/// Kernel memory of the BPF maps that a process holds open, bytes.
fn maps(fdinfo: &Path) -> u64 {
    let files = fs::read_dir(fdinfo).into_iter().flatten().flatten();
    let texts = files.filter_map(|f| fs::read_to_string(f.path()).ok()).filter(|text| text.contains("map_id:"));
    // One map may be open twice.
    let mut maps: Vec<(u64, u64)> = texts.map(|text| (number(&text, "map_id:"), number(&text, "memlock:"))).collect();
    maps.sort_unstable();
    maps.dedup_by_key(|map| map.0);
    maps.iter().map(|map| map.1).sum()
}

fn number(text: &str, name: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok());
    value.unwrap_or(0)
}

fn seconds(from_ns: u64, until_ns: u64) -> f64 {
    until_ns.saturating_sub(from_ns) as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_that_are_open_twice_count_once() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        put("3", "pos:\t0\nmap_type:\t1\nmemlock:\t4096\nmap_id:\t7\nfrozen:\t0\n");
        put("4", "pos:\t0\nmap_type:\t1\nmemlock:\t4096\nmap_id:\t7\nfrozen:\t0\n");
        put("5", "pos:\t0\nmap_type:\t27\nmemlock:\t100\nmap_id:\t8\n");
        put("6", "pos:\t0\nprog_type:\t5\nmemlock:\t999\n");
        assert_eq!(maps(dir.path()), 4196);
    }

    #[test]
    fn numbers_of_proc_files() {
        assert_eq!(number("Name:\tx\nVmHWM:\t    1234 kB\n", "VmHWM:"), 1234);
        assert_eq!(number("", "VmHWM:"), 0);
    }
}
