// SPDX-License-Identifier: Apache-2.0
//! The real kernel's files: targets and samplers on processes, namespaces and cgroups that the test makes itself.
//! What needs root or a version 1 cgroup tree is skipped without it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use recording::tables::{Counter, Process, Thread};
use rustix::net::sockopt::set_socket_reuseport;
use rustix::net::{self, AddressFamily, SocketType};
use testing::{given, need, need_of_host};
use wakewalk_collect::host_watch;
use wakewalk_collect::samplers::{Samplers, Scope};
use wakewalk_collect::target::{Target, processes};

const ROOT: &str = "/";
/// Bound of every wait for the kernel; reached only when something is broken.
const PATIENCE: Duration = Duration::from_secs(30);

/// A child that ends with the test.
struct Owned(Child);

impl Drop for Owned {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A folder of a cgroup tree that goes with the test; its processes must have ended.
struct Cgroup(PathBuf);

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The kernel may still be taking the last process out.
        let until = Instant::now() + PATIENCE;
        while fs::remove_dir(&self.0).is_err() && self.0.exists() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn is_root() -> Result<(), &'static str> {
    let root = fs::read_to_string("/proc/self/status").unwrap().lines().any(|line| line.starts_with("Uid:\t0\t"));
    given(root, "this is not root")
}

/// Asks until the answer is there.
fn poll<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < until, "no {what} within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn value(rows: &[Counter], source: &str, entity: &str, name: &str) -> Option<f64> {
    let found = rows.iter().rev().find(|row| row.source == source && row.entity == entity && row.name == name);
    found.map(|row| row.value)
}

/// Starts this test binary again as a process that listens, after `unshare(flags)`.
#[allow(unsafe_code, reason = "only the child itself can enter namespaces of its own")]
fn listening_child(flags: i32) -> (Owned, u16) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "the_listening_child", "--ignored", "--nocapture"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    // SAFETY: between fork and exec only unshare(2) is called, which is safe after a fork.
    unsafe {
        command.pre_exec(move || match libc::unshare(flags) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    let mut child = Owned(command.spawn().unwrap());
    let lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let port = lines.map_while(Result::ok).find_map(|line| line.split_once("port=")?.1.trim().parse().ok());
    (child, port.expect("the child did not say its port"))
}

#[test]
#[ignore = "not a test: the process that listening_child starts"]
fn the_listening_child() {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    println!("port={}", listener.local_addr().unwrap().port());
    let _ = std::io::stdin().read(&mut [0]); // until the parent closes the pipe
}

#[test]
fn ourselves_with_a_child() {
    let child = Owned(Command::new("sleep").arg("60").spawn().unwrap());
    let own = std::process::id();
    let found = Target::Pid(own).resolve(Path::new(ROOT)).unwrap();
    assert!(found.main == [own] && found.pids.contains(&child.0.id()), "{found:?}");
    assert!(!found.limits.allowed_cpus.is_empty() && found.limits.quota_cpus.is_none_or(|cpus| cpus > 0.0));
    let rows = processes(Path::new(ROOT), &[child.0.id()]);
    assert_eq!((rows[0].ppid, rows[0].pid), (own, child.0.id()));
}

#[test]
fn a_child_that_ended_is_refused_by_a_sentence() {
    let child = Command::new("true").spawn().unwrap();
    let pid = child.id();
    let error = poll("zombie", || Target::Pid(pid).resolve(Path::new(ROOT)).err());
    assert!(format!("{error:#}").contains("has ended and only waits"), "{error:#}");
    Owned(child);
    let error = Target::Pid(pid).resolve(Path::new(ROOT)).unwrap_err();
    assert!(format!("{error:#}").contains("there is no process"), "{error:#}");
}

#[test]
fn our_listener_and_its_accept_queue() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let found = Target::Port(address.port()).resolve(Path::new(ROOT)).unwrap();
    assert!(found.pids.contains(&std::process::id()), "{found:?}");
    let entity = format!("tcp {address}");
    assert!(found.listen.contains(&entity), "{:?}", found.listen);
    let mut samplers = Samplers::new(Scope::of(Path::new(ROOT), &found));
    let clients: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(address).unwrap()).collect();
    let backlog = poll("three in the accept queue", || {
        let rows = samplers.last(1);
        let waiting = value(&rows, "proc/net/listeners", &entity, "accept_queue")?;
        (waiting == clients.len() as f64).then(|| value(&rows, "proc/net/listeners", &entity, "backlog"))
    });
    assert!(backlog.is_some_and(|limit| limit >= 3.0), "{backlog:?} {:?}", samplers.gaps());
}

/// Two sockets with one address, of which nobody accepts from either: clients are dealt out to both.
#[test]
fn each_of_two_listeners_with_one_address() {
    need!(is_root());
    let open = |port: u16| {
        let socket = net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        set_socket_reuseport(&socket, true).unwrap();
        net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).unwrap();
        net::listen(&socket, 64).unwrap();
        TcpListener::from(socket)
    };
    let first = open(0);
    let address = first.local_addr().unwrap();
    let second = open(address.port());
    let found = Target::Port(address.port()).resolve(Path::new(ROOT)).unwrap();
    let mut samplers = Samplers::new(Scope::of(Path::new(ROOT), &found));
    let source = "proc/net/listeners/shared";
    let rows = samplers.sample(0);
    assert!(rows.iter().all(|row| row.source != source || !row.entity.contains(&address.to_string())), "nobody waits");
    let _clients: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(address).unwrap()).collect();
    let waiting = |rows: &[Counter], socket: &TcpListener| {
        let entity = format!("tcp {address} inode {}", rustix::fs::fstat(socket).unwrap().st_ino);
        ["accept_queue", "share_it", "holder"].map(|name| value(rows, source, &entity, name))
    };
    let rows = poll("both queues and whose they are", || {
        let rows = samplers.last(1);
        [&first, &second].iter().all(|socket| waiting(&rows, socket)[2].is_some()).then_some(rows)
    });
    let (a, b) = (waiting(&rows, &first), waiting(&rows, &second));
    assert_eq!(a[0].unwrap() + b[0].unwrap(), 20.0, "{a:?} {b:?}");
    assert_eq!((a[1], a[2]), (Some(2.0), Some(f64::from(std::process::id()))));
}

#[test]
fn our_socket_of_udp() {
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = udp.local_addr().unwrap();
    let found = Target::Port(address.port()).resolve(Path::new(ROOT)).unwrap();
    assert!(found.listen.contains(&format!("udp {address}")), "{:?}", found.listen);
}

#[test]
fn our_listener_of_ipv6() {
    let v6 = need_of_host!(TcpListener::bind("[::]:0"));
    let port = v6.local_addr().unwrap().port();
    let found = Target::Port(port).resolve(Path::new(ROOT)).unwrap();
    assert!(found.listen.contains(&format!("tcp [::]:{port}")), "{:?}", found.listen);
}

#[test]
fn a_listener_in_a_network_namespace_of_its_own() {
    need!(is_root());
    let (child, port) = listening_child(libc::CLONE_NEWNET);
    let found = Target::Port(port).resolve(Path::new(ROOT)).unwrap();
    assert_eq!(found.main, [child.0.id()]);
    assert_eq!(found.listen, [format!("tcp 0.0.0.0:{port}")]);
    let mut samplers = Samplers::new(Scope::of(Path::new(ROOT), &found));
    let rows = samplers.sample(0);
    assert_eq!(value(&rows, "proc/net/listeners", &found.listen[0], "accept_queue"), Some(0.0));
    let interfaces = || rows.iter().filter(|row| row.source == "proc/net/dev").map(|row| row.entity.as_str());
    assert!(interfaces().any(|name| name == "lo") && interfaces().all(|name| !name.starts_with("eth")));
    // Its stack has sent nothing yet, whatever the host's has.
    assert_eq!(value(&rows, "proc/net/snmp", "Tcp", "OutSegs"), Some(0.0));
    drop(child);
    // The namespace outlives its process for us, and what it counted can still be read.
    assert!(value(&samplers.last(1), "proc/net/snmp", "Tcp", "OutSegs").is_some());
}

#[test]
fn a_process_in_a_pid_namespace_has_an_inner_pid() {
    need!(is_root());
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child", "sleep", "60"]);
    let child = need!(command.spawn().map(Owned));
    let inner = poll("inner process", || {
        let found = Target::Pid(child.0.id()).resolve(Path::new(ROOT)).ok()?;
        let rows = processes(Path::new(ROOT), &found.pids);
        rows.into_iter().find(|row| row.comm == "sleep" && row.inner_pid == 1)
    });
    assert_eq!(inner.ppid, child.0.id());
    let found = Target::Pid(inner.pid).resolve(Path::new(ROOT)).unwrap();
    assert!(found.notes.iter().any(|note| note.contains("its pid is 1")), "{:?}", found.notes);
}

/// A cgroup in the version 1 tree of the cpu controller, with a tenth of a CPU.
fn tight_cgroup() -> Option<Cgroup> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let cpu = mounts.lines().find(|line| {
        line.contains(" - cgroup ")
            && line.rsplit(' ').next().is_some_and(|options| options.split(',').any(|o| o == "cpu"))
    })?;
    let mount = cpu.split(' ').nth(4)?;
    let dir = PathBuf::from(mount).join(format!("wakewalk-test-{}", std::process::id()));
    fs::create_dir(&dir).ok()?;
    let cgroup = Cgroup(dir);
    fs::write(cgroup.0.join("cpu.cfs_period_us"), "100000").ok()?;
    fs::write(cgroup.0.join("cpu.cfs_quota_us"), "10000").ok()?;
    Some(cgroup)
}

#[test]
fn a_cgroup_of_version_1_with_a_quota() {
    need!(is_root());
    let cgroup = need_of_host!(tight_cgroup().ok_or("no version 1 tree of the cpu controller"));
    let busy = Owned(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap());
    fs::write(cgroup.0.join("cgroup.procs"), busy.0.id().to_string()).unwrap();
    let found = Target::Cgroup(cgroup.0.clone()).resolve(Path::new(ROOT)).unwrap();
    let name = format!("/{}", cgroup.0.file_name().unwrap().to_string_lossy());
    assert_eq!((found.pids.as_slice(), found.limits.quota_cpus), (&[busy.0.id()][..], Some(0.1)));
    assert_eq!(found.limits.cgroup, name);
    assert_eq!(Target::Cgroup(PathBuf::from(&name)).resolve(Path::new(ROOT)).unwrap().pids, found.pids);
    assert_eq!(Target::Unit(name[1..].to_string()).resolve(Path::new(ROOT)).unwrap().pids, found.pids);
    let mut samplers = Samplers::new(Scope::of(Path::new(ROOT), &found));
    let throttled = |rows: &[Counter]| value(rows, "cgroup/cpu", &name, "nr_throttled");
    let first = throttled(&samplers.sample(0)).unwrap();
    poll("throttling", || throttled(&samplers.last(1)).filter(|count| *count > first));

    let seen = host_watch::watch(Path::new(ROOT), Duration::from_secs(2), &AtomicBool::new(false), &mut |_| {});
    let row = seen.rows::<Thread>().iter().find(|row| row.pid == busy.0.id()).unwrap();
    assert!(row.throttled_ns > 0 && row.throttled_ns > row.cpu_ns, "{row:?}");
    assert_eq!(value(seen.rows::<Counter>(), "cgroup/cpu", &name, "quota_ns"), Some(1e7));
    let process = seen.rows::<Process>().iter().find(|row| row.pid == busy.0.id()).unwrap();
    assert_eq!(process.cgroup, name);
    drop(busy);
    drop(cgroup);
}
