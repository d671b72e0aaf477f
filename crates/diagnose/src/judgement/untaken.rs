// SPDX-License-Identifier: Apache-2.0
//! A listening socket from which nobody takes connections, beside others with the same address: a child that kept what its parent had
//! open, an old instance that was left. The kernel deals clients out to all of them, and those that it gets wait for good.

use recording::tables::Process;

use crate::case::Case;
use crate::facts::shared_listeners::{SharedListener, SharedListeners};
use crate::facts::workers::Workers;
use crate::judgement::hung::ALL_THE_TIME;
use crate::ledger::blocked::Blocked;
use crate::ledger::threads::{ThreadLedger, Threads};
use crate::statistics::share;
use crate::wording::count;

/// Connections in its queue on average.
const MIN_QUEUE: f64 = 1.0;

/// Share of the window with a queue.
const MIN_QUEUED: f64 = 0.7;

/// What is known of it.
pub(crate) struct Untaken {
    socket: SharedListener,
    /// Whose it is; none = no process of the target has it open.
    holder: Option<(u32, String)>,
    /// What that one does all the time, if it is nothing that who waits for work does: `is blocked all the time (socket read)`.
    stuck: Option<String>,
}

/// The one with the longest queue.
pub(crate) fn look(case: &Case) -> Option<Untaken> {
    let (sockets, workers) = (case.fact::<SharedListeners>().ok()?, case.fact::<Workers>().ok()?);
    let processes = case.recording.rows::<Process>();
    let stands = |socket: &&SharedListener| {
        socket.queue >= MIN_QUEUE && socket.queued >= MIN_QUEUED && socket.never_falls && socket.holders.is_some()
    };
    sockets.0.iter().filter(stands).find_map(|socket| {
        let holder = match (socket.holder, socket.holders) {
            (None, Some(0.0)) => None,
            // Its queue may be as long as it can be at each reading, and somebody take one now and then.
            (Some(pid), _) if workers.who.iter().all(|(accepts, _)| *accepts != pid) => {
                let comm = processes.iter().find(|row| row.pid == pid).map(|row| row.comm.clone());
                Some((pid, comm.unwrap_or_default()))
            }
            _ => return None,
        };
        let stuck = holder.as_ref().and_then(|(pid, _)| stuck(case, *pid));
        // One that works for clients may take from it between two looks.
        let works = holder.as_ref().is_some_and(|(pid, _)| demand(case, *pid) >= AT_WORK);
        // Where nobody was seen to accept, whoever does may be among those that were not.
        let is_known = holder.is_none() || !workers.who.is_empty() && !works;
        (stuck.is_some() || is_known).then(|| Untaken { socket: socket.clone(), holder, stuck })
    })
}

/// Of the window, in which a process has or wants a CPU: less is somebody who has nothing to do.
const AT_WORK: f64 = 0.1;

fn demand(case: &Case, pid: u32) -> f64 {
    let Ok(ledger) = case.fact::<Threads>() else { return 0.0 };
    let theirs = ledger.threads.iter().filter(|thread| thread.pid == pid);
    share(theirs.map(|thread| thread.lines.demand_ns()).sum(), case.length_ns())
}

/// What a thread of that process never left, and nobody does all the time who only waits for work or for a time.
fn stuck(case: &Case, pid: u32) -> Option<String> {
    const FOR_WORK: [Blocked; 5] = [Blocked::Accept, Blocked::Poll, Blocked::Futex, Blocked::Sleep, Blocked::Child];
    let ledger = case.fact::<Threads>().ok()?;
    let least = case.length_ns() * ALL_THE_TIME;
    let stands = |thread: &ThreadLedger| {
        let mut lines = thread.lines.blocked_ns.iter().filter(|(line, ns)| !FOR_WORK.contains(line) && **ns >= least);
        let computes = || (thread.lines.demand_ns() >= least).then(|| "computes all the time".to_string());
        lines.next().map(|(line, _)| format!("is blocked all the time ({})", line.words())).or_else(computes)
    };
    ledger.threads.iter().filter(|thread| thread.pid == pid).find_map(stands)
}

impl Untaken {
    /// As a headline.
    pub(crate) fn headline(&self) -> String {
        let stand = format!("{} connections stand at one of", count(self.socket.queue));
        match &self.holder {
            Some((pid, comm)) if let Some(stuck) = &self.stuck => {
                format!("{stand} its listeners: that of {comm}/{pid}, which {stuck}")
            }
            Some((pid, comm)) => format!("{stand} its listeners, which {comm}/{pid} has open and does not accept from"),
            None => {
                format!("{stand} {} listeners of {}, which is not the target's", count(self.socket.sockets), self.at())
            }
        }
    }

    /// What to do.
    pub(crate) fn advice(&self) -> String {
        match &self.holder {
            Some((pid, _)) if self.stuck.is_some() => {
                format!("see what it is at, and bound that: `eu-stack -p {pid}`")
            }
            Some((pid, comm)) => {
                format!("close the listener in {comm}/{pid}, or accept there: it was perhaps inherited (CLOEXEC)")
            }
            None => {
                let port = self.socket.address.rsplit(':').next().unwrap_or_default();
                format!("`ss -ltnp 'sport = :{port}'` shows whose it is: an old instance or a helper; end it")
            }
        }
    }

    /// More of it, as sentences.
    pub(crate) fn detail(&self) -> String {
        let whose = match &self.holder {
            Some((pid, comm)) => {
                let stuck = self.stuck.as_ref().map_or(String::new(), |stuck| format!(": it {stuck}"));
                format!("{comm} (pid {pid}) has that one open, and was not seen to accept{stuck}")
            }
            None => "no process of the target has that one open".into(),
        };
        format!(
            "{} sockets share the address {} (SO_REUSEPORT), and the kernel deals new connections out to all of them. {:.1} stood in the \
             queue of one on average, and it never got shorter: {whose}",
            count(self.socket.sockets),
            self.at(),
            self.socket.queue
        )
    }

    fn at(&self) -> &str {
        self.socket.address.trim_start_matches("tcp ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    /// One process accepts; another has, or has not, a listener of the same address open, in whose queue so many stand by and by.
    fn found(queue: [u32; 3], holder: &str) -> Option<Untaken> {
        stands(queue, holder, "230")
    }

    /// The same, where it stands in that call of x86-64.
    fn stands(queue: [u32; 3], holder: &str, call: &str) -> Option<Untaken> {
        with(queue, holder, (call, "0"))
    }

    /// The same, with so much CPU time.
    fn with(queue: [u32; 3], holder: &str, (call, cpu): (&str, &str)) -> Option<Untaken> {
        let mut text = "meta host.arch=x86_64 length_ns=3e9 target.pids=[1,2] target.listen=[\"tcp 0.0.0.0:80\"]
            process pid=1 comm=server listen=[\"tcp 0.0.0.0:80\"]
            process pid=2 comm=rotate listen=[\"tcp 0.0.0.0:80\"]
            thread t_ns=3e9 pid=1 tid=1 comm=server wall_ns=3e9 blocked_ns=3e9
            wait t_ns=3e9 pid=1 tid=1 syscall=43 state=1 total_ns=3e9
            call_window t_ns=1e9 length_ns=5e7
            call t_ns=1e9 pid=1 tid=1 syscall=43 count=9\n"
            .to_string();
        let blocked = if cpu == "0" { "3e9" } else { "0" };
        text += &format!(
            "thread t_ns=3e9 pid=2 tid=2 comm=rotate wall_ns=3e9 cpu_ns={cpu} blocked_ns={blocked}
             wait t_ns=3e9 pid=2 tid=2 syscall={call} state=1 total_ns={blocked}\n"
        );
        let mut counter = |t_ns: u64, name: &str, value: u32| {
            text += &format!(
                "counter t_ns={t_ns} source=proc/net/listeners/shared entity=\"tcp 0.0.0.0:80 inode 7\" name={name} value={value}\n"
            );
        };
        counter(0, "share_it", 2);
        (0..).zip(queue).for_each(|(second, queue)| counter(second * 1_000_000_000, "accept_queue", queue));
        holder.split_whitespace().for_each(|pair| {
            let (name, value) = pair.split_once('=').unwrap();
            counter(0, name, value.parse().unwrap());
        });
        look(&Case::new(&parse(&text).unwrap()))
    }

    #[test]
    fn held_by_who_does_not_accept() {
        let child = found([4, 9, 11], "holders=2 holder=2").unwrap();
        assert!(child.headline().contains("8 connections") && child.headline().contains("rotate/2 has open"));
        assert!(child.headline().len() < 110 && child.advice().len() < 110, "{} {}", child.headline(), child.advice());
        let stuck = stands([4, 9, 11], "holders=1 holder=2", "45 fd_kind=socket").unwrap();
        assert!(stuck.headline().contains("which is blocked all the time (socket read)"), "{}", stuck.headline());
        assert!(stuck.headline().len() < 110 && stuck.advice().contains("eu-stack -p 2"), "{}", stuck.advice());
        let computes = |cpu: &str| with([4, 9, 11], "holders=1 holder=2", ("230", cpu)).map(|found| found.headline());
        assert!(computes("3e9").unwrap().contains("which computes all the time"), "{:?}", computes("3e9"));
        assert_eq!(computes("1e9"), None, "at work, and may take one now and then");
        let left = found([4, 9, 9], "holders=0").unwrap();
        assert!(left.headline().contains("is not the target's"), "{}", left.headline());
        assert!(left.advice().contains("sport = :80") && left.headline().len() < 110);
        assert!(found([4, 9, 3], "holders=2 holder=2").is_none(), "somebody takes them");
        assert!(found([4, 9, 9], "holders=1 holder=1").is_none(), "who has it accepts, if not as fast as they come");
        assert!(found([4, 9, 9], "holders=3").is_none(), "all have it open, and whose it is cannot be told");
        assert!(found([4, 9, 9], "").is_none(), "not looked at");
        assert!(found([0, 1, 1], "holders=0").is_none());
    }
}
