// SPDX-License-Identifier: Apache-2.0
//! Locks of interpreters, which let one thread of a process run at a time: told by the functions in which a thread stands
//! before one.

use super::code::Code;

/// A lock of an interpreter.
#[derive(Debug, PartialEq, Eq)]
pub struct InterpreterLock {
    /// For people.
    pub name: &'static str,
    /// What shows who holds it, and in what; `PID` stands for the process.
    pub look: &'static str,
    /// Its condition variables are no others' too: Ruby's threads sleep for whatever they wait for on the one that each has.
    pub alone: bool,
    /// Part of the name of the program or library.
    module: &'static str,
    /// Beginnings of functions' names that take it or wait until another one has it.
    takes: &'static [&'static str],
    /// Calls of its library that take it back when something slow is over: the first function with a name, where those that
    /// take it have none.
    returns: &'static [&'static str],
}

static KNOWN: &[InterpreterLock] = &[
    InterpreterLock {
        name: "Python's GIL",
        look: "py-spy dump --pid PID",
        alone: true,
        module: "python",
        takes: &["take_gil", "drop_gil"],
        returns: &["PyEval_RestoreThread", "PyEval_AcquireThread", "PyGILState_Ensure"],
    },
    InterpreterLock {
        name: "Ruby's GVL",
        look: "rbspy snapshot --pid PID",
        alone: false,
        module: "ruby",
        takes: &["gvl_acquire", "gvl_yield", "thread_sched_wait_running_turn", "thread_sched_to_running"],
        returns: &[
            "rb_nogvl",
            "rb_thread_call_without_gvl",
            "rb_thread_call_with_gvl",
            "rb_thread_io_blocking_region",
            "rb_thread_schedule",
            "rb_thread_wait_for",
            "rb_threadptr_execute_interrupts",
        ],
    },
    InterpreterLock {
        name: "PyPy's GIL",
        look: "py-spy dump --pid PID",
        alone: true,
        module: "pypy",
        takes: &["RPyGilAcquire", "RPyGilYieldThread"],
        returns: &[],
    },
];

/// Functions of interpreters in which threads sleep, for whatever it is.
const WAITS: &[&str] = &["rb_native_cond_", "native_cond_"];

/// Of glibc, in which a thread stands before a mutex.
const MUTEX: &[&str] = &["__lll_lock_wait", "lll_lock_wait", "__pthread_mutex_lock", "pthread_mutex_lock"];

/// Whether a stack stands before the mutex in which an interpreter keeps its lock, not before a condition variable.
pub fn is_mutex<'a>(stack: impl IntoIterator<Item = &'a Code>) -> bool {
    stack.into_iter().find(|code| !code.symbol.is_empty()).is_some_and(|code| MUTEX.contains(&code.symbol.as_str()))
}

/// The lock before which a thread with this stack waits in futex, leaf first.
pub fn of<'a>(stack: impl IntoIterator<Item = &'a Code>) -> Option<&'static InterpreterLock> {
    for code in stack {
        let (symbol, file) = (code.symbol.as_str(), code.file());
        let Some(lock) = KNOWN.iter().find(|lock| file.contains(lock.module)) else {
            // Beyond the C library, whatever waits there waits for something of its own.
            if file.starts_with("libc") || file.starts_with("ld-") || file.starts_with("libpthread") {
                continue;
            }
            return None;
        };
        if symbol.is_empty() || WAITS.iter().any(|wait| symbol.starts_with(wait)) {
            continue;
        }
        let begins = |names: &[&str]| names.iter().any(|name| symbol.starts_with(name));
        return (begins(lock.takes) || begins(lock.returns)).then_some(lock);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtimes::Part;

    fn name(frames: &[(&str, &str)]) -> Option<&'static str> {
        let code = |(symbol, module): &(&str, &str)| {
            let [symbol, module, kind, source] = [symbol, module, "native", ""].map(str::to_string);
            Code { symbol, module, offset: 0, kind, source, part: Part::Own }
        };
        of(&frames.iter().map(code).collect::<Vec<_>>()).map(|lock| lock.name)
    }

    const WAIT: (&str, &str) = ("pthread_cond_timedwait", "/lib/libc.so.6");

    #[test]
    fn told_by_the_functions_that_take_it() {
        let python = "/usr/lib/libpython3.11.so.1.0";
        assert_eq!(name(&[WAIT, ("take_gil", python), ("sock_recv", python)]), Some("Python's GIL"));
        assert_eq!(name(&[WAIT, ("take_gil.constprop.0", "/usr/bin/python3.12")]), Some("Python's GIL"));
        let ruby = "/usr/lib/libruby-3.1.so.3.1.7";
        assert_eq!(name(&[WAIT, ("", ruby), ("", ruby), ("rb_nogvl", ruby)]), Some("Ruby's GVL"));
        let waits = ("rb_native_cond_wait", ruby);
        assert_eq!(name(&[WAIT, waits, ("", ruby), ("rb_threadptr_execute_interrupts", ruby)]), Some("Ruby's GVL"));
    }

    #[test]
    fn other_waits_of_interpreted_programs() {
        let python = "/usr/bin/python3.11";
        assert_eq!(
            name(&[WAIT, ("PyThread_acquire_lock_timed", python), ("lock_PyThread_acquire_lock", python)]),
            None
        );
        let ruby = "/usr/lib/libruby-3.1.so.3.1.7";
        assert_eq!(name(&[WAIT, ("", ruby), ("rb_mutex_lock", ruby), ("rb_nogvl", ruby)]), None);
        assert_eq!(name(&[WAIT, ("db_wait", "/usr/lib/mysql2.so"), ("rb_nogvl", ruby)]), None);
        assert_eq!(name(&[WAIT, ("take_gil", "/usr/bin/svc")]), None);
    }
}
