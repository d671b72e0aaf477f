// SPDX-License-Identifier: Apache-2.0
use super::*;
use recording::text::parse;

fn calls(text: &str) -> std::sync::Arc<Calls> {
    let recording = parse(&format!("meta host.arch=x86_64\n{text}")).unwrap();
    Case::new(&recording).fact::<Calls>().unwrap()
}

#[test]
fn counted_calls() {
    let c = calls(
        "call_window id=1 kind=results length_ns=5e8 calls=1000 lost=10
         call_window id=2 kind=latency length_ns=1e8 calls=90
         call window=1 pid=1 tid=2 syscall=232 fd=4 argument_kind=timeout argument=0 result=0 count=900
         call window=1 pid=1 tid=2 syscall=232 fd=5 argument_kind=timeout argument=16777216 result=0 count=10
         call window=1 pid=1 tid=2 syscall=232 fd=5 argument_kind=timeout argument=-1 result=2 count=40
         call window=1 pid=1 tid=2 syscall=45 fd=6 argument_kind=size argument=1024 result=512 count=45
         call window=1 pid=1 tid=2 syscall=45 fd=6 argument_kind=size argument=1024 result=-11 count=5
         call_latency window=2 pid=1 tid=2 syscall=232 from_ns=128 count=80",
    );
    let (number, poll) = c.of_thread(1, 2).find(|(_, c)| c.name == "epoll_wait").unwrap();
    assert_eq!((number, poll.calls, poll.empty, poll.empty_at_once, poll.found), (232, 950, 910, 900, 40));
    assert_eq!(poll.per_second, 1900.0);
    assert_eq!(poll.timeouts, [(Timeout::Zero, 900), (Timeout::UpTo100ms, 10), (Timeout::Endless, 40)].into());
    assert_eq!(poll.descriptors[&4], OnDescriptor { calls: 900, empty: 900 });
    assert_eq!(poll.named_results(), [("0".to_string(), 910), ("2..3".to_string(), 40)]);
    assert_eq!(poll.latency, [(128, 80)].into());
    let receive = &c.counted[&(1, 2, 45)];
    assert_eq!((receive.empty_at_once, receive.found, receive.sizes[&1024]), (5, 45, 50));
    assert_eq!(receive.named_results()[0].0, "EAGAIN");
    assert_eq!((c.useful_per_second[&1], c.windows.count), (90.0, 2));
    assert_eq!((c.windows.lost, c.windows.calls), (10, 1090));
}

#[test]
fn what_a_ring_returns_says_nothing_about_what_it_found() {
    let c = calls(
        "call pid=1 tid=1 syscall=426 argument_kind=none result=0 count=900
         call pid=1 tid=1 syscall=426 argument_kind=none result=4 count=90
         sample pid=1 tid=1 kernel=true syscall=426 result=0 weight=50",
    );
    let ring = &c.counted[&(1, 1, 426)];
    assert_eq!((ring.calls, ring.empty, ring.found, c.sampled[&(1, 1, 426)].results), (990, 0, 0, 0));
}

#[test]
fn a_millisecond_is_a_wait_and_a_hundred_microseconds_are_not() {
    let c = calls(
        "call pid=1 tid=1 syscall=232 argument_kind=timeout argument=524288 result=0 count=5
         call pid=1 tid=1 syscall=230 argument_kind=timeout argument=65536 result=0 count=7
         call pid=1 tid=1 syscall=271 argument_kind=none result=0 count=3",
    );
    assert_eq!(c.counted[&(1, 1, 232)].empty_at_once, 0);
    assert_eq!(c.counted[&(1, 1, 230)].empty_at_once, 7);
    assert_eq!((c.counted[&(1, 1, 271)].empty_unknown_wait, c.counted[&(1, 1, 271)].per_second), (3, 0.0));
}

#[test]
fn sampled_registers() {
    let c = calls(
        "sample pid=1 tid=1 kernel=true syscall=232 args=[4,0,1,0] weight=3
         sample pid=1 tid=1 kernel=true syscall=0 weight=2
         frame id=1 symbol=__epoll_wait module=libc.so.6 kind=native\nstack id=1 frames=[1]
         sample pid=1 tid=1 kernel=false syscall=-1 result=0 stack=1
         sample pid=1 tid=1 kernel=false syscall=-1 result=7
         sample pid=1 tid=1 kernel=false syscall=-1",
    );
    let s = &c.sampled[&(1, 1, 232)];
    assert_eq!((s.samples, s.timeouts[&Timeout::Zero], s.results, s.empty_results), (3, 3, 1, 1));
    assert_eq!(c.sampled[&(1, 1, 0)].results, 0, "whose result 7 is cannot be told");
}
