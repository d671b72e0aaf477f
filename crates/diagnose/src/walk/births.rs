// SPDX-License-Identifier: Apache-2.0
//! Who started threads, as servers do that have one for each connection: until then, what such a thread does was with whoever started
//! it.

use std::collections::BTreeMap;

use recording::tables::Birth;

/// Where on the way back a path is: this thread had the request until then.
#[derive(Clone, Copy)]
pub struct At {
    pub tid: u32,
    pub ns: f64,
}

/// Starts by thread, in the order of time.
pub struct Births<'r>(BTreeMap<u32, Vec<&'r Birth>>);

impl<'r> Births<'r> {
    pub fn new(rows: &'r [Birth]) -> Self {
        let mut by_thread: BTreeMap<u32, Vec<&Birth>> = BTreeMap::new();
        rows.iter().for_each(|row| by_thread.entry(row.tid).or_default().push(row));
        by_thread.values_mut().for_each(|births| births.sort_by_key(|row| row.t_ns));
        Self(by_thread)
    }

    /// Who was at what a thread was at, before somebody started it later than `from`; else the same one, from then on. Numbers of
    /// threads come again: the last start is its own.
    pub fn before(&self, at: At, from: f64) -> At {
        let births = self.0.get(&at.tid).map_or(&[][..], Vec::as_slice);
        let next = births.partition_point(|row| (row.t_ns as f64) < at.ns);
        let born = births[..next].last().filter(|row| row.t_ns as f64 > from);
        born.map_or(At { ns: from, ..at }, |row| At { tid: row.parent_tid, ns: row.t_ns as f64 })
    }
}

#[cfg(test)]
mod tests {
    use crate::walk::paths::tests::{PACKET, TIMER, request, told, wait};
    use crate::walk::tests as walk;

    /// Thread 2 is there for this connection alone; thread 1 takes one after the other, and sleeps before it starts a thread.
    #[test]
    fn a_thread_for_each_connection() {
        let request =
            "request t_ns=150e6 role=accepted port=80 pid=1 began_ns=100e6 began_tid=2 read_ns=146e6 ended_tid=2\n";
        let rows = [wait(1, 100.5, 30.0, PACKET), wait(1, 143.0, 40.0, TIMER), wait(1, 170.0, 25.0, PACKET)].concat();
        let told_with = |birth: &str| told(&format!("{request}{rows}{birth}"));
        let told = told_with("birth t_ns=145e6 pid=1 tid=2 comm=t2 parent_pid=1 parent_tid=1");
        let part = |words: &str| told.iter().find(|part| part.0 == words).map(|part| part.1);
        assert_eq!(told[0], ("before its turn: t1/1 in nanosleep".to_string(), 40.0));
        assert_eq!(part("before its turn: t1/1 on a CPU"), Some(4.5), "{told:?}");
        assert_eq!((part("t2/1 on a CPU"), part("before its turn: t2/1 on a CPU")), (Some(4.0), Some(1.0)), "{told:?}");
        let older = told_with("birth t_ns=45e6 pid=1 tid=2 comm=t2 parent_pid=1 parent_tid=1");
        assert_eq!(older[0], ("before its turn: t2/1 on a CPU".to_string(), 46.0));
    }

    /// Thread 2 is started for the answer by the one that reads what is asked, which slept before.
    #[test]
    fn a_thread_for_each_request() {
        let birth = "birth t_ns=145e6 pid=1 tid=2 comm=t2 parent_pid=1 parent_tid=1";
        let rows = [wait(1, 100.0, 50.0, PACKET), wait(1, 143.0, 40.0, TIMER), wait(1, 170.0, 25.0, PACKET)].concat();
        let told = told(&format!("{}{rows}{birth}", request(2)));
        assert_eq!((told[0].0.as_str(), told[0].1), ("t1/1 in nanosleep", 40.0));
        assert!(told.contains(&("t2/1 on a CPU".to_string(), 5.0)), "{told:?}");
    }

    /// The target asks a service that starts a thread for each connection, after a sleep.
    #[test]
    fn a_peer_with_a_thread_for_each_connection() {
        let rows = "wakeup t_ns=200e6 pid=1 tid=1 comm=a wait_ns=95e6 blocked_ns=95e6 syscall=0 context=thread waker_pid=9 waker_tid=12 waker_comm=srv waker_syscall=1 waker_stack=2
            wakeup t_ns=106e6 pid=9 tid=9 comm=srv wait_ns=90e6 blocked_ns=90e6 since_ns=10e6 cpu_ns=1e6 syscall=43 context=thread waker_pid=1 waker_tid=1 waker_comm=a
            wakeup t_ns=190e6 pid=9 tid=9 comm=srv wait_ns=80e6 blocked_ns=80e6 since_ns=106e6 cpu_ns=4e6 syscall=35 context=interrupt waker_stack=1\n";
        let chains = walk::walk(&format!("{rows}birth t_ns=195e6 pid=9 tid=12 comm=srv parent_pid=9 parent_tid=9"));
        assert_eq!((walk::told(&chains[0]).as_str(), chains[0].ns), ("a < srv < its own timer", 81e6));
        let none = walk::walk(rows);
        assert_ne!(walk::told(&none[0]), "a < srv < its own timer");
    }
}
