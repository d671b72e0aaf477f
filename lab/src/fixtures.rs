// SPDX-License-Identifier: Apache-2.0
//! Golden fixtures: recordings of the last runs with the verdict that they give, small enough to be
//! kept in the repository. What tells one machine from another is taken out.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use recording::Recording;
use recording::tables::{FileLock, Neighbour};

use crate::paths::Paths;
use crate::probe;
use crate::scenario::{Scenario, Side};

/// Part of the cgroup names of everything that the lab itself runs.
const CELL: &str = "wakewalk-lab";

/// A fixture larger than this does not belong into the repository.
pub const MAX_BYTES: u64 = 400 * 1024;

/// Where the recordings of refreshed fixtures come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The last runs.
    LastRun,
    /// The fixtures themselves: only their verdicts are made anew, after a rule has changed.
    Kept,
}

/// Makes fixtures for all sides of `scenarios`; returns their folders.
///
/// # Errors
/// A recording is missing, too large, or gives another verdict than the truth.
pub fn refresh(scenarios: &[&Scenario], source: Source, paths: &Paths) -> Result<Vec<PathBuf>> {
    let sides = scenarios.iter().flat_map(|&s| s.sides().map(move |side| (s, side)));
    sides.map(|(scenario, side)| refresh_one(scenario, side, source, paths)).collect()
}

fn refresh_one(scenario: &Scenario, side: Side, source: Source, paths: &Paths) -> Result<PathBuf> {
    let name = scenario.recording_name(side);
    let fixture = paths.fixtures().join(&name);
    let from = match source {
        Source::LastRun => paths.recording(&name),
        Source::Kept => fixture.join("recording"),
    };
    let json = probe::replay(paths, &from)
        .with_context(|| format!("failed to make fixture `{name}`; run `make lab SCENARIO={}`", scenario.name))?;
    let verdict = serde_json::from_str(&json)?;
    if let Some(objection) = scenario.truth(side).and_then(|truth| truth.objection(&verdict)) {
        bail!("fixture `{name}` would teach a wrong verdict: {objection}");
    }
    if source == Source::LastRun {
        take(&from, &fixture).with_context(|| format!("failed to make fixture `{name}`"))?;
    }
    fs::write(fixture.join("verdict.json"), probe::replay(paths, &fixture.join("recording"))?)?;
    Ok(fixture)
}

fn take(from: &Path, fixture: &Path) -> Result<()> {
    let bytes = size(from)?;
    if bytes > MAX_BYTES {
        bail!("the recording has {bytes} bytes, a fixture may have {MAX_BYTES}; record a shorter window");
    }
    if fixture.exists() {
        fs::remove_dir_all(fixture)?;
    }
    let mut recording = recording::open(from)?;
    forget_machine(&mut recording);
    recording.save(&fixture.join("recording"))
}

/// The host's name, its boot, and what else ran on it and had files locked are nobody's business.
fn forget_machine(recording: &mut Recording) {
    recording.meta.host.name = "lab".into();
    recording.meta.host.boot_id = String::new();
    for neighbour in recording.tables.rows_mut::<Neighbour>() {
        if !neighbour.own && !neighbour.cgroup.contains(CELL) {
            neighbour.comm = "host".into();
            neighbour.cgroup = "/".into();
        }
    }
    for lock in recording.tables.rows_mut::<FileLock>() {
        if !lock.path.contains(CELL) {
            (lock.comm, lock.path) = ("host".into(), "/file".into());
        }
    }
}

fn size(dir: &Path) -> Result<u64> {
    let entries = fs::read_dir(dir).with_context(|| format!("there is no recording in `{}`", dir.display()))?;
    let mut bytes = 0;
    for entry in entries {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(dir: &Path, bytes: usize) {
        fs::create_dir_all(dir).unwrap();
        let text = "meta host.name=secret host.boot_id=b host.cpus=2\n\
            neighbour pid=1 comm=secret cgroup=/private\n\
            neighbour pid=2 comm=loop cgroup=/wakewalk-lab.1.x/load\n\
            file_lock pid=3 comm=secret path=/private/f\n\
            file_lock pid=4 comm=shop path=/tmp/wakewalk-lab.1.x/f";
        recording::text::parse(text).unwrap().save(dir).unwrap();
        fs::write(dir.join("other"), vec![0; bytes]).unwrap();
    }

    #[test]
    fn a_fixture_is_the_recording_without_the_machine() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("r"), dir.path().join("f"));
        recording(&from, 10);
        take(&from, &to).unwrap();
        let kept = recording::open(&to.join("recording")).unwrap();
        let host = &kept.meta.host;
        assert_eq!((host.name.as_str(), host.boot_id.as_str(), host.cpus), ("lab", "", 2));
        let names: Vec<&str> = kept.rows::<Neighbour>().iter().map(|n| n.comm.as_str()).collect();
        assert_eq!(names, ["host", "loop"]);
        let locks: Vec<&str> = kept.rows::<FileLock>().iter().map(|lock| lock.path.as_str()).collect();
        assert_eq!(locks, ["/file", "/tmp/wakewalk-lab.1.x/f"]);
    }

    #[test]
    fn a_large_recording_is_refused_and_the_old_fixture_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("r"), dir.path().join("f"));
        recording(&from, 10);
        take(&from, &to).unwrap();
        fs::write(from.join("other"), vec![0; usize::try_from(MAX_BYTES).unwrap()]).unwrap();
        assert!(take(&from, &to).unwrap_err().to_string().contains("shorter window"));
        assert_eq!(recording::open(&to.join("recording")).unwrap().rows::<Neighbour>().len(), 2);
    }
}
