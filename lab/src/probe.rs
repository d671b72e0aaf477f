// SPDX-License-Identifier: Apache-2.0
//! Running the wakewalk binary as a user would: from the host's namespaces, by its arguments, judged
//! by what it prints.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use diagnose::verdict::Verdict;

use crate::paths::Paths;
use crate::scenario::Aim;
use crate::stop::Stop;

/// What wakewalk may take on top of the window that it was told to observe.
const OVERHEAD_LIMIT: Duration = Duration::from_secs(60);

/// One call of `wakewalk diagnose`.
pub struct Probe<'a> {
    /// The checkout.
    pub paths: &'a Paths,
    /// Ends all waiting.
    pub stop: &'a Stop,
    /// Observed time.
    pub seconds: u64,
    /// Where the recording goes.
    pub save: Option<PathBuf>,
    /// The cell's cgroup for the observer: with the weight of what it observes, but apart from it.
    pub group: PathBuf,
}

impl Probe<'_> {
    /// Diagnoses a live service.
    ///
    /// # Errors
    /// wakewalk could not; its own sentence is passed on.
    pub fn diagnose(&self, aim: &Aim) -> Result<Verdict> {
        self.diagnose_with(aim, &[])
    }

    /// The same with more options.
    ///
    /// # Errors
    /// As above.
    pub fn diagnose_with(&self, aim: &Aim, options: &[&str]) -> Result<Verdict> {
        // By way of `enter`, so that it cannot outlive us.
        let mut command = Command::new(env::current_exe().context("failed to find the lab's own binary")?);
        command.args(["enter", "--group"]).arg(&self.group).arg("--").arg(&self.paths.wakewalk);
        command.arg("diagnose").args(aim.args()).arg("--for").arg(format!("{}s", self.seconds)).arg("--json");
        command.args(options);
        if let Some(dir) = &self.save {
            make_room(dir)?;
            command.arg("--save").arg(dir);
        }
        self.run(command)
    }

    fn run(&self, mut command: Command) -> Result<Verdict> {
        let output = self.paths.lab().join("wakewalk.json");
        let errors = self.paths.lab().join("wakewalk.err");
        command.stdin(Stdio::null()).stdout(File::create(&output)?).stderr(File::create(&errors)?);
        let mut child = command.spawn().with_context(|| {
            format!("failed to run `{}`; build it with `make build`", self.paths.wakewalk.display())
        })?;
        let status = self.wait(&mut child);
        let said = fs::read_to_string(&errors).unwrap_or_default();
        let status = status?;
        if !status.success() {
            bail!("wakewalk could not diagnose ({status}): {}", said.trim());
        }
        let text = fs::read_to_string(&output)?;
        serde_json::from_str(&text).with_context(|| format!("wakewalk printed no verdict in `{}`", output.display()))
    }

    /// The end of wakewalk; one that hangs, or is in the way of our own end, is killed.
    fn wait(&self, child: &mut Child) -> Result<ExitStatus> {
        let limit = Duration::from_secs(self.seconds) + OVERHEAD_LIMIT;
        let mut status = None;
        let waited = self.stop.poll(limit, || {
            status = child.try_wait()?;
            Ok(status.is_some())
        });
        if let (Ok(true), Some(status)) = (&waited, status) {
            return Ok(status);
        }
        let _ = child.kill();
        let _ = child.wait();
        waited?;
        bail!("wakewalk did not end within {} s", limit.as_secs())
    }
}

/// Verdict of a recording as JSON, as wakewalk prints it.
///
/// # Errors
/// wakewalk could not read it; its own sentence is passed on.
pub fn replay(paths: &Paths, recording: &Path) -> Result<String> {
    replay_with(paths, recording, &["--json"])
}

/// Verdict of a recording as a person reads it.
///
/// # Errors
/// wakewalk could not read it; its own sentence is passed on.
pub fn replay_as_text(paths: &Paths, recording: &Path) -> Result<String> {
    replay_with(paths, recording, &[])
}

fn replay_with(paths: &Paths, recording: &Path, options: &[&str]) -> Result<String> {
    let from = [OsStr::new("diagnose"), OsStr::new("--from"), recording.as_os_str()];
    said(Command::new(&paths.wakewalk).args(from).args(options), paths, "replay")
}

/// Two recordings compared, as JSON or as a person reads it. Run in their folder: their paths are printed.
///
/// # Errors
/// wakewalk could not compare them; its own sentence is passed on.
pub fn diff(paths: &Paths, before: &Path, after: &Path, options: &[&str]) -> Result<String> {
    let (folder, name) = (before.parent().unwrap_or(before), before.file_name().unwrap_or(before.as_os_str()));
    let mut command = Command::new(fs::canonicalize(&paths.wakewalk).unwrap_or_else(|_| paths.wakewalk.clone()));
    let after = after.strip_prefix(folder).unwrap_or(after);
    said(command.current_dir(folder).arg("diff").arg(name).arg(after).args(options), paths, "compare")
}

fn said(command: &mut Command, paths: &Paths, what: &str) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("failed to run `{}`; build it with `make build`", paths.wakewalk.display()))?;
    if !output.status.success() {
        bail!("wakewalk could not {what}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).context("wakewalk printed something that is not text")
}

/// Whether the kernel refuses BPF altogether, by a probe load; then nothing can be diagnosed live.
/// A doctor that cannot be asked is no reason to skip: the live runs will say what is wrong.
pub fn bpf_refused(paths: &Paths) -> bool {
    let output = Command::new(&paths.wakewalk).args(["doctor", "--json"]).output();
    let report = output.ok().and_then(|o| serde_json::from_slice::<serde_json::Value>(&o.stdout).ok());
    report.is_some_and(|r| r["bpf"] == serde_json::Value::Bool(false))
}

fn make_room(dir: &Path) -> Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir).with_context(|| format!("failed to remove the old recording `{}`", dir.display()))?;
    }
    fs::create_dir_all(dir.parent().unwrap_or(dir)).context("failed to make the folder of recordings")
}
