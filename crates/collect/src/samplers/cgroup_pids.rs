// SPDX-License-Identifier: Apache-2.0
//! Processes of the target's cgroups against their limit.

use recording::counters::cgroup_pids;

use super::reread::Reread;
use super::{Readings, Sampler, Scope};

/// Path, `pids.current` and `pids.max` of each level.
pub struct CgroupPids {
    levels: Vec<(String, Reread, Reread)>,
}

pub fn sampler(scope: &Scope) -> CgroupPids {
    let files = |level: &crate::cgroup::Level| {
        let open = |name: &str| Reread::new(level.dir.join(name));
        (level.path.clone(), open("pids.current"), open("pids.max"))
    };
    CgroupPids { levels: scope.cgroups.pids.iter().map(files).collect() }
}

impl Sampler for CgroupPids {
    fn name(&self) -> &'static str {
        cgroup_pids::SOURCE
    }

    fn needs(&self) -> &'static str {
        "a mounted cgroup tree with the pids controller; without it limits on the number of processes are unknown"
    }

    fn sample(&mut self, scope: &Scope, out: &mut Readings) -> Result<(), String> {
        if self.levels.is_empty() {
            return scope.no_cgroup();
        }
        for (path, current, max) in &mut self.levels {
            // The root has neither file; `max` where there is no limit is no number.
            for (key, file) in [(cgroup_pids::CURRENT, current), (cgroup_pids::MAX, max)] {
                if let Some(value) = file.number() {
                    out.put(key, path, value);
                }
            }
        }
        Ok(())
    }
}
