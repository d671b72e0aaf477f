// SPDX-License-Identifier: Apache-2.0
//! Whether the target's cgroups are frozen, and for how long they were, where the kernel counts that (since 6.18).

use recording::counters::cgroup_freezer;

use super::reread::Reread;
use super::{Readings, Sampler, Scope};

/// Path and files of each group.
pub struct CgroupFreezer {
    groups: Vec<Group>,
}

struct Group {
    path: String,
    /// Version 2: `frozen 0`. Version 1: `THAWED`.
    state: Reread,
    /// Version 2: `frozen_usec 0`.
    clock: Option<Reread>,
}

pub fn sampler(scope: &Scope) -> CgroupFreezer {
    let files = |level: &crate::cgroup::Level| Group {
        path: level.path.clone(),
        state: Reread::new(level.dir.join(if level.v2 { "cgroup.events" } else { "freezer.state" })),
        clock: level.v2.then(|| Reread::new(level.dir.join("cgroup.stat.local"))),
    };
    CgroupFreezer { groups: scope.cgroups.freezer.iter().map(files).collect() }
}

impl Sampler for CgroupFreezer {
    fn name(&self) -> &'static str {
        cgroup_freezer::SOURCE
    }

    fn needs(&self) -> &'static str {
        "a mounted cgroup tree of version 2 or with the freezer controller; without it how long the target was frozen is \
         unknown where it was asleep already"
    }

    fn sample(&mut self, scope: &Scope, out: &mut Readings) -> Result<(), String> {
        if self.groups.is_empty() {
            return scope.no_cgroup();
        }
        for group in &mut self.groups {
            // The root cannot be frozen and has none of these files.
            if let Some(frozen) = group.state.text().ok().and_then(is_frozen) {
                out.put(cgroup_freezer::FROZEN, &group.path, f64::from(u8::from(frozen)));
            }
            let clock = group.clock.as_mut().and_then(|file| value(file.text().ok()?, "frozen_usec"));
            if let Some(us) = clock {
                out.put(cgroup_freezer::FROZEN_NS, &group.path, us * 1e3);
            }
        }
        Ok(())
    }
}

/// Of both versions; a group that is about to freeze holds some of its tasks already.
fn is_frozen(text: &str) -> Option<bool> {
    match text.trim() {
        "FROZEN" | "FREEZING" => Some(true),
        "THAWED" => Some(false),
        _ => Some(value(text, "frozen")? > 0.0),
    }
}

fn value(text: &str, key: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions() {
        assert_eq!(
            (is_frozen("populated 1\nfrozen 1\n"), is_frozen("populated 1\nfrozen 0\n")),
            (Some(true), Some(false))
        );
        assert_eq!((is_frozen("FROZEN\n"), is_frozen("THAWED\n"), is_frozen("")), (Some(true), Some(false), None));
        assert_eq!((value("frozen_usec 1200\n", "frozen_usec"), value("", "frozen_usec")), (Some(1200.0), None));
    }
}
