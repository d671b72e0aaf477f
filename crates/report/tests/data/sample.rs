// SPDX-License-Identifier: Apache-2.0
//! Sample verdicts and sections, for the tests and for the example that writes sample reports.

use diagnose::Case;
use diagnose::verdict::Verdict;
use recording::Recording;
use wakewalk_report::flame::{Frame, LEGEND};
use wakewalk_report::section::{Block, Column, FlameNode, Line, Section, Terminal};
use wakewalk_report::views::Material;

#[path = "requests.rs"]
mod requests;

const STACKS: &str = include_str!("busy-poll.stacks");

/// Names that a hostile process may have: markup, the end of a script, terminal escapes, direction marks.
const HOSTILE: &[&str] =
    &["<script>alert(1)</script>", "\u{1b}[2J", "\"><img src=x onerror=alert(2)>", "</script><!--", "a\u{202e}b"];

/// A report before it is drawn.
pub struct Sample {
    pub name: &'static str,
    pub verdict: Verdict,
    pub sections: Vec<Section>,
}

/// The busy-poll story, a healthy service, a service whose requests were followed, and targets that try to break out of the
/// report by their names.
pub fn samples() -> anyhow::Result<Vec<Sample>> {
    let busy: Verdict = serde_json::from_str(include_str!("busy-poll.json"))?;
    let healthy: Verdict = serde_json::from_str(include_str!("healthy.json"))?;
    let hostile = hostile(&busy);
    Ok(vec![
        sample("busy-poll", busy, facts(&[])),
        sample("healthy", healthy, Vec::new()),
        sample("hostile", hostile, facts(HOSTILE)),
        recorded("requests", "shop")?,
        recorded("requests-hostile", r#""\u001b[2J<script>alert(1)</script>\u202e""#)?,
    ])
}

/// All of it from a recording: the verdict too.
fn recorded(name: &'static str, target: &str) -> anyhow::Result<Sample> {
    let recording = requests::recorded(target)?;
    let verdict = diagnose::diagnose(&recording);
    let sections = wakewalk_report::verdict::sections(&Material::new(&verdict, &Case::new(&recording)), None);
    Ok(Sample { name, verdict, sections })
}

fn sample(name: &'static str, verdict: Verdict, facts: Vec<Section>) -> Sample {
    let recording = Recording::default();
    let mut sections = wakewalk_report::verdict::sections(&Material::new(&verdict, &Case::new(&recording)), None);
    let after_evidence = sections.len().min(2);
    sections.splice(after_evidence..after_evidence, facts);
    Sample { name, verdict, sections }
}

/// The verdict with hostile words in every place that the target has a say in.
fn hostile(verdict: &Verdict) -> Verdict {
    let words = HOSTILE.join(" ");
    let mut verdict = verdict.clone();
    verdict.headline = format!("Thread {words} spins");
    verdict.advice.clone_from(&words);
    verdict.detail.clone_from(&words);
    verdict.target.comm.clone_from(&words);
    verdict.target.named.clone_from(&words);
    verdict.host.name.clone_from(&words);
    verdict.ruled_out[0].why.clone_from(&words);
    verdict.gaps[0].what.clone_from(&words);
    verdict.findings[0].evidence[0].fact.clone_from(&words);
    verdict.findings[0].evidence[0].see_yourself.clone_from(&words);
    verdict.ledger.threads.insert(format!("blocked_{words}"), 3.0);
    verdict
}

/// Sections such as views of facts make them, one block of each kind at least.
fn facts(names: &[&str]) -> Vec<Section> {
    let section = |id, title: &str, blocks| Section::new(id, title.to_owned(), blocks, Terminal::All);
    vec![
        section("profile", "On-CPU profile", vec![flame(names)]),
        section("calls", "System calls", calls(names)),
        section("use", "Utilization, saturation, errors", vec![resources()]),
        section("time", "Over time", vec![series(names, true), series(names, false)]),
    ]
}

fn flame(names: &[&str]) -> Block {
    let mut root = FlameNode::root("all on-CPU samples");
    for line in STACKS.lines().filter(|line| !line.starts_with('#')) {
        let (path, value) = line.rsplit_once(' ').unwrap_or((line, "0"));
        root.insert(path.split(';').map(frame), value.parse().unwrap_or_default());
    }
    let hostile = names.iter().map(|name| Frame { name, kind: "native", module: name });
    if !names.is_empty() {
        root.insert(hostile, 150.0);
        // A deep stack too narrow to see, under a frame that is wide enough to be zoomed into.
        let plain = |name| Frame { name, kind: "native", module: "" };
        root.insert([plain("rare_path")], 19.0);
        root.insert(["rare_path"].into_iter().chain(["deep"; 60]).map(plain), 1.0);
    }
    let [title, unit] = ["All threads, 99 samples a second", "samples"].map(str::to_owned);
    Block::Flame { title, unit, legend: LEGEND.to_owned(), root: root.finish() }
}

fn frame(text: &str) -> Frame<'_> {
    let (kind, rest) = text.split_once(':').unwrap_or(("unknown", text));
    let (name, module) = rest.rsplit_once('@').unwrap_or((rest, ""));
    Frame { name, kind, module }
}

fn table(title: &str, columns: Vec<Column>, rows: &[&[&str]]) -> Block {
    let rows = rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect();
    Block::Table { title: title.to_owned(), columns, rows }
}

fn calls(names: &[&str]) -> Vec<Block> {
    let left = Column::left;
    let right = Column::right;
    let thread = names.first().copied().unwrap_or("reactor");
    let columns = vec![left("thread"), left("call"), right("calls/s"), right("empty"), right("mean"), left("seen by")];
    let rows: &[&[&str]] = &[
        &[thread, "epoll_wait", "650,755", "99.94 %", "712 ns", "counted in 0.5 s"],
        &[thread, "recvfrom", "416", "0 %", "3.10 µs", "counted in 0.5 s"],
        &[thread, "sendto", "416", "0 %", "9.84 µs", "counted in 0.5 s"],
        &["streamd", "epoll_pwait", "11", "54.5 %", "1.02 µs", "counted in 0.5 s"],
        &["streamd", "futex", "38", "0 %", "2.21 µs", "sampled"],
    ];
    let histogram = |title: &str, buckets: &[(&str, f64)]| Block::Histogram {
        title: title.to_owned(),
        unit: "calls".to_owned(),
        buckets: buckets.iter().map(|(label, count)| ((*label).to_owned(), *count)).collect(),
    };
    vec![
        table("", columns, rows),
        histogram("epoll_wait by reactor: timeout", &[("0", 325_372.0), ("16 ms to 32 ms", 5.0), ("endless", 0.0)]),
        histogram("epoll_wait by reactor: result", &[("0", 325_182.0), ("1", 190.0), ("2 to 3", 5.0)]),
        Block::Command { text: "strace -f -p 4251".to_owned() },
    ]
}

fn resources() -> Block {
    let columns = ["resource", "utilization", "saturation", "errors"].map(Column::left).to_vec();
    table(
        "",
        columns,
        &[
            &["CPUs of the host (2)", "52.1 %", "0.02 threads runnable and waiting", ""],
            &["CPUs the target may use (2)", "47.0 %", "2.1 % run-queue wait", "0 throttled periods"],
            &["memory", "31.4 %", "PSI some 0 %", "0 OOM kills"],
            &["disk vda", "1.2 %", "0.01 requests queued", "0"],
            &["interface eth0", "3.4 Mbit/s", "0 bytes in the qdisc", "0 drops"],
            &["TCP", "", "0 retransmits of 8,320 segments", "0 resets"],
            &["file descriptors", "0.3 % of 20,000", "", "0 EMFILE"],
        ],
    )
}

fn series(names: &[&str], stacked: bool) -> Block {
    let x: Vec<f64> = (0..100).map(|i| f64::from(i) * 0.1).collect();
    let line = |label: &str, base: f64, swing: f64| {
        let value = |t: &f64| base + swing * (t * 1.7 + base).sin() * (t * 0.6).cos();
        Line { label: label.to_owned(), values: x.iter().map(value).collect() }
    };
    let lines = if stacked {
        vec![line("user", 0.23, 0.05), line("kernel", 0.66, 0.06)]
    } else {
        vec![line(names.get(1).unwrap_or(&"round trips"), 1515.0, 30.0), line("clients", 32.0, 4.0)]
    };
    let (title, unit) = if stacked { ("CPU of the target", "cores") } else { ("Load", "/s") };
    Block::Series { title: title.to_owned(), unit: unit.to_owned(), x: x.clone(), lines, stacked }
}
