// SPDX-License-Identifier: Apache-2.0
//! A recording made up for the views of requests: a shop whose clients ask sixty times, and which asks a store each time. Three
//! of the requests take longer.

use std::fmt::Write as _;

use recording::Recording;
use recording::text::parse;

const HEAD: &str = "exchange_window t_ns=10e9 length_ns=10e9
    burst t_ns=10e9 length_ns=10e9
    process pid=1 listen=[\"tcp 0.0.0.0:8080\"]
    frame id=1 symbol=hrtimer_wakeup module=kernel kind=kernel
    frame id=2 symbol=net_rx_action module=kernel kind=kernel
    frame id=3 symbol=tcp_recvmsg module=kernel kind=kernel
    frame id=5 symbol=main module=/usr/bin/shop kind=native
    stack id=1 frames=[1]
    stack id=2 frames=[2]
    stack id=3 frames=[3]
    stack id=4 frames=[4,5]
    counter source=proc/net/listeners entity=\"tcp 0.0.0.0:8080\" name=backlog value=128
    counter source=proc/net/listeners entity=\"tcp 0.0.0.0:8080\" name=accept_queue value=0
    retransmit t_ns=1e9 kind=retransmit role=made peer=10.0.0.9:5432 count=7
    connection t_ns=10e9 role=accepted port=8080 looks=100 open=800 unanswered=26 unsent=6 on_its_way=2 nagle=6 nodelay=1 srtt_ns=8e5 min_rtt_ns=1e5 busy_ns=1e9
    connection t_ns=10e9 role=made peer=10.0.0.9:5432 looks=100 open=300 unanswered=24 on_its_way=6 nodelay=6 keepalive=6 srtt_ns=9e5 min_rtt_ns=1e5 retransmits=2 busy_ns=1e9
    connection t_ns=10e9 role=made peer=10.0.0.10:6379 looks=100 open=1200 on_its_way=1 nodelay=1 srtt_ns=1e5 min_rtt_ns=9e4 busy_ns=1e8
    exchange role=made peer=10.0.0.10:6379 stage=response count=60 sum_ns=3e7 length_ns=[500000] counts=[60]
    exchange role=made peer=10.0.0.10:6379 stage=read_wait count=60 sum_ns=3e6 length_ns=[50000] counts=[60]\n";

/// The shop is called `name`, as are its thread and a function of it.
pub fn recorded(name: &str) -> anyhow::Result<Recording> {
    let mut text = format!(
        "meta host.arch=x86_64 host.name=web-1 host.cpus=4 target.comm={name} length_ns=10e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:8080\"]
         frame id=4 symbol={name} module=/usr/bin/shop kind=native
         thread t_ns=10e9 pid=1 tid=1 comm={name} wall_ns=10e9 cpu_ns=3e8 blocked_ns=97e8\n"
    );
    text += HEAD;
    for nth in 0..60_u64 {
        one(&mut text, name, 100 + nth * 150, if nth % 20 == 7 { 90 } else { 30 })?;
    }
    for (role, stage, extra) in [
        ("accepted port=8080", "response", 10),
        ("accepted port=8080", "service", 6),
        ("made peer=10.0.0.9:5432", "response", 0),
    ] {
        let (usual, slow) = (30 + extra, 90 + extra);
        writeln!(
            text,
            "exchange role={role} stage={stage} count=60 sum_ns={}e6 length_ns=[{usual}000000,{slow}000000] counts=[57,3]",
            57 * usual + 3 * slow
        )?;
    }
    text += "exchange role=accepted port=8080 stage=read_wait count=60 sum_ns=24e7 length_ns=[3900000,4000000] counts=[20,40]\n";
    parse(&text)
}

/// A request that comes at some ms, is read 4 ms later, and waits for the store for so many ms.
fn one(text: &mut String, name: &str, at: u64, store: u64) -> std::fmt::Result {
    let (read, asks) = (at + 4, at + 7);
    let (answered, end) = (asks + store, asks + store + 3);
    writeln!(
        text,
        "request t_ns={end}e6 role=accepted port=8080 peer=192.0.2.7:40001 pid=1 began_ns={at}e6 began_tid=1 read_ns={read}e6 ended_tid=1
         request t_ns={answered}e6 role=made peer=10.0.0.9:5432 pid=1 began_ns={asks}e6 began_tid=1 read_ns={answered}e6 ended_tid=1
         wakeup t_ns={read}e6 pid=1 tid=1 comm={name} wait_ns=50e6 blocked_ns=50e6 since_ns={}e6 waits=1 cpu_ns=3e6 syscall=0 family=2 local_port=8080 remote_port=40001 context=interrupt waker_stack=2
         wakeup t_ns={answered}e6 pid=1 tid=1 comm={name} wait_ns={store}e6 blocked_ns={store}e6 since_ns={read}e6 waits=1 cpu_ns=3e6 syscall=45 family=2 local_port=4000 remote_port=5432 peer=10.0.0.9 stack=3 context=interrupt waker_stack=2
         sample t_ns={}e6 pid=1 tid=1 comm={name} stack=4 weight=1 syscall=-1",
        read - 52,
        read + 1
    )
}
