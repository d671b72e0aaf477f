// SPDX-License-Identifier: Apache-2.0
use super::super::asking::{found, gap, silent};
use super::*;
use crate::facts::cpus::Neighbour;

#[test]
fn whoever_has_ended_has_no_name() {
    let gone = Neighbour { pid: 7, delayed_ns: 1e9, ..Neighbour::default() };
    assert_eq!(words::names(&[gone]), "a process that has ended (pid 7, 100 % of it)");
}

/// 4 s on CPUs 0 and 1 of four; CPU seconds of the target and of all on 0-1, and on 2-3.
fn machine(target: f64, allowed: f64, other: f64) -> String {
    let mut text = "meta length_ns=4e9 host.cpus=4 target.allowed_cpus=[0,1] target.sample_hz=100\n".to_string();
    for (cpu, busy) in [(0, allowed / 2.0), (1, allowed / 2.0), (2, other / 2.0), (3, other / 2.0)] {
        for (name, value) in [("user_ns", (busy * 1e9).round()), ("idle_ns", ((4.0 - busy) * 1e9).round())] {
            text += &format!("counter source=proc/stat entity=cpu{cpu} name={name} value=0\n");
            text += &format!("counter t_ns=4e9 source=proc/stat entity=cpu{cpu} name={name} value={value}\n");
        }
    }
    text + &format!("sample pid=1 tid=1 weight={}\n", (target * 100.0).max(1.0) as u32)
}

const HOGS: &str = "neighbour pid=50 comm=sh cgroup=/svc samples=300 delayed_ns=4.6e9
    neighbour pid=51 comm=sh cgroup=/svc samples=300 delayed_ns=4.5e9\n";

fn waits(cpu: f64, queue: f64) -> String {
    format!(
        "thread pid=1 tid=1 wall_ns=40e9 cpu_ns={} run_queue_ns={} blocked_ns={} voluntary_switches=100\n",
        (cpu * 1e9).round(),
        (queue * 1e9).round(),
        ((40.0 - cpu - queue) * 1e9).round()
    )
}

#[test]
fn a_noisy_neighbour_is_named() {
    let f = found(&RULE, &(machine(2.2, 8.0, 8.0) + HOGS + &waits(2.2, 9.1)));
    assert_eq!((f.confidence.as_str(), f.subject.pid, f.subject.comm.as_deref()), ("high", Some(50), Some("sh")));
    assert!(f.summary.contains("sh (pid 50, 51 % of it)") && f.summary.contains("81 %"), "{}", f.summary);
    assert!(!f.remedy.contains("affinity"), "the whole machine is full: {}", f.remedy);
}

/// Spare threads of a pool stand behind others for long, and whoever has a request in hand does not.
#[test]
fn long_waits_of_threads_without_a_request() {
    let with = |longest: u64| {
        let answers = format!(
            "exchange_window t_ns=4e9 length_ns=4e9
             exchange t_ns=4e9 role=accepted port=80 stage=response count=9000 sum_ns=9e8 \
             length_ns=[100000,{longest}] counts=[8000,1000]\n"
        );
        machine(2.2, 8.0, 8.0) + HOGS + &waits(2.2, 9.1) + &answers
    };
    assert!(silent(&RULE, &with(700_000)).contains("requests did not: 99 % of the answers took"));
    found(&RULE, &with(7_000_000));
    // Of fewer answers, some in a hundred may be slow, as long as that is not most of what clients wait for.
    let few = |quick: u64, slow: u64, ns: u64| {
        let counts = format!("[{quick},{slow}]");
        with(ns).replace("[8000,1000]", &counts).replace("count=9000", &format!("count={}", quick + slow))
    };
    assert!(silent(&RULE, &few(140, 9, 1_200_000)).contains("requests did not: 90 % of the answers took"));
    found(&RULE, &few(80, 9, 1_200_000));
    found(&RULE, &few(460, 40, 60_000_000));
}

/// Both neighbours ask the target for something, again and again; or they do not.
#[test]
fn its_own_clients_are_its_load_while_usual_requests_are_quick() {
    let with = |port: u32, half: u64| {
        let mut text = machine(2.2, 8.0, 8.0).replacen("meta ", "meta host.arch=x86_64 target.pids=[1] ", 1)
            + "process pid=1 listen=[\"tcp 0.0.0.0:80\"]\n"
            + HOGS
            + &waits(2.2, 9.1);
        text += &format!(
            "exchange_window t_ns=4e9 length_ns=4e9
             exchange t_ns=4e9 role=accepted port=80 stage=response count=9000 sum_ns=9e9 \
             length_ns=[{half},9000000] counts=[8000,1000]\n"
        );
        for (at, pid) in (1..=20).zip([50, 51].into_iter().cycle()) {
            text += &format!(
                "wakeup t_ns={at}e6 pid=1 tid=1 wait_ns=1e5 blocked_ns=1e5 syscall=232 context=thread waker_pid={pid} \
                 waker_tid={pid} waker_remote_port={port}\n"
            );
        }
        text
    };
    let why = silent(&RULE, &with(80, 200_000));
    assert!(why.contains("100 % of the time behind other processes was behind its own clients"), "{why}");
    found(&RULE, &with(80, 2_000_000));
    found(&RULE, &with(999, 200_000));
    // Over a Unix socket no answer is seen: one of two processes in the way asks, with half of the time behind both, or most of it.
    let unseen = |by_client: f64| {
        let text = with(80, 0).lines().filter(|line| !line.contains("exchange")).collect::<Vec<_>>().join("\n");
        let rival = 3.0 - by_client;
        let hogs = format!(
            "neighbour pid=50 comm=nginx samples=90 delayed_ns={by_client}e9\nneighbour pid=60 comm=backup samples=90 delayed_ns={rival}e9\n"
        );
        text.replace(HOGS, &hogs).replace("waker_pid=51 waker_tid=51", "waker_pid=50 waker_tid=50 family=1")
    };
    assert!(silent(&RULE, &unseen(2.2)).contains("73 % of the time behind other processes was behind its own clients"));
    found(&RULE, &unseen(1.2));
}

#[test]
fn the_ceiling_is_the_affinity() {
    let f = found(&RULE, &(machine(2.2, 7.9, 0.4) + HOGS + &waits(2.2, 9.1)));
    assert!(
        f.summary.contains("only CPUs 0-1, which are full, while the machine's other CPUs are 5.0 % busy"),
        "{}",
        f.summary
    );
    assert!(f.remedy.starts_with("Widen"));
}

#[test]
fn a_light_service_suffers_too() {
    found(&RULE, &(machine(0.2, 7.9, 7.9) + HOGS + &waits(0.2, 0.8)));
    silent(&RULE, &(machine(0.01, 7.9, 7.9) + HOGS + &waits(0.01, 0.03)));
}

#[test]
fn threads_that_meet_on_idle_cpus_are_no_shortage() {
    let met = machine(0.2, 1.0, 0.2) + HOGS + &waits(0.2, 0.2);
    assert!(silent(&RULE, &met).contains("happened to meet"));
}

#[test]
fn a_client_on_the_same_cpus_is_no_fault() {
    // Half of the wish for a CPU waited, most of it in hand-overs too short to be told.
    let client = "neighbour pid=50 comm=client samples=90 delayed_ns=0.4e9\n";
    assert!(silent(&RULE, &(machine(1.0, 6.0, 6.0) + client + &waits(1.0, 1.0))).contains("hand-overs"));
}

/// Two neighbours by whom so much was waited in short waits and in long ones, seconds.
fn lengths(short: f64, long: f64) -> String {
    let (short, long) = ((short * 1e9).round(), (long * 1e9).round());
    format!(
        "neighbour pid=50 comm=nginx samples=300 delayed_ns={} by_length_ns=[{short},0,0,0,0,{long}]\n",
        short + long
    )
}

#[test]
fn hand_overs_that_no_request_feels() {
    // Half of the demand behind a proxy on full CPUs, 50 µs at a time.
    let why = silent(&RULE, &(machine(1.0, 7.0, 7.0) + &lengths(0.9, 0.05) + &waits(1.0, 1.0)));
    assert!(why.contains("in waits of under 131 µs") && why.contains("it was 2.5 % (under 20 %)"), "{why}");
    // The same time in waits of 2 ms and more.
    let f = found(&RULE, &(machine(1.0, 7.9, 7.9) + &lengths(0.05, 0.9) + &waits(1.0, 1.0)));
    assert!(f.summary.contains("950 ms of it (48 %) while nginx"), "{}", f.summary);
}

#[test]
fn long_waits_on_cpus_that_were_full_in_bursts() {
    // The machine is used by half, but what waited longer than a tick found no CPU idle.
    let burst = "neighbour pid=50 comm=backup samples=300 delayed_ns=9e8 by_length_ns=[0,0,0,0,0,0,0,900000000]\n";
    found(&RULE, &(machine(1.0, 4.0, 4.0) + burst + &waits(1.0, 1.0)));
    assert!(
        silent(&RULE, &(machine(1.0, 4.0, 4.0) + &lengths(0.0, 0.9) + &waits(1.0, 1.0))).contains("happened to meet")
    );
}

#[test]
fn own_threads_are_not_a_neighbour() {
    let quiet = "neighbour pid=50 comm=sh samples=9 delayed_ns=1e9\n        neighbour pid=1 comm=svc own=true delayed_ns=19e9\n";
    let why = silent(&RULE, &(machine(7.8, 8.0, 0.0) + quiet + &waits(7.8, 20.0)));
    assert!(why.contains("behind its own threads"), "{why}");
    // By counters alone as well.
    silent(&RULE, &(machine(7.8, 8.0, 0.0) + &waits(7.8, 20.0)));
}

#[test]
fn a_saturated_control_and_stolen_time() {
    silent(&RULE, &(machine(8.0, 8.0, 0.0) + HOGS + &waits(8.0, 2.0)));
    let mut stolen = machine(1.0, 2.0, 0.0) + HOGS + &waits(1.0, 1.0);
    for cpu in ["cpu0", "cpu1"] {
        stolen += &format!(
            "counter source=proc/stat entity={cpu} name=steal_ns value=0\ncounter t_ns=4e9 source=proc/stat entity={cpu} name=steal_ns value=6e9\n"
        );
    }
    silent(&RULE, &stolen);
}

#[test]
fn by_counters_alone_it_is_medium() {
    let f = found(&RULE, &(machine(2.2, 8.0, 8.0) + &waits(2.2, 9.1)));
    assert_eq!((f.confidence.as_str(), f.subject.pid), ("medium", None));
    assert!(f.summary.contains("while other processes ran"));
}

#[test]
fn gaps() {
    gap(&RULE, "");
    assert!(gap(&RULE, &format!("meta length_ns=4e9\n{}", waits(2.2, 9.1))).why.contains("who ran instead"));
    let quota = "counter source=cgroup/cpu entity=/ name=nr_throttled value=0\ncounter t_ns=9 source=cgroup/cpu entity=/ name=nr_throttled value=40\ngap what=throttled why=x\n";
    silent(&RULE, &(machine(2.2, 8.0, 8.0) + HOGS + quota + &waits(2.2, 9.1)));
}
