// SPDX-License-Identifier: Apache-2.0
//! What part a function plays in its program, told from its name and module.
//!
//! A profile is about the program's own functions. Some frames only stand for others: a `memcpy`
//! works for its caller, an interpreter's loop for the program that it interprets. The lists are
//! of language runtimes and C libraries in general use; an unlisted function is the program's own.

pub mod code;
pub mod collectors;
pub mod event_loops;
pub mod hints;
pub mod interpreter_locks;
pub mod interpreters;
pub mod jit;
pub mod opaque;
pub mod parking;
pub mod pollers;
pub mod spins;
pub mod timers;

use serde::Serialize;

/// The part of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// The program's own, or a library's that does work worth naming.
    Own,
    /// Works for whoever called it: the C and C++ libraries, allocators, the vdso, assembly
    /// leaves and helpers of a language runtime.
    Helper,
    /// The loop of an interpreter: every function of the interpreted program runs in it.
    Interpreter,
    /// A runtime's garbage collector, compiler or scheduler.
    Runtime,
    /// Takes or spins on a lock.
    Lock,
}

/// Modules whose code works for its caller, by the start of their file name.
const HELPER_MODULES: &[&str] = &[
    "libc.so",
    "libc-2",
    "libc.musl",
    "ld-linux",
    "ld-musl",
    "ld-2",
    "libm.so",
    "libm-2",
    "libpthread",
    "librt.so",
    "librt-2",
    "libstdc++",
    "libc++",
    "libgcc_s",
    "[vdso]",
    "linux-vdso",
    "libjemalloc",
    "libtcmalloc",
    "libmimalloc",
];

/// Go, whose assembly leaves and runtime helpers live in the program's own binary.
const GO_HELPERS: &[&str] = &[
    "runtime.",
    "runtime/",
    "internal/bytealg.",
    "internal/runtime/",
    "syscall.",
    "internal/poll.",
    "golang.org/x/sys/unix.",
    "memeqbody",
    "cmpbody",
    "indexbody",
    "indexbytebody",
    "countbody",
    "aeshashbody",
    "_cgo_",
    "x_cgo_",
    "crosscall",
];

/// Go's collector and scheduler, by the part of the name after `runtime.`.
const GO_RUNTIME: &[&str] = &[
    "gcBgMarkWorker",
    "gcAssist",
    "gcDrain",
    "scanobject",
    "scanObject",
    "scanblock",
    "scanstack",
    "greyobject",
    "markroot",
    "bgsweep",
    "bgscavenge",
    "sweepone",
    "(*mspan).sweep",
    "(*gcWork)",
    "wbBufFlush",
    "findRunnable",
    "findrunnable",
    "schedule",
    "stealWork",
    "netpoll",
    "park_m",
    "sysmon",
    "mPark",
    "stopm",
    "goschedImpl",
    "lock2",
    "procyield",
];

const INTERPRETERS: &[&str] = &[
    "_PyEval_EvalFrameDefault",
    "_PyEval_EvalFrame",
    "PyEval_EvalFrameEx",
    "PyEval_EvalFrameDefault",
    "luaV_execute",
    "vm_exec_core",
    "vm_exec",
    "rb_vm_exec",
    "execute_ex",
    "Perl_runops_standard",
    "Perl_runops_debug",
    "Interpreter",
    "JS_CallInternal",
    "sqlite3VdbeExec",
    "ExecInterpExpr",
];

/// Libc functions that are also linked statically, or written in assembly under these names.
const LEAVES: &[&str] = &[
    "memcpy",
    "memmove",
    "memset",
    "memcmp",
    "bcmp",
    "memchr",
    "memrchr",
    "mempcpy",
    "strlen",
    "strnlen",
    "strcmp",
    "strncmp",
    "strchr",
    "strrchr",
    "strchrnul",
    "strstr",
    "strcpy",
    "strncpy",
    "rawmemchr",
    "malloc",
    "free",
    "calloc",
    "realloc",
    "syscall",
    "int_malloc",
    "int_free",
    "rust_alloc",
    "rust_dealloc",
    "rust_realloc",
    "rdl_alloc",
    "rdl_dealloc",
];

/// Of those, words with which programs name functions of their own.
const VERBS: &[&str] = &["malloc", "free", "calloc", "realloc", "syscall"];

/// What the C library has for calls that wait, where it is linked statically; without underscores before the name.
const WRAPPERS: &[&str] = &[
    "nanosleep",
    "clock_nanosleep",
    "epoll_wait",
    "epoll_pwait",
    "pthread_cond_wait",
    "pthread_cond_timedwait",
    "pthread_cond_clockwait",
    "futex_abstimed_wait_common",
    "futex_wait_cancelable",
    "libc_read",
    "libc_write",
    "libc_recv",
    "libc_recvfrom",
    "libc_send",
    "libc_sendto",
    "libc_accept",
    "libc_accept4",
    "libc_connect",
    "libc_fsync",
];

/// The part that a function plays.
pub fn part(symbol: &str, module: &str) -> Part {
    let file = module.rsplit('/').next().unwrap_or(module);
    if is_lock(symbol) {
        Part::Lock
    } else if is_interpreter(symbol, file) || is_bytecode_handler(symbol) {
        Part::Interpreter
    } else if file.starts_with("libjvm.so") || is_go_runtime(symbol) || is_v8_runtime(symbol) {
        Part::Runtime
    } else if HELPER_MODULES.iter().any(|m| file.starts_with(m)) || is_helper(symbol) {
        Part::Helper
    } else {
        Part::Own
    }
}

/// Frames that a reader of a call path does not need: the crossing from Go into C, thread starts.
pub fn is_glue(symbol: &str) -> bool {
    symbol.contains("._Cfunc_")
        || ["__rust_begin_short_backtrace", "core::ops::function::FnOnce", "std::sys::thread"]
            .iter()
            .any(|g| symbol.contains(g))
        || ["std::thread::_State", "std::thread::_Invoker"].iter().any(|g| symbol.starts_with(g))
        || ["_cgo_", "x_cgo_", "crosscall", "runtime.asmcgocall", "runtime.cgocall", "runtime.goexit", "runtime.mcall"]
            .iter()
            .any(|g| symbol.starts_with(g))
        || ["start_thread", "clone", "clone3", "__clone", "_start", "__libc_start_main", "__libc_start_call_main"]
            .contains(&symbol)
}

fn is_interpreter(symbol: &str, file: &str) -> bool {
    INTERPRETERS.contains(&symbol) || symbol == "process_main" && file.contains("beam")
}

fn is_lock(symbol: &str) -> bool {
    // Rust's names have brackets or none, by how they are mangled.
    let lower = symbol.to_ascii_lowercase().replace(['<', '>'], "");
    [
        "spin_lock",
        "spinlock",
        "pthread_mutex_lock",
        "lll_lock_wait",
        "pthread_rwlock_",
        "rawmutex::lock_slow",
        "::lock_contended",
        "::read_contended",
        "::write_contended",
    ]
    .iter()
    .any(|l| lower.contains(l))
        || ["sync.(*Mutex)", "sync.(*RWMutex)", "internal/sync.(*Mutex)"].iter().any(|l| symbol.starts_with(l))
}

/// V8's bytecode handlers and LuaJIT's instructions: one function each, but an interpreter together.
fn is_bytecode_handler(symbol: &str) -> bool {
    symbol.starts_with("Builtins_") && (symbol.ends_with("Handler") || symbol.contains("InterpreterEntryTrampoline"))
        || symbol.starts_with("lj_BC_")
        || symbol.starts_with("lj_vm_")
}

fn is_go_runtime(symbol: &str) -> bool {
    symbol.strip_prefix("runtime.").is_some_and(|rest| GO_RUNTIME.iter().any(|g| rest.starts_with(g)))
}

fn is_v8_runtime(symbol: &str) -> bool {
    symbol.strip_prefix("v8::internal::").is_some_and(|rest| {
        ["Heap", "Scaveng", "Mark", "Sweeper", "compiler::", "maglev::", "Compiler", "Evacuat"]
            .iter()
            .any(|p| rest.starts_with(p))
    })
}

fn is_helper(symbol: &str) -> bool {
    if GO_HELPERS.iter().any(|h| symbol.starts_with(h))
        || ["compiler_builtins::mem", "operator new", "operator delete", "Builtins_"]
            .iter()
            .any(|h| symbol.starts_with(h))
    {
        return true;
    }
    // `__memmove_avx_unaligned_erms` is memmove: the name up to the first underscore after it.
    let bare = symbol.trim_start_matches('_');
    let is_leaf = |leaf: &&str| {
        let Some(rest) = bare.strip_prefix(*leaf) else { return false };
        // `free_expired` is the program's own.
        let may_go_on = bare.len() < symbol.len() || !VERBS.contains(leaf);
        rest.is_empty() || rest.starts_with('@') || rest.starts_with('_') && may_go_on
    };
    WRAPPERS.contains(&bare) || LEAVES.iter().any(is_leaf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts() {
        let cases = [
            ("__memmove_avx_unaligned_erms", "/lib/x86_64-linux-gnu/libc.so.6", Part::Helper),
            ("", "libc.so.6", Part::Helper),
            ("memcpy", "proxy", Part::Helper),
            ("memcpy_by_words", "proxy", Part::Helper),
            ("memory_checksum", "proxy", Part::Own),
            ("freeze_rows", "proxy", Part::Own),
            ("free_expired_entries", "cache", Part::Own),
            ("clock_nanosleep", "svc", Part::Helper),
            ("__pthread_cond_wait", "svc", Part::Helper),
            ("_int_free_merge_chunk", "libc.so.6", Part::Helper),
            ("free@plt", "cache", Part::Helper),
            ("burst", "librte_ethdev.so.24", Part::Own),
            ("process_main", "billing", Part::Own),
            ("process_main", "beam.smp", Part::Interpreter),
            ("<parking_lot::raw_mutex::RawMutex>::lock_slow", "svc", Part::Lock),
            ("main.score", "svc", Part::Own),
            ("runtime.memmove", "svc", Part::Helper),
            ("runtime.scanobject", "svc", Part::Runtime),
            ("runtime.findRunnable", "svc", Part::Runtime),
            ("_PyEval_EvalFrameDefault", "python3.11", Part::Interpreter),
            ("Builtins_LdaNamedPropertyHandler", "node", Part::Interpreter),
            ("Builtins_StringIndexOf", "node", Part::Helper),
            ("pthread_spin_lock", "libc.so.6", Part::Lock),
            ("G1ParEvacuate", "libjvm.so", Part::Runtime),
            ("", "nginx", Part::Own),
            ("deflate_slow", "libz.so.1.2.13", Part::Own),
        ];
        for (symbol, module, expected) in cases {
            assert_eq!(part(symbol, module), expected, "{symbol} in {module}");
        }
    }

    #[test]
    fn glue() {
        assert!(is_glue("main._Cfunc_sp_run") && is_glue("runtime.cgocall.abi0") && is_glue("_start"));
        assert!(!is_glue("main.reactor") && !is_glue("start_server"));
    }
}
