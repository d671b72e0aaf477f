// SPDX-License-Identifier: Apache-2.0
//! The visitors of a server: finding its limit, and coming at a share of it, by the lab's open-loop client.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::Load;
use super::animal::Visitors;
use crate::bench::client::{self, Answer, Ask};
use crate::cell::{Cell, Program};

/// Time for caches, pools and just-in-time compilers, and the time in which the limit is counted.
const WARM_SECONDS: f64 = 1.5;
const CALIBRATE_SECONDS: f64 = 2.0;
/// A load under which nine of ten answers take less than this is served well: each server here answers a lone visitor within
/// about a millisecond.
const WELL_NS: f64 = 10e6;
/// The load at which that is asked, as a share of the limit, for how long, and what is tried next.
const HIGH: f64 = 0.8;
const CHECK_SECONDS: f64 = 1.5;
const STEP: f64 = 0.85;
const MAX_STEPS: usize = 8;
/// Visitors of a server at idle: a health check, beside connections that nobody uses.
const IDLE_PER_SECOND: f64 = 1.0;
/// Before the diagnosis begins.
const LEAD: Duration = Duration::from_secs(1);
/// After which visitors leave even if nobody sends them away.
const MAX_SECONDS: f64 = 120.0;
/// How long they may take to leave.
const LEAVE_LIMIT: Duration = Duration::from_secs(20);

/// Visitors on their way.
pub struct Coming {
    pid: u32,
    diary: PathBuf,
}

/// What they saw.
pub struct Seen {
    /// Median of the time from the planned moment to the whole answer, ms; none = nobody came.
    pub p50_ms: Option<f64>,
    /// Likewise the 99th percentile.
    pub p99_ms: Option<f64>,
    /// Answers a second.
    pub per_second: f64,
}

/// What the server can do, answers a second: as many as a closed loop gets, unless an open one at the highest load that
/// visitors come with finds that too much to be served well.
pub fn limit(cell: &mut Cell, visitors: &Visitors) -> Result<f64> {
    serve(cell, visitors, 0.0, WARM_SECONDS)?;
    let mut limit = serve(cell, visitors, 0.0, CALIBRATE_SECONDS)?.len() as f64 / CALIBRATE_SECONDS;
    for _ in 0..MAX_STEPS {
        let answers = serve(cell, visitors, limit * HIGH, CHECK_SECONDS)?;
        let mut took: Vec<u32> = answers.iter().map(|answer| answer.took_ns).collect();
        let expected = limit * HIGH * CHECK_SECONDS;
        let slow = client::percentile(&mut took, 0.9).is_none_or(|ns| ns > WELL_NS);
        if !slow && took.len() as f64 > expected * 0.9 {
            break;
        }
        limit *= STEP;
    }
    Ok(limit)
}

/// Visitors at a rate, or as fast as they are served; their diary.
fn serve(cell: &mut Cell, visitors: &Visitors, rate: f64, seconds: f64) -> Result<Vec<Answer>> {
    let ask = ask(cell, visitors, rate, seconds)?;
    let pid = start(cell, &ask)?;
    cell.finish(pid, Duration::from_secs_f64(seconds) + LEAVE_LIMIT)?;
    client::read_diary(&ask.diary)
}

/// Starts them, and waits until they come steadily.
pub fn come(cell: &mut Cell, visitors: &Visitors, load: Load, limit: f64) -> Result<Coming> {
    let per_second = match load {
        Load::Idle => IDLE_PER_SECOND,
        // For who has a modest rate, 80 % is that rate.
        Load::Percent(percent) => visitors.modest.map_or(limit, |rate| rate / HIGH) * f64::from(percent) / 100.0,
    };
    let ask = ask(cell, visitors, per_second, MAX_SECONDS)?;
    let pid = start(cell, &ask)?;
    cell.stop.sleep(LEAD)?;
    Ok(Coming { pid, diary: ask.diary })
}

/// Sends them away and asks what they saw between two moments of CLOCK_MONOTONIC.
pub fn leave(cell: &mut Cell, coming: &Coming, from_ns: u64, until_ns: u64) -> Result<Seen> {
    kill(Pid::from_raw(coming.pid.cast_signed()), Signal::SIGTERM).context("the visitors are gone already")?;
    cell.finish(coming.pid, LEAVE_LIMIT)?;
    Ok(seen(&client::read_diary(&coming.diary)?, from_ns, until_ns))
}

fn seen(answers: &[Answer], from_ns: u64, until_ns: u64) -> Seen {
    let inside = answers.iter().filter(|answer| (from_ns..until_ns).contains(&answer.wanted_ns));
    let mut took: Vec<u32> = inside.map(|answer| answer.took_ns).collect();
    let mut ms = |share| client::percentile(&mut took, share).map(|ns| ns / 1e6);
    let (p50_ms, p99_ms) = (ms(0.5), ms(0.99));
    Seen { p50_ms, p99_ms, per_second: took.len() as f64 / (until_ns.saturating_sub(from_ns) as f64 / 1e9) }
}

fn ask(cell: &Cell, visitors: &Visitors, rate: f64, seconds: f64) -> Result<Ask> {
    let dir = cell.dir();
    let put = |name: String, bytes: &[u8]| -> Result<PathBuf> {
        let path = dir.join(name);
        std::fs::write(&path, bytes).with_context(|| format!("failed to write `{}`", path.display()))?;
        Ok(path)
    };
    let hello = visitors.hello.iter().enumerate().map(|(step, bytes)| put(format!("hello-{step}"), bytes));
    Ok(Ask {
        to: visitors.to.clone(),
        rate,
        connections: visitors.connections,
        seconds,
        hello: hello.collect::<Result<_>>()?,
        request: put("request".into(), &visitors.request)?,
        http: visitors.http,
        diary: dir.join("diary"),
    })
}

/// Visitors that come for as long as the cell is there, each again once it is answered: long polls.
pub fn stay(cell: &mut Cell, visitors: &Visitors) -> Result<()> {
    let ask = ask(cell, visitors, 0.0, 3600.0)?;
    // Files of their own: those of the others are written anew for each load.
    let request = ask.request.with_file_name("request-of-those-who-stay");
    std::fs::rename(&ask.request, &request).context("failed to put a request aside")?;
    let ask = Ask { request, diary: ask.diary.with_file_name("diary-of-those-who-stay"), ..ask };
    start_as(cell, &ask, "long-visitors").map(drop)
}

fn start(cell: &mut Cell, ask: &Ask) -> Result<u32> {
    start_as(cell, ask, "visitors")
}

fn start_as(cell: &mut Cell, ask: &Ask, name: &str) -> Result<u32> {
    let me = env::current_exe().context("failed to find the lab's own binary")?;
    let program = Program::installed(&me.to_string_lossy()).named(name).args(client::command(ask));
    cell.start(program.in_group("load"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_wanted_in_between_counts() {
        let answer = |wanted_ns, took_ns| Answer { wanted_ns, took_ns, lag_ns: 0 };
        let answers = [answer(5, 9_000_000), answer(10, 2_000_000), answer(1_000_000_009, 1_000_000_000)];
        let seen = seen(&answers, 10, 1_000_000_010);
        assert_eq!((seen.p50_ms, seen.p99_ms, seen.per_second), (Some(2.0), Some(1000.0), 2.0));
        assert_eq!(super::seen(&[], 0, 1).p50_ms, None);
    }
}
