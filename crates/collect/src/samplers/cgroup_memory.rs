// SPDX-License-Identifier: Apache-2.0
//! Memory of the target's cgroups, from their own up to the root: use, limit, and what happened at it.

use recording::counters::{Key, cgroup_memory};

use super::reread::Reread;
use super::{Readings, Sampler, Scope};

/// Version 1 has no word for "unlimited": it writes the largest number of pages, in bytes.
const V1_UNLIMITED: f64 = (u64::MAX / 4) as f64;

/// The files of one version: names of limit and use, then (file, key, our name).
struct Names {
    limit: &'static str,
    usage: &'static str,
    keys: &'static [(&'static str, &'static str, Key)],
}

const V1: Names = Names {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    keys: &[
        ("memory.failcnt", "", cgroup_memory::FAILCNT),
        ("memory.oom_control", "oom_kill", cgroup_memory::OOM_KILL),
        ("memory.stat", "total_pgmajfault", cgroup_memory::PGMAJFAULT),
    ],
};
const V2: Names = Names {
    limit: "memory.max",
    usage: "memory.current",
    keys: &[
        // Its own limit and processes: `memory.events` has those of all groups below, which are neighbours further up.
        ("memory.events.local", "max", cgroup_memory::FAILCNT),
        ("memory.events.local", "high", cgroup_memory::OVER_HIGH),
        ("memory.events.local", "oom_kill", cgroup_memory::OOM_KILL),
        ("memory.stat", "pgmajfault", cgroup_memory::PGMAJFAULT),
    ],
};

/// Open files of one level.
struct Files {
    path: String,
    limit: Reread,
    usage: Reread,
    keys: Vec<(Reread, &'static str, Key)>,
}

/// All levels.
pub struct CgroupMemory {
    levels: Vec<Files>,
}

pub fn sampler(scope: &Scope) -> CgroupMemory {
    let files = |level: &crate::cgroup::Level| {
        let names = if level.v2 { V2 } else { V1 };
        let open = |name: &str| Reread::new(level.dir.join(name));
        Files {
            path: level.path.clone(),
            limit: open(names.limit),
            usage: open(names.usage),
            keys: names.keys.iter().map(|(file, word, key)| (open(file), *word, *key)).collect(),
        }
    };
    CgroupMemory { levels: scope.cgroups.memory.iter().map(files).collect() }
}

impl Sampler for CgroupMemory {
    fn name(&self) -> &'static str {
        cgroup_memory::SOURCE
    }

    fn needs(&self) -> &'static str {
        "a mounted cgroup tree with the memory controller; without it memory limits are unknown"
    }

    fn sample(&mut self, scope: &Scope, out: &mut Readings) -> Result<(), String> {
        if self.levels.is_empty() {
            return scope.no_cgroup();
        }
        for level in &mut self.levels {
            // `max` (version 2) is no number; the root of version 2 has neither limit nor use.
            if let Some(limit) = level.limit.number().filter(|limit| *limit < V1_UNLIMITED) {
                out.put(cgroup_memory::LIMIT_BYTES, &level.path, limit);
            }
            if let Some(usage) = level.usage.number() {
                out.put(cgroup_memory::USAGE_BYTES, &level.path, usage);
            }
            for (file, word, key) in &mut level.keys {
                if let Some(value) = file.text().ok().and_then(|text| value(text, word)) {
                    out.put(*key, &level.path, value);
                }
            }
        }
        Ok(())
    }
}

/// Value of a `key value` line, or of the only line where there is no key.
fn value(text: &str, key: &str) -> Option<f64> {
    if key.is_empty() {
        return text.trim().parse().ok();
    }
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}
