// SPDX-License-Identifier: Apache-2.0
//! Golden fixtures: recordings of the last runs with the verdict that they give, small enough to be
//! kept in the repository. What tells one machine from another is taken out.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use recording::Meta;

use crate::paths::Paths;
use crate::probe;
use crate::scenario::{Scenario, Side};

/// A fixture larger than this does not belong into the repository.
pub const MAX_BYTES: u64 = 300 * 1024;

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
    let to = fixture.join("recording");
    fs::create_dir_all(&to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    forget_machine(&to.join("meta.json"))
}

fn forget_machine(path: &Path) -> Result<()> {
    let mut meta: Meta = serde_json::from_str(&fs::read_to_string(path)?)?;
    meta.host.name = "lab".into();
    meta.host.boot_id = String::new();
    Ok(fs::write(path, serde_json::to_string_pretty(&meta)? + "\n")?)
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
        fs::write(dir.join("meta.json"), r#"{"host": {"name": "secret", "boot_id": "b", "cpus": 2}}"#).unwrap();
        fs::write(dir.join("sample.parquet"), vec![0; bytes]).unwrap();
    }

    #[test]
    fn a_fixture_is_the_recording_without_the_machine() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("r"), dir.path().join("f"));
        recording(&from, 10);
        take(&from, &to).unwrap();
        let meta: Meta = serde_json::from_str(&fs::read_to_string(to.join("recording/meta.json")).unwrap()).unwrap();
        assert_eq!((meta.host.name.as_str(), meta.host.boot_id.as_str(), meta.host.cpus), ("lab", "", 2));
        assert!(to.join("recording/sample.parquet").exists());
    }

    #[test]
    fn a_large_recording_is_refused_and_the_old_fixture_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("r"), dir.path().join("f"));
        recording(&from, 10);
        take(&from, &to).unwrap();
        recording(&from, usize::try_from(MAX_BYTES).unwrap());
        assert!(take(&from, &to).unwrap_err().to_string().contains("shorter window"));
        assert_eq!(fs::metadata(to.join("recording/sample.parquet")).unwrap().len(), 10);
    }
}
