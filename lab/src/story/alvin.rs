// SPDX-License-Identifier: Apache-2.0
//! Story 004: the service that was slower at low load.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use diagnose::verdict::Verdict;
use serde_json::Value;

use super::Teller;
use crate::builds;
use crate::cell::Cell;
use crate::loader::Place;
use crate::loads::alvin_sweep::{BUILDS, Services, serve, url};
use crate::paths::Paths;
use crate::probe::{self, Probe};
use crate::scenario::Aim;
use crate::score::aligned;
use crate::stop::Stop;

/// From far below what anybody tests with, to more than there is.
const SWEEP: &str = "5..20000";
/// How long each of its loads is.
const STEP: &str = "4s";
/// What a sweep takes at most.
const SWEEP_LIMIT: Duration = Duration::from_secs(400);
/// Requests a second at which it is diagnosed, as those who complained asked.
const RATE: &str = "20";
/// The same, and more, before and after the fix.
const RATES: [&str; 4] = ["5", RATE, "200", "2000"];

/// Tells the story and returns what was printed.
pub fn tell(paths: &Paths, stop: &Stop) -> Result<String> {
    builds::build(BUILDS, paths)?;
    let mut teller = Teller(String::new());
    let mut cell = Cell::open("story-004", paths, stop)?;
    let services = serve(&mut cell, false)?;

    teller.say(format!("1. The symptom: wakewalk load {} --sweep {SWEEP} --for {STEP}", url()));
    let sweep = [&url(), "--sweep", SWEEP, "--for", STEP];
    teller.say(Place::default().run(&mut cell, paths, &sweep, SWEEP_LIMIT)?);
    let before = percentiles(&mut cell, paths)?;

    teller.say(format!("2. The diagnosis at {RATE} requests a second: wakewalk diagnose --pid {}", services.front));
    let recordings = ["story-004", "story-004-fixed"].map(|name| paths.recording(name));
    let verdicts = diagnose(&mut cell, &services, paths, &recordings[0])?;
    teller.say(points(&verdicts[0]));
    teller.say(probe::replay_as_text(paths, &recordings[0])?);

    teller.say(format!(
        "3. The store is innocent, and nobody had to write Alvin anew: wakewalk diagnose --pid {}",
        services.alvin
    ));
    teller.say(hops(&verdicts[1]));
    drop(cell);

    teller.say("4. The fix: TCP_NODELAY on the connection to Alvin (-nodelay=true), at the same loads");
    let mut cell = Cell::open("story-004-fixed", paths, stop)?;
    let services = serve(&mut cell, true)?;
    let after = percentiles(&mut cell, paths)?;
    teller.say(before_and_after(&before, &after));

    teller.say(format!("5. The judgement: wakewalk diff, before and after, at {RATE} requests a second"));
    diagnose(&mut cell, &services, paths, &recordings[1])?;
    teller.say(probe::diff(paths, &recordings[0], &recordings[1], &[])?);
    Ok(teller.0)
}

/// How long answers take at each rate.
fn percentiles(cell: &mut Cell, paths: &Paths) -> Result<Vec<Value>> {
    let one = |rate: &&str| {
        let args = [&url(), "--rate", rate, "--for", "5s", "--json"];
        let text = Place::default().run(cell, paths, &args, Duration::from_secs(20))?;
        serde_json::from_str(&text).context("wakewalk printed no JSON")
    };
    RATES.iter().map(one).collect()
}

/// Verdicts on the web service, which is recorded, and on Alvin, under a low load.
fn diagnose(cell: &mut Cell, services: &Services, paths: &Paths, recording: &Path) -> Result<[Verdict; 2]> {
    let load = [&url(), "--rate", RATE, "--for", "60s"];
    Place::default().start(cell, paths, &load)?;
    let stop = cell.stop.clone();
    stop.sleep(Duration::from_secs(1))?;
    let group = cell.group("observer")?.path().to_path_buf();
    let probe = |save: &Path| Probe { paths, stop: &stop, seconds: 10, save: Some(save.into()), group: group.clone() };
    let front = probe(recording).diagnose(&Aim::Pid(services.front))?;
    let alvin = probe(&paths.recording("story-004-alvin")).diagnose(&Aim::Pid(services.alvin))?;
    Ok([front, alvin])
}

/// The points that took weeks by hand.
fn points(verdict: &Verdict) -> String {
    let Some(finding) = verdict.findings.first() else { return format!("verdict     {}", verdict.verdict) };
    let subject = &finding.subject;
    let fact = |part: &str| {
        let found = finding.evidence.iter().find(|evidence| evidence.fact.contains(part));
        found.map_or("-".into(), |evidence| super::amount(evidence.value, &evidence.unit))
    };
    let or_dash = |text: &Option<String>| text.clone().unwrap_or("-".into());
    aligned(&[
        ["verdict".into(), format!("{}, confidence {}", finding.cause, finding.confidence)],
        [
            "process".into(),
            format!("{} (pid {})", or_dash(&subject.comm), subject.pid.map_or("-".into(), |p| p.to_string())),
        ],
        ["socket".into(), or_dash(&subject.socket)],
        ["one hold".into(), fact("one hold")],
        ["of its connections, with TCP_NODELAY".into(), fact("with TCP_NODELAY")],
        ["delayed acknowledgements".into(), fact("a timer sent here")],
        ["to do".into(), verdict.advice.clone()],
    ])
}

/// Whom Alvin asks, and how long that takes.
fn hops(verdict: &Verdict) -> String {
    let milliseconds = |seconds: f64| format!("{:.2} ms", seconds * 1e3);
    let mut rows = vec![["", "whom", "p50", "p99"].map(String::from)];
    rows.extend(verdict.requests.iter().map(|times| {
        let who = if times.is_accepted() { "clients ask" } else { "it asks" };
        [who.into(), times.endpoint.clone(), milliseconds(times.seconds.p50), milliseconds(times.seconds.p99)]
    }));
    aligned(&rows)
}

fn before_and_after(before: &[Value], after: &[Value]) -> String {
    let milliseconds = |load: &Value, name: &str| {
        let seconds = load["corrected"][name].as_f64();
        seconds.map_or("-".into(), |seconds| format!("{:.1} ms", seconds * 1e3))
    };
    let head = ["requests/s", "p50 before", "p50 after", "p90 before", "p90 after"];
    let mut rows = vec![head.map(String::from)];
    for ((rate, before), after) in RATES.iter().zip(before).zip(after) {
        let of = |load: &Value, name: &str| milliseconds(load, name);
        rows.push([(*rate).into(), of(before, "p50"), of(after, "p50"), of(before, "p90"), of(after, "p90")]);
    }
    aligned(&rows)
}
