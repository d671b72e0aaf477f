// SPDX-License-Identifier: Apache-2.0
//! A loop that polls millions of times a second is diagnosed, beside another that asks for its
//! parent: the two pay for every hook on system calls, the one as the target, the other as anybody.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use super::{LOAD_CPU, PEER_SECONDS, SECONDS, SERVICE_CPU};
use crate::bench::observed::{Observed, Observer, now_ns};
use crate::bench::peers::Peer;
use crate::bench::row::{Goal, Row};
use crate::bench::{Bench, Experiment, rounds, service, statistics};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::Aim;

/// The stretch without a diagnosis that one is compared with.
const ALONE_SECONDS: f64 = 4.0;

/// The experiment.
pub static EXPERIMENT: Experiment = Experiment {
    name: "busy-poll",
    about: "a loop of epoll_wait(0) is diagnosed for 10 s beside a loop of getppid",
    builds: &[Build::C("lab/bench/spin.c", "spin")],
    run,
};

#[derive(Clone, Copy)]
enum Side {
    Alone,
    Wakewalk,
    Peer(&'static Peer),
}

/// Calls a second of the two loops.
#[derive(Clone, Copy)]
struct Rates {
    target: f64,
    other: f64,
}

#[derive(Default)]
struct Slice {
    whole: Option<Rates>,
    /// From the capture's start to its first window.
    before: Option<Rates>,
    /// Inside the windows that count results, with one hook.
    inside: Option<Rates>,
    /// Inside all windows, those that take times have two hooks.
    windows: Option<Rates>,
    observed: Option<Observed>,
    refusal: Option<String>,
}

/// One of the two.
type Loop = fn(Rates) -> f64;

/// The loops' diaries: time and calls so far, ascending.
struct Diary(Vec<(u64, u64)>);

fn run(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let mut cell = Cell::open("bench-busy-poll", bench.paths, bench.stop)?;
    let loop_of = |call: &str, name: &str, cpus| {
        let diary = cell.dir().join(name).into_os_string();
        Program::built("spin").named(name).args([call.into(), diary]).on_cpus(cpus)
    };
    let (target, other) = (loop_of("epoll", "target", SERVICE_CPU), loop_of("getppid", "other", LOAD_CPU));
    let pid = cell.start(target)?;
    cell.start(other.in_group("load"))?;
    cell.stop.sleep(Duration::from_secs(1))?;
    let mut rows = wakewalk(bench, &mut cell, pid)?;
    let inside = inside_windows(&rows);
    rows.extend(others(bench, &mut cell, pid, inside)?);
    Ok(rows)
}

fn wakewalk(bench: &Bench<'_>, cell: &mut Cell, pid: u32) -> Result<Vec<Row>> {
    let sides = [Side::Alone, Side::Wakewalk];
    let done = rounds::measure(bench.rounds(), cell, &sides, |cell, side| slice(bench, cell, side, pid))?;
    let kept = |name: &str, when: fn(&Slice) -> Option<Rates>, of: Loop| {
        let pair = |round: &Vec<Slice>| Some((round[0].whole.map(of)? / 1e6, when(&round[1]).map(of)? / 1e6));
        Row::ratio(
            format!("busy poll: calls of {name}"),
            "M/s",
            &done.rounds.iter().filter_map(pair).collect::<Vec<_>>(),
        )
    };
    let goal = Goal::AtLeast(0.95);
    let (target, other): (Loop, Loop) = (|r| r.target, |r| r.other);
    let mut rows = vec![
        kept("the loop, before any window", |s| s.before, target).goal(goal),
        kept("another process, before any window", |s| s.before, other).goal(goal),
        kept("the loop, over the whole capture", |s| s.whole, target).goal(goal),
        kept("another process, over the whole capture", |s| s.whole, other).goal(goal),
        kept(LOOP_INSIDE, |s| s.inside, target),
        kept(OTHER_INSIDE, |s| s.inside, other),
    ];
    let told: Vec<(f64, f64)> = done.rounds.iter().filter_map(|round| told(&round[0], &round[1])).collect();
    rows.push(
        Row::ratio("busy poll: price of another process's call in a window, printed against measured", "ns", &told)
            .goal(Goal::WithinFactor(1.5)),
    );
    let seen: Vec<&Observed> = done.rounds.iter().filter_map(|round| round[1].observed.as_ref()).collect();
    rows.extend(service::own_cost("busy poll", &seen));
    Ok(rows.into_iter().map(|row| done.sign(row)).collect())
}

const LOOP_INSIDE: &str = "the loop, inside a window";
const OTHER_INSIDE: &str = "another process, inside a window";

/// What the two keep inside a window, to be set against bpftrace.
fn inside_windows(rows: &[Row]) -> (f64, f64) {
    let of = |name| rows.iter().find(|row| row.name.ends_with(name)).map_or(f64::NAN, |row| row.ratio);
    (of(LOOP_INSIDE), of(OTHER_INSIDE))
}

/// What a call of the other process takes longer inside a window, and what the verdict says of it, ns.
fn told(alone: &Slice, with: &Slice) -> Option<(f64, f64)> {
    let ns = |rates: Rates| 1e9 / rates.other;
    Some((ns(with.windows?) - ns(alone.whole?), with.observed.as_ref()?.window_price_ns()?))
}

fn others(bench: &Bench<'_>, cell: &mut Cell, pid: u32, inside: (f64, f64)) -> Result<Vec<Row>> {
    let sides: Vec<Side> = std::iter::once(Side::Alone).chain(bench.peers().iter().map(Side::Peer)).collect();
    let done = rounds::measure(bench.peer_rounds(), cell, &sides, |cell, side| slice(bench, cell, side, pid))?;
    let rates = |at: usize, of: Loop| -> Vec<(f64, f64)> {
        let pair = |round: &Vec<Slice>| Some((round[0].whole.map(of)? / 1e6, round[at].whole.map(of)? / 1e6));
        done.rounds.iter().filter_map(pair).collect()
    };
    let mut rows = Vec::new();
    for (at, peer) in bench.peers().iter().enumerate() {
        let name = format!("busy poll: calls of the loop, {}", peer.name);
        if let Some(why) = done.rounds.iter().find_map(|round| round[at + 1].refusal.as_deref()) {
            rows.push(Row::refused(name, why));
            continue;
        }
        let other = statistics::of_ratios(&rates(at + 1, |r| r.other)).map_or(f64::NAN, |e| e.centre);
        let mut note = format!("another process x{other:.3}");
        if peer.name.contains("call counts") {
            note += &format!("; wakewalk inside a window: loop x{:.3}, another process x{:.3}", inside.0, inside.1);
        }
        rows.push(done.sign(Row::ratio(name, "M/s", &rates(at + 1, |r| r.target))).note(note));
    }
    Ok(rows)
}

fn slice(bench: &Bench<'_>, cell: &Cell, side: Side, pid: u32) -> Result<Slice> {
    match side {
        Side::Alone => Ok(Slice { whole: Some(wait(cell, ALONE_SECONDS)?), ..Slice::default() }),
        Side::Wakewalk => {
            let target = Aim::Pid(pid).args();
            let observed =
                Observer::start(bench.paths, cell, &target, SECONDS)?.finish(Duration::from_secs_f64(SECONDS))?;
            diagnosed(cell, observed)
        }
        Side::Peer(peer) => {
            let running = peer.watch(cell, pid)?;
            let whole = wait(cell, PEER_SECONDS)?;
            Ok(Slice { whole: Some(whole), refusal: running.end(), ..Slice::default() })
        }
    }
}

fn wait(cell: &Cell, seconds: f64) -> Result<Rates> {
    let from = now_ns()?;
    cell.stop.sleep(Duration::from_secs_f64(seconds))?;
    let (target, other) = diaries(cell)?;
    rates(&target, &other, &[(from, now_ns()?)]).context("the loops wrote no diary; are they still there?")
}

fn diagnosed(cell: &Cell, observed: Observed) -> Result<Slice> {
    let (target, other) = diaries(cell)?;
    let (counting, windows) = (observed.windows(Some("results")), observed.windows(None));
    let first = windows.iter().map(|w| w.0).min().unwrap_or(observed.until_ns);
    Ok(Slice {
        whole: rates(&target, &other, &[(observed.from_ns, observed.until_ns)]),
        before: rates(&target, &other, &[(observed.from_ns, first)]),
        inside: rates(&target, &other, &counting),
        windows: rates(&target, &other, &windows),
        observed: Some(observed),
        refusal: None,
    })
}

fn rates(target: &Diary, other: &Diary, spans: &[(u64, u64)]) -> Option<Rates> {
    Some(Rates { target: target.rate(spans)?, other: other.rate(spans)? })
}

fn diaries(cell: &Cell) -> Result<(Diary, Diary)> {
    Ok((Diary::read(&cell.dir().join("target"))?, Diary::read(&cell.dir().join("other"))?))
}

impl Diary {
    fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).with_context(|| format!("failed to read `{}`", path.display()))?;
        let (words, _) = bytes.as_chunks::<8>();
        let (lines, _) = words.as_chunks::<2>();
        let lines = lines.iter().map(|[at, calls]| (u64::from_ne_bytes(*at), u64::from_ne_bytes(*calls)));
        let mut lines: Vec<(u64, u64)> = lines.filter(|line| line.0 > 0).collect();
        lines.sort_unstable();
        // The line that was being written has a new count beside its old time, or the other way round.
        lines.dedup_by(|later, earlier| later.1 <= earlier.1);
        Ok(Self(lines))
    }

    /// Calls a second in the spans together, by the lines that lie inside them.
    fn rate(&self, spans: &[(u64, u64)]) -> Option<f64> {
        let (mut calls, mut ns) = (0, 0);
        for &(from, until) in spans {
            let inside = &self.0[self.0.partition_point(|l| l.0 < from)..self.0.partition_point(|l| l.0 <= until)];
            if let (Some(first), Some(last)) = (inside.first(), inside.last()) {
                calls += last.1 - first.1;
                ns += last.0 - first.0;
            }
        }
        (ns > 0).then(|| calls as f64 * 1e9 / ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diary_in_any_order_with_a_torn_line() {
        let dir = tempfile::tempdir().unwrap();
        let lines: [(u64, u64); 5] = [(3000, 130), (4000, 20), (1000, 50), (2000, 100), (0, 0)];
        let bytes: Vec<u8> = lines.iter().flat_map(|l| [l.0.to_ne_bytes(), l.1.to_ne_bytes()].concat()).collect();
        fs::write(dir.path().join("d"), bytes).unwrap();
        let diary = Diary::read(&dir.path().join("d")).unwrap();
        assert_eq!(diary.0, [(1000, 50), (2000, 100), (3000, 130)]);
        assert_eq!(diary.rate(&[(500, 2500)]), Some(50.0 * 1e6));
        assert_eq!(diary.rate(&[(500, 2500), (2000, 3000)]), Some(40.0 * 1e6));
        assert_eq!(diary.rate(&[(1500, 2500)]), None);
    }
}
