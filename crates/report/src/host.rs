// SPDX-License-Identifier: Apache-2.0
//! The look at the whole host: which resources are full, which processes lose most time, and the command that
//! looks into each. It accuses nobody: there is no verdict here, only where to look next.
//!
//! The JSON is a small object of its own, see [`Look`].

use std::io::{self, Write};

use anyhow::Context;
use diagnose::Case;
use diagnose::answer::{Gap, SCHEMA};
use diagnose::facts::host::{HostRank, Loser};
use diagnose::facts::resources::{self, Resources, UseRow};
use diagnose::phrases;
use recording::{Recording, tables};
use schemars::JsonSchema;
use serde::Serialize;

use crate::formats::terminal;
use crate::section::{Block, Column, Section, Terminal, Tone};
use crate::views::resources::{table, worth_a_line};
use crate::{numbers, printable};

/// Processes on a terminal; JSON has all.
const MOST_PROCESSES: usize = 10;

/// Draws the look, no line wider than `width` columns.
///
/// # Errors
/// When `out` cannot be written.
pub fn draw(recording: &Recording, width: usize, out: &mut impl Write) -> io::Result<()> {
    terminal::sections(&sections(recording), width, out)
}

/// The look as pretty-printed JSON with a newline at the end.
///
/// # Errors
/// When it cannot be expressed as JSON.
pub fn json(recording: &Recording) -> anyhow::Result<String> {
    let json =
        serde_json::to_string_pretty(&look(recording)).context("failed to write the look at the host as JSON")?;
    Ok(printable::json(&json) + "\n")
}

/// What `wakewalk --json` prints.
#[derive(Serialize, JsonSchema)]
pub struct Look {
    /// Version of this contract.
    schema: u32,
    /// Always `host`.
    kind: &'static str,
    /// Name and version of the program that watched.
    tool: String,
    /// Host name.
    host: String,
    /// Kernel release.
    kernel: String,
    /// Online CPUs.
    cpus: u32,
    /// Start of the look, RFC 3339, UTC.
    start: String,
    /// Its length.
    seconds: f64,
    /// The USE table.
    resources: Vec<Resource>,
    /// Processes by lost time, most first.
    processes: Vec<Process>,
    /// What could not be seen.
    gaps: Vec<Gap>,
}

/// A resource; what was not read is null, which is not zero.
#[derive(Serialize, JsonSchema)]
struct Resource {
    /// `CPU`, `memory`, a disk or an interface by its name.
    resource: String,
    /// Share in use, 0 to 1.
    utilization: Option<Amount>,
    /// How much work waited.
    saturation: Option<Amount>,
    /// How much failed.
    errors: Option<Amount>,
    /// A sentence; may be empty.
    note: String,
}

/// A number and what it means.
#[derive(Serialize, JsonSchema)]
struct Amount {
    /// A share is 0 to 1; what else it is, `meaning` says.
    value: f64,
    /// In words, with the unit.
    meaning: String,
}

/// A process and the time that it lost.
#[derive(Serialize, JsonSchema)]
struct Process {
    /// 0 = short-lived processes of this name together.
    pid: u32,
    /// Command name.
    comm: String,
    /// On a CPU.
    cpu_seconds: f64,
    /// Runnable without a CPU.
    run_queue_seconds: f64,
    /// Held by a CPU quota.
    throttled_seconds: f64,
    /// Blocked, most of it idle; not counted as lost.
    waiting_seconds: f64,
    /// Blocked on the disk or on page faults, where that was seen.
    disk_seconds: f64,
    /// The command that diagnoses it.
    command: String,
}

fn look(recording: &Recording) -> Look {
    let case = Case::new(recording);
    let meta = &recording.meta;
    let mut gaps: Vec<Gap> = recording.rows::<tables::Gap>().iter().map(Gap::from).collect();
    let (resources, processes) = (case.fact::<Resources>(), case.fact::<HostRank>());
    gaps.extend(resources.as_ref().err().cloned());
    gaps.extend(processes.as_ref().err().cloned());
    Look {
        schema: SCHEMA,
        kind: "host",
        tool: meta.tool.clone(),
        host: meta.host.name.clone(),
        kernel: meta.host.kernel.clone(),
        cpus: meta.host.cpus,
        start: meta.started.clone(),
        seconds: case.seconds(),
        resources: resources.map_or_else(
            |_| Vec::new(),
            |r| r.rows.iter().filter(|row| !is_of_target(row)).map(Resource::from).collect(),
        ),
        processes: processes.map_or_else(|_| Vec::new(), |r| r.processes.iter().map(Process::from).collect()),
        gaps,
    }
}

impl From<&UseRow> for Resource {
    fn from(row: &UseRow) -> Self {
        use phrases::resources::{errors, name, note, saturation, utilization};
        let amount = |(value, meaning)| Amount { value, meaning };
        Self {
            resource: name(&row.resource),
            utilization: row.utilization.zip(utilization(row)).map(amount),
            saturation: row.saturation.zip(saturation(row)).map(amount),
            errors: row.errors.zip(errors(row)).map(amount),
            note: note(row),
        }
    }
}

impl From<&Loser> for Process {
    fn from(p: &Loser) -> Self {
        Self {
            pid: p.pid,
            comm: p.comm.clone(),
            cpu_seconds: p.cpu_ns / 1e9,
            run_queue_seconds: p.waiting_for_cpu_ns / 1e9,
            throttled_seconds: p.throttled_ns / 1e9,
            waiting_seconds: p.blocked_ns / 1e9,
            disk_seconds: p.disk_ns / 1e9,
            command: phrases::host::command(p),
        }
    }
}

fn sections(recording: &Recording) -> Vec<Section> {
    let case = Case::new(recording);
    let look = look(recording);
    let section = |id, title: String, blocks| Section::new(id, title, blocks, Terminal::All);
    let cpus = if look.cpus == 1 { "1 CPU".to_owned() } else { format!("{} CPUs", look.cpus) };
    let context = format!("Linux {}, {cpus}, {} from {}", look.kernel, numbers::seconds(look.seconds), look.start);
    let title = if look.host.is_empty() { "The host".to_owned() } else { format!("Host {}", look.host) };
    let mut blocks = vec![Block::Text { text: context, tone: Tone::Dim }];
    if let Ok(all) = case.fact::<Resources>() {
        let rows: Vec<&UseRow> = all.rows.iter().filter(|r| worth_a_line(r) && !is_of_target(r)).collect();
        blocks.push(table("", &rows, false));
    }
    let mut sections = vec![
        section("use", title, blocks),
        section("processes", "Processes that lose most time".to_owned(), processes(&look.processes)),
    ];
    if !look.gaps.is_empty() {
        let items = look.gaps.iter().map(|gap| format!("{}: {}", gap.what, gap.why)).collect();
        sections.push(section("gaps", "Not seen".to_owned(), vec![Block::List { items }]));
    }
    sections
}

/// The CPUs that “the target” may use: here there is no target, and the row would repeat the one of all CPUs.
fn is_of_target(row: &UseRow) -> bool {
    matches!(row.resource, resources::Resource::Allowed(_))
}

fn processes(all: &[Process]) -> Vec<Block> {
    if all.is_empty() {
        let text = "No process used or wanted a CPU.".to_owned();
        return vec![Block::Text { text, tone: Tone::Plain }];
    }
    let row = |p: &Process| {
        let times = [p.cpu_seconds, p.run_queue_seconds, p.throttled_seconds, p.waiting_seconds];
        let [cpu, queue, quota, waiting] = times.map(numbers::seconds);
        let command = p.command.strip_prefix("sudo ").unwrap_or(&p.command);
        vec![short(&p.comm), cpu, queue, quota, waiting, command.to_string()]
    };
    let mut columns = vec![Column::left("process")];
    columns.extend(["CPU", "queue", "quota", "waiting"].map(Column::right));
    columns.push(Column::left("look into it with"));
    let mut rows: Vec<Vec<String>> = all.iter().take(MOST_PROCESSES).map(row).collect();
    let mut legend =
        "CPU: running; queue: ready to run, without a CPU; waiting: for anything else, idle included".to_owned();
    if all.iter().any(|p| p.throttled_seconds > 0.0) {
        legend.push_str("; quota: held by a CPU quota");
    } else {
        columns.remove(3);
        rows.iter_mut().for_each(|cells| drop(cells.remove(3)));
    }
    let mut blocks =
        vec![Block::Table { title: String::new(), columns, rows }, Block::Text { text: legend + ".", tone: Tone::Dim }];
    if let Some(first) = all.iter().find(|p| !p.command.is_empty()) {
        blocks.push(Block::Text { text: format!("Begin with {}:", first.comm), tone: Tone::Plain });
        blocks.push(Block::Command { text: first.command.clone() });
    }
    blocks
}

/// The kernel's own command names have at most 15 characters; what `/proc` adds to a worker's name would only make the
/// command beside it wrap.
fn short(comm: &str) -> String {
    comm.chars().take(15).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    const HOST: &str = "meta host.arch=x86_64 kind=host host.name=web-1 host.kernel=\"6.1\" host.cpus=2
        process pid=7 comm=spinner
        thread pid=7 comm=spinner instances=1 wall_ns=10e9 cpu_ns=9e9 run_queue_ns=1e9
        thread pid=8 comm=\"a\\u001b[2Jb\" instances=4 wall_ns=40e9 cpu_ns=2e9 throttled_ns=3e9
        thread pid=9 comm=idle wall_ns=10e9 blocked_ns=10e9
        counter t_ns=0 source=proc/stat entity=cpu0 name=user_ns value=0
        counter t_ns=0 source=proc/stat entity=cpu0 name=idle_ns value=0
        counter t_ns=10e9 source=proc/stat entity=cpu0 name=user_ns value=9e9
        counter t_ns=10e9 source=proc/stat entity=cpu0 name=idle_ns value=1e9
        gap what=process why=\"2 ended\"";

    fn drawn(text: &str, width: usize) -> String {
        let mut out = Vec::new();
        draw(&parse(text).unwrap(), width, &mut out).unwrap();
        anstyle_free(&String::from_utf8(out).unwrap())
    }

    /// Without styles.
    fn anstyle_free(text: &str) -> String {
        let mut parts = text.split('\u{1b}');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |all, part| all + part.split_once('m').map_or("", |(_, rest)| rest))
    }

    #[test]
    fn who_loses_most_comes_first_with_the_command() {
        let text = drawn(HOST, 80);
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what} is not in\n{text}"));
        assert!(at("CPUs (2)") < at("spinner") && at("spinner") < at("a\\x1b[2Jb"));
        assert!(at("9.00 s  1.00 s     0 s      0 s  wakewalk diagnose --pid 7") > 0);
        assert!(!text.contains("--pid 9") && text.contains("2 ended"), "{text}");
        assert!(text.lines().all(|line| textwrap::core::display_width(line) <= 80));
    }

    #[test]
    fn json_has_the_same_numbers() {
        let text = json(&parse(HOST).unwrap()).unwrap();
        assert!(!text.contains('\u{1b}'));
        let look: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&look["schema"], &look["kind"], &look["seconds"]), (&SCHEMA.into(), &"host".into(), &10.0.into()));
        assert_eq!(look["processes"][0]["run_queue_seconds"], 1.0);
        assert_eq!(look["processes"][1]["throttled_seconds"], 3.0);
        assert_eq!(look["processes"][0]["command"], "sudo wakewalk diagnose --pid 7");
        assert_eq!(look["resources"][0]["utilization"]["value"], 0.9);
        assert!(look["resources"][0]["errors"].is_null());
    }

    #[test]
    fn an_empty_look_says_so() {
        assert!(drawn("meta kind=host", 80).contains("No process used or wanted a CPU"));
        let look: serde_json::Value = serde_json::from_str(&json(&Recording::default()).unwrap()).unwrap();
        assert_eq!(look["gaps"].as_array().unwrap().len(), 2);
    }
}
