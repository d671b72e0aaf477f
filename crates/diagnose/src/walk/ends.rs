// SPDX-License-Identifier: Apache-2.0
//! Where a walk ends: told by the stack of whoever ended the wait, and by the socket through which it was done.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use recording::tables::Wakeup;

use super::clients::Clients;
use super::inner_loops::InnerLoops;
use super::who;
use crate::answer::Gap;
use crate::case::Case;
use crate::facts::stacks::Stacks;
use crate::ledger::blocked::{FROZEN, STOPPED, TRACED};
use crate::syscall::{Family, family, timeout_ns};

/// What stands at the end of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Code on a CPU.
    OnCpu,
    /// Ready to run, without a CPU.
    RunQueue,
    /// A timer that the sleeper itself had set.
    Timer,
    /// A timer of the kernel's TCP: a retransmission, a delayed acknowledgement.
    TcpTimer,
    /// A block device.
    Disk,
    /// A packet from another host, or one that the kernel passed on later.
    Packet,
    /// A thread of the kernel.
    Kernel,
    /// Another interrupt.
    Interrupt,
    /// A client that asked for nothing until then: the sleeper was idle.
    Client,
    /// A signal, which interrupts whatever the sleeper waits for.
    Signal,
    /// Whoever let it go on: the sleeper was stopped, traced or frozen.
    Held,
    /// Another thread of the target: what that one waits for is counted there.
    HandOver,
    /// Waits too short to be looked at one by one.
    Short,
    /// What the waker did was not recorded.
    Unseen,
}

impl Kind {
    /// For people, as in "ends at …".
    pub fn words(self) -> &'static str {
        match self {
            Kind::OnCpu => "code on a CPU",
            Kind::RunQueue => "ready, without a CPU",
            Kind::Timer => "its own timer",
            Kind::TcpTimer => "a timer of TCP",
            Kind::Disk => "a disk",
            Kind::Packet => "a packet from the network",
            Kind::Kernel => "a thread of the kernel",
            Kind::Interrupt => "an interrupt",
            Kind::Client => "what a client sends next",
            Kind::Signal => "a signal",
            Kind::Held => "whoever held it (stopped, traced or frozen)",
            Kind::HandOver => "another thread of its own",
            Kind::Short => "many short waits",
            Kind::Unseen => "not recorded any further",
        }
    }
}

/// The end of a chain: what, who, and which code.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct End {
    /// What.
    pub kind: Kind,
    /// Process that did it; 0 = none, a bystander, or one of a program that is started again and again.
    pub pid: u32,
    /// Its thread's command name.
    pub comm: String,
    /// Kernel function, or a peer, that tells more; empty = none.
    pub detail: String,
}

impl End {
    /// An end at what the waker of a row did.
    pub fn of_waker(kind: Kind, row: &Wakeup, detail: impl Into<String>) -> Self {
        Self { kind, pid: row.waker_pid, comm: row.waker_comm.clone(), detail: detail.into() }
    }

    /// Name and process id of who did it; empty where it is nobody's doing, or nobody knows whose.
    pub fn name(&self) -> String {
        match self.kind {
            _ if self.comm.is_empty() => String::new(),
            Kind::OnCpu | Kind::RunQueue | Kind::Short | Kind::Unseen => self.process(),
            _ => String::new(),
        }
    }

    /// Name and process id of who was there, whatever ended it.
    pub fn process(&self) -> String {
        who::name(&self.comm, self.pid)
    }

    /// What to do to see what that one does.
    pub fn to_see(&self) -> String {
        match who::lasting(self.pid) {
            Some(_) => format!("diagnose {}", self.name()),
            None => format!("profile {}, of which there is a new process each time", self.comm),
        }
    }

    /// What it is, in words.
    pub fn words(&self) -> String {
        let detail = if self.detail.is_empty() { String::new() } else { format!(" ({})", self.detail) };
        format!("{}{detail}", self.kind.words())
    }

    /// An end that is the sleeper's own doing, or nobody's.
    fn of_sleeper(kind: Kind, row: &Wakeup, detail: impl Into<String>) -> Self {
        Self { kind, pid: row.pid, comm: row.comm.clone(), detail: detail.into() }
    }
}

/// Functions that fire the timer of a sleep or of a call with a timeout.
const TIMERS: &[&str] =
    &[OF_POLLS, "process_timeout", "timerfd_tmrproc", "timerfd_alarmproc", "it_real_fn", "posix_timer_fn"];

/// The one that ends calls that wait for files.
const OF_POLLS: &str = "hrtimer_wakeup";

/// Those of them that send a signal.
const ALARMS: &[&str] = &["it_real_fn", "posix_timer_fn"];

/// Functions that fire the timers of TCP.
const TCP_TIMERS: &[&str] =
    &["tcp_write_timer", "tcp_delack_timer", "tcp_keepalive_timer", "tcp_compressed_ack_kick", "tcp_pace_kick"];

/// Functions that end the request of a block device.
const DISKS: &[&str] = &["blk_mq_end_request", "blk_update_request", "bio_endio", "blk_mq_complete_request", "end_bio"];

/// Functions that deliver a signal.
const SIGNALS: &[&str] =
    &["complete_signal", "signal_wake_up", "send_signal_locked", "__send_signal", "prepare_signal", "do_signal_stop"];

/// Functions in which packets are passed from one interface to another of the same host, by the sender's own thread.
const LOCAL_PATHS: &[&str] = &["process_backlog", "veth_poll", "loopback_xmit"];

/// Functions by which a program brings packets from somewhere else: a VPN, the network of a container or of a virtual machine.
const CARRIERS: &[&str] = &["tun_get_user", "tap_get_user"];

/// Of a wait with a timeout, ns: so short before its end calls that count in ms cannot tell that from the end.
const DUE_NS: u64 = 1_000_000;

/// Timeouts of which the end is hardly met by accident, ns: of a loop that looks up each ms, every wait is that near to its end.
const RARE_NS: u64 = 10 * DUE_NS;

/// What a stack tells: the kind of end, and the function that told.
type Told = (Kind, String);

/// Tells ends.
pub struct Ends<'a> {
    case: &'a Case<'a>,
    stacks: &'a Stacks,
    inner_loops: &'a InnerLoops,
    pub clients: Arc<Clients>,
    /// By stack, and whether the waker was a bystander.
    known: RefCell<BTreeMap<(u32, bool), Option<Told>>>,
}

impl<'a> Ends<'a> {
    pub fn new(case: &'a Case<'a>, stacks: &'a Stacks, inner_loops: &'a InnerLoops) -> Result<Self, Gap> {
        Ok(Self { case, stacks, inner_loops, clients: case.fact()?, known: RefCell::default() })
    }

    /// The end at which the wait of a row stops; `None` = the waker's own time explains it.
    pub fn of(&self, row: &Wakeup) -> Option<End> {
        if is_held(row) {
            return Some(End::of_waker(Kind::Held, row, ""));
        }
        if self.clients.ended(self.case, row) {
            return Some(self.due(row).unwrap_or_else(|| End::of_waker(Kind::Client, row, "")));
        }
        let (kind, detail) = self.told(row).or_else(|| match row.context.as_str() {
            "thread" => None,
            "kernel thread" => Some((Kind::Kernel, row.waker_comm.clone())),
            _ => Some((Kind::Interrupt, String::new())),
        })?;
        let detail = match (kind, row.peer.is_empty()) {
            (Kind::Packet, false) if row.peer.contains(':') => format!("[{}]:{}", row.peer, row.remote_port),
            (Kind::Packet, false) => format!("{}:{}", row.peer, row.remote_port),
            _ => detail,
        };
        Some(End::of_sleeper(kind, row, detail))
    }

    /// The end of a wait that new work ended, where its timeout was over too, but for what calls that count in ms cannot tell: whoever
    /// slept finds both, and what had to be done by then is done.
    pub fn due(&self, row: &Wakeup) -> Option<End> {
        let slept = row.wait_ns.saturating_add(DUE_NS);
        if slept < RARE_NS {
            return None;
        }
        let timeout = u64::try_from(timeout_ns(&self.case.syscall(row.syscall), &row.args)?).ok()?;
        (RARE_NS..=slept).contains(&timeout).then(|| End::of_sleeper(Kind::Timer, row, OF_POLLS))
    }

    /// Whether a thread of the target had begun to poll one file before the capture, so that nobody knows what it waited for. That its time
    /// ran out says enough.
    pub fn is_of_unknown_file(&self, row: &Wakeup) -> bool {
        let polls = || matches!(self.case.syscall(row.syscall).as_str(), "poll" | "ppoll");
        let of_one = row.args.get(1) == Some(&1) && self.clients.is_own(row.pid);
        of_one && row.fd_kind.is_empty() && polls() && self.of(row).is_none_or(|end| end.kind != Kind::Timer)
    }

    /// Whether a signal cut the wait of a row short, so that its end says nothing about what was waited for.
    pub fn is_cut_short(&self, row: &Wakeup) -> bool {
        !is_held(row) && self.told(row).is_some_and(|(kind, _)| kind == Kind::Signal)
    }

    /// The innermost function that the waker was in, in words; empty where nothing is known.
    pub fn code_of_waker(&self, row: &Wakeup) -> String {
        match self.case.syscall(row.waker_syscall).as_str() {
            "none" => String::new(),
            call => format!("until it called {call}"),
        }
    }

    /// What the waker's stack says of the end of a wait, if it is no thread's own doing. A signal that was waited for is.
    fn told(&self, row: &Wakeup) -> Option<Told> {
        let told = self.told_by_stack(row.waker_stack, row.context == "interrupt").map(|(kind, name)| {
            // Who looks after a while whether it waits in vain (for a deadlock) goes on with the same wait.
            let is_alarm = ALARMS.contains(&name.as_str()) && self.inner_loops.has(self.case, row);
            (if is_alarm { Kind::Signal } else { kind }, name)
        });
        told.filter(|(kind, _)| *kind != Kind::Signal || !self.is_awaited_signal(row))
    }

    /// Whether a signal is what a wait was for: of the child that ends, where its parent has a handler, it comes first. Who waits
    /// without its clients waits for it as well: backends of a database tell each other so that a lock is free.
    fn is_awaited_signal(&self, row: &Wakeup) -> bool {
        let call = self.case.syscall(row.syscall);
        let of_child = || self.stacks.frames(row.waker_stack).any(|code| code.symbol.starts_with("do_notify_parent"));
        match family(&call) {
            Family::Child => of_child(),
            Family::Poll => row.context == "thread" && self.inner_loops.has(self.case, row),
            _ => matches!(call.as_str(), "rt_sigtimedwait" | "rt_sigsuspend" | "pause"),
        }
    }

    /// What a stack says, whoever sleeps.
    fn told_by_stack(&self, stack: u32, bystander: bool) -> Option<Told> {
        if let Some(known) = self.known.borrow().get(&(stack, bystander)) {
            return known.clone();
        }
        let names: Vec<&str> = self.stacks.frames(stack).map(|code| code.symbol.as_str()).collect();
        let told = classify(&names, bystander);
        self.known.borrow_mut().insert((stack, bystander), told.clone());
        told
    }
}

/// Whether the sleeper did not wait, but was kept from running.
fn is_held(row: &Wakeup) -> bool {
    row.state & (STOPPED | TRACED | FROZEN) != 0
}

fn classify(names: &[&str], bystander: bool) -> Option<Told> {
    let find = |list: &[&str]| names.iter().find(|name| list.iter().any(|wanted| name.starts_with(wanted)));
    for (kind, list) in
        [(Kind::TcpTimer, TCP_TIMERS), (Kind::Timer, TIMERS), (Kind::Disk, DISKS), (Kind::Signal, SIGNALS)]
    {
        if let Some(name) = find(list) {
            return Some((kind, (*name).to_string()));
        }
    }
    let receives = find(&["net_rx_action", "__napi_poll", "napi_poll"]).is_some();
    let deferred = bystander || find(&["run_ksoftirqd"]).is_some();
    // Whoever carries packets has no part in what is said with them.
    let carried = find(CARRIERS).is_some();
    (carried || receives && (deferred || find(LOCAL_PATHS).is_none())).then(|| (Kind::Packet, String::new()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    /// Where a wait ends that a client ended so long after its begin, of a loop with so many ms to its next timer. Of one that looks up
    /// every few ms each wait is that near to its end, whatever ends it.
    #[test]
    fn a_client_that_comes_when_a_timer_was_due() {
        let kind = |timeout: u32, wait_ns: u64| {
            let text = format!(
                "meta host.arch=x86_64 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
                 process pid=1 listen=[\"tcp 0.0.0.0:80\"]
                 wakeup pid=1 tid=1 syscall=232 args=[5,1,64,{timeout}] wait_ns={wait_ns} context=thread waker_pid=9 waker_tid=9 \
                 waker_family=2 waker_local_port=5000 waker_remote_port=80"
            );
            let recording = parse(&text).unwrap();
            let case = Case::new(&recording);
            let (stacks, inner_loops) = (case.fact().unwrap(), InnerLoops::default());
            Ends::new(&case, &stacks, &inner_loops).unwrap().of(&recording.rows::<Wakeup>()[0]).unwrap().kind
        };
        assert_eq!((kind(10, 9_100_000), kind(10, 10_200_000)), (Kind::Timer, Kind::Timer));
        for (timeout, wait_ns) in [(10, 8_900_000), (9, 8_900_000), (u32::MAX, 9_000_000_000), (0, 9_100_000)] {
            assert_eq!(kind(timeout, wait_ns), Kind::Client, "{timeout}");
        }
    }
}
