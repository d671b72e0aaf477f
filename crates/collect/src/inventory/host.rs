// SPDX-License-Identifier: Apache-2.0
//! The host: its kernel and how it was booted, what is loaded into it, when its packages changed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use libbpf_rs::query::ProgInfoIter;
use recording::tables::Setting;

use super::{line, row};
use crate::clock::rfc3339;
use crate::proc::{field, text};

/// Settings that are one file each.
const FILES: &[(&str, &str)] = &[
    ("kernel_build", "proc/version"),
    ("boot_parameters", "proc/cmdline"),
    ("transparent_hugepages", "sys/kernel/mm/transparent_hugepage/enabled"),
    ("clocksource", "sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ("cpu_governor", "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    ("smt", "sys/devices/system/cpu/smt/control"),
    ("security_modules", "sys/kernel/security/lsm"),
];

/// Databases of package managers: their time of change is when a package was last installed or removed.
const PACKAGES: &[&str] =
    &["var/lib/dpkg/status", "var/lib/rpm/rpmdb.sqlite", "var/lib/rpm/Packages", "lib/apk/db/installed"];

/// What this host is set to. Of BPF programs it lists those that were loaded before `began`, time since the boot: what came
/// later are our own.
pub fn host(root: &Path, began: Duration) -> Vec<Setting> {
    let mut rows: Vec<Setting> =
        FILES.iter().filter_map(|(name, path)| Some(row("host", "", name, line(&root.join(path))?))).collect();
    let mut add = |name: &str, value: Option<String>| rows.extend(value.map(|v| row("host", "", name, v)));
    let cpuinfo = text(&root.join("proc/cpuinfo")).unwrap_or_default();
    let cpu =
        |key: &str| cpuinfo.lines().find_map(|l| Some(l.strip_prefix(key)?.split_once(':')?.1.trim().to_string()));
    add("cpu_model", cpu("model name"));
    add("microcode", cpu("microcode"));
    add("distribution", distribution(root));
    add("boot_time", boot_time(root));
    add("packages_changed", PACKAGES.iter().find_map(|path| changed(&root.join(path))));
    add("kernel_modules", modules(root));
    // Another root is a test's: it has files, but no kernel.
    add("bpf_programs", if root == Path::new("/") { bpf_programs(began) } else { None });
    rows
}

fn distribution(root: &Path) -> Option<String> {
    let release = text(&root.join("etc/os-release"))?;
    Some(release.lines().find_map(|l| l.strip_prefix("PRETTY_NAME="))?.trim_matches('"').to_string())
}

/// Wall-clock time of the boot. It moves by a second when the clock is corrected; who compares uses the boot id.
fn boot_time(root: &Path) -> Option<String> {
    let stat = text(&root.join("proc/stat"))?;
    let seconds = stat.lines().find_map(|l| l.strip_prefix("btime "))?.trim().parse().ok()?;
    Some(rfc3339(SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?))
}

fn changed(path: &Path) -> Option<String> {
    Some(rfc3339(fs::metadata(path).ok()?.modified().ok()?))
}

fn modules(root: &Path) -> Option<String> {
    let listed = text(&root.join("proc/modules"))?;
    let mut names: Vec<&str> = listed.lines().filter_map(|l| l.split(' ').next()).filter(|n| !n.is_empty()).collect();
    names.sort_unstable();
    (!names.is_empty()).then(|| names.join(" "))
}

/// Loaded BPF programs by type and name, `Kprobe tcp_sendmsg x2`: somebody's probes can be the cause.
fn bpf_programs(began: Duration) -> Option<String> {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for program in ProgInfoIter::default().filter(|program| program.load_time < began) {
        *found.entry(format!("{:?} {}", program.ty, program.name.to_string_lossy())).or_default() += 1;
    }
    let names: Vec<String> = found.into_iter().map(|(name, n)| format!("{name} x{n}")).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Start of a process as a wall-clock time, from its start in ticks since the boot.
pub(super) fn started(root: &Path, ticks: u64) -> Option<String> {
    let stat = text(&root.join("proc/stat"))?;
    let boot: u64 = stat.lines().find_map(|l| l.strip_prefix("btime "))?.trim().parse().ok()?;
    let after = Duration::from_secs_f64(ticks as f64 / procfs::ticks_per_second() as f64);
    Some(rfc3339(SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(boot))?.checked_add(after)?))
}

/// Soft limit of one line of `/proc/PID/limits`.
pub(super) fn limit(limits: &str, name: &str) -> Option<String> {
    let rest = limits.lines().find_map(|l| l.strip_prefix(name))?;
    rest.split_whitespace().next().map(str::to_string)
}

/// Value of a line of `/proc/PID/status`.
pub(super) fn status<'a>(status: &'a str, key: &str) -> Option<&'a str> {
    field(status, key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_root::FakeRoot;

    #[test]
    fn what_is_there_is_listed() {
        let root = FakeRoot::new();
        root.file("proc/version", "Linux version 6.1\n")
            .file("proc/stat", "cpu 1 2\nbtime 1700000000\n")
            .file("proc/modules", "veth 1 0 - Live\nbridge 2 1 - Live\n")
            .file("proc/cpuinfo", "model name\t: A CPU\nmicrocode\t: 0x1\n")
            .file("etc/os-release", "NAME=x\nPRETTY_NAME=\"Debian 12\"\n");
        let rows = host(root.path(), Duration::ZERO);
        let value = |name: &str| rows.iter().find(|r| r.name == name).map(|r| r.value.as_str());
        assert_eq!((value("kernel_build"), value("cpu_model")), (Some("Linux version 6.1"), Some("A CPU")));
        assert_eq!((value("distribution"), value("kernel_modules")), (Some("Debian 12"), Some("bridge veth")));
        assert_eq!(value("boot_time"), Some("2023-11-14T22:13:20.000Z"));
        assert_eq!((value("smt"), value("packages_changed"), value("bpf_programs")), (None, None, None));
    }
}
