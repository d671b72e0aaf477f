// SPDX-License-Identifier: Apache-2.0
//! The walk over wakeups written as text, and over random ones.

use recording::Recording;
use recording::text::parse;

use super::chains::{Chain, Nature};
use super::{End, Kind, Node, Walk};
use crate::case::Case;

const HEAD: &str = "meta host.arch=x86_64 length_ns=1e9 target.pids=[1]
    process pid=1 listen=[\"tcp 0.0.0.0:80\"]
    frame id=1 symbol=hrtimer_wakeup module=kernel kind=kernel
    frame id=2 symbol=tcp_v4_rcv module=kernel kind=kernel
    frame id=3 symbol=process_backlog module=kernel kind=kernel
    frame id=4 symbol=net_rx_action module=kernel kind=kernel
    frame id=5 symbol=tcp_sendmsg module=kernel kind=kernel
    frame id=6 symbol=blk_mq_end_request module=kernel kind=kernel
    stack id=1 frames=[1]
    stack id=2 frames=[2,3,4,5]
    stack id=3 frames=[2,4]
    stack id=4 frames=[6]\n";

pub(super) fn walk(rows: &str) -> Vec<Chain> {
    let recording = parse(&format!("{HEAD}{rows}")).unwrap();
    let case = Case::new(&recording);
    case.fact::<Walk>().unwrap().chains.clone()
}

/// A chain as the names of its threads and its end.
pub(super) fn told(chain: &Chain) -> String {
    let mut words: Vec<&str> = chain.links.iter().map(|l| l.who.comm.as_str()).collect();
    words.push(chain.end.kind.words());
    words.join(" < ")
}

/// Everybody asks the next and waits for it for 100 ms; the last is explained by `end`.
fn asked_in_turn(threads: u32, end: &str) -> String {
    let row = |tid: u32| {
        format!(
            "wakeup t_ns={} pid={tid} tid={tid} comm=t{tid} wait_ns={} blocked_ns={} syscall=0 context=thread \
             waker_pid={next} waker_tid={next} waker_comm=t{next} waker_syscall=1 waker_stack=2\n",
            200_000_000 - tid * 100_000,
            100_000_000 - tid * 200_000,
            100_000_000 - tid * 200_000,
            next = tid + 1
        )
    };
    let mut rows: String = (1..threads).map(row).collect();
    rows += &format!(
        "wakeup t_ns={} pid={threads} tid={threads} comm=t{threads} wait_ns=96e6 blocked_ns=96e6 {end}",
        200_000_000 - threads * 100_000
    );
    rows
}

#[test]
fn five_and_more_hops_to_a_timer() {
    for threads in [2, 5, 9] {
        let chains = walk(&asked_in_turn(threads, "syscall=35 context=interrupt waker_tid=77 waker_stack=1"));
        let first = &chains[0];
        assert_eq!(first.links.len(), threads as usize, "{}", told(first));
        assert_eq!((first.end.kind, first.end.pid), (Kind::Timer, threads));
        let blamed: f64 = chains.iter().map(|c| c.ns).sum();
        assert!((blamed - 99.8e6).abs() < 1.0, "{blamed}");
        assert!(first.ns > 0.95 * 96e6, "{}", first.ns);
    }
}

#[test]
fn a_disk_a_packet_and_a_client() {
    let rows = "wakeup t_ns=100e6 pid=1 tid=1 comm=a wait_ns=50e6 blocked_ns=50e6 syscall=74 context=interrupt waker_stack=4
        wakeup t_ns=300e6 pid=1 tid=1 comm=a wait_ns=40e6 blocked_ns=40e6 syscall=0 family=2 remote_port=5432 peer=10.0.0.7 context=interrupt waker_stack=3
        wakeup t_ns=500e6 pid=1 tid=1 comm=a wait_ns=30e6 blocked_ns=30e6 syscall=232 context=thread waker_pid=9 waker_tid=9 waker_comm=wrk waker_remote_port=80 waker_stack=2
        wakeup t_ns=600e6 pid=1 tid=1 comm=a wait_ns=20e6 blocked_ns=20e6 syscall=232 context=interrupt waker_stack=3";
    let chains = walk(rows);
    let natures: Vec<(Kind, &str, Nature)> =
        chains.iter().map(|c| (c.end.kind, c.end.detail.as_str(), c.nature())).collect();
    assert_eq!(
        natures,
        [
            (Kind::Disk, "blk_mq_end_request", Nature::Waiting),
            (Kind::Packet, "10.0.0.7:5432", Nature::Waiting),
            (Kind::Client, "", Nature::Idle),
            (Kind::Packet, "", Nature::Untold),
        ]
    );
}

/// A VPN's daemon writes what came into the device: it brought the answer, and did not make anybody wait for it.
#[test]
fn who_carries_packets_is_not_waited_for() {
    let end = |frame: &str| {
        let rows = "wakeup t_ns=100e6 pid=1 tid=1 comm=a wait_ns=80e6 blocked_ns=80e6 syscall=0 family=2 remote_port=5432 peer=10.0.0.7 context=thread waker_pid=9 waker_tid=9 waker_comm=vpn waker_syscall=1 waker_stack=9";
        let stack = format!("frame id=9 symbol={frame} module=kernel kind=kernel\nstack id=9 frames=[2,3,4,9]\n");
        walk(&format!("{stack}{rows}"))[0].end.clone()
    };
    assert_eq!((end("tun_get_user").kind, end("tun_get_user").detail.as_str()), (Kind::Packet, "10.0.0.7:5432"));
    assert_eq!(end("tcp_write_xmit").kind, Kind::Unseen);
}

#[test]
fn a_waker_that_ran_is_the_end() {
    let rows = "wakeup t_ns=100e6 pid=1 tid=1 comm=a wait_ns=80e6 blocked_ns=80e6 syscall=0 context=thread waker_pid=2 waker_tid=2 waker_comm=b waker_syscall=1
        wakeup t_ns=10e6 since_ns=0 pid=2 tid=2 comm=b wait_ns=5e6 blocked_ns=5e6 cpu_ns=5e6 context=thread waker_tid=1
        wakeup t_ns=120e6 since_ns=10e6 pid=2 tid=2 comm=b wait_ns=15e6 blocked_ns=15e6 cpu_ns=70e6 run_queue_ns=25e6 context=thread waker_tid=1";
    let chains = walk(rows);
    let ends: Vec<(Kind, u32, f64)> = chains.iter().map(|c| (c.end.kind, c.end.pid, c.ns.round())).collect();
    assert_eq!(ends, [(Kind::OnCpu, 2, 58_947_368.0), (Kind::RunQueue, 2, 21_052_632.0)]);
    assert_eq!(chains[0].end.detail, "until it called write");
}

/// A shell has a handler for the signal of its children, which wakes it before its `wait4` sees that one ended. It had
/// waited before, shortly, until the child had its own memory.
#[test]
fn a_signal_that_is_waited_for_does_not_cut_the_wait_short() {
    let ends = |call: u32, symbol: &str| -> Vec<(Kind, u32)> {
        let rows = format!(
            "frame id=7 symbol=complete_signal module=kernel kind=kernel
            frame id=8 symbol={symbol} module=kernel kind=kernel
            stack id=5 frames=[7,8]
            wakeup t_ns=300e6 pid=1 tid=1 comm=a wait_ns=100e6 blocked_ns=100e6 syscall=0 context=thread waker_pid=2 waker_tid=2 waker_comm=sh waker_syscall=1
            wakeup t_ns=202e6 pid=2 tid=2 comm=sh wait_ns=1e6 blocked_ns=1e6 cpu_ns=1e6 syscall=58 context=thread waker_pid=3 waker_tid=3 waker_comm=sh waker_syscall=59
            wakeup t_ns=299e6 since_ns=202e6 pid=2 tid=2 comm=sh wait_ns=96e6 blocked_ns=96e6 cpu_ns=1e6 syscall={call} context=thread waker_pid=3 waker_tid=3 waker_comm=sleep waker_syscall=231 waker_stack=5
            wakeup t_ns=298e6 since_ns=201e6 pid=3 tid=3 comm=sleep wait_ns=94e6 blocked_ns=94e6 cpu_ns=1e6 syscall=230 context=interrupt waker_stack=1"
        );
        let most = |chain: &&Chain| chain.ns > 50e6;
        walk(&rows).iter().filter(most).map(|chain| (chain.end.kind, chain.end.pid)).collect()
    };
    // wait4, waitid, rt_sigtimedwait and pause.
    for (call, symbol) in [(61, "do_notify_parent"), (247, "do_notify_parent"), (128, "do_send_sig_info"), (34, "x")] {
        assert_eq!(ends(call, symbol), [(Kind::Timer, 3)], "{call}");
    }
    // Another signal ends a wait for a child, and any signal one for bytes: what for is not said.
    for (call, symbol) in [(61, "do_send_sig_info"), (0, "do_notify_parent")] {
        assert_ne!(ends(call, symbol), [(Kind::Timer, 3)], "{call}");
    }
}

#[test]
fn a_waker_that_never_waits_ran_as_much_as_the_clock_says() {
    let answer = |t_ns: u32| {
        format!(
            "wakeup t_ns={t_ns}e6 pid=1 tid=1 comm=a wait_ns=80e6 blocked_ns=80e6 syscall=0 context=thread waker_pid=2 \
             waker_tid=2 waker_comm=b waker_syscall=1\n"
        )
    };
    // It may have done anything before it was met; then the clock found it nine times of ten.
    let rows = format!("meta target.sample_hz=100\nneighbour pid=2 comm=b samples=90\n{}{}", answer(100), answer(200));
    let ends: Vec<(Kind, f64)> = walk(&rows).iter().map(|c| (c.end.kind, c.ns.round())).collect();
    assert_eq!(ends, [(Kind::Unseen, 88e6), (Kind::OnCpu, 72e6)]);
    let without = walk(&format!("{}{}", answer(100), answer(200)));
    assert_eq!(without.len(), 1, "nobody says that it ran");
    assert_eq!(without[0].end.kind, Kind::Unseen);
}

#[test]
fn new_work_for_the_waker_explains_nothing() {
    // The store answers after its timer; meanwhile others ask it, and the target asks once more.
    let rows = "wakeup t_ns=100e6 pid=1 tid=1 comm=proxy wait_ns=20e6 blocked_ns=20e6 syscall=232 context=thread waker_pid=2 waker_tid=2 waker_comm=store waker_local_port=90 waker_remote_port=555
        wakeup t_ns=88e6 since_ns=70e6 pid=2 tid=2 comm=store wait_ns=7e6 blocked_ns=7e6 syscall=232 context=thread waker_pid=8 waker_tid=8 waker_remote_port=90 waker_stack=2
        wakeup t_ns=92e6 since_ns=88e6 pid=2 tid=2 comm=store wait_ns=4e6 blocked_ns=4e6 syscall=232 context=thread waker_pid=1 waker_tid=1 waker_stack=2
        wakeup t_ns=100e6 since_ns=92e6 pid=2 tid=2 comm=store wait_ns=8e6 blocked_ns=8e6 syscall=232 context=interrupt waker_stack=1";
    let chains = walk(rows);
    assert_eq!(told(&chains[0]), "proxy < store < its own timer");
    assert!((chains[0].ns - 19e6).abs() < 1.0, "{}", chains[0].ns);
}

#[test]
fn a_client_on_a_unix_socket_is_told_by_whose_end_has_a_name() {
    let row = |ports: &str| {
        let rows = format!(
            "wakeup t_ns=100e6 pid=1 tid=1 comm=a wait_ns=50e6 blocked_ns=50e6 syscall=232 context=thread waker_pid=9 \
             waker_tid=9 waker_family=1 {ports}"
        );
        walk(&rows)[0].end.kind
    };
    assert_eq!(row("waker_remote_port=1"), Kind::Client);
    assert_eq!(row("waker_local_port=1"), Kind::Unseen);
    assert_eq!(row(""), Kind::Unseen);
}

#[test]
fn a_queue_that_somebody_else_fills_is_idleness() {
    // The broker's housekeeping timer ticks; its answer comes when another client has brought something.
    let rows = "wakeup t_ns=500e6 pid=1 tid=1 comm=worker wait_ns=400e6 blocked_ns=400e6 syscall=45 fd_kind=socket context=thread waker_pid=2 waker_tid=2 waker_comm=broker waker_local_port=6379 waker_remote_port=555
        wakeup t_ns=200e6 since_ns=90e6 pid=2 tid=2 comm=broker wait_ns=100e6 blocked_ns=100e6 syscall=232 context=interrupt waker_stack=1
        wakeup t_ns=300e6 since_ns=200e6 pid=2 tid=2 comm=broker wait_ns=100e6 blocked_ns=100e6 syscall=232 context=interrupt waker_stack=1
        wakeup t_ns=500e6 since_ns=300e6 pid=2 tid=2 comm=broker wait_ns=199e6 blocked_ns=199e6 syscall=232 context=thread waker_pid=8 waker_tid=8 waker_comm=pusher waker_remote_port=6379";
    let chains = walk(rows);
    assert_eq!((chains[0].nature(), chains[0].end.kind), (Nature::Idle, Kind::Client));
    assert!(chains.iter().all(|c| c.end.kind != Kind::Timer), "{chains:?}");
}

#[test]
fn bystanders_are_never_blamed() {
    let rows = "wakeup t_ns=100e6 pid=1 tid=1 comm=a wait_ns=50e6 blocked_ns=50e6 syscall=232 context=interrupt waker_pid=66 waker_tid=66 waker_comm=bystander waker_stack=1
        wakeup t_ns=200e6 pid=1 tid=1 comm=a wait_ns=50e6 blocked_ns=50e6 syscall=232 context=thread waker_pid=66 waker_tid=66 waker_comm=bystander waker_stack=3";
    for chain in walk(rows) {
        assert_ne!(chain.end.pid, 66, "{chain:?}");
    }
}

#[test]
fn a_lock_is_a_wait_and_a_hand_over_is_counted_elsewhere() {
    let row = |args: &str| {
        let rows = format!(
            "wakeup t_ns=100e6 pid=1 tid=1 comm=a wait_ns=50e6 blocked_ns=50e6 syscall=202 args={args} context=thread \
             waker_pid=1 waker_tid=5 waker_comm=b waker_syscall=202"
        );
        walk(&rows)[0].clone()
    };
    let lock = row("[4096,128,2,0]");
    assert_eq!((lock.nature(), lock.links[0].who.fd_kind.as_str()), (Nature::Waiting, "lock"));
    assert_eq!(row("[4096,393,7,0]").nature(), Nature::HandOver);
}

/// Rows of threads that wake each other at random, as the probe would write them.
fn random(seed: u64, threads: u32, rows: u32) -> Recording {
    let mut state = seed;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut woken = vec![0_u64; threads as usize + 1];
    let mut text = HEAD.to_string();
    let mut now = 0;
    for _ in 0..rows {
        now += next(3_000_000);
        let tid = next(threads.into()) as u32 + 1;
        let since = std::mem::replace(&mut woken[tid as usize], now);
        let wait = next((now - since).max(1)) + 1;
        let waker = next(threads.into()) + 1;
        let context = ["thread", "thread", "interrupt"][next(3) as usize];
        text += &format!(
            "wakeup t_ns={now} since_ns={since} pid={tid} tid={tid} comm=t{tid} wait_ns={wait} blocked_ns={wait} \
             cpu_ns={} syscall=0 context={context} waker_pid={waker} waker_tid={waker} waker_stack={}\n",
            (now - since).saturating_sub(wait),
            next(5)
        );
    }
    parse(&text).unwrap()
}

fn sum(node: &Node) -> f64 {
    node.ends.values().sum::<f64>() + node.children.values().map(sum).sum::<f64>()
}

#[test]
fn blame_adds_up_whatever_the_order_of_wakeups() {
    for seed in 0..40 {
        let recording = random(seed, 1 + seed as u32 % 7, 300);
        let case = Case::new(&recording);
        let walk = case.fact::<Walk>().unwrap();
        for (who, node) in &walk.waits {
            assert!((sum(node) - node.ns).abs() <= node.ns * 1e-6, "{who:?}: {} of {}", sum(node), node.ns);
        }
        let all: f64 = walk.waits.values().map(|n| n.ns).sum();
        assert!((all - walk.walked_ns).abs() < 1.0);
    }
}

#[test]
fn degenerate_rows_do_no_harm() {
    for rows in [
        "wakeup",
        "wakeup pid=1 tid=1 wait_ns=18446744073709551615 t_ns=18446744073709551615 context=thread waker_tid=1",
        "wakeup pid=1 tid=1 wait_ns=5e9 t_ns=1 blocked_ns=0 context=nonsense syscall=-5 waker_stack=99",
    ] {
        for chain in walk(rows) {
            assert!(chain.ns.is_finite() && chain.ns >= 0.0, "{rows}: {chain:?}");
        }
    }
}

#[test]
fn a_wait_is_shown_where_it_began_not_where_its_call_usually_is() {
    // One thread reads from its clients and, in the same call, from a database that it asks.
    let rows = "stack id=8 frames=[1]
        stack id=9 frames=[2]
        wait_stack t_ns=50e6 pid=1 tid=1 comm=a syscall=0 args=[4,0,0,0] stack=8
        wait_stack t_ns=151e6 pid=1 tid=1 comm=a syscall=0 args=[4,0,0,0] stack=8
        wait_stack t_ns=261e6 pid=1 tid=1 comm=a syscall=0 args=[5,0,0,0] stack=9
        wakeup t_ns=100e6 pid=1 tid=1 comm=a wait_ns=50e6 blocked_ns=50e6 syscall=0 family=2 local_port=80 remote_port=999 peer=10.0.0.9 context=interrupt waker_stack=3
        wakeup t_ns=200e6 since_ns=100e6 pid=1 tid=1 comm=a wait_ns=50e6 blocked_ns=50e6 syscall=0 family=2 local_port=80 remote_port=999 peer=10.0.0.9 context=interrupt waker_stack=3
        wakeup t_ns=300e6 since_ns=200e6 pid=1 tid=1 comm=a wait_ns=40e6 blocked_ns=40e6 syscall=0 family=2 local_port=777 remote_port=5432 peer=10.0.0.7 context=interrupt waker_stack=3
        wakeup t_ns=900e6 since_ns=800e6 pid=1 tid=1 comm=a wait_ns=20e6 blocked_ns=20e6 syscall=0 family=2 local_port=777 remote_port=6379 peer=10.0.0.8 context=interrupt waker_stack=3";
    let code = |peer: &str| {
        let chains = walk(rows);
        chains.iter().find(|chain| chain.links[0].who.peer.starts_with(peer)).map(|chain| chain.links[0].code)
    };
    assert_eq!(code("10.0.0.7"), Some(9));
    // Of a wait before which no stack was taken, the usual place.
    assert_eq!(code("10.0.0.8"), Some(8));
}

#[test]
fn ends_have_words() {
    let end = End { kind: Kind::HandOver, pid: 1, comm: String::new(), detail: String::new() };
    assert_eq!(end.kind.words(), "another thread of its own");
}

#[test]
fn signals_cut_waits_and_nothing_is_lost() {
    // The first waits 100 ms for the second, which sleeps; a signal hits the first after 60 ms and the second after 40.
    let row = |tid: u32, t_ms: u32, ns: &str, rest: &str| {
        format!("wakeup t_ns={t_ms}e6 pid={tid} tid={tid} comm=t{tid} wait_ns={ns} blocked_ns={ns} waits=1 {rest}\n")
    };
    let signal = "context=thread waker_pid=9 waker_tid=9 waker_comm=kill waker_syscall=62 waker_stack=5";
    let answer = "context=thread waker_pid=2 waker_tid=2 waker_comm=t2 waker_syscall=1 waker_stack=2";
    let text = "frame id=7 symbol=complete_signal module=kernel kind=kernel\n stack id=5 frames=[7]\n".to_string()
        + &row(1, 160, "60e6", &format!("syscall=0 {signal}"))
        + &row(1, 200, "40e6", &format!("syscall=0 since_ns=160e6 {answer}"))
        + &row(2, 140, "40e6", &format!("syscall=35 {signal}"))
        + &row(2, 200, "60e6", "syscall=35 since_ns=140e6 context=interrupt waker_tid=77 waker_stack=1");
    let chains = walk(&text);
    assert_eq!(told(&chains[0]), "t1 < t2 < its own timer");
    assert!((chains[0].ns - 100e6).abs() < 1e5, "{}", chains[0].ns);
}

#[test]
fn time_held_is_no_waiting() {
    let row = |state: u32| {
        format!(
            "wakeup t_ns=900e6 pid=1 tid=1 comm=api wait_ns=3e8 blocked_ns=3e8 syscall=232 state={state} context=thread \
             waker_pid=7 waker_tid=7 waker_comm=sh waker_syscall=62"
        )
    };
    for state in [4, 8, 16] {
        let chains = walk(&row(state));
        assert_eq!(
            (told(&chains[0]).as_str(), chains[0].nature()),
            ("api < whoever held it (stopped, traced or frozen)", Nature::Idle)
        );
    }
    assert_ne!(walk(&row(1))[0].end.kind, Kind::Held);
}

/// Workers that lock a file around accept: whoever has it waits for a client, and the others for that one.
#[test]
fn a_lock_on_a_file_around_accept_is_idleness() {
    let rows = |holder: &str| {
        format!(
            "wakeup t_ns=900e6 pid=1 tid=1 comm=a wait_ns=3e8 blocked_ns=3e8 syscall=73 fd_kind=file path=/run/accept state=1 \
             context=thread waker_pid=2 waker_tid=2 waker_comm=b waker_syscall=73\n\
             wakeup t_ns=899e6 since_ns=1 pid=2 tid=2 comm=b wait_ns=299e6 blocked_ns=299e6 {holder}"
        )
    };
    let first = |holder: &str| walk(&rows(holder)).into_iter().find(|c| c.links[0].who.call == "flock").unwrap();
    let idle = first("syscall=43 fd_kind=socket state=1 context=thread waker_pid=9 waker_tid=9 waker_comm=curl");
    assert_eq!((idle.end.kind, idle.nature()), (Kind::Client, Nature::Idle));
    let held = first("syscall=230 state=1 context=interrupt waker_stack=1");
    assert_eq!((held.end.kind, held.nature()), (Kind::Timer, Nature::Waiting));
}

/// The disk's interrupt came while a client was writing to us, and was served in its call.
#[test]
fn a_disk_that_is_done_in_the_call_of_a_client_is_no_request() {
    let row = |wait: &str| {
        format!(
            "wakeup t_ns=900e6 pid=1 tid=1 comm=a wait_ns=3e8 blocked_ns=3e8 {wait} context=thread waker_pid=9 waker_tid=9 \
             waker_comm=curl waker_syscall=1 waker_stack=4 waker_family=2 waker_local_port=5555 waker_remote_port=80"
        )
    };
    assert_eq!(walk(&row("syscall=75 fd_kind=file state=2 io_wait=true"))[0].end.kind, Kind::Disk);
    assert_eq!(walk(&row("syscall=0 fd_kind=socket state=1"))[0].end.kind, Kind::Client);
}

/// A shell that each request starts anew: its processes are one program, and none of them is there to be looked at.
#[test]
fn processes_of_one_program_are_added_up() {
    let request = |n: u32| {
        let (sh, ends) = (100 + n, 100 * (n + 1));
        format!(
            "wakeup t_ns={ends}e6 pid=1 tid=1 comm=a wait_ns=80e6 blocked_ns=80e6 syscall=0 context=thread waker_pid={sh} waker_tid={sh} waker_comm=sh waker_syscall=1
            wakeup t_ns={ends}e6 since_ns={}e6 pid={sh} tid={sh} comm=sh wait_ns=60e6 blocked_ns=60e6 cpu_ns=20e6 syscall=35 context=interrupt waker_stack=1\n",
            ends - 90
        )
    };
    let rows: String = (0..4).map(request).collect();
    let of = |head: &str| walk(&format!("{head}{rows}"));
    let again = of("process pid=0 instances=4 comm=sh\n");
    let ends: Vec<(Kind, String, f64)> =
        again.iter().map(|c| (c.end.kind, c.links.last().unwrap().who.name(), c.ns.round())).collect();
    assert_eq!(ends, [(Kind::Timer, "sh/*".into(), 240e6), (Kind::OnCpu, "a/1".into(), 80e6)]);
    assert_eq!((again[0].links[1].length_ns.round(), again[1].end.name().as_str()), (60e6, "sh/*"));
    // Where nothing was seen to start again, they are told apart.
    assert_eq!(of("").len(), 8);
    assert_eq!(of("process pid=0 instances=1 comm=sh\n").len(), 8);
    // One of that name that is none of the target's: it lasts, and has no row of its own.
    let other = "wakeup t_ns=2e9 pid=102 tid=102 comm=sh wait_ns=1e6 blocked_ns=1e6 syscall=35 context=interrupt waker_stack=1\n";
    let told = of(&format!("process pid=0 instances=4 comm=sh\n{other}"));
    assert!(told.iter().any(|chain| chain.links.last().unwrap().who.name() == "sh/102"), "{told:?}");
}
