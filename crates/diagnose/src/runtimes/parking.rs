// SPDX-License-Identifier: Apache-2.0
//! Where runtimes and well-known servers keep threads that have no work, told from the functions on a waiting stack.
//!
//! A thread there waits for nobody: whoever wakes it brings work. Only functions that stand for nothing else are listed: the
//! one with which a runtime parks threads before locks too (Java's `Unsafe_Park`, `pthread_cond_wait`) says nothing.

use super::code::Code;

/// Beginnings of functions' names, and part of the name of the program or library that they must be in; empty = any.
const IDLE: &[(&str, &str)] = &[
    // Go's scheduler: threads that have no goroutine to run.
    ("runtime.stopm", ""),
    ("runtime.stoplockedm", ""),
    ("runtime.findRunnable", ""),
    ("runtime.findrunnable", ""),
    ("runtime.templateThread", ""),
    ("runtime.sysmon", ""),
    // Rust.
    ("tokio::runtime::park::", ""),
    ("tokio::runtime::scheduler::multi_thread::park::", ""),
    ("tokio::runtime::scheduler::multi_thread::worker::Context::park", ""),
    ("tokio::runtime::blocking::pool::Inner::run", ""),
    ("rayon_core::sleep::Sleep::sleep", ""),
    ("rayon_core::registry::WorkerThread::wait_until_cold", ""),
    // Node.js, libuv, GLib.
    ("node::WorkerThreadsTaskRunner::", "node"),
    ("node::TaskQueue<", "node"),
    ("node::(anonymous namespace)::PlatformWorkerThread", "node"),
    ("node::inspector::(anonymous namespace)::StartIoThreadMain", "node"),
    ("v8::platform::DefaultWorkerThreadsTaskRunner::", ""),
    ("worker", "libuv"),
    ("worker", "node"),
    ("g_thread_pool_wait_for_new_task", ""),
    // The JVM's own threads, and its pools where a perf map names them.
    ("WorkerThreads::", "libjvm"),
    ("WorkerThread::run", "libjvm"),
    ("GangWorker::loop", "libjvm"),
    ("CompileQueue::get", "libjvm"),
    ("WatcherThread::sleep", "libjvm"),
    ("ServiceThread::service_thread_entry", "libjvm"),
    ("MonitorDeflationThread::", "libjvm"),
    ("G1ConcurrentRefine", "libjvm"),
    ("G1ServiceThread::", "libjvm"),
    ("ConcurrentGCThread::", "libjvm"),
    ("java.util.concurrent.ForkJoinPool.awaitWork", ""),
    ("java.util.concurrent.ThreadPoolExecutor.getTask", ""),
    ("Ljava/util/concurrent/ForkJoinPool;::awaitWork", ""),
    ("Ljava/util/concurrent/ThreadPoolExecutor;::getTask", ""),
    // .NET, Erlang.
    ("LowLevelLifoSemaphore", ""),
    ("ThreadpoolMgr::WorkerThreadStart", ""),
    ("scheduler_wait", "beam"),
    ("erts_schedule", "beam"),
    ("erts_sched_", "beam"),
    ("aux_thread", "beam"),
    ("poll_thread", "beam"),
    // Servers.
    ("ngx_thread_pool_cycle", "nginx"),
    ("bioProcessBackgroundJobs", ""),
    ("ap_queue_pop", ""),
    ("Per_thread_connection_handler::block_until_new_connection", ""),
];

/// Whether a thread with these functions on its stack has no work.
pub fn parks<'a>(stack: impl IntoIterator<Item = &'a Code>) -> bool {
    let is_idle = |code: &Code| {
        let symbol = code.symbol.trim_start_matches('<');
        IDLE.iter().any(|(name, module)| symbol.starts_with(name) && code.file().contains(module))
    };
    stack.into_iter().any(is_idle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtimes::Part;

    fn idle(frames: &[(&str, &str)]) -> bool {
        let code = |(symbol, module): &(&str, &str)| {
            let [symbol, module, kind, source] = [symbol, module, "native", ""].map(str::to_string);
            Code { symbol, module, offset: 0, kind, source, part: Part::Own }
        };
        parks(&frames.iter().map(code).collect::<Vec<_>>())
    }

    #[test]
    fn workers_without_work() {
        assert!(idle(&[("runtime.futex", "svc"), ("runtime.notesleep", "svc"), ("runtime.stopm", "svc")]));
        assert!(idle(&[("uv_cond_wait", "libuv.so.1"), ("worker", "libuv.so.1")]));
        assert!(idle(&[("<tokio::runtime::blocking::pool::Inner::run", "svc")]));
    }

    #[test]
    fn waiting_for_something() {
        assert!(!idle(&[("pthread_cond_wait", "libc.so.6"), ("worker", "svc")]), "anybody's worker");
        assert!(!idle(&[("Unsafe_Park", "libjvm.so")]), "before a lock, or without work");
        assert!(!idle(&[("runtime.futex", "svc"), ("runtime.lock2", "svc")]));
    }
}
