// SPDX-License-Identifier: Apache-2.0
//! Language runtimes that spin by themselves: threads with nothing to do ask again for a while before they sleep,
//! because waking a thread takes longer than a short wait. What that costs has a knob, and is nobody's mistake.

use super::code::Code;

/// A runtime's way to wait.
#[derive(Debug, PartialEq, Eq)]
pub struct RuntimeSpin {
    /// Whose it is.
    pub runtime: &'static str,
    /// Its knob, as the rest of `to spin less, …`.
    pub knob: &'static str,
    /// Beginnings of its functions' names.
    symbols: &'static [&'static str],
    /// Beginnings of file names of its modules.
    modules: &'static [&'static str],
}

static KNOWN: &[RuntimeSpin] = &[
    RuntimeSpin {
        runtime: "Erlang's scheduler",
        knob: "start it with +sbwt none +sbwtdcpu none +sbwtdio none",
        symbols: &["erts_", "ethr_", "sched_dirty_", "sched_active_sys", "scheduler_wait"],
        modules: &["beam.smp", "beam.debug"],
    },
    RuntimeSpin {
        runtime: "Go's scheduler",
        knob: "set GOMAXPROCS to the CPUs that it needs, and look for short sleeps, tickers and runtime.Gosched in loops",
        symbols: &["runtime."],
        modules: &[],
    },
    RuntimeSpin {
        runtime: "the Java VM",
        knob: "give it fewer collector threads (-XX:ParallelGCThreads), or look for Thread.yield and Thread.onSpinWait in loops",
        symbols: &["SpinPause", "os::naked_yield", "JVM_Yield"],
        modules: &["libjvm.so"],
    },
    RuntimeSpin {
        runtime: ".NET's thread pool",
        knob: "set DOTNET_ThreadPool_UnfairSemaphoreSpinLimit=0 in its environment",
        symbols: &["CLRLifoSemaphore", "__SwitchToThread"],
        modules: &["libcoreclr.so"],
    },
    RuntimeSpin {
        runtime: "OpenMP",
        knob: "set OMP_WAIT_POLICY=passive (libgomp: GOMP_SPINCOUNT=0; LLVM and Intel: KMP_BLOCKTIME=0)",
        symbols: &["gomp_", "__kmp_"],
        modules: &["libgomp.so", "libomp.so", "libiomp5.so"],
    },
    RuntimeSpin {
        runtime: "OpenBLAS",
        knob: "set OPENBLAS_THREAD_TIMEOUT lower, or OPENBLAS_NUM_THREADS to what it needs",
        symbols: &["blas_thread_server"],
        modules: &["libopenblas"],
    },
    RuntimeSpin {
        runtime: "oneTBB",
        knob: "limit its workers (tbb::global_control::max_allowed_parallelism)",
        symbols: &["tbb::detail::r1::"],
        modules: &["libtbb.so"],
    },
    RuntimeSpin {
        runtime: "GHC's runtime",
        knob: "start it with fewer capabilities (+RTS -N), or -qn for fewer collector threads",
        symbols: &["scavenge_until_all_done", "gcWorkerThread", "yieldThread"],
        modules: &[],
    },
];

/// Beginnings of the names of functions that look whether something is there, and never wait for it.
const LOOKS: &[&str] = &[
    "runtime.selectnbrecv",
    "runtime.selectnbsend",
    "runtime.selectgo",
    "runtime.Gosched",
    "runtime.procyield",
    "runtime.osyield",
    "pthread_mutex_trylock",
    "__pthread_mutex_trylock",
    "pthread_spin_lock",
    "pthread_spin_trylock",
    "std::hint::spin_loop",
    "core::hint::spin_loop",
    "crossbeam_utils::backoff",
    "std::this_thread::yield",
];

/// Whether a function only looks whether something is there: a loop around it spins.
pub fn looks(symbol: &str) -> bool {
    LOOKS.iter().any(|l| symbol.starts_with(l))
        || ["::try_recv", "::start_recv", "::try_lock"].iter().any(|name| symbol.contains(name))
}

/// The runtime whose own code asks, from the innermost function that is no helper.
pub fn of<'a>(stack: impl IntoIterator<Item = &'a Code>) -> Option<&'static RuntimeSpin> {
    let first = stack.into_iter().next()?;
    KNOWN.iter().find(|known| {
        known.symbols.iter().any(|s| first.symbol.starts_with(s))
            || known.modules.iter().any(|m| first.file().starts_with(m))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtimes::Part;

    #[test]
    fn told_from_whoever_asks() {
        let runtime = |symbol: &str, module: &str| {
            let [symbol, module, kind, source] = [symbol, module, "native", ""].map(str::to_string);
            of(&[Code { symbol, module, offset: 0, kind, source, part: Part::Own }]).map(|r| r.runtime)
        };
        assert_eq!(runtime("", "/usr/lib/erlang/erts-13/bin/beam.smp"), Some("Erlang's scheduler"));
        assert_eq!(runtime("runtime.netpoll", "svc"), Some("Go's scheduler"));
        assert_eq!(runtime("gomp_team_barrier_wait_end", "libgomp.so.1"), Some("OpenMP"));
        assert_eq!(runtime("main.reactor", "svc"), None);
        assert!(
            looks("runtime.selectnbrecv") && looks("std::sync::mpmc::list::Channel<T>::start_recv") && !looks("recv")
        );
    }
}
