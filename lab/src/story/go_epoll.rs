// SPDX-License-Identifier: Apache-2.0
//! Story 002: the streaming service that used the same CPU whatever its number of viewers.

mod judged;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use diagnose::verdict::{Finding, Verdict};
use load::CpuLine;

use super::measure::{Reading, Streams, measure};
use super::{Teller, make_parent};
use crate::builds;
use crate::cell::Cell;
use crate::paths::Paths;
use crate::probe::{self, Probe};
use crate::scenario::Aim;
use crate::scenarios::busy_poll::{BUILDS, serve, watch};
use crate::score::aligned;
use crate::stop::Stop;

const VIEWERS: [usize; 4] = [0, 4, 16, 32];
/// Viewers while wakewalk looks.
const USUAL: usize = 4;

/// Tells the story and returns what was printed.
pub fn tell(paths: &Paths, stop: &Stop) -> Result<String> {
    builds::build(BUILDS, paths)?;
    let mut teller = Teller(String::new());
    let mut cell = Cell::open("story-002", paths, stop)?;

    teller.say("1. The symptom: CPU does not follow the number of viewers");
    let pid = serve(&mut cell, "eager")?;
    let before = sweep(&mut cell, pid)?;
    teller.say(symptom_table(&before));
    teller.say(format!("CPU as a line over the number of viewers: {}", line(&before)));

    teller.say(format!("2. The diagnosis: wakewalk diagnose --pid {pid} --for 10s"));
    let recording = paths.recording("story-002");
    let verdict = diagnose(&mut cell, pid, &recording, paths)?;
    teller.say(finding_table(&verdict));
    teller.say(probe::replay_as_text(paths, &recording)?);
    drop(cell);

    teller.say(
        "3. The fix, twice: a floor of 1 ms (-poll=floor), and waiting until the next chunk is due (-poll=deadline)",
    );
    let rows = fix(before, paths, stop)?;
    teller.say(comparison_table(&rows));
    let lines: Vec<String> = rows.iter().map(|(poll, readings)| format!("{poll}: {}", line(readings))).collect();
    teller.say(format!("CPU as a line over the number of viewers:\n  {}", lines.join("\n  ")));

    teller.say("4. The judgement: wakewalk diff, before and after each fix, under the same load");
    judged::tell(&mut teller, &recording, paths)?;
    Ok(teller.0)
}

/// Readings before and with each fix, which is recorded too.
fn fix(before: Vec<Reading>, paths: &Paths, stop: &Stop) -> Result<Vec<(&'static str, Vec<Reading>)>> {
    let mut rows = vec![("before", before)];
    for poll in FIXES {
        let mut cell = Cell::open(&format!("story-002-{poll}"), paths, stop)?;
        let pid = serve(&mut cell, poll)?;
        rows.push((poll, sweep(&mut cell, pid)?));
        diagnose(&mut cell, pid, &fixed(paths, poll), paths)?;
    }
    Ok(rows)
}

/// The fixes, as the service's option calls them.
const FIXES: [&str; 2] = ["floor", "deadline"];

/// Where the recording of a fixed service goes.
fn fixed(paths: &Paths, poll: &str) -> PathBuf {
    paths.recording(&format!("story-002-{poll}"))
}

/// Diagnoses the service under load for everybody to see, and writes the page.
///
/// # Errors
/// A step failed; the sentence says which.
pub fn demo(html: &Path, paths: &Paths, stop: &Stop) -> Result<()> {
    builds::build(BUILDS, paths)?;
    make_parent(html)?;
    let mut cell = Cell::open("demo", paths, stop)?;
    println!("Starting a streaming service with {USUAL} viewers (stories/002-go-epoll) ...");
    let pid = serve(&mut cell, "eager")?;
    watch(&mut cell, USUAL, Duration::from_secs(120))?;
    stop.sleep(Duration::from_secs(1))?;
    println!("$ wakewalk diagnose --pid {pid} --for 10s --html {}\n", html.display());
    let mut wakewalk = Command::new(&paths.wakewalk);
    wakewalk.args(["diagnose", "--pid", &pid.to_string(), "--for", "10s", "--html"]).arg(html);
    let status = wakewalk.status().with_context(|| format!("failed to run `{}`", paths.wakewalk.display()))?;
    if !status.success() {
        bail!("wakewalk could not diagnose ({status}); `{} doctor` says why", paths.wakewalk.display());
    }
    println!("\nThe page: {}", html.canonicalize().unwrap_or_else(|_| html.to_path_buf()).display());
    Ok(())
}

fn sweep(cell: &mut Cell, pid: u32) -> Result<Vec<Reading>> {
    VIEWERS.iter().map(|&viewers| measure(cell, pid, viewers)).collect()
}

fn diagnose(cell: &mut Cell, pid: u32, recording: &Path, paths: &Paths) -> Result<Verdict> {
    watch(cell, USUAL, Duration::from_secs(120))?;
    let stop = cell.stop.clone();
    stop.sleep(Duration::from_secs(1))?;
    let group = cell.group("observer")?.path().to_path_buf();
    let probe = Probe { paths, stop: &stop, seconds: 10, save: Some(recording.to_path_buf()), group };
    // Counted also where nothing is suspicious any more, for the comparison.
    probe.diagnose_with(&Aim::Pid(pid), &["--calls", "always"])
}

fn symptom_table(readings: &[Reading]) -> String {
    let mut lines = vec![["viewers", "CPU %", "polls/s", "chunks/s delivered"].map(String::from)];
    for r in readings {
        lines.push([
            r.viewers.to_string(),
            format!("{:.0}", r.cpu_pct),
            format!("{:.0}", r.polls_per_second),
            stream(r, |s| format!("{:.0}", s.chunks_per_second)),
        ]);
    }
    aligned(&lines)
}

/// The points that the engineers had to find by hand.
fn finding_table(verdict: &Verdict) -> String {
    let Some(finding) = verdict.findings.first() else { return format!("verdict     {}", verdict.verdict) };
    let subject = &finding.subject;
    let thread = format!("{} (tid {})", or_dash(&subject.comm), subject.tid.map_or("-".into(), |t| t.to_string()));
    let wasted = &finding.explains;
    let empty = finding.evidence.iter().find(|e| e.fact.contains("empty at once"));
    let lines = [
        ["verdict".into(), format!("{}, confidence {}", finding.cause, finding.confidence)],
        ["thread".into(), thread],
        ["call".into(), or_dash(&subject.syscall)],
        ["came back with nothing".into(), empty.map_or("-".into(), |e| format!("{:.3} {}", e.value, e.unit))],
        ["CPU wasted".into(), format!("{:.0} % of {}, {:.1} s", wasted.share * 100.0, wasted.of, wasted.seconds)],
        ["called by".into(), caller(finding)],
    ];
    aligned(&lines)
}

fn caller(finding: &Finding) -> String {
    let stack = finding.chain.iter().find(|link| !link.stack.is_empty()).map(|link| link.stack.join(" < "));
    stack.unwrap_or(or_dash(&finding.subject.function))
}

fn comparison_table(rows: &[(&str, Vec<Reading>)]) -> String {
    let head = ["-poll", "viewers", "CPU %", "polls per read", "chunks/s", "jitter p50 ms", "p99 ms"];
    let mut lines = vec![head.map(String::from)];
    for (label, readings) in rows {
        lines.extend(readings.iter().map(|r| {
            [
                (*label).to_string(),
                r.viewers.to_string(),
                format!("{:.1}", r.cpu_pct),
                r.polls_per_read.map_or("-".into(), |p| format!("{p:.1}")),
                stream(r, |s| format!("{:.0}", s.chunks_per_second)),
                stream(r, |s| format!("{:.2}", s.jitter_p50_ms)),
                stream(r, |s| format!("{:.2}", s.jitter_p99_ms)),
            ]
        }));
    }
    aligned(&lines)
}

/// What it takes without a viewer, and for each: CPU that follows the load has little of the former.
fn line(readings: &[Reading]) -> String {
    let points: Vec<(f64, f64)> = readings.iter().map(|r| (r.viewers as f64, r.cpu_pct)).collect();
    let line = CpuLine::through(&points);
    line.map_or("-".into(), |line| {
        format!("a floor of {:.1} %, and {:.2} % for each", line.floor, line.seconds_per_request)
    })
}

fn stream(reading: &Reading, show: impl Fn(&Streams) -> String) -> String {
    reading.streams.as_ref().map_or("-".into(), show)
}

fn or_dash(text: &Option<String>) -> String {
    text.clone().unwrap_or("-".into())
}
