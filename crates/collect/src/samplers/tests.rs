// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeMap;
use std::path::Path;

use recording::counters::{ALL, listeners, local_ports, meminfo, qdisc, shared_listeners, speed, udp_sockets};

use super::*;
use crate::fake_root::FakeRoot;
use crate::target::Target;

/// What a parser makes of a text, by `entity name`.
pub fn rows(parse: impl Fn(&str, &mut Readings), text: &str) -> BTreeMap<String, f64> {
    let mut readings = Readings::default();
    parse(text, &mut readings);
    by_name(&readings.rows)
}

fn by_name(rows: &[Counter]) -> BTreeMap<String, f64> {
    rows.iter().map(|row| (format!("{} {}", row.entity, row.name), row.value)).collect()
}

/// Rows of one source.
fn source(rows: &[Counter], name: &str) -> BTreeMap<String, f64> {
    by_name(&rows.iter().filter(|row| row.source == name).cloned().collect::<Vec<_>>())
}

fn fake() -> FakeRoot {
    let root = FakeRoot::new();
    root.process(10, 1, "app").link("proc/self/ns/net", "net:[1]").link("proc/10/fd/3", "socket:[77]");
    root.file("proc/stat", "cpu 1 0 0 9 0 0 0 0\nctxt 5\n").file("proc/loadavg", "0.1 0.2 0.3 1/2 3\n");
    root
}

fn samplers(root: &FakeRoot) -> Samplers {
    let target = Target::Pid(10).resolve(root.path()).unwrap();
    Samplers::new(Scope::of(root.path(), &target))
}

#[test]
fn unchanged_rows_are_left_out_until_the_last() {
    let root = fake();
    let mut samplers = samplers(&root);
    let first = samplers.sample(1);
    assert_eq!(source(&first, "proc/stat").len(), 9);
    root.file("proc/stat", "cpu 2 0 0 9 0 0 0 0\nctxt 5\n");
    assert_eq!(source(&samplers.sample(2), "proc/stat").keys().collect::<Vec<_>>(), ["cpu user_ns"]);
    assert_eq!(source(&samplers.sample(TOLD_AGAIN_NS - 1), "proc/stat").len(), 0);
    assert_eq!(samplers.sample(TOLD_AGAIN_NS).len(), first.len(), "for whoever reads a part of it");
    let last = samplers.last(3);
    assert_eq!(last.len(), first.len());
    assert!(last.iter().all(|row| row.t_ns == 3));
}

#[test]
fn a_missing_file_is_one_gap() {
    let root = fake();
    let mut samplers = samplers(&root);
    samplers.sample(1);
    samplers.sample(2);
    let gaps = samplers.gaps();
    let pressure: Vec<_> = gaps.iter().filter(|gap| gap.what == "proc/pressure").collect();
    assert_eq!(pressure.len(), 1);
    assert!(pressure[0].why.contains("CONFIG_PSI"), "{}", pressure[0].why);
    assert!(!gaps.iter().any(|gap| gap.what == "proc/stat" || gap.what == "nf_conntrack"), "{gaps:?}");
    assert!(samplers.gaps().is_empty());
}

#[test]
fn the_process_is_read() {
    let root = fake();
    root.file("proc/10/limits", "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024                 4096                 files\n");
    root.file("proc/10/io", "rchar: 70\nwchar: 80\nsyscr: 7\nsyscw: 8\nread_bytes: 4096\n");
    let found = source(&samplers(&root).sample(1), "proc/pid");
    assert_eq!((found["10 read_calls"], found["10 write_calls"], found["10 read_bytes"]), (7.0, 8.0, 70.0));
    let tick = 1e9 / procfs::ticks_per_second() as f64;
    assert_eq!((found["10 open_files"], found["10 threads"]), (1.0, 1.0));
    assert_eq!((found["10 utime_ns"], found["10 stime_ns"], found["10 majflt"]), (30.0 * tick, 20.0 * tick, 12.0));
    assert_eq!(found["10 rss_bytes"], 25.0 * procfs::page_size() as f64);
}

#[test]
fn network_files_are_those_of_the_target() {
    let root = fake();
    let line = |st: &str, rx: u32, port: &str, inode: u32| {
        format!("0: 00000000:{port} 00000000:0000 {st} 00000000:{rx:08X} 00:00000000 00000000 0 0 {inode} 1\n")
    };
    root.file("proc/10/net/tcp", "head\n".to_string() + &line("0A", 4, "0050", 77) + &line("0A", 9, "0051", 78))
        .file("proc/10/net/netstat", "TcpExt: ListenOverflows\nTcpExt: 6\n")
        .file("proc/self/net/netstat", "TcpExt: ListenOverflows\nTcpExt: 0\n")
        .file("sys/class/net/eth0/speed", "10000\n")
        .file("sys/class/net/lo/speed", "-1\n");
    let rows = samplers(&root).sample(1);
    assert_eq!(source(&rows, "proc/net/netstat")["TcpExt ListenOverflows"], 6.0);
    assert_eq!(source(&rows, "proc/net/listeners"), BTreeMap::from([("tcp 0.0.0.0:80 accept_queue".into(), 4.0)]));
    assert_eq!(source(&rows, "sys/class/net"), BTreeMap::from([("eth0 speed_bits_per_s".into(), 1e10)]));
}

#[test]
fn a_namespace_of_its_own_has_no_link_speed() {
    let root = fake();
    root.link("proc/10/ns/net", "net:[5]").file("sys/class/net/eth0/speed", "10000\n");
    let mut samplers = samplers(&root);
    assert!(source(&samplers.sample(1), "sys/class/net").is_empty());
    assert!(!samplers.gaps().iter().any(|gap| gap.what == "sys/class/net"), "nothing that anybody misses");
}

#[test]
fn cgroups_of_v2() {
    let root = fake();
    root.file("proc/self/mountinfo", "26 23 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
        .file("proc/10/cgroup", "0::/app\n")
        .file("sys/fs/cgroup/cpu.stat", "usage_usec 900\n")
        .file("sys/fs/cgroup/app/cpu.stat", "usage_usec 7\nnr_periods 3\nnr_throttled 2\nthrottled_usec 5\n")
        .file("sys/fs/cgroup/app/cpu.max", "20000 100000\n")
        .file("sys/fs/cgroup/app/memory.max", "max\n")
        .file("sys/fs/cgroup/app/memory.current", "4096\n")
        .file("sys/fs/cgroup/app/memory.events.local", "low 0\nmax 8\noom 1\noom_kill 1\n")
        .file("sys/fs/cgroup/app/memory.stat", "anon 1\npgmajfault 9\n")
        .file("sys/fs/cgroup/app/cgroup.events", "populated 1\nfrozen 1\n")
        .file("sys/fs/cgroup/app/cgroup.stat.local", "frozen_usec 17\n")
        .file("proc/10/status", "Name:\tapp\nTracerPid:\t812\n")
        .file("sys/fs/cgroup/app/pids.max", "100\n")
        .file("sys/fs/cgroup/app/pids.current", "2\n");
    let rows = samplers(&root).sample(1);
    let cpu = source(&rows, "cgroup/cpu");
    assert_eq!((cpu["/app nr_throttled"], cpu["/app throttled_ns"], cpu["/app usage_ns"]), (2.0, 5e3, 7e3));
    assert_eq!((cpu["/app quota_ns"], cpu["/app period_ns"], cpu["/ usage_ns"]), (2e7, 1e8, 9e5));
    let memory = source(&rows, "cgroup/memory");
    assert_eq!((memory["/app usage_bytes"], memory["/app failcnt"], memory["/app oom_kill"]), (4096.0, 8.0, 1.0));
    assert_eq!((memory["/app pgmajfault"], memory.get("/app limit_bytes")), (9.0, None));
    assert_eq!(source(&rows, "cgroup/pids")["/app max"], 100.0);
    let freezer = source(&rows, "cgroup/freezer");
    assert_eq!((freezer["/app frozen"], freezer["/app frozen_ns"], freezer.len()), (1.0, 17e3, 2));
    assert_eq!(source(&rows, "proc/pid")["10 tracer_pid"], 812.0);
}

#[test]
fn cgroups_of_v1() {
    let root = fake();
    root.file(
        "proc/self/mountinfo",
        "1 0 0:1 / /cg/cpu rw - cgroup cgroup rw,cpu\n2 0 0:2 / /cg/cpuacct rw - cgroup cgroup rw,cpuacct\n\
         3 0 0:3 / /cg/memory rw - cgroup cgroup rw,memory\n",
    )
    .file("proc/10/cgroup", "3:memory:/m\n2:cpuacct:/acct\n1:cpu:/q\n")
    .file("cg/cpu/q/cpu.stat", "nr_periods 54\nnr_throttled 50\nthrottled_time 7100\n")
    .file("cg/cpu/q/cpu.cfs_quota_us", "30000\n")
    .file("cg/cpu/q/cpu.cfs_period_us", "100000\n")
    .file("cg/cpuacct/acct/cpuacct.usage", "123\n")
    .file("cg/memory/m/memory.limit_in_bytes", "167772160\n")
    .file("cg/memory/m/memory.failcnt", "17743\n")
    .file("cg/memory/memory.limit_in_bytes", "9223372036854771712\n")
    .file("cg/memory/m/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    .file("cg/memory/m/memory.stat", "pgmajfault 1\ntotal_pgmajfault 4\n");
    let rows = samplers(&root).sample(1);
    let cpu = source(&rows, "cgroup/cpu");
    assert_eq!((cpu["/q throttled_ns"], cpu["/q quota_ns"], cpu["/acct usage_ns"]), (7100.0, 3e7, 123.0));
    let memory = source(&rows, "cgroup/memory");
    assert_eq!((memory["/m limit_bytes"], memory["/m failcnt"], memory["/m oom_kill"]), (167_772_160.0, 17743.0, 3.0));
    assert_eq!((memory["/m pgmajfault"], memory.get("/ limit_bytes")), (4.0, None));
}

#[test]
fn a_process_that_vanishes_in_the_middle_ends_its_rows_only() {
    let root = fake();
    let mut samplers = samplers(&root);
    samplers.sample(1);
    std::fs::remove_dir_all(root.path().join("proc/10")).unwrap();
    samplers.follow(&[11]);
    assert!(source(&samplers.last(2), "proc/pid").is_empty());
    assert!(!source(&samplers.last(3), "proc/stat").is_empty());
}

#[test]
fn a_worker_that_replaced_another_has_its_counters() {
    let root = fake();
    let mut samplers = samplers(&root);
    samplers.sample(1);
    std::fs::remove_dir_all(root.path().join("proc/10")).unwrap();
    root.process(11, 1, "app").file("proc/11/io", "rchar: 7\nwchar: 0\nsyscr: 1\nsyscw: 0\n");
    samplers.follow(&[11]);
    let found = source(&samplers.sample(2), "proc/pid");
    assert_eq!((found["11 threads"], found["11 read_bytes"]), (1.0, 7.0));
    let of_the_other: Vec<_> = found.iter().filter(|(name, _)| name.starts_with("10 ")).collect();
    assert_eq!(of_the_other, [(&"10 open_files".to_string(), &0.0)], "what it held it holds no more");
    samplers.follow(&[]);
    assert!(source(&samplers.last(3), "proc/pid").contains_key("11 threads"), "a target without processes is no host");
}

#[test]
fn a_number_that_came_again_has_the_files_of_the_new_process() {
    let root = fake();
    let mut samplers = samplers(&root);
    let own = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = own.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let limits = |most: &str| own.replace(line, &format!("{:<26}{most:<21}{:<21}files", "Max open files", 4096));
    root.file("proc/10/limits", limits("1024"));
    assert_eq!(source(&samplers.sample(1), "proc/pid")["10 open_files_limit"], 1024.0);
    root.file("proc/10/stat", "").file("proc/10/limits", limits("256"));
    samplers.sample(2);
    root.process(10, 1, "app");
    assert_eq!(source(&samplers.sample(3), "proc/pid")["10 open_files_limit"], 256.0);
}

#[test]
fn of_too_many_processes_the_first_are_read_and_the_rest_is_a_gap() {
    let root = fake();
    let mut samplers = samplers(&root);
    let pids: Vec<u32> = (1_000..1_128).collect();
    for pid in &pids {
        root.process(*pid, 10, "worker");
    }
    let gap = |samplers: &mut Samplers| samplers.gaps().into_iter().find(|gap| gap.what == "proc/pid");
    assert!(gap(&mut samplers).is_none());
    samplers.follow(&pids);
    let rows = samplers.sample(1);
    let read: HashSet<&str> = rows.iter().filter(|r| r.source == "proc/pid").map(|r| r.entity.as_str()).collect();
    assert!(read.len() == 64 && read.contains("1000"), "{read:?}");
    samplers.follow(&pids[..70]);
    samplers.sample(2);
    let told = gap(&mut samplers).unwrap();
    assert_eq!((told.reason.as_str(), told.unseen_share), ("partial", 0.5), "{}", told.why);
}

#[test]
fn this_machine_can_be_sampled() {
    let root = Path::new("/");
    let target = Target::Pid(std::process::id()).resolve(root).unwrap();
    let mut samplers = Samplers::new(Scope::of(root, &target));
    let first = samplers.sample(0);
    for name in ["proc/stat", "proc/meminfo", "proc/net/snmp", "proc/net/netstat", "proc/pid"] {
        assert!(!source(&first, name).is_empty(), "{name}");
    }
    let own = source(&first, "proc/pid");
    let open = own[&format!("{} open_files", std::process::id())];
    let counted = std::fs::read_dir("/proc/self/fd").unwrap().count() as f64;
    assert!((open - counted).abs() < 60.0, "{open} against {counted}");
    assert!(samplers.last(1).len() >= first.len());
}

#[test]
fn every_sampler_says_what_it_needs() {
    let root = fake();
    let needs = samplers(&root).needs();
    let names: HashSet<_> = needs.iter().map(|(name, _)| *name).collect();
    assert_eq!(names.len(), needs.len(), "two samplers share a name");
    assert!(needs.iter().all(|(_, needs)| needs.contains("unknown")), "{needs:?}");
}

#[test]
fn every_file_is_registered() {
    let list = include_str!("../samplers.rs");
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/src/samplers");
    for entry in std::fs::read_dir(dir).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().trim_end_matches(".rs").to_string();
        assert!(list.contains(&format!("mod {name};")), "samplers/{name}.rs is not in the list");
    }
}

/// A cgroup of version 2 that has all limits.
fn limited(root: &FakeRoot) {
    root.file("proc/self/mountinfo", "26 23 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
        .file("proc/10/cgroup", "0::/app\n")
        .file("sys/fs/cgroup/app/cpu.stat", "usage_usec 7\nnr_periods 3\nnr_throttled 2\nthrottled_usec 5\n")
        .file("sys/fs/cgroup/app/cpu.max", "20000 100000\n")
        .file("sys/fs/cgroup/app/memory.max", "8192\n")
        .file("sys/fs/cgroup/app/memory.current", "4096\n")
        .file("sys/fs/cgroup/app/memory.events.local", "high 1\nmax 8\noom_kill 1\n")
        .file("sys/fs/cgroup/app/memory.stat", "pgmajfault 9\n")
        .file("sys/fs/cgroup/app/cgroup.events", "frozen 1\n")
        .file("sys/fs/cgroup/app/cgroup.stat.local", "frozen_usec 17\n")
        .file("sys/fs/cgroup/app/pids.max", "100\n")
        .file("sys/fs/cgroup/app/pids.current", "2\n");
}

/// A host on which every file has what it can have.
fn full() -> FakeRoot {
    let root = fake();
    limited(&root);
    let names = |protocol: &str, source: &str| {
        let keys: Vec<&str> = ALL.iter().filter(|key| key.source == source).map(|key| key.name).collect();
        format!("{protocol}: {}\n{protocol}: {}\n", keys.join(" "), vec!["1"; keys.len()].join(" "))
    };
    let memory: String = ALL
        .iter()
        .filter_map(|key| (key.source == meminfo::SOURCE).then(|| key.name.strip_suffix("_bytes")).flatten())
        .map(|name| format!("{name}: 1 kB\n"))
        .collect();
    let listener = "0: 00000000:0050 00000000:0000 0A 00000000:00000004 00:00000000 00000000 0 0 77 1\n";
    root.file("proc/stat", "cpu 1 1 1 1 1 1 1 1\nctxt 5\nprocesses 1\nprocs_running 1\nprocs_blocked 1\n")
        .file("proc/meminfo", memory)
        .file(
            "proc/vmstat",
            "pgmajfault 1\npswpin 1\npswpout 1\noom_kill 1\npgscan_direct 1\npgsteal_direct 1\nallocstall 1\nworkingset_refault_file 1\n",
        )
        .file("proc/pressure/cpu", "some avg10=0 total=1\nfull avg10=0 total=1\n")
        .file("proc/pressure/memory", "some avg10=0 total=1\n")
        .file("proc/pressure/io", "some avg10=0 total=1\n")
        .file("proc/diskstats", "8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n")
        .file("sys/block/sda/size", "1\n")
        .file("proc/10/net/dev", "head\nhead\neth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n")
        .file("sys/class/net/eth0/speed", "10000\n")
        .file("proc/net/softnet_stat", "1 1 1 0 0 0 0 0 0 0 0 0 0\n")
        .file("proc/10/net/snmp", names("Tcp", "proc/net/snmp"))
        .file("proc/10/net/netstat", names("TcpExt", "proc/net/netstat"))
        .file("proc/10/net/sockstat", "TCP: inuse 1 orphan 0 tw 0\n")
        .file("proc/10/net/sockstat6", "TCP6: inuse 1\n")
        .file("proc/10/net/snmp6", "Udp6InDatagrams 1\nUdp6RcvbufErrors 1\nUdp6MemErrors 1\n")
        .file("proc/10/net/stat/nf_conntrack", "drop early_drop insert_failed\n0 0 0\n")
        .file("proc/10/net/tcp", "head\n".to_string() + listener)
        .file("proc/sys/fs/file-nr", "1 0 9\n")
        .file("proc/sys/net/netfilter/nf_conntrack_count", "1\n")
        .file("proc/sys/net/netfilter/nf_conntrack_max", "9\n")
        .file("proc/10/limits", std::fs::read("/proc/self/limits").unwrap())
        .file("proc/10/io", "rchar: 1\nwchar: 1\nsyscr: 1\nsyscw: 1\n")
        .file("proc/10/status", "TracerPid:\t812\n");
    root
}

/// The kernel's own names: the fake root has whatever is asked for.
#[test]
fn counters_of_the_network_have_the_names_of_the_kernel() {
    for source in ["proc/net/snmp", "proc/net/netstat"] {
        let text = std::fs::read_to_string(format!("/{source}")).unwrap();
        let is_there = |key: &&Key| {
            let is_it = |line: &&str| key.entity.is_some_and(|entity| line.starts_with(&format!("{entity}: ")));
            text.lines().find(is_it).is_some_and(|names| names.split(' ').any(|name| name == key.name))
        };
        let unknown: Vec<&Key> = ALL.iter().filter(|key| key.source == source && !is_there(key)).collect();
        assert!(unknown.is_empty(), "this kernel has none of {unknown:?}");
    }
}

#[test]
fn every_counter_that_can_be_asked_for_is_written() {
    let root = full();
    let rows = samplers(&root).sample(1);
    let is_written = |key: &&Key| rows.iter().any(|row| row.source == key.source && row.name == key.name);
    let missing: Vec<&Key> = ALL.iter().filter(|key| !is_written(key)).collect();
    // Those come from a socket of the kernel's own, and from the capture itself.
    let others = [udp_sockets::SOURCE, local_ports::SOURCE, qdisc::SOURCE, speed::SOURCE, shared_listeners::SOURCE];
    let ours = |key: &&Key| others.contains(&key.source);
    let rest: Vec<&Key> = missing.into_iter().filter(|key| !ours(key)).collect();
    assert_eq!(rest, [&listeners::BACKLOG, &listeners::DROPS]);
}
