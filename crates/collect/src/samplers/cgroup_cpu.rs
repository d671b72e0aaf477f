// SPDX-License-Identifier: Apache-2.0
//! CPU of the target's cgroups, from their own up to the root: use, quota and how often it bit.

use recording::counters::cgroup_cpu;
use recording::tables::Gap;

use super::reread::Reread;
use super::{Readings, Sampler, Scope};
use crate::cgroup::{Level, quota_us};

/// Open files of all levels.
pub struct CgroupCpu {
    levels: Vec<(Level, Reread)>,
    /// Version 1 counts use in a tree of its own.
    usage: Vec<(String, Reread)>,
    /// Of all levels, also of other controllers, the ones that are not read.
    left_out: usize,
}

pub fn sampler(scope: &Scope) -> CgroupCpu {
    let levels = &scope.cgroups.cpu;
    let v1 = scope.cgroups.cpuacct.iter().filter(|level| !level.v2);
    CgroupCpu {
        levels: levels.iter().map(|level| (level.clone(), Reread::new(level.dir.join("cpu.stat")))).collect(),
        usage: v1.map(|level| (level.path.clone(), Reread::new(level.dir.join("cpuacct.usage")))).collect(),
        left_out: scope.cgroups.left_out,
    }
}

impl Sampler for CgroupCpu {
    fn name(&self) -> &'static str {
        cgroup_cpu::SOURCE
    }

    fn needs(&self) -> &'static str {
        "a mounted cgroup tree with the cpu controller; without it CPU quotas and throttling are unknown"
    }

    fn sample(&mut self, scope: &Scope, out: &mut Readings) -> Result<(), String> {
        if self.levels.is_empty() && self.usage.is_empty() {
            return scope.no_cgroup();
        }
        for (level, stat) in &mut self.levels {
            // A cgroup may be removed while we watch; the levels above stay.
            if let Ok(text) = stat.text() {
                parse(&level.path, text, out);
            }
            if let Some((quota, period)) = quota_us(level) {
                out.put(cgroup_cpu::QUOTA_NS, &level.path, quota as f64 * 1e3);
                out.put(cgroup_cpu::PERIOD_NS, &level.path, period as f64 * 1e3);
            }
        }
        for (path, usage) in &mut self.usage {
            if let Some(value) = usage.number() {
                out.put(cgroup_cpu::USAGE_NS, path, value);
            }
        }
        Ok(())
    }

    fn left_out(&self) -> Option<Gap> {
        let why = format!(
            "{} cgroups of the target are too many to read: whether their limits bit is unknown",
            self.left_out
        );
        (self.left_out > 0).then(|| Gap::partial("cgroup", 0.0, why))
    }
}

/// `cpu.stat`: version 1 says throttled_time in ns, version 2 throttled_usec and usage_usec.
fn parse(path: &str, text: &str, out: &mut Readings) {
    for line in text.lines() {
        let Some((key, Ok(value))) = line.split_once(' ').map(|(key, v)| (key, v.trim().parse::<f64>())) else {
            continue;
        };
        match key {
            "nr_periods" => out.put(cgroup_cpu::NR_PERIODS, path, value),
            "nr_throttled" => out.put(cgroup_cpu::NR_THROTTLED, path, value),
            "throttled_time" => out.put(cgroup_cpu::THROTTLED_NS, path, value),
            "throttled_usec" => out.put(cgroup_cpu::THROTTLED_NS, path, value * 1e3),
            "usage_usec" => out.put(cgroup_cpu::USAGE_NS, path, value * 1e3),
            _ => {}
        }
    }
}
