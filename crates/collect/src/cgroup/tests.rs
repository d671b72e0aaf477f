// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::fake_root::FakeRoot;

const V1: &str = "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n\
                  34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n\
                  40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd\n\
                  41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
const V2: &str = "26 23 0:22 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

fn paths(levels: &[Level]) -> Vec<&str> {
    levels.iter().map(|level| level.path.as_str()).collect()
}

#[test]
fn v2_levels_and_the_tightest_quota() {
    let root = FakeRoot::new();
    root.file("proc/self/mountinfo", V2)
        .file("sys/fs/cgroup/a.slice/cpu.max", "150000 100000\n")
        .file("sys/fs/cgroup/a.slice/b.service/cpu.max", "max 100000\n")
        .file("sys/fs/cgroup/cpu.max", "800000 100000\n")
        .file("sys/fs/cgroup/a.slice/b.service/cpuset.cpus.effective", "0-1\n");
    let levels = Trees::read(root.path()).levels(&Membership::parse("0::/a.slice/b.service\n"), "cpu");
    assert_eq!(paths(&levels), ["/a.slice/b.service", "/a.slice", "/"]);
    let (cpus, level) = tightest(&levels).unwrap();
    assert_eq!((cpus, level.path.as_str()), (1.5, "/a.slice"));
    assert_eq!(cpuset(&levels), Some(vec![0, 1]));
}

#[test]
fn v1_controllers_have_trees_of_their_own() {
    let root = FakeRoot::new();
    root.file("proc/self/mountinfo", V1)
        .file("sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us", "30000\n")
        .file("sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_period_us", "100000\n")
        .file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n")
        .file("sys/fs/cgroup/cpuset/pinned/cpuset.effective_cpus", "1\n");
    let of = Membership::parse("3:cpuset:/pinned\n2:cpu,cpuacct:/app\n1:name=systemd:/x.service\n0::/\n");
    let trees = Trees::read(root.path());
    let cpu = trees.levels(&of, "cpu");
    assert_eq!(paths(&cpu), ["/app", "/"]);
    assert_eq!(trees.levels(&of, "cpuacct"), cpu);
    assert_eq!(tightest(&cpu).map(|(cpus, _)| cpus), Some(0.3));
    assert_eq!(cpuset(&trees.levels(&of, "cpuset")), Some(vec![1]));
    assert_eq!(of.name(), "/app");
}

#[test]
fn no_quota_is_no_number() {
    let root = FakeRoot::new();
    root.file("proc/self/mountinfo", V1).file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    let levels = Trees::read(root.path()).levels(&Membership::parse("2:cpu,cpuacct:/\n"), "cpu");
    assert!(tightest(&levels).is_none());
}

#[test]
fn a_container_sees_its_part_of_the_tree() {
    let root = FakeRoot::new();
    root.file("proc/self/mountinfo", "9 1 0:29 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n")
        .file("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n");
    let trees = Trees::read(root.path());
    let inside = trees.levels(&Membership::parse("1:cpu:/docker/abc/job\n"), "cpu");
    assert_eq!(paths(&inside), ["/docker/abc/job", "/docker/abc"]);
    assert!(trees.levels(&Membership::parse("1:cpu:/docker/other\n"), "cpu").is_empty());
}

#[test]
fn the_name_is_the_path_that_says_most() {
    let name = |text| Membership::parse(text).name();
    assert_eq!(name("2:cpu:/\n1:name=systemd:/system.slice/x.service\n0::/\n"), "/system.slice/x.service");
    assert_eq!(name("0::/system.slice/y.service\n"), "/system.slice/y.service");
    assert_eq!(name("1:cpu:/\n0::/\n"), "/");
    assert_eq!(name("4:memory:/with:colon\n0::/a:b\n"), "/a:b");
    assert_eq!(name(""), "");
}

#[test]
fn members_of_threaded_and_foreign_cgroups() {
    let root = FakeRoot::new();
    root.file("cg/cgroup.procs", "0\n5\n")
        .file("cg/sub/cgroup.threads", "8\n9\n")
        .file("proc/8/status", "Tgid:\t7\n")
        .file("proc/9/status", "Tgid:\t7\n");
    assert_eq!(processes_below(&Proc::new(root.path()), &root.path().join("cg")), [5, 7]);
}
