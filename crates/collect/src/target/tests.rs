// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::fake_root::{FakeRoot, stat_line};

const TCP_HEAD: &str = "  sl  local_address rem_address st tx rx tr tm retrnsmt uid timeout inode\n";

/// A line of `/proc/net/tcp` for a listener on all addresses.
fn listens(port: u16, inode: u64) -> String {
    format!("   0: 00000000:{port:04X} 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 {inode} 1 0\n")
}

/// Process 1 and `server` 10 with workers 11 and 12; 13 is a zombie, 2 a kernel thread; all share a listener.
fn host() -> FakeRoot {
    let root = FakeRoot::new();
    root.process(1, 0, "init").process(10, 1, "server").process(11, 10, "worker").process(12, 11, "helper");
    root.process(13, 10, "gone").stat(13, &stat_line(13, 10, "gone", 'Z', 0));
    root.process(2, 0, "kthreadd").stat(2, &stat_line(2, 0, "kthreadd", 'S', 0x0020_8040));
    root.link("proc/self/ns/net", "net:[1]");
    for pid in [1, 10, 11, 12] {
        root.file(&format!("proc/{pid}/net/tcp"), TCP_HEAD.to_string() + &listens(8080, 77));
    }
    for pid in [10, 11] {
        root.link(&format!("proc/{pid}/fd/3"), "socket:[77]").link(&format!("proc/{pid}/exe"), "/usr/bin/server");
    }
    root
}

fn pids(root: &FakeRoot, target: &Target) -> Vec<u32> {
    target.resolve(root.path()).unwrap().pids
}

fn error(root: &FakeRoot, target: &Target) -> String {
    format!("{:#}", target.resolve(root.path()).unwrap_err())
}

#[test]
fn a_process_brings_its_descendants_but_no_zombies() {
    let root = host();
    assert_eq!(pids(&root, &Target::Pid(10)), [10, 11, 12]);
    let found = Target::Pid(10).resolve(root.path()).unwrap();
    assert_eq!((found.comm.as_str(), found.named.as_str()), ("server", "--pid 10"));
    assert_eq!(found.listen, ["tcp 0.0.0.0:8080"]);
    assert_eq!(found.limits.allowed_cpus, [0, 1]);
}

#[test]
fn a_thread_stands_for_its_process() {
    let root = host();
    root.stat(99, &stat_line(99, 1, "server-io", 'S', 0)).file("proc/99/status", "Tgid:\t10\n");
    let found = Target::Pid(99).resolve(root.path()).unwrap();
    assert_eq!(found.pids, [10, 11, 12]);
    assert!(found.notes[0].contains("99 is a thread of process 10"), "{:?}", found.notes);
}

#[test]
fn a_pid_that_cannot_be_observed_is_answered_by_a_sentence() {
    let root = host();
    assert!(error(&root, &Target::Pid(4)).contains("there is no process 4"));
    assert!(error(&root, &Target::Pid(2)).contains("(kthreadd) is a kernel thread"));
    assert!(error(&root, &Target::Pid(13)).contains("has ended and only waits for its parent 10"));
}

#[test]
fn a_shared_listener_belongs_to_the_topmost_holder() {
    assert_eq!(pids(&host(), &Target::Port(8080)), [10, 11, 12]);
}

#[test]
fn a_port_of_nobody_lists_the_others() {
    let text = error(&host(), &Target::Port(81));
    assert!(text.contains("nobody listens on port 81") && text.contains("tcp 0.0.0.0:8080"), "{text}");
}

#[test]
fn socket_activation_does_not_make_the_service_manager_the_target() {
    let root = host();
    root.link("proc/1/fd/9", "socket:[77]").link("proc/1/exe", "/sbin/init");
    assert_eq!(pids(&root, &Target::Port(8080)), [10, 11, 12]);
    // A container whose process 1 is the server itself: same executable, so it is the topmost holder.
    root.link("proc/1/exe", "/usr/bin/server");
    assert_eq!(Target::Port(8080).resolve(root.path()).unwrap().main, [1]);
}

#[test]
fn two_holders_without_a_common_parent_are_both_the_target() {
    let root = host();
    root.process(20, 1, "server").link("proc/20/fd/4", "socket:[77]");
    let found = Target::Port(8080).resolve(root.path()).unwrap();
    assert_eq!((found.main, found.pids), (vec![10, 20], vec![10, 20, 11, 12]));
}

#[test]
fn a_port_in_another_network_namespace_is_found() {
    let root = host();
    for (pid, namespace, inode) in [(30, "net:[9]", 90), (40, "net:[8]", 80)] {
        root.process(pid, 1, "app")
            .link(&format!("proc/{pid}/ns/net"), namespace)
            .link(&format!("proc/{pid}/fd/3"), &format!("socket:[{inode}]"));
    }
    root.file("proc/30/net/tcp", TCP_HEAD.to_string() + &listens(9000, 90));
    root.file("proc/40/net/tcp", TCP_HEAD);
    assert_eq!(pids(&root, &Target::Port(9000)), [30]);
    root.file("proc/40/net/tcp", TCP_HEAD.to_string() + &listens(9000, 80));
    let text = error(&root, &Target::Port(9000));
    assert!(text.contains("several network namespaces") && text.contains("pid 40 (app)"), "{text}");
    root.file("proc/40/net/tcp", TCP_HEAD.to_string() + &listens(8080, 80));
    let found = Target::Port(8080).resolve(root.path()).unwrap();
    assert_eq!(found.main, [10]);
    assert!(found.notes[0].contains("pid 40 (app)"), "{:?}", found.notes);
}

#[test]
fn a_listener_without_a_visible_holder_asks_for_root() {
    let root = host();
    root.file("proc/1/net/tcp", TCP_HEAD.to_string() + &listens(111, 5));
    assert!(error(&root, &Target::Port(111)).contains("run wakewalk as root"));
}

#[test]
fn names_are_matched_exactly_and_suggested_nearly() {
    let root = host();
    root.process(50, 1, "odd (name) 1");
    assert_eq!(pids(&root, &Target::Comm("worker".into())), [11, 12]);
    assert_eq!(pids(&root, &Target::Comm("odd (name) 1".into())), [50]);
    assert!(error(&root, &Target::Comm("sever".into())).contains("did you mean `server`?"));
    assert!(error(&root, &Target::Comm("gone".into())).contains("no process is called"));
    assert!(error(&root, &Target::Comm("kthreadd".into())).contains("is a kernel thread"));
}

fn with_units(mountinfo: &str) -> FakeRoot {
    let root = host();
    root.file("proc/self/mountinfo", mountinfo);
    root
}

#[test]
fn a_unit_is_its_cgroup_with_all_below_v2() {
    let root = with_units("26 23 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    root.file("sys/fs/cgroup/system.slice/web.service/cgroup.procs", "12\n13\n")
        .file("sys/fs/cgroup/system.slice/web.service/sub/cgroup.procs", "11\n")
        .file("sys/fs/cgroup/system.slice/web.service/cpu.max", "50000 100000\n")
        .file("sys/fs/cgroup/system.slice/idle.service/cgroup.procs", "")
        .file("proc/11/cgroup", "0::/system.slice/web.service/sub\n");
    for name in ["web", "web.service"] {
        assert_eq!(pids(&root, &Target::Unit(name.into())), [11, 12]);
    }
    let found = Target::Cgroup("/system.slice/web.service".into()).resolve(root.path()).unwrap();
    assert_eq!((found.limits.quota_cpus, found.limits.cgroup.as_str()), (Some(0.5), "/system.slice/web.service"));
    let folder = root.path().join("sys/fs/cgroup/system.slice");
    assert_eq!(pids(&root, &Target::Cgroup(folder)), [11, 12]);
    assert!(error(&root, &Target::Unit("we".into())).contains("did you mean `web.service`?"));
    assert!(error(&root, &Target::Unit("idle".into())).contains("holds no running process"));
    assert!(error(&root, &Target::Cgroup("/none".into())).contains("there is no cgroup `/none`"));
}

#[test]
fn a_unit_in_the_trees_of_v1_is_one_unit() {
    let root = with_units(
        "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
         40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n",
    );
    root.file("sys/fs/cgroup/cpu/system.slice/web.service/cgroup.procs", "11\n")
        .file("sys/fs/cgroup/systemd/system.slice/web.service/cgroup.procs", "11\n12\n");
    assert_eq!(pids(&root, &Target::Unit("web".into())), [11, 12]);
    root.file("sys/fs/cgroup/systemd/user.slice/web.service/cgroup.procs", "10\n");
    assert!(error(&root, &Target::Unit("web".into())).contains("name one with --cgroup"));
}

#[test]
fn who_was_started_since_belongs_to_it_as_it_was_named() {
    let root = with_units("26 23 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    let members = "sys/fs/cgroup/system.slice/web.service/cgroup.procs";
    root.file(members, "10\n");
    let unit = Target::Unit("web".into()).resolve(root.path()).unwrap();
    let process = Target::Pid(10).resolve(root.path()).unwrap();
    root.process(14, 10, "container").process(15, 1, "worker").file(members, "10\n15\n");
    assert_eq!(unit.pids, [10]);
    assert_eq!(unit.now(root.path()), [10, 15], "its members and nobody else");
    assert_eq!(process.now(root.path()), [10, 11, 12, 14], "its descendants");
}

#[test]
fn rows_of_processes_skip_those_that_vanished() {
    let root = host();
    root.file("proc/11/status", "NSpid:\t11\t3\n").file("proc/11/cmdline", "server\0--worker\0");
    let rows = processes(root.path(), &[11, 4242, 10]);
    assert_eq!(rows.iter().map(|row| row.pid).collect::<Vec<_>>(), [11, 10]);
    assert_eq!((rows[0].ppid, rows[0].inner_pid, rows[0].cmdline.as_str()), (10, 3, "server --worker"));
    assert_eq!(
        (rows[0].exe.as_str(), rows[0].listen.as_slice()),
        ("/usr/bin/server", &["tcp 0.0.0.0:8080".to_string()][..])
    );
}

#[test]
fn a_target_can_be_asked_for_as_it_was_typed() {
    assert_eq!(Target::Cgroup("/a b".into()).to_string(), "--cgroup /a b");
    assert_eq!(Target::Port(80).to_string(), "--port 80");
}

/// A shell, 10, that holds a service, 11, and wakewalk, 12, in a cgroup in which another comes later, 14.
fn session() -> FakeRoot {
    let root = FakeRoot::new();
    root.process(10, 1, "bash").process(11, 10, "server").process(12, 10, "wakewalk").process(14, 1, "late");
    root.file("proc/12/mountinfo", "26 23 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n").link("proc/self", "12");
    root.file("sys/fs/cgroup/session/cgroup.procs", "10\n11\n12\n");
    for pid in [10, 11, 12, 14] {
        root.link(&format!("proc/{pid}/exe"), "/bin/true");
    }
    root
}

#[test]
fn wakewalk_itself_is_of_no_target() {
    let root = session();
    for target in [Target::Pid(10), Target::Comm("bash".into()), Target::Cgroup("/session".into())] {
        let found = target.resolve(root.path()).unwrap();
        assert_eq!((&found.pids[..], &found.main[..]), (&[10, 11][..], &[10][..]), "{target}");
        assert_eq!(found.now(root.path()), [10, 11], "{target}");
        assert!(found.notes[0].contains("12 is wakewalk itself"), "{:?}", found.notes);
    }
    assert!(error(&root, &Target::Comm("wakewalk".into())).contains("no process but wakewalk itself"));
    assert_eq!(pids(&root, &Target::Pid(12)), [12], "whoever names its very process means it");
    let found = Target::Cgroup("/session".into()).resolve(root.path()).unwrap();
    root.file("sys/fs/cgroup/session/cgroup.procs", "10\n11\n12\n14\n");
    assert_eq!(found.joined(root.path(), |pid| pid == 10 || pid == 11), [14]);
}

#[test]
fn members_are_awaited_as_long_as_the_cgroup_is_there() {
    let root = session();
    let found = Target::Cgroup("/session".into()).resolve(root.path()).unwrap();
    assert!(found.is_awaited() && !Target::Pid(10).resolve(root.path()).unwrap().is_awaited());
    std::fs::remove_dir_all(root.path().join("sys/fs/cgroup/session")).unwrap();
    assert!(!found.is_awaited());
}

#[test]
fn a_unit_is_awaited_while_systemd_has_taken_its_cgroup_away() {
    let root = with_units("26 23 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    let members = "sys/fs/cgroup/system.slice/web.service/cgroup.procs";
    root.file(members, "11\n");
    let found = Target::Unit("web".into()).resolve(root.path()).unwrap();
    std::fs::remove_dir_all(root.path().join("sys/fs/cgroup/system.slice/web.service")).unwrap();
    assert!(found.is_awaited() && found.joined(root.path(), |_| false).is_empty());
    root.file(members, "12\n").link("proc/12/exe", "/usr/bin/web");
    assert_eq!(found.joined(root.path(), |pid| pid == 11), [12]);
}
