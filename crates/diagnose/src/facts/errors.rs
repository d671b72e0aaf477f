// SPDX-License-Identifier: Apache-2.0
//! Errors that the kernel counted for the target: what was dropped, refused, reset or sent again, as a share of all that
//! there was. A number that stays below its floor is everyday.

use recording::counters::{Key, cgroup_memory, conntrack, netstat, snmp};

use super::calls::Calls;
use super::counters::Counters;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::statistics::share;
use crate::wording::{count, percent};

/// One kind of error above its floor.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// What happened, in words with its numbers.
    pub what: String,
    /// Of all that there was, 0 to 1.
    pub share: f64,
    /// A command that shows it.
    pub see: String,
}

/// All that are above their floors, the largest share first.
pub struct Errors {
    /// Them.
    pub found: Vec<Error>,
}

/// A counter of the network stack that counts errors, and what it is a share of.
struct Floor {
    entity: &'static str,
    errors: &'static [Key],
    /// What came or was made in all; errors are among it where they are in this list too.
    of: &'static [Key],
    /// Share from which on it is no everyday number.
    share: f64,
    /// As words: N … of M.
    what: &'static str,
    see: &'static str,
}

/// Below, chance decides.
const MIN_COUNT: f64 = 10.0;

/// Shares: of lost segments 1 % halves the throughput of a long connection; a datagram in a hundred is a retry that
/// somebody notices; clients that come and go reset a connection now and then, and a health check may be refused.
const FLOORS: &[Floor] = &[
    Floor {
        entity: "Udp",
        errors: &[snmp::RCVBUF_ERRORS, snmp::MEM_ERRORS],
        of: &[snmp::IN_DATAGRAMS, snmp::RCVBUF_ERRORS, snmp::MEM_ERRORS],
        share: 0.01,
        what: "datagrams were dropped because nobody read them in time, of",
        see: "nstat -az UdpRcvbufErrors UdpMemErrors UdpInDatagrams",
    },
    Floor {
        entity: "Tcp",
        errors: &[snmp::RETRANS_SEGS],
        of: &[snmp::OUT_SEGS],
        share: 0.01,
        what: "segments had to be sent again, of",
        see: "nstat -az TcpRetransSegs TcpOutSegs",
    },
    Floor {
        entity: "TcpExt",
        errors: &[netstat::LISTEN_OVERFLOWS],
        of: &[netstat::LISTEN_OVERFLOWS, snmp::PASSIVE_OPENS],
        share: 0.001,
        what: "handshakes met a full accept queue; others were taken:",
        see: "nstat -az TcpExtListenOverflows; ss -ltn",
    },
    Floor {
        entity: "TcpExt",
        errors: &[netstat::REQ_Q_FULL_DROP, netstat::REQ_Q_FULL_DO_COOKIES],
        of: &[netstat::REQ_Q_FULL_DROP, netstat::REQ_Q_FULL_DO_COOKIES, snmp::PASSIVE_OPENS],
        share: 0.001,
        what: "handshakes met a full backlog of half-open connections; others were taken:",
        see: "nstat -az TcpExtTCPReqQFullDrop TcpExtTCPReqQFullDoCookies",
    },
    Floor {
        entity: "Tcp",
        errors: &[snmp::ATTEMPT_FAILS],
        of: &[snmp::ACTIVE_OPENS, snmp::PASSIVE_OPENS],
        share: 0.05,
        what: "connections could not be made, beside",
        see: "nstat -az TcpAttemptFails TcpActiveOpens",
    },
    Floor {
        entity: "Tcp",
        errors: &[snmp::IN_ERRS],
        of: &[snmp::IN_SEGS],
        share: 0.001,
        what: "segments came damaged, of",
        see: "nstat -az TcpInErrs TcpInSegs",
    },
];

/// Errors of calls that say that something has run out; in the commands, `PID` stands for the target.
const RUN_OUT: &[(i64, &str, &str)] = &[
    (
        -24,
        "calls failed because the process may open no more files (EMFILE)",
        "cat /proc/PID/limits; ls /proc/PID/fd | wc -l",
    ),
    (-23, "calls failed because the host may open no more files (ENFILE)", "cat /proc/sys/fs/file-nr"),
    (-99, "calls failed because no local port was free (EADDRNOTAVAIL)", "sysctl net.ipv4.ip_local_port_range; ss -s"),
    (-105, "calls failed for want of buffers (ENOBUFS)", "nstat -az; ss -m"),
    (-12, "calls failed for want of memory (ENOMEM)", "dmesg; cat /proc/meminfo"),
    (-111, "connections were refused (ECONNREFUSED)", "strace -f -e trace=connect -p PID"),
];

impl Fact for Errors {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let counters = case.fact::<Counters>()?;
        let mut found: Vec<Error> = FLOORS.iter().filter_map(|floor| above(&counters, floor)).collect();
        found.extend(conntrack(&counters));
        found.extend(out_of_memory(&counters));
        found.extend(run_out(case));
        found.sort_by(|a, b| b.share.total_cmp(&a.share));
        Ok(Self { found })
    }
}

fn above(counters: &Counters, floor: &Floor) -> Option<Error> {
    let sum = |keys: &[Key]| {
        // What connections were taken is counted beside TCP's other numbers, wherever the errors are.
        let of = |key: &Key| counters.delta(*key, floor.entity).or_else(|| counters.delta(*key, "Tcp")).unwrap_or(0.0);
        keys.iter().map(of).sum::<f64>()
    };
    let (errors, of) = (sum(floor.errors), sum(floor.of));
    let part = share(errors, of);
    (errors >= MIN_COUNT && part >= floor.share).then(|| Error {
        what: format!("{} {} {} ({})", count(errors), floor.what, count(of), percent(part)),
        share: part,
        see: floor.see.to_string(),
    })
}

/// Of the entries that there may be: the table refuses new ones when it is full.
const FULL: f64 = 0.98;

fn conntrack(counters: &Counters) -> Option<Error> {
    let used = share(counters.max(conntrack::COUNT, "")?, counters.last(conntrack::MAX, "")?);
    (used >= FULL).then(|| Error {
        what: format!("the table of connection tracking is {} full: it drops new connections", percent(used)),
        share: 1.0,
        see: "sysctl net.netfilter.nf_conntrack_count net.netfilter.nf_conntrack_max; conntrack -S".to_string(),
    })
}

fn out_of_memory(counters: &Counters) -> Option<Error> {
    let of_groups =
        counters.entities(cgroup_memory::SOURCE).filter_map(|group| counters.delta(cgroup_memory::OOM_KILL, group));
    let kills = of_groups.fold(0.0, f64::max);
    (kills > 0.0).then(|| Error {
        what: format!("{} processes of its cgroup were killed for want of memory", count(kills)),
        share: 1.0,
        see: "dmesg | grep -i oom; cat memory.events".to_string(),
    })
}

/// Calls that failed for want of something, in the windows in which calls were counted.
fn run_out(case: &Case) -> Vec<Error> {
    let Ok(calls) = case.fact::<Calls>() else { return Vec::new() };
    let failed = |error: i64| calls.counted.values().filter_map(|call| call.results.get(&error)).sum::<u64>() as f64;
    let pid = case.recording.meta.target.pids.first().copied().unwrap_or(0).to_string();
    let rows = RUN_OUT.iter().map(|(error, what, see)| (failed(*error), what, see));
    let found = rows.filter(|(failed, ..)| *failed >= MIN_COUNT);
    let told = |(failed, what, see): (f64, &&str, &&str)| Error {
        what: format!("{} {what}", count(failed)),
        share: 1.0,
        see: see.replace("PID", &pid),
    };
    found.map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    fn errors(rows: &[(&str, &str, &str, f64)]) -> Vec<String> {
        let mut text = "meta host.arch=x86_64 length_ns=1e9\n".to_string();
        for (source, entity, name, grew) in rows {
            text += &format!("counter source={source} entity={entity} name={name} value=5\n");
            text += &format!("counter t_ns=9 source={source} entity={entity} name={name} value={}\n", 5.0 + grew);
        }
        let recording = parse(&text).unwrap();
        Case::new(&recording).fact::<Errors>().unwrap().found.iter().map(|e| e.what.clone()).collect()
    }

    #[test]
    fn datagrams_that_nobody_read() {
        let found =
            errors(&[(snmp::SOURCE, "Udp", "RcvbufErrors", 540.0), (snmp::SOURCE, "Udp", "InDatagrams", 460.0)]);
        assert_eq!(found, ["540 datagrams were dropped because nobody read them in time, of 1000 (54 %)"]);
        assert!(
            errors(&[(snmp::SOURCE, "Udp", "RcvbufErrors", 54.0), (snmp::SOURCE, "Udp", "InDatagrams", 1e5)])
                .is_empty()
        );
    }

    #[test]
    fn lost_segments_and_full_queues() {
        let lost =
            |n: f64| errors(&[(snmp::SOURCE, "Tcp", "RetransSegs", n), (snmp::SOURCE, "Tcp", "OutSegs", 1000.0)]);
        assert!(lost(30.0)[0].contains("(3.0 %)") && lost(5.0).is_empty());
        let full = errors(&[
            (netstat::SOURCE, "TcpExt", "ListenOverflows", 60.0),
            (snmp::SOURCE, "Tcp", "PassiveOpens", 100.0),
        ]);
        assert!(full[0].starts_with("60 handshakes met a full accept queue"), "{full:?}");
    }

    #[test]
    fn calls_that_fail() {
        let text = "meta host.arch=x86_64 length_ns=1e9
            counter source=s entity=e name=n value=1
            call_window length_ns=1e9
            call pid=1 tid=1 syscall=42 result=-99 count=300
            call pid=1 tid=1 syscall=43 result=-24 count=3";
        let found = Case::new(&parse(text).unwrap()).fact::<Errors>().unwrap().found.len();
        assert_eq!(found, 1);
    }
}
