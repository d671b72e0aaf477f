// SPDX-License-Identifier: Apache-2.0
//! The glossary: what the words of a verdict mean, each once. A share names one of these as its whole.

/// A term and what it means, in the order in which a verdict needs them.
pub type Word = (&'static str, &'static str);

static WORDS: &[Word] = &[
    ("window", "What was observed, by the clock on the wall: `in 8.03 s`."),
    (
        "thread time",
        "Time of all threads of the target added up: ten threads that live through a window of 8 s have 80 s of it, whatever \
         they do.",
    ),
    ("cores", "CPU time in the window, divided by the window: 0.25 cores are a quarter of one CPU."),
    ("on-CPU time, CPU time", "Thread time on a CPU, the kernel's work for the thread included."),
    (
        "CPU demand",
        "Thread time in which a thread had a CPU or wanted one: CPU time, the wait in the run queue, what a quota held back.",
    ),
    (
        "run-queue wait",
        "Ready to run and not running yet: after a wakeup, or (preempted) because another one had its turn.",
    ),
    (
        "hand-over",
        "A wait in the run queue behind the very thread that woke one, or behind one's own: microseconds until it has done \
         its part, not a CPU that is missing.",
    ),
    ("blocked", "From the moment a thread gives its CPU away to wait until somebody wakes it."),
    (
        "waiting for work",
        "Blocked until somebody brings something to do: in accept, on a client's next request, on a timer of the loop, as a \
         parked thread of a pool. Nobody is slower for it.",
    ),
    (
        "active time",
        "Thread time without waiting for work: CPU demand, and being blocked on the way (on a lock, a disk, a database). \
         While it lasts somebody may be waiting for the target, so this is the whole of which a cause explains a share. \
         Several threads may be active for one request at once.",
    ),
    (
        "in hand",
        "A request that has come, or an answer that is owed: some of it was sent and the last word is the other side's.",
    ),
    (
        "unread, service",
        "Of a response time: until the target read the request, and from there to the first byte of the answer.",
    ),
    (
        "p50, p99",
        "Half of the answers took no longer than this; 99 of a hundred took no longer than that. Until the first byte of the \
         answer, at the endpoint that is named.",
    ),
    ("held", "Bytes of an answer that were written and stood in the target's own send queue."),
    ("before its turn", "The request lay unread meanwhile: the thread that read it later was at something else."),
    (
        "waiting for a client",
        "The thread that took the request then had waited for a client: for this one, or for another one that it serves.",
    ),
    (
        "got no answer, for … so far",
        "Connections on which an answer had been owed for 10 ms or longer, and that are none of the answers seen; how long ago \
         their requests had come, on average over the looks. They are in no response time.",
    ),
    (
        "of waits, of CPU",
        "Shares of one kind of request: of the time that clients waited, and of the CPU time that threads had for requests. \
         What has the CPU of a loop makes all others wait.",
    ),
    (
        "inside",
        "The request was with the program, and none of its threads waited for anything for its sake: it stood in a queue of the \
         program or of its runtime (goroutines, coroutines, tasks, promises), which the kernel does not see.",
    ),
    (
        "the interpreter's lock",
        "Python's GIL, Ruby's GVL: it lets one thread of a process run at a time, whatever the number of CPUs.",
    ),
    (
        "its turn",
        "In brackets behind a call: a wait for what other threads of the same kind hand around, such as a lock or a connection \
         of a pool.",
    ),
    (
        "its own timer",
        "Nobody ended the wait: the time ran out that whoever waits had set itself (a sleep, a timeout).",
    ),
    ("upstream, dependency", "Whom the target itself asks: a database, another service."),
    ("chain", "A wait, who ended it, what that one waited for meanwhile, and so on, to where it ends."),
    (
        "accept queue",
        "Connections that the kernel has made for the target and that it has not taken with accept() yet.",
    ),
    ("TIME_WAIT", "A connection that was closed from this end; the kernel keeps its ports for a minute."),
    (
        "network namespace",
        "The network stack of a container, or of the host: its counters are those of all processes in it.",
    ),
    ("wait calls", "System calls that ask whether there is something to do: epoll_wait, poll, select, a receive."),
    ("(under 25 %)", "In brackets behind a number: what it would have to reach, so that this is the cause."),
    (
        "thread time accounted for",
        "The ledger's lines, added up, of the thread time; what is missing is shown as its own line, never spread.",
    ),
    (
        "high, medium, low confidence",
        "Two independent sources agree and under 1 % of the evidence was lost; one source; a hint.",
    ),
];

/// The glossary.
#[must_use]
pub fn glossary() -> &'static [Word] {
    WORDS
}

#[cfg(test)]
mod tests {
    use super::glossary;

    #[test]
    fn each_once_in_sentences() {
        let mut terms: Vec<&str> = glossary().iter().map(|(term, _)| *term).collect();
        terms.sort_unstable();
        terms.dedup();
        assert_eq!(terms.len(), glossary().len());
        assert!(glossary().iter().all(|(_, means)| means.ends_with('.')));
    }
}
