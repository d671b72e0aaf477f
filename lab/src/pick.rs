// SPDX-License-Identifier: Apache-2.0
//! Which scenarios to run: one by name, all, or, where time is short, those that a change touched and
//! a rotating part of the others, so that every scenario has its turn.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::scenario::Scenario;
use crate::scenarios::ALL;

/// One scenario by its name, or all of them.
///
/// # Errors
/// There is none of that name.
pub fn named(name: Option<&str>) -> Result<Vec<&'static Scenario>> {
    let Some(name) = name else { return Ok(ALL.to_vec()) };
    let found = ALL.iter().find(|s| s.name == name);
    match found {
        Some(scenario) => Ok(vec![*scenario]),
        None => {
            let names: Vec<&str> = ALL.iter().map(|s| s.name).collect();
            bail!("no scenario is called `{name}`; there are {}", names.join(", "))
        }
    }
}

/// Scenarios that the last commit or uncommitted work touched, and `rotating` others whose turn it
/// is by the number of commits.
///
/// # Errors
/// This is no git checkout.
pub fn changed_and_rotating(repository: &Path, rotating: usize) -> Result<Vec<&'static Scenario>> {
    let commits = commits(repository)?;
    // A first commit, or a shallow clone's only one, has nothing to differ from.
    let changes = git(repository, &["diff", "--name-only", "HEAD~1"]).unwrap_or_default();
    Ok(select(ALL, &changes, commits, rotating))
}

/// So many whose turn it is by the number of commits: others than [`changed_and_rotating`] takes besides.
///
/// # Errors
/// This is no git checkout.
pub fn rotating(repository: &Path, count: usize) -> Result<Vec<&'static Scenario>> {
    let commits = commits(repository)?;
    Ok(select(ALL, "", commits + ALL.len() / (2 * count.max(1)), count))
}

/// How many commits there are: whose turn it is goes by it.
///
/// # Errors
/// This is no git checkout.
pub fn commits(repository: &Path) -> Result<usize> {
    Ok(git(repository, &["rev-list", "--count", "HEAD"])?.trim().parse()?)
}

fn select(all: &[&'static Scenario], changes: &str, turn: usize, rotating: usize) -> Vec<&'static Scenario> {
    let touched = |s: &Scenario| {
        let own = format!("lab/scenarios/{}/", s.name);
        changes.lines().any(|file| file.starts_with(&own) || s.folders.iter().any(|f| file.starts_with(f)))
    };
    let (mut picked, others): (Vec<_>, Vec<_>) = all.iter().copied().partition(|s| touched(s));
    let turns = others.iter().cycle().skip(turn * rotating % others.len().max(1));
    picked.extend(turns.take(rotating.min(others.len())));
    picked
}

fn git(repository: &Path, args: &[&str]) -> Result<String> {
    let output = Command::new("git").arg("-C").arg(repository).args(args).output().context("failed to run git")?;
    if !output.status.success() {
        bail!("git {} failed: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(changes: &str, turn: usize) -> Vec<&'static str> {
        select(ALL, changes, turn, 2).iter().map(|s| s.name).collect()
    }

    #[test]
    fn a_touched_scenario_runs_beside_the_rotating_ones() {
        let picked = names("README.md\nlab/scenarios/cpu-quota/main.go\n", 0);
        assert_eq!(picked.len(), 3);
        assert_eq!(picked[0], "cpu-quota");
    }

    #[test]
    fn a_story_is_touched_by_its_own_folder() {
        assert_eq!(names("stories/002-go-epoll/mediaio/reactor.c", 3)[0], "busy-poll");
    }

    #[test]
    fn every_scenario_has_its_turn() {
        let seen: std::collections::BTreeSet<_> = (0..ALL.len()).flat_map(|turn| names("", turn)).collect();
        assert_eq!(seen.len(), ALL.len());
    }
}
