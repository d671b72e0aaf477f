// SPDX-License-Identifier: Apache-2.0
//! What was set otherwise on the two sides: kernel, boot, build, command line, limits, sysctls.
//!
//! Several changes at once are the commonest reason to believe a wrong cause, so everything that could
//! matter counts. What differs between any two runs (the start of a process, the path that it was called
//! by) is listed and does not count.

use std::collections::{BTreeMap, BTreeSet};

use recording::{Recording, meta, tables};

use super::result::Setting;
use crate::answer::Gap;
use crate::wording::cpu_list;

/// Settings that differ between any two runs, or that another line tells better.
const ORDINARY: &[&str] = &["started", "executable", "boot_time"];

/// Differences, those that count first.
pub(super) fn differences(a: &Recording, b: &Recording) -> Vec<Setting> {
    let mut all = from_meta(a, b);
    all.extend(from_settings(a, b));
    all.sort_by_key(|s| !s.counts);
    all
}

/// Sides that were recorded before there was an inventory.
pub(super) fn gaps(a: &Recording, b: &Recording) -> Vec<Gap> {
    let missing = |(side, r): (&str, &Recording)| {
        (!r.tables.has::<tables::Setting>()).then(|| {
            let why = format!(
                "side {side} has none (table `setting`): it was recorded by an older version; kernel, CPUs and limits are \
                 compared, builds and sysctls are not"
            );
            Gap::not_recorded("inventory", why)
        })
    };
    [("A", a), ("B", b)].into_iter().filter_map(missing).collect()
}

fn setting(what: &str, a: &str, b: &str, counts: bool) -> Option<Setting> {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_string());
    (a != b).then(|| Setting { what: what.into(), a: some(a), b: some(b), counts })
}

fn from_meta(a: &Recording, b: &Recording) -> Vec<Setting> {
    let (a, b) = (&a.meta, &b.meta);
    let mut all = vec![
        setting("kernel", &a.host.kernel, &b.host.kernel, true),
        machine(&a.host, &b.host),
        setting("architecture", &a.host.arch, &b.host.arch, true),
        setting("online CPUs", &a.host.cpus.to_string(), &b.host.cpus.to_string(), true),
        setting("virtualization", &a.host.virtualization, &b.host.virtualization, true),
        setting("service", &a.target.comm, &b.target.comm, true),
        setting("allowed CPUs", &cpu_list(&a.target.allowed_cpus), &cpu_list(&b.target.allowed_cpus), true),
        setting("CPU quota", &quota(&a.target), &quota(&b.target), true),
        setting("listening sockets", &a.target.listen.join(" "), &b.target.listen.join(" "), false),
        setting("cgroup", &a.target.cgroup, &b.target.cgroup, false),
        setting("recorded by", &a.tool, &b.tool, false),
    ];
    // The kernel's own share varies a little from boot to boot.
    let (less, more) = (a.host.memory_bytes.min(b.host.memory_bytes), a.host.memory_bytes.max(b.host.memory_bytes));
    if more as f64 > less as f64 * 1.01 {
        all.push(setting("memory", &mebibytes(a.host.memory_bytes), &mebibytes(b.host.memory_bytes), true));
    }
    all.into_iter().flatten().collect()
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

fn quota(target: &meta::Target) -> String {
    target.quota_cpus.map_or("none".into(), |cpus| format!("{cpus:.2} CPUs"))
}

/// Another machine, or another boot of the same one.
fn machine(a: &meta::Host, b: &meta::Host) -> Option<Setting> {
    if a.boot_id == b.boot_id {
        return None; // one boot, whatever the host was called
    }
    match a.name == b.name {
        true => setting("boot", &a.boot_id, &b.boot_id, true),
        false => setting("machine", &a.name, &b.name, true),
    }
}

type Values<'r> = BTreeMap<(&'r str, &'r str, &'r str), BTreeSet<&'r str>>;

/// Values by area, entity and name; processes of one name may have several.
fn values(recording: &Recording) -> Values<'_> {
    let mut all: Values<'_> = BTreeMap::new();
    for row in recording.rows::<tables::Setting>() {
        all.entry((&row.area, &row.entity, &row.name)).or_default().insert(&row.value);
    }
    all
}

fn from_settings(a: &Recording, b: &Recording) -> Vec<Setting> {
    if !a.tables.has::<tables::Setting>() || !b.tables.has::<tables::Setting>() {
        return Vec::new();
    }
    let rebooted = a.meta.host.boot_id != b.meta.host.boot_id;
    let (a, b) = (values(a), values(b));
    let mut keys: Vec<_> = a.keys().chain(b.keys()).copied().collect();
    keys.sort_unstable();
    keys.dedup();
    let difference = |key: &(&str, &str, &str)| {
        let (area, entity, name) = *key;
        let joined = |side: &Values<'_>| {
            side.get(key).map_or(String::new(), |v| v.iter().copied().collect::<Vec<_>>().join(" | "))
        };
        let (before, after) = (joined(&a), joined(&b));
        let ordinary =
            ORDINARY.contains(&name) || name == "command_line" && arguments(a.get(key)) == arguments(b.get(key));
        // The clock moves the time of one and the same boot.
        if name == "boot_time" && !rebooted {
            return None;
        }
        setting(&words(area, entity, name), &before, &after, !ordinary)
    };
    keys.iter().filter_map(difference).collect()
}

/// Command lines without the path that the program was called by. What a process writes there of what it is at (`postgres: app db idle`)
/// is none.
fn arguments<'r>(commands: Option<&BTreeSet<&'r str>>) -> BTreeSet<&'r str> {
    let split = commands.into_iter().flatten().map(|command| command.split_once(' ').unwrap_or((command, "")));
    split.filter(|(program, _)| !program.ends_with(':')).map(|(_, arguments)| arguments).collect()
}

fn words(area: &str, entity: &str, name: &str) -> String {
    let plain = name.replace('_', " ");
    match (area, name) {
        ("file", "build_id") => format!("build of {entity}"),
        ("process", _) => format!("{plain} of {entity}"),
        ("sysctl", _) => name.to_string(),
        _ => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    const A: &str = "meta host.boot_id=b1 host.name=web host.kernel=v6 host.memory_bytes=1000000000 target.comm=svc
        setting area=sysctl name=net.core.somaxconn value=\"128\"
        setting area=file entity=svc name=build_id value=aa
        setting area=process entity=svc name=command_line value=\"/tmp/1/svc -p 80\"
        setting area=process entity=svc name=started value=yesterday
        setting area=host name=boot_time value=2026-01-01T00:00:00Z";

    fn seen(b: &str) -> Vec<(String, bool)> {
        let (a, b) = (parse(A).unwrap(), parse(b).unwrap());
        differences(&a, &b).into_iter().map(|s| (s.what, s.counts)).collect()
    }

    #[test]
    fn the_same_again_differs_in_ordinary_things_only() {
        let b = A.replace("/tmp/1/", "/tmp/2/").replace("yesterday", "today").replace("00:00:00Z", "00:00:01Z");
        let b = b.replace("host.memory_bytes=1000000000", "host.memory_bytes=1000000001");
        assert_eq!(seen(&b), [("command line of svc".into(), false), ("started of svc".into(), false)]);
    }

    #[test]
    fn titles_of_processes_are_no_options() {
        let of = |title: &str| format!("{A}\nsetting area=process entity=svc name=command_line value=\"{title}\"");
        let (a, b) = (of("svc: app 10.0.0.5(48712) idle"), of("svc: app 10.0.0.6(51000) SELECT"));
        let (a, b) = (parse(&a).unwrap(), parse(&b).unwrap());
        assert!(differences(&a, &b).iter().all(|setting| !setting.counts), "{:?}", differences(&a, &b));
    }

    #[test]
    fn a_reboot_a_build_an_option_and_a_sysctl_count() {
        let b = A
            .replace("b1", "b2")
            .replace("value=aa", "value=bb")
            .replace("-p 80", "-p 80 -fast")
            .replace("128", "4096");
        let mut counting: Vec<String> = seen(&b).into_iter().filter(|s| s.1).map(|s| s.0).collect();
        counting.sort();
        assert_eq!(counting, ["boot", "build of svc", "command line of svc", "net.core.somaxconn"]);
    }

    #[test]
    fn another_machine_is_no_reboot_and_a_missing_setting_has_no_value() {
        let b = A.replace("b1", "b2").replace("host.name=web", "host.name=db").replace("setting area=file", "# ");
        let (a, b) = (parse(A).unwrap(), parse(&b).unwrap());
        let all = differences(&a, &b);
        assert!(all.iter().any(|s| s.what == "machine" && s.b.as_deref() == Some("db")));
        assert!(all.iter().any(|s| s.what == "build of svc" && s.b.is_none()));
        assert!(gaps(&a, &b).is_empty());
    }

    #[test]
    fn an_older_recording_is_a_gap() {
        let (a, b) = (parse(A).unwrap(), parse("meta host.boot_id=b1 host.name=web target.comm=svc").unwrap());
        assert!(gaps(&a, &b)[0].why.starts_with("side B"));
        assert!(!differences(&a, &b).iter().any(|s| s.what.starts_with("build")));
    }
}
