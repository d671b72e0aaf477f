// SPDX-License-Identifier: Apache-2.0
//! Memory of the target's cgroups, from their own up to the root: use, limit, and what happened at it.

use super::reread::Reread;
use super::{Readings, Sampler, Scope};

const NAME: &str = "cgroup/memory";
/// Version 1 has no word for "unlimited": it writes the largest number of pages, in bytes.
const V1_UNLIMITED: f64 = (u64::MAX / 4) as f64;

/// The files of one version: names of limit and use, then (file, key, our name).
struct Names {
    limit: &'static str,
    usage: &'static str,
    keys: &'static [(&'static str, &'static str, &'static str)],
}

const V1: Names = Names {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    keys: &[
        ("memory.failcnt", "", "failcnt"),
        ("memory.oom_control", "oom_kill", "oom_kill"),
        ("memory.stat", "total_pgmajfault", "pgmajfault"),
    ],
};
const V2: Names = Names {
    limit: "memory.max",
    usage: "memory.current",
    keys: &[
        ("memory.events", "max", "failcnt"),
        ("memory.events", "high", "over_high"),
        ("memory.events", "oom_kill", "oom_kill"),
        ("memory.stat", "pgmajfault", "pgmajfault"),
    ],
};

/// Open files of one level.
struct Files {
    path: String,
    limit: Reread,
    usage: Reread,
    keys: Vec<(Reread, &'static str, &'static str)>,
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
            keys: names.keys.iter().map(|(file, key, name)| (open(file), *key, *name)).collect(),
        }
    };
    CgroupMemory { levels: scope.cgroups.memory.iter().map(files).collect() }
}

impl Sampler for CgroupMemory {
    fn name(&self) -> &'static str {
        NAME
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
                out.put(NAME, &level.path, "limit_bytes", limit);
            }
            if let Some(usage) = level.usage.number() {
                out.put(NAME, &level.path, "usage_bytes", usage);
            }
            for (file, key, name) in &mut level.keys {
                if let Some(value) = file.text().ok().and_then(|text| value(text, key)) {
                    out.put(NAME, &level.path, name, value);
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
