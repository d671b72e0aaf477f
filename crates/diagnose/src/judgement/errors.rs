// SPDX-License-Identifier: Apache-2.0
//! Which errors that the kernel counted are no everyday numbers.

mod answers;
mod away;
mod by_whom;
mod floors;

use std::collections::BTreeMap;

use recording::counters::udp_sockets;

use crate::case::Case;
use crate::facts::calls::Calls;
use crate::facts::counters::Counters;
use crate::facts::deaths::Deaths;
pub(crate) use crate::facts::errors::MIN_COUNT;
use crate::facts::errors::{Error, Errors, Kind};
use crate::facts::handshakes::Handshakes;
use crate::statistics::share;
use crate::wording::{count, percent};
pub(crate) use floors::{enough, floor, floor_of};

/// Of the entries that there may be: the table refuses new ones when it is full.
pub(crate) const TABLE_FULL: f64 = 0.98;

/// One kind of error above its floor.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Above {
    /// What happened, in words with its numbers.
    pub what: String,
    /// Of all that there was, 0 to 1.
    pub share: f64,
    /// What to do next.
    pub advice: String,
    /// What there is to say of it in a sentence more.
    pub about: &'static str,
}

/// Of most counters.
const OF_ALL: &str = "The counters are those of its whole network namespace.";

/// All that are above their floors, the largest share first.
pub(crate) fn above(case: &Case) -> Vec<Above> {
    let mut above = counted(case, |_| true);
    above.extend(table_full(case));
    above.extend(lie_unread(case));
    above.extend(answers::failed(case));
    above.sort_by(|a, b| b.share.total_cmp(&a.share));
    above
}

/// The largest of those that clients get instead of an answer: whatever makes the others slow, these come first.
pub(crate) fn instead_of_answers(case: &Case) -> Option<Above> {
    let turned_away = counted(case, |kind| matches!(kind, Kind::TurnedAway | Kind::NobodyThere | Kind::HungUp));
    turned_away.into_iter().chain(answers::to_clients(case)).max_by(|a, b| a.share.total_cmp(&b.share))
}

/// Those that are counted, of some kinds.
fn counted(case: &Case, is_one: fn(Kind) -> bool) -> Vec<Above> {
    let Ok(errors) = case.fact::<Errors>() else { return Vec::new() };
    let is_above = |error: &&Error| {
        let is_enough = error.at_most() >= enough(error.kind, error.share(), error.own.is_some());
        floor_of(case, error.kind).is_some_and(|floor| is_enough && error.share() >= floor)
    };
    errors.all.iter().filter(|error| is_one(error.kind)).filter(is_above).map(|error| told(case, error)).collect()
}

/// A table without room drops the next connection, if it has not yet.
fn table_full(case: &Case) -> Option<Above> {
    let handshakes = case.fact::<Handshakes>().ok()?;
    let used = handshakes.tracking_used?;
    let drops = if handshakes.tracking_drops > 0.0 { "drops" } else { "will drop" };
    (used >= TABLE_FULL).then(|| Above {
        what: format!("the table of connection tracking is {} full: it {drops} new connections", percent(used)),
        share: 1.0,
        advice: find_out("sysctl net.netfilter.nf_conntrack_count net.netfilter.nf_conntrack_max; conntrack -S"),
        about: OF_ALL,
    })
}

/// Datagrams that lie unread in a socket of the target's at every reading, more and more: nobody reads them, although the buffer is not
/// full yet. (What a socket holds that nobody ever meant to read does not grow.)
fn lie_unread(case: &Case) -> Option<Above> {
    let counters = case.fact::<Counters>().ok()?;
    let grows = |socket: &&str| counters.only_grows(udp_sockets::QUEUE_BYTES, socket);
    let socket = counters.entities(udp_sockets::SOURCE).find(grows)?;
    Some(Above {
        what: format!("datagrams lie unread at {socket} all the time, more and more"),
        share: 1.0,
        advice: find_out("ss -lunp"),
        about: "Whoever should read them stands still, or is much too slow.",
    })
}

/// The command that shows more.
fn find_out(command: &str) -> String {
    format!("find out why: `{command}`")
}

/// What to do next, and what there is to say in a sentence more.
fn beside(kind: Kind, see: &str) -> (String, &'static str) {
    match kind {
        Kind::TurnedAway => (
            "look in its log why: a limit of connections, clients or workers, or clients that it does not want".into(),
            "A service that takes a connection and closes it at once mostly has as many as its settings allow; else it refuses \
             these clients.",
        ),
        Kind::Crashed => (
            "look in its log and at its core (`coredumpctl info`, `dmesg`): what it did is in the stack there".into(),
            "Whatever request such a process had in hand got no answer, and a parent that starts another one hides it.",
        ),
        Kind::NobodyThere => (
            "compare the address that clients ask with those at which it listens (`ss -ltn`)".into(),
            "It listens at that port, but at another address, such as the loopback alone, or it was not there for a while.",
        ),
        Kind::HungUp => (
            "look in its log for workers that were killed or timed out, and for limits of time".into(),
            "A worker that dies in the midst of a request, or is killed because it took too long, closes what it has open: its \
             client gets an end instead of an answer.",
        ),
        Kind::GivenUp => (
            "look how long its clients wait before they give up".into(),
            "Clients reset a connection in which an answer is owed when their patience is over, or when they end.",
        ),
        _ => (find_out(see), OF_ALL),
    }
}

/// In the commands, `PID` stands for the target.
fn told(case: &Case, error: &Error) -> Above {
    if let Some(named) = by_whom::told(case, error) {
        return named;
    }
    let (what, see) = words(error.kind);
    let pid = case.recording.meta.target.pids.first().copied().unwrap_or(0).to_string();
    let of = match error.kind {
        Kind::Killed => String::new(),
        Kind::Crashed => return crashed(case, error),
        Kind::Failed(_) => return of_calls(case, error, (what, see)),
        _ => format!(" {} ({})", count(error.of), percent(error.share())),
    };
    let (advice, about) = beside(error.kind, &see.replace("PID", &pid));
    let share = if of.is_empty() { 1.0 } else { error.share() };
    Above { what: format!("{} {what}{of}", count(error.at_most())), share, advice, about }
}

/// Which of its processes crashed, and by what.
fn crashed(case: &Case, error: &Error) -> Above {
    let most = case.fact::<Deaths>().ok().and_then(|deaths| deaths.most.clone());
    let first = if case.fact::<Deaths>().is_ok_and(|deaths| deaths.kinds > 1) { "most of them " } else { "" };
    let most = most.map_or(String::new(), |(comm, signal)| format!(" ({first}{comm}, {signal})"));
    let (advice, about) = beside(error.kind, "");
    let what = match error.count {
        1.0 => format!("a process of it crashed{most}"),
        many => format!("{many} processes of it crashed{most}"),
    };
    Above { what, share: 1.0, advice, about }
}

/// Calls are counted for a small part of the time, and so are those that failed.
fn of_calls(case: &Case, error: &Error, (what, see): (&str, &str)) -> Above {
    let pid = whose(case, error).or(case.recording.meta.target.pids.first().copied()).unwrap_or(0);
    let see = see.replace("PID", &pid.to_string());
    let counted = case.fact::<Calls>().map_or(0.0, |calls| share(calls.windows.counted_ns, case.length_ns()));
    let calls = format!("{} calls in {} of the time", count(error.count), percent(counted));
    Above { what: what.replacen("calls", &calls, 1), share: 1.0, advice: find_out(&see), about: "" }
}

/// The process in which most of the counted calls failed so.
fn whose(case: &Case, error: &Error) -> Option<u32> {
    let Kind::Failed(result) = error.kind else { return None };
    let calls = case.fact::<Calls>().ok()?;
    let mut by_pid: BTreeMap<u32, u64> = BTreeMap::new();
    for ((pid, ..), call) in &calls.counted {
        *by_pid.entry(*pid).or_default() += call.results.get(&result).copied().unwrap_or(0);
    }
    by_pid.into_iter().filter(|(_, failed)| *failed > 0).max_by_key(|(_, failed)| *failed).map(|(pid, _)| pid)
}

fn words(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Unread => (
            "datagrams were dropped because nobody read them in time, of",
            "nstat -az UdpRcvbufErrors UdpMemErrors UdpInDatagrams",
        ),
        Kind::SentAgain => ("segments had to be sent again, of", "nstat -az TcpRetransSegs TcpOutSegs"),
        Kind::QueueFull => ("handshakes met a full accept queue, of", "nstat -az TcpExtListenOverflows; ss -ltn"),
        Kind::HalfOpenFull => (
            "handshakes met a full backlog of half-open connections, of",
            "nstat -az TcpExtTCPReqQFullDrop TcpExtTCPReqQFullDoCookies",
        ),
        Kind::ListenDropped => ("handshakes were dropped, of", "nstat -az TcpExtListenDrops TcpExtListenOverflows"),
        Kind::Filtered => ("SYNs of clients for its ports were dropped on this host, of", ""),
        Kind::NotMade => ("connections could not be made, beside", "nstat -az TcpAttemptFails TcpActiveOpens"),
        Kind::Damaged => ("segments came damaged, of", "nstat -az TcpInErrs TcpInSegs"),
        Kind::NotTracked => {
            ("packets were dropped by connection tracking, beside connections that were begun:", "conntrack -S")
        }
        Kind::Killed => {
            ("processes of its cgroup were killed for want of memory", "dmesg | grep -i oom; cat memory.events")
        }
        Kind::Failed(error) => failed(error),
        Kind::BrokenOff => ("of its questions were broken off by whom it asks, of", ""),
        Kind::HungUp => ("requests of clients got an end of their connection instead of an answer, of", ""),
        Kind::GivenUp => ("requests were broken off by their clients before the answer, of", ""),
        Kind::Crashed => ("processes crashed", ""),
        Kind::NobodyThere => ("connections to its port were refused, where nobody listens, of", ""),
        Kind::TurnedAway => ("connections were closed by the service before it had answered anything, of", ""),
    }
}

fn failed(error: i64) -> (&'static str, &'static str) {
    match error {
        -24 => (
            "calls failed because the process may open no more files (EMFILE)",
            "cat /proc/PID/limits; ls /proc/PID/fd | wc -l",
        ),
        -23 => ("calls failed because the host may open no more files (ENFILE)", "cat /proc/sys/fs/file-nr"),
        -99 => (
            "calls failed because no local port was free (EADDRNOTAVAIL)",
            "sysctl net.ipv4.ip_local_port_range; ss -s",
        ),
        -105 => ("calls failed for want of buffers (ENOBUFS)", "nstat -az; ss -m"),
        -12 => ("calls failed for want of memory (ENOMEM)", "dmesg; cat /proc/meminfo"),
        -111 => ("connections were refused (ECONNREFUSED)", "strace -f -e trace=connect -p PID"),
        _ => ("calls failed", "strace -f -c -p PID"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    fn errors(rows: &[(&str, &str, &str, f64)]) -> Vec<String> {
        let mut text = "meta host.arch=x86_64 length_ns=1e9 target.listen=[\"tcp 0.0.0.0:80\"]\n".to_string();
        for (source, entity, name, grew) in rows {
            text += &format!("counter source={source} entity={entity} name={name} value=5\n");
            text += &format!("counter t_ns=9 source={source} entity={entity} name={name} value={}\n", 5.0 + grew);
        }
        above(&Case::new(&parse(&text).unwrap())).into_iter().map(|error| error.what).collect()
    }

    const SNMP: &str = "proc/net/snmp";

    #[test]
    fn datagrams_that_nobody_read() {
        let found = errors(&[(SNMP, "Udp", "RcvbufErrors", 540.0), (SNMP, "Udp", "InDatagrams", 460.0)]);
        assert_eq!(found, ["540 datagrams were dropped because nobody read them in time, of 1000 (54 %)"]);
        assert!(errors(&[(SNMP, "Udp", "RcvbufErrors", 54.0), (SNMP, "Udp", "InDatagrams", 1e5)]).is_empty());
    }

    #[test]
    fn lost_segments_and_full_queues() {
        let lost = |n: f64| errors(&[(SNMP, "Tcp", "RetransSegs", n), (SNMP, "Tcp", "OutSegs", 1000.0)]);
        assert!(lost(30.0)[0].contains("(3.0 %)") && lost(5.0).is_empty());
        let full = errors(&[
            ("proc/net/netstat", "TcpExt", "TCPReqQFullDoCookies", 60.0),
            (SNMP, "Tcp", "PassiveOpens", 100.0),
        ]);
        assert!(full[0].starts_with("60 handshakes met a full backlog of half-open"), "{full:?}");
    }

    #[test]
    fn syns_that_a_filter_drops_and_none_that_tracking_has_no_entry_for() {
        let with = |untracked: u32| {
            let text = format!(
                "meta length_ns=1e9 target.pids=[7] target.listen=[\"tcp 0.0.0.0:80\"]
                 counter source=proc/net/snmp entity=Tcp name=PassiveOpens value=5
                 counter t_ns=9 source=proc/net/snmp entity=Tcp name=PassiveOpens value=85
                 counter source=nf_conntrack entity=\"\" name=drop value=0
                 counter t_ns=9 source=nf_conntrack entity=\"\" name=drop value={untracked}
                 frame id=1 symbol=nft_do_chain module=kernel kind=kernel\nstack id=1 frames=[1]
                 drop reason=NETFILTER_DROP protocol=tcp role=accepted port=80 begins=true stack=1 count=20"
            );
            above(&Case::new(&parse(&text).unwrap()))
        };
        let told = with(0);
        let what = "20 of 100 SYNs of clients for its ports (20 %) were dropped on this host before they came to it, by its packet filter";
        assert!(told[0].what.starts_with(what) && told[0].advice.contains("`nft list ruleset"), "{told:?}");
        assert!(with(20).iter().all(|above| !above.what.contains("SYNs of clients")), "{:?}", with(20));
    }

    #[test]
    fn connections_of_somebody_else() {
        assert!(errors(&[(SNMP, "Tcp", "AttemptFails", 60.0), (SNMP, "Tcp", "ActiveOpens", 100.0)]).is_empty());
    }

    #[test]
    fn whoever_refuses_chooses_no_words_of_the_command() {
        let advice = |peer: &str| {
            let text = format!(
                "meta host.arch=x86_64 length_ns=1e9
                 counter source=proc/net/snmp entity=Tcp name=AttemptFails value=5
                 counter t_ns=9 source=proc/net/snmp entity=Tcp name=AttemptFails value=65
                 counter source=proc/net/snmp entity=Tcp name=ActiveOpens value=5
                 counter t_ns=9 source=proc/net/snmp entity=Tcp name=ActiveOpens value=105
                 wait pid=1 tid=1 syscall=42 total_ns=9
                 retransmit kind=reset_received state=SYN_SENT role=made peer=\"{peer}\" count=60"
            );
            above(&Case::new(&parse(&text).unwrap())).remove(0).advice
        };
        assert_eq!(advice("[fd00::9]:81"), "find out why: `nc -vz fd00::9 81`");
        assert_eq!(advice("1.2.3.4; curl x"), "find out why: `nstat -az TcpAttemptFails TcpActiveOpens`");
        assert_eq!(advice("1.2.3.4:1;curl x"), "find out why: `nstat -az TcpAttemptFails TcpActiveOpens`");
    }

    #[test]
    fn clients_that_are_turned_away() {
        let with = |count: u32| {
            let text = format!(
                "meta length_ns=1e9 target.pids=[7] target.listen=[\"tcp 0.0.0.0:80\"]
                 counter source=proc/net/snmp entity=Tcp name=PassiveOpens value=5
                 counter t_ns=9 source=proc/net/snmp entity=Tcp name=PassiveOpens value=405
                 retransmit kind=reset_sent state=CLOSE role=accepted port=80 unanswered=true count={count}"
            );
            above(&Case::new(&parse(&text).unwrap()))
        };
        let told = with(100);
        let what = "100 connections were closed by the service before it had answered anything, of 400 (25 %)";
        assert_eq!((told[0].what.as_str(), told.len(), with(3).len()), (what, 1, 0));
        assert!(
            told[0].advice.contains("a limit of connections") && told[0].about.contains("its settings"),
            "{told:?}"
        );
    }

    #[test]
    fn answers_that_resets_take_away() {
        let with = |more: &str| {
            let text = format!(
                "meta length_ns=1e9 target.pids=[7] target.listen=[\"tcp 0.0.0.0:80\"]
                 counter source=s entity=e name=n value=1
                 exchange role=accepted port=80 stage=response count=960 began=1000 unanswered=40
                 exchange role=made peer=10.0.0.9:1 stage=response count=70 began=100 unanswered=30
                 retransmit kind=reset_received state=ESTABLISHED {more}"
            );
            above(&Case::new(&parse(&text).unwrap())).into_iter().map(|above| above.what).collect::<Vec<_>>()
        };
        let peers = "30 of its 100 questions to 10.0.0.9:1 (30 %) were broken off by a reset";
        assert_eq!(with("role=made peer=10.0.0.9:1 count=30"), [peers]);
        let clients = "40 requests were broken off by their clients before the answer, of 1000 (4.0 %)";
        assert_eq!(with("role=accepted port=80 count=50"), [clients]);
        assert!(with("role=made peer=10.0.0.9:1 count=9").is_empty() && with("role=others count=50").is_empty());
    }

    #[test]
    fn datagrams_that_lie_unread() {
        let with = |values: &[u32]| {
            let rows = values.iter().enumerate().map(|(t, value)| {
                format!(
                    "counter t_ns={t}e9 source=proc/net/udp entity=\"udp 0.0.0.0:53\" name=queue_bytes value={value}\n"
                )
            });
            let text = "meta length_ns=9e9 target.pids=[7]\n".to_string() + &rows.collect::<String>();
            above(&Case::new(&parse(&text).unwrap())).into_iter().map(|above| above.what).collect::<Vec<_>>()
        };
        assert_eq!(with(&[500, 900, 1500]), ["datagrams lie unread at udp 0.0.0.0:53 all the time, more and more"]);
        assert!(with(&[500, 500, 500]).is_empty(), "as a socket that nobody ever meant to read");
        assert!(with(&[500, 900, 0]).is_empty() && with(&[0, 900, 1000]).is_empty() && with(&[500, 900]).is_empty());
    }

    #[test]
    fn workers_that_crash() {
        let text = "meta length_ns=1e9 target.pids=[7]
             counter source=s entity=e name=n value=1
             death t_ns=1e9 pid=9 comm=worker signal=11 count=3\n";
        let told = above(&Case::new(&parse(text).unwrap()));
        assert_eq!((told[0].what.as_str(), told.len()), ("3 processes of it crashed (worker, SIGSEGV)", 1));
        let one = text.replace("count=3", "count=1");
        let told = above(&Case::new(&parse(&one).unwrap()));
        assert_eq!(told[0].what, "a process of it crashed (worker, SIGSEGV)");
        assert!(above(&Case::new(&parse(&text.replace("signal=11", "signal=15")).unwrap())).is_empty());
    }

    #[test]
    fn calls_that_fail() {
        let text = "meta host.arch=x86_64 length_ns=1e9
            counter source=s entity=e name=n value=1
            call_window length_ns=1e9
            call pid=1 tid=1 syscall=42 result=-99 count=300
            call pid=1 tid=1 syscall=0 result=-11 count=300
            call pid=1 tid=1 syscall=43 result=-24 count=3";
        assert_eq!(above(&Case::new(&parse(text).unwrap())).len(), 1);
    }
}
