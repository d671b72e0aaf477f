// SPDX-License-Identifier: Apache-2.0
//! The counters of table `counter` by name, defined once for those who write them and those who ask for them: a fact cannot
//! ask for one that nobody writes. A sampler may write more under names that are the kernel's own (`proc/net/snmp`).

/// Where a counter is read, and what it is called there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Column `source`.
    pub source: &'static str,
    /// Column `name`.
    pub name: &'static str,
    /// Column `entity`, of a counter that only one of them has; none = there are several, or one without a name.
    pub entity: Option<&'static str>,
}

macro_rules! entity {
    () => {
        None
    };
    ($entity:literal) => {
        Some($entity)
    };
}

/// Declares a module for each source, with a constant for each name and, where it has but one, its entity.
macro_rules! counters {
    ($($(#[$doc:meta])* $module:ident = $source:literal { $($key:ident = $name:literal $(of $entity:literal)?,)* })*) => {
        $(
            $(#[$doc])*
            pub mod $module {
                use super::Key;
                /// Column `source`.
                pub const SOURCE: &str = $source;
                $(
                    #[doc = concat!("`", $name, "`")]
                    pub const $key: Key = Key { source: SOURCE, name: $name, entity: entity!($($entity)?) };
                )*
            }
        )*
        /// All of them.
        pub const ALL: &[Key] = &[$($($module::$key,)*)*];
    };
}

counters! {
    /// CPU time by CPU, and totals of the host.
    stat = "proc/stat" {
        USER_NS = "user_ns", NICE_NS = "nice_ns", SYSTEM_NS = "system_ns", IDLE_NS = "idle_ns",
        IOWAIT_NS = "iowait_ns", IRQ_NS = "irq_ns", SOFTIRQ_NS = "softirq_ns", STEAL_NS = "steal_ns",
        CONTEXT_SWITCHES = "context_switches", FORKS = "forks", PROCS_RUNNING = "procs_running",
        PROCS_BLOCKED = "procs_blocked",
    }
    /// Gauges.
    loadavg = "proc/loadavg" { LOAD1 = "load1", LOAD5 = "load5", LOAD15 = "load15", }
    /// Gauges.
    meminfo = "proc/meminfo" {
        MEM_TOTAL = "MemTotal_bytes", MEM_FREE = "MemFree_bytes", MEM_AVAILABLE = "MemAvailable_bytes",
        BUFFERS = "Buffers_bytes", CACHED = "Cached_bytes", SWAP_TOTAL = "SwapTotal_bytes",
        SWAP_FREE = "SwapFree_bytes", DIRTY = "Dirty_bytes", WRITEBACK = "Writeback_bytes",
        ANON_PAGES = "AnonPages_bytes", SLAB = "Slab_bytes",
    }
    /// The whole host's; `ALLOCSTALL` over all zones; `REFAULTS` = pages of files that were read again soon after they had been taken away.
    vmstat = "proc/vmstat" {
        PGMAJFAULT = "pgmajfault", PSWPIN = "pswpin", PSWPOUT = "pswpout", OOM_KILL = "oom_kill",
        PGSCAN_DIRECT = "pgscan_direct", PGSTEAL_DIRECT = "pgsteal_direct", ALLOCSTALL = "allocstall",
        REFAULTS = "workingset_refault_file",
    }
    /// By `cpu`, `memory`, `io`: time in which some, or all, stood still.
    pressure = "proc/pressure" { SOME_NS = "some_ns", FULL_NS = "full_ns", }
    /// By disk; `IN_FLIGHT` is a gauge.
    diskstats = "proc/diskstats" {
        READS = "reads", READ_BYTES = "read_bytes", WRITES = "writes", WRITTEN_BYTES = "written_bytes",
        IN_FLIGHT = "in_flight", IO_NS = "io_ns", WEIGHTED_IO_NS = "weighted_io_ns",
    }
    /// By interface.
    net_dev = "proc/net/dev" {
        RX_BYTES = "rx_bytes", RX_PACKETS = "rx_packets", RX_ERRORS = "rx_errors", RX_DROPPED = "rx_dropped",
        TX_BYTES = "tx_bytes", TX_PACKETS = "tx_packets", TX_ERRORS = "tx_errors", TX_DROPPED = "tx_dropped",
    }
    /// By interface, a gauge.
    link = "sys/class/net" { SPEED = "speed_bits_per_s", }
    /// By CPU.
    softnet_stat = "proc/net/softnet_stat" {
        PROCESSED = "processed", DROPPED = "dropped", TIME_SQUEEZE = "time_squeeze",
    }
    /// By protocol: those that are asked for, of all that the kernel prints.
    snmp = "proc/net/snmp" {
        ACTIVE_OPENS = "ActiveOpens" of "Tcp", PASSIVE_OPENS = "PassiveOpens" of "Tcp",
        ATTEMPT_FAILS = "AttemptFails" of "Tcp", IN_SEGS = "InSegs" of "Tcp", OUT_SEGS = "OutSegs" of "Tcp",
        RETRANS_SEGS = "RetransSegs" of "Tcp", IN_ERRS = "InErrs" of "Tcp", OUT_RSTS = "OutRsts" of "Tcp",
        IN_DATAGRAMS = "InDatagrams" of "Udp", OUT_DATAGRAMS = "OutDatagrams" of "Udp", IN_ERRORS = "InErrors" of "Udp",
        RCVBUF_ERRORS = "RcvbufErrors" of "Udp", SNDBUF_ERRORS = "SndbufErrors" of "Udp",
        MEM_ERRORS = "MemErrors" of "Udp",
    }
    /// Datagrams of IPv6.
    snmp6 = "proc/net/snmp6" {
        IN_DATAGRAMS = "InDatagrams" of "Udp6", RCVBUF_ERRORS = "RcvbufErrors" of "Udp6", MEM_ERRORS = "MemErrors" of "Udp6",
    }
    /// By protocol: those that are asked for, of all that the kernel prints.
    netstat = "proc/net/netstat" {
        LISTEN_OVERFLOWS = "ListenOverflows" of "TcpExt", LISTEN_DROPS = "ListenDrops" of "TcpExt",
        REQ_Q_FULL_DROP = "TCPReqQFullDrop" of "TcpExt", REQ_Q_FULL_DO_COOKIES = "TCPReqQFullDoCookies" of "TcpExt",
        ORIG_DATA_SENT = "TCPOrigDataSent" of "TcpExt", TIMEOUTS = "TCPTimeouts" of "TcpExt",
        SYN_RETRANS = "TCPSynRetrans" of "TcpExt", RETRANS_FAIL = "TCPRetransFail" of "TcpExt",
        PAWS_TIME_WAIT = "PAWSTimewait" of "TcpExt", LOSS_PROBES = "TCPLossProbes" of "TcpExt",
        FAST_RETRANS = "TCPFastRetrans" of "TcpExt", DSACK_RECV = "TCPDSACKRecv" of "TcpExt",
        DELAYED_ACKS = "DelayedACKs" of "TcpExt",
    }
    /// By interface; the backlog is a gauge, and `EMULATES` is 1 where the queue is one of netem's.
    qdisc = "netlink/qdisc" {
        BACKLOG_BYTES = "backlog_bytes", SENT_BYTES = "sent_bytes", DROPS = "drops", OVERLIMITS = "overlimits",
        EMULATES = "emulates",
    }
    /// By listening socket of the target, TCP or Unix; queue and backlog are gauges. `DROPS` counts what a TCP one itself dropped.
    listeners = "proc/net/listeners" { ACCEPT_QUEUE = "accept_queue", BACKLOG = "backlog", DROPS = "drops", }
    /// By listening socket, of those of the target that share an address (SO_REUSEPORT) and in whose queue somebody stood: `tcp
    /// 0.0.0.0:80 inode 4711`; gauges. `SHARE_IT` is how many sockets have the address; `HOLDERS` how many of the target's processes have
    /// this one open, and `HOLDER` that whose it is: the one that has the fewest of them, where one has.
    shared_listeners = "proc/net/listeners/shared" {
        ACCEPT_QUEUE = "accept_queue", BACKLOG = "backlog", SHARE_IT = "share_it", HOLDERS = "holders", HOLDER = "holder",
    }
    /// By bound UDP socket of the target; gauges, but for the datagrams that the socket itself dropped.
    udp_sockets = "proc/net/udp" { QUEUE_BYTES = "queue_bytes", BUFFER_BYTES = "buffer_bytes", DROPS = "drops", }
    /// Sockets of the network namespace by protocol (`TCP`): those that are asked for; gauges.
    sockstat = "proc/net/sockstat" { IN_USE = "inuse", TIME_WAIT = "tw", }
    /// Local ports for connections to one destination, by destination; gauges. Read only where many are in use.
    local_ports = "local_ports" { USED = "used", OF_WHICH_TIME_WAIT = "time_wait", RANGE = "range", }
    /// Gauges.
    file_nr = "proc/sys/fs/file-nr" { ALLOCATED = "allocated", MAX = "max", }
    /// Of the target's network namespace; `COUNT` and `MAX` are gauges.
    conntrack = "nf_conntrack" {
        COUNT = "count", MAX = "max", DROP = "drop", EARLY_DROP = "early_drop", INSERT_FAILED = "insert_failed",
    }
    /// By process; open files, threads and resident memory are gauges.
    pid = "proc/pid" {
        OPEN_FILES = "open_files", OPEN_FILES_LIMIT = "open_files_limit", THREADS = "threads",
        RSS_BYTES = "rss_bytes", MINFLT = "minflt", MAJFLT = "majflt", UTIME_NS = "utime_ns",
        STIME_NS = "stime_ns", READ_CALLS = "read_calls", WRITE_CALLS = "write_calls",
        READ_BYTES = "read_bytes", WRITE_BYTES = "write_bytes", TRACER_PID = "tracer_pid",
    }
    /// By cgroup; quota and period are gauges.
    cgroup_cpu = "cgroup/cpu" {
        QUOTA_NS = "quota_ns", PERIOD_NS = "period_ns", NR_PERIODS = "nr_periods",
        NR_THROTTLED = "nr_throttled", THROTTLED_NS = "throttled_ns", USAGE_NS = "usage_ns",
    }
    /// By cgroup; limit and usage are gauges.
    cgroup_memory = "cgroup/memory" {
        LIMIT_BYTES = "limit_bytes", USAGE_BYTES = "usage_bytes", FAILCNT = "failcnt",
        OVER_HIGH = "over_high", OOM_KILL = "oom_kill", PGMAJFAULT = "pgmajfault",
    }
    /// By cgroup; gauges.
    cgroup_pids = "cgroup/pids" { CURRENT = "current", MAX = "max", }
    /// By cgroup; `FROZEN` is a gauge, 0 or 1.
    cgroup_freezer = "cgroup/freezer" { FROZEN = "frozen", FROZEN_NS = "frozen_ns", }
    /// The machine's speed, by a fixed piece of work that the capture does now and then.
    speed = "wakewalk/speed" { WORK_NS = "work_ns", WORKS = "works", }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_counter_has_two_names() {
        let mut all = ALL.to_vec();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), ALL.len());
    }
}
