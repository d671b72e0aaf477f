// SPDX-License-Identifier: Apache-2.0
//! Where runtimes and well-known servers keep threads that have no work, told from the functions on a waiting stack.
//!
//! A thread there waits for nobody: whoever wakes it brings work. Only functions that stand for nothing else are listed: the
//! one with which a runtime parks threads before locks too (Java's `Unsafe_Park`, `pthread_cond_wait`) says nothing.

use std::borrow::Cow;

use super::Part;
use super::code::Code;

/// Whether a runtime's function is met with nothing to do.
#[derive(Clone, Copy, PartialEq)]
enum Below {
    /// Always: nothing is run below it.
    Nothing,
    /// It runs work too: only where no function of that work is below it.
    Work,
}
use Below::{Nothing, Work};

/// Beginnings of functions' names, part of the name of the program or library that they must be in (empty = any), and what is run below
/// them.
const IDLE: &[(&str, &str, Below)] = &[
    // Go's scheduler: threads that have no goroutine to run.
    ("runtime.stopm", "", Nothing),
    ("runtime.stoplockedm", "", Nothing),
    ("runtime.findRunnable", "", Nothing),
    ("runtime.findrunnable", "", Nothing),
    ("runtime.templateThread", "", Nothing),
    ("runtime.sysmon", "", Nothing),
    // Rust.
    ("tokio::runtime::park::", "", Work),
    ("tokio::runtime::scheduler::multi_thread::park::", "", Nothing),
    ("tokio::runtime::scheduler::multi_thread::worker::Context::park", "", Nothing),
    ("tokio::runtime::blocking::pool::Inner::run", "", Work),
    ("rayon_core::sleep::Sleep::sleep", "", Nothing),
    ("rayon_core::registry::WorkerThread::wait_until_cold", "", Work),
    // Node.js, libuv, GLib.
    ("node::WorkerThreadsTaskRunner::", "node", Work),
    ("node::TaskQueue", "node", Nothing),
    ("node::(anonymous namespace)::PlatformWorkerThread", "node", Work),
    ("node::inspector::(anonymous namespace)::StartIoThreadMain", "node", Nothing),
    ("v8::platform::DefaultWorkerThreadsTaskRunner::", "", Work),
    ("worker", "libuv", Work),
    ("worker", "node", Work),
    ("g_thread_pool_wait_for_new_task", "", Nothing),
    // The JVM's own threads, and its pools where a perf map names them.
    ("WorkerThreads::", "libjvm", Nothing),
    ("WorkerThread::run", "libjvm", Nothing),
    ("GangWorker::loop", "libjvm", Nothing),
    ("CompileQueue::get", "libjvm", Nothing),
    ("WatcherThread::sleep", "libjvm", Nothing),
    ("ServiceThread::service_thread_entry", "libjvm", Nothing),
    ("MonitorDeflationThread::", "libjvm", Nothing),
    ("G1ConcurrentRefine", "libjvm", Nothing),
    ("G1ServiceThread::", "libjvm", Nothing),
    ("ConcurrentGCThread::", "libjvm", Nothing),
    ("java.util.concurrent.ForkJoinPool.awaitWork", "", Nothing),
    ("java.util.concurrent.ThreadPoolExecutor.getTask", "", Nothing),
    ("Ljava/util/concurrent/ForkJoinPool;::awaitWork", "", Nothing),
    ("Ljava/util/concurrent/ThreadPoolExecutor;::getTask", "", Nothing),
    // .NET, Erlang.
    ("LowLevelLifoSemaphore", "", Nothing),
    ("ThreadpoolMgr::WorkerThreadStart", "", Work),
    ("scheduler_wait", "beam", Nothing),
    ("erts_schedule", "beam", Nothing),
    ("erts_sched_", "beam", Nothing),
    ("aux_thread", "beam", Nothing),
    ("poll_thread", "beam", Nothing),
    // Servers.
    ("ngx_thread_pool_cycle", "nginx", Work),
    ("bioProcessBackgroundJobs", "", Work),
    ("ap_queue_pop", "", Nothing),
    ("Per_thread_connection_handler::block_until_new_connection", "", Nothing),
];

/// With what they wait until there is work: beginnings of the names of what is below them then, besides the C library.
const WAITING: &[&str] = &[
    "std::",
    "core::",
    "parking_lot",
    "tokio::runtime::",
    "tokio::loom::",
    "rayon_core::sleep::",
    "rayon_core::registry::",
    "uv_",
    "node::TaskQueue",
    "node::ConditionVariable",
    "v8::platform::",
    "v8::base::",
    "ngx_thread_",
    "CLR",
];

/// Whether a thread with these functions on its stack, innermost first, has no work.
pub fn parks<'a>(stack: impl IntoIterator<Item = &'a Code>) -> bool {
    let mut works = false;
    for code in stack {
        let symbol = plain(&code.symbol);
        let idle = IDLE.iter().find(|(name, module, _)| symbol.starts_with(*name) && code.file().contains(module));
        match idle {
            Some((.., Nothing)) => return true,
            Some((.., Work)) if !works => return true,
            _ => works |= is_work(code, &symbol),
        }
    }
    false
}

/// Without the brackets of Rust's names, which are not the same in both ways to mangle them.
fn plain(symbol: &str) -> Cow<'_, str> {
    match symbol.contains(['<', '>']) {
        true => symbol.replace(['<', '>'], "").into(),
        false => symbol.into(),
    }
}

/// Whether a function is none of those with which a runtime waits until there is work. Who stands before a lock has some.
fn is_work(code: &Code, symbol: &str) -> bool {
    let waits = code.part == Part::Helper || WAITING.iter().any(|name| symbol.starts_with(name));
    code.part == Part::Lock || symbol.contains("::task::") || !waits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtimes::part;

    fn idle(frames: &[(&str, &str)]) -> bool {
        let code = |(symbol, module): &(&str, &str)| {
            let part = part(symbol, module);
            let [symbol, module, kind, source] = [symbol, module, "native", ""].map(str::to_string);
            Code { symbol, module, offset: 0, kind, source, part }
        };
        parks(&frames.iter().map(code).collect::<Vec<_>>())
    }

    #[test]
    fn workers_without_work() {
        assert!(idle(&[("runtime.futex", "svc"), ("runtime.notesleep", "svc"), ("runtime.stopm", "svc")]));
        assert!(idle(&[("uv_cond_wait", "libuv.so.1"), ("worker", "libuv.so.1")]));
        assert!(idle(&[("<tokio::runtime::blocking::pool::Inner>::run", "svc")]));
        let condvar = ("std::sys::sync::condvar::futex::Condvar::wait_optional_timeout", "svc");
        assert!(idle(&[condvar, ("tokio::runtime::blocking::pool::Inner::run", "svc")]));
    }

    #[test]
    fn waiting_for_something() {
        assert!(!idle(&[("pthread_cond_wait", "libc.so.6"), ("worker", "svc")]), "anybody's worker");
        assert!(!idle(&[("Unsafe_Park", "libjvm.so")]), "before a lock, or without work");
        assert!(!idle(&[("runtime.futex", "svc"), ("runtime.lock2", "svc")]));
    }

    /// Every worker of tokio was started by its blocking pool, and the jobs of others run below what waits for them.
    #[test]
    fn at_work_below_what_keeps_those_without() {
        let base = ("tokio::runtime::blocking::pool::Inner::run", "svc");
        let lock = ("std::sys::sync::mutex::futex::Mutex::lock_contended", "svc");
        let (worker, task) =
            ("tokio::runtime::scheduler::multi_thread::worker::run", "tokio::runtime::task::raw::poll");
        assert!(!idle(&[lock, ("svc::handle::{{closure}}", "svc"), (task, "svc"), (worker, "svc"), base]));
        assert!(
            !idle(&[("std::thread::sleep", "svc"), (task, "svc"), base]),
            "a handler that was made part of the task"
        );
        let parked = ("tokio::runtime::scheduler::multi_thread::worker::Context::park_timeout", "svc");
        assert!(idle(&[("epoll_wait", "libc.so.6"), parked, (worker, "svc"), base]));
        assert!(!idle(&[("pthread_cond_wait", "libc.so.6"), ("respond", "addon.node"), ("worker", "libuv.so.1")]));
        assert!(!idle(&[("job", "svc"), ("rayon_core::registry::WorkerThread::wait_until_cold", "svc")]));
    }
}
