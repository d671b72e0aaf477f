// SPDX-License-Identifier: Apache-2.0
//! From what was typed to what will be done. May look at the system, changes nothing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use collect::capture::{CallCounting, Role};
use collect::privileges::{self, OTHERS, PROBES};
use collect::proc::Proc;
use collect::target::{Resolved, Target};

use crate::args::{self, Counting};

/// The shortest capture that can tell anything: one slice.
pub const SHORTEST: Duration = Duration::from_secs(1);
/// The longest: a capture is a look, not a monitor.
pub const LONGEST: Duration = Duration::from_secs(3600);
/// The kernel's first process namespace, which has this number in every kernel (PROC_PID_INIT_INO).
const FIRST_PIDS: &str = "pid:[4026531836]";

/// Where the recording comes from.
pub enum Source {
    /// A running service.
    Running(Target),
    /// A command that is started for the purpose.
    Started(Vec<String>),
    /// A saved recording.
    Saved(PathBuf),
}

/// What `diagnose` will do.
pub struct Plan {
    /// Where the recording comes from.
    pub source: Source,
    /// How long to observe.
    pub length: Duration,
    /// When to count system calls.
    pub calls: CallCounting,
    /// Whether requests are labelled.
    pub labels: bool,
    /// Whom it observes.
    pub role: Role,
    /// The response time that the owner promises.
    pub slo: Option<Duration>,
    /// Whether the recording is kept; with one that breaks off, what was seen until then.
    pub is_kept: bool,
}

/// Name and version, for recordings and verdicts.
pub const TOOL: &str = concat!("wakewalk ", env!("CARGO_PKG_VERSION"));

/// The plan for `diagnose`.
///
/// # Errors
/// A length out of bounds, or privileges that a capture needs are missing.
pub fn diagnose(args: &args::Diagnose) -> Result<Plan> {
    let calls = match args.calls {
        Counting::Auto => CallCounting::Auto,
        Counting::Always => CallCounting::Always,
        Counting::Never => CallCounting::Never,
    };
    let source = source(&args.target);
    if !matches!(source, Source::Saved(_)) {
        check_length(args.length)?;
        check_privileges()?;
    }
    if let Some(dir) = &args.save {
        check_save(dir)?;
    }
    if let Some(file) = &args.html {
        check_html(file)?;
    }
    let is_kept = args.save.is_some();
    Ok(Plan { source, length: args.length, calls, labels: args.requests, role: Role::Service, slo: args.slo, is_kept })
}

/// Where a recording comes from, as it was typed.
pub fn source(target: &args::TargetArgs) -> Source {
    match target {
        args::TargetArgs { from: Some(dir), .. } => Source::Saved(dir.clone()),
        args::TargetArgs { pid: Some(pid), .. } => Source::Running(Target::Pid(*pid)),
        args::TargetArgs { port: Some(port), .. } => Source::Running(Target::Port(*port)),
        args::TargetArgs { unit: Some(unit), .. } => Source::Running(Target::Unit(unit.clone())),
        args::TargetArgs { cgroup: Some(path), .. } => Source::Running(Target::Cgroup(path.clone())),
        args::TargetArgs { comm: Some(comm), .. } => Source::Running(Target::Comm(comm.clone())),
        args::TargetArgs { command, .. } => Source::Started(command.clone()),
    }
}

/// A window that can be observed.
///
/// # Errors
/// It is too short or too long.
pub fn check_length(length: Duration) -> Result<()> {
    if length < SHORTEST || length > LONGEST {
        bail!("--for must be between {SHORTEST:?} and {LONGEST:?}");
    }
    Ok(())
}

/// Whether this is a container with process numbers of its own. Probes go by the kernel's: there they would take a target for ended,
/// or a stranger for it.
pub fn has_own_pids() -> bool {
    std::fs::read_link("/proc/self/ns/pid").is_ok_and(|namespace| is_own(&namespace))
}

fn is_own(namespace: &Path) -> bool {
    namespace != Path::new(FIRST_PIDS)
}

/// Without these no probe loads; whether the target needs more is known once it is found.
///
/// # Errors
/// A capability is missing, or processes have other numbers here than in the kernel.
pub fn check_privileges() -> Result<()> {
    if has_own_pids() {
        bail!(
            "this container has process numbers of its own, by which the kernel's probes cannot find a service; run wakewalk on \
             the host, or in a container with the host's process namespace (--pid=host, in a pod hostPID: true), or replay a \
             recording with --from DIR"
        );
    }
    let missing = privileges::missing(&PROBES);
    if missing.is_empty() {
        return Ok(());
    }
    let others = match &privileges::missing(&OTHERS)[..] {
        [] => String::new(),
        more => format!("; for a service of another user also {}", privileges::names(more)),
    };
    bail!(
        "observing a service needs privileges that this user does not have ({}{others}); run it with sudo, or replay a \
         recording with --from DIR, which needs none",
        privileges::names(&missing)
    );
}

/// Whether we may look into the processes that were found.
///
/// # Errors
/// A capability is missing; the sentence names it.
pub fn check_target(target: &Resolved) -> Result<()> {
    let missing = privileges::missing_for(&Proc::new(Path::new("/")), &target.pids);
    if !missing.is_empty() {
        bail!(
            "{} ({}) may not be looked into by this user without {}; run wakewalk with sudo",
            target.named,
            target.comm.escape_debug(),
            privileges::names(&missing)
        );
    }
    Ok(())
}

/// A page that can be written.
///
/// # Errors
/// Its folder does not exist.
pub fn check_html(file: &Path) -> Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if file.is_dir() || !folder.is_dir() {
        bail!("cannot write the page `{}`: name a file in a folder that exists", file.display());
    }
    Ok(())
}

/// Found out before the capture or the load, not after it.
///
/// # Errors
/// The folder holds something already, or cannot be made.
pub fn check_save(dir: &Path) -> Result<()> {
    if dir.join("meta.json").exists() {
        bail!("`{}` already holds a recording; name another folder for --save or remove it", dir.display());
    }
    if std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some()) {
        bail!("`{}` is not empty; name a new folder for --save", dir.display());
    }
    let cannot = || format!("`{}` cannot be written to; name another folder for --save", dir.display());
    if dir.is_dir() {
        return tempfile::tempfile_in(dir).map(drop).with_context(cannot);
    }
    ensure!(!dir.exists(), "`{}` is no folder; name another one for --save", dir.display());
    std::fs::create_dir_all(dir)
        .and_then(|()| std::fs::remove_dir(dir))
        .with_context(|| format!("`{}` cannot be made; name another folder for --save", dir.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_namespace_is_told_by_its_number() {
        assert!(!is_own(Path::new(FIRST_PIDS)) && is_own(Path::new("pid:[4026532817]")));
    }
}
