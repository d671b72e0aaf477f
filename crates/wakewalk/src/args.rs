// SPDX-License-Identifier: Apache-2.0
//! What was typed. Nothing here touches the system; `plan` turns it into what will be done.

#[path = "args/bisect.rs"]
pub mod bisect;
#[path = "args/load.rs"]
pub mod load;
#[path = "args/message.rs"]
pub mod message;
#[path = "args/serve.rs"]
pub mod serve;

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Finds out why a networked service on Linux is slow or burns CPU, and proves it.
///
/// Without a command: watches the whole host for a few seconds and says which processes lose most time, with the
/// diagnose line for each.
#[derive(Debug, Parser)]
#[command(name = "wakewalk", version, max_term_width = 100, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// What to do; nothing = watch the host.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The look at the host.
    #[command(flatten)]
    pub host: Host,
}

/// Commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Observe one service for a while and say where its time goes, and why.
    Diagnose(Diagnose),
    /// Compare two recordings, or two parts of one: what changed, by how much, and what else did.
    Diff(Diff),
    /// Load a service by a plan that does not wait for answers, and say what the numbers are worth.
    Load(load::Load),
    /// Tell hop by hop who has the time of requests, from one run; or load a service beside itself with one hop replaced.
    Bisect(bisect::Bisect),
    /// Say what this kernel allows, and what each missing facility costs.
    Doctor(Doctor),
    /// Explain a cause: what it means, how it is recognised, what to do, what looks like it.
    Explain(Explain),
    /// Waits for a byte on standard input, then becomes COMMAND (how `diagnose -- COMMAND` starts it).
    #[command(hide = true)]
    Await(Await),
}

/// `wakewalk`
#[derive(Debug, Args)]
pub struct Host {
    /// How long to watch.
    #[arg(long = "for", value_name = "TIME", default_value = "5s", value_parser = length)]
    pub length: Duration,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `wakewalk diagnose`
#[derive(Debug, Args)]
pub struct Diagnose {
    /// The service.
    #[command(flatten)]
    pub target: TargetArgs,
    /// How long to observe, such as 10s or 1m; 1s to 1h.
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = length)]
    pub length: Duration,
    /// Print the verdict as JSON.
    #[arg(long)]
    pub json: bool,
    /// Show all tables on the terminal: threads, functions, system calls, resources.
    #[arg(long, conflicts_with = "json")]
    pub full: bool,
    /// Also write the report as one self-contained page.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Keep the recording in this new or empty folder, to be replayed with --from.
    #[arg(long, value_name = "DIR", conflicts_with = "from")]
    pub save: Option<PathBuf>,
    /// Only this part of the recording, such as 20s..30s or 10s.. .
    #[arg(long, value_name = "FROM..TO", value_parser = part,
        conflicts_with_all = ["pid", "port", "unit", "cgroup", "comm", "command"])]
    pub at: Option<Part>,
    /// Also give the verdict of each part of this length, such as 10s: when it began, and when it was over; 500 parts at most.
    #[arg(long, value_name = "TIME", value_parser = length,
        conflicts_with_all = ["pid", "port", "unit", "cgroup", "comm", "command"])]
    pub every: Option<Duration>,
    /// Also compare with this recording of the same service: what has changed since.
    #[arg(long, value_name = "DIR")]
    pub baseline: Option<PathBuf>,
    /// The response time that is promised, such as 50ms: the verdict says how many answers take longer, and calls no service
    /// healthy of which more than one in a hundred does.
    #[arg(long, value_name = "TIME", value_parser = promise)]
    pub slo: Option<Duration>,
    /// Label requests by their first bytes, to show which are slow: HTTP/1 method and path (without query and ids), Redis
    /// command, SQL verb and table. No other byte is kept; TLS and other protocols have no labels.
    #[arg(long, conflicts_with = "from")]
    pub requests: bool,
    /// When to count system calls; each count taxes all processes for 30 ms.
    #[arg(long, value_enum, default_value_t = Counting::Auto, value_name = "WHEN")]
    pub calls: Counting,
}

/// Exactly one of these.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct TargetArgs {
    /// A process, with its children as they come and go.
    #[arg(long, value_parser = pid)]
    pub pid: Option<u32>,
    /// Whoever listens on this port, in any network namespace.
    #[arg(long, value_parser = port)]
    pub port: Option<u16>,
    /// A unit of the service manager, such as nginx.service.
    #[arg(long)]
    pub unit: Option<String>,
    /// A cgroup: a folder below the cgroup mount, or a path as in /proc/PID/cgroup.
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<PathBuf>,
    /// Processes of this command name.
    #[arg(long, value_name = "NAME")]
    pub comm: Option<String>,
    /// Replay a saved recording: needs no privilege, works on any machine.
    #[arg(long, value_name = "DIR")]
    pub from: Option<PathBuf>,
    /// Start this command and observe it; its output goes to standard error, and when the time is up it is ended (SIGTERM,
    /// two seconds later SIGKILL).
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// A process id.
fn pid(text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|pid| *pid > 0).ok_or_else(|| {
        "a process id is a number such as 4242; `ps -e` lists them. A service can also be named by \
         --comm NAME, --port PORT or --unit UNIT"
            .to_string()
    })
}

/// A port.
fn port(text: &str) -> Result<u16, String> {
    text.parse().ok().filter(|port| *port > 0).ok_or_else(|| {
        "a port is a number from 1 to 65535, such as 8080; `ss -ltnp` lists those that are listened on".to_string()
    })
}

/// `wakewalk diff`
#[derive(Debug, Args)]
pub struct Diff {
    /// The recording before.
    #[arg(value_name = "A")]
    pub before: PathBuf,
    /// The recording after; without it, two parts of A are compared (--a and --b).
    #[arg(value_name = "B", required_unless_present_all = ["a", "b"])]
    pub after: Option<PathBuf>,
    /// Only this part of the side before, such as 0s..5s or 10s.. .
    #[arg(long, value_name = "FROM..TO", value_parser = part)]
    pub a: Option<Part>,
    /// Only this part of the side after.
    #[arg(long, value_name = "FROM..TO", value_parser = part)]
    pub b: Option<Part>,
    /// What costs are counted per.
    #[arg(long, value_enum, default_value_t = Per::Auto, value_name = "OPERATION")]
    pub per: Per,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Also write the report as one self-contained page, with a differential flame graph.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// What costs are counted per.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Per {
    /// The count of work that is closest to the service, unless others contradict it; else a second.
    Auto,
    /// Answers to clients on the service's own TCP connections.
    Answers,
    /// Write calls of the service's processes.
    WriteCalls,
    /// TCP segments with data, sent in its network namespace.
    DataSegments,
    /// TCP connections accepted in its network namespace.
    Connections,
    /// UDP datagrams sent in its network namespace.
    Datagrams,
    /// Time.
    Second,
}

/// A part of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// From.
    pub from: Duration,
    /// Up to; none = to the end.
    pub to: Option<Duration>,
}

/// `FROM..TO`, where either may be missing.
fn part(text: &str) -> Result<Part, String> {
    let (from, to) = text.split_once("..").ok_or("write it as FROM..TO, such as 0s..5s")?;
    let time = |text: &str| length(text).map_err(|e| format!("`{text}` is no time: {e}"));
    let from = if from.is_empty() { Duration::ZERO } else { time(from)? };
    let to = if to.is_empty() { None } else { Some(time(to)?) };
    if to.is_some_and(|to| to <= from) {
        return Err("it must end after it begins".into());
    }
    Ok(Part { from, to })
}

/// A length of time; a bare number means seconds.
fn length(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => humantime::parse_duration(text).map_err(|_| "a length of time is such as 10s, 1m or 30".to_string()),
    }
}

/// A response time: in milliseconds for most, in seconds for some, so that a bare number would be misread.
fn promise(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(_) => Err(format!("a response time has a unit: {text}ms, or {text}s")),
        Err(_) => humantime::parse_duration(text).map_err(|_| "a response time is such as 50ms or 2s".to_string()),
    }
}

/// When to count system calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Counting {
    /// If the samples call for it.
    Auto,
    /// In any case.
    Always,
    /// Never.
    Never,
}

/// `wakewalk doctor`
#[derive(Debug, Args)]
pub struct Doctor {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `wakewalk explain`
#[derive(Debug, Args)]
pub struct Explain {
    /// Cause id, as in a verdict, or `words` for what its words mean; without it all causes are listed.
    #[arg(value_parser = explained())]
    pub cause: Option<String>,
}

/// All that can be explained: whoever mistypes one is told the nearest.
fn explained() -> PossibleValuesParser {
    PossibleValuesParser::new(diagnose::causes().into_iter().chain(["words"]))
}

/// `wakewalk await`
#[derive(Debug, Args)]
pub struct Await {
    /// Program and arguments.
    #[arg(last = true, required = true)]
    pub command: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_declaration_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn parts_of_a_recording() {
        let seconds = |from, to: Option<u64>| Part { from: Duration::from_secs(from), to: to.map(Duration::from_secs) };
        assert_eq!(part("0s..5s"), Ok(seconds(0, Some(5))));
        assert_eq!((part("10.."), part("..1m")), (Ok(seconds(10, None)), Ok(seconds(0, Some(60)))));
        for wrong in ["5s", "5s..2s", "x..3s", "3s..3s"] {
            assert!(part(wrong).is_err(), "{wrong}");
        }
        let parse = |args: &str| Cli::try_parse_from(args.split(' ')).is_ok();
        assert!(parse("wakewalk diff x y") && parse("wakewalk diff x --a 0s..5s --b 5s..10s"));
        assert!(!parse("wakewalk diff x") && !parse("wakewalk diff x --a 0s..5s") && !parse("wakewalk diff"));
    }

    #[test]
    fn targets_exclude_each_other_and_one_is_needed() {
        let parse = |args: &str| Cli::try_parse_from(args.split(' ')).is_ok();
        assert!(parse("wakewalk diagnose --pid 1") && parse("wakewalk diagnose -- sleep 1") && parse("wakewalk"));
        assert!(!parse("wakewalk diagnose") && !parse("wakewalk diagnose --pid 1 --port 80"));
        assert!(!parse("wakewalk diagnose --from d --save e"));
    }
}
