// SPDX-License-Identifier: Apache-2.0
//! What well-known functions of well-known programs mean when they take much of the time. Data, no rule: nobody is
//! accused by it, but whoever reads a function's name at night learns what is known about it.

use super::code::Code;

/// What is known about functions.
#[derive(Debug, PartialEq, Eq)]
pub struct Hint {
    /// What they do, in a few words: `a sequential scan of a table`.
    pub what: &'static str,
    /// What to look at, or to try.
    pub look: &'static str,
    /// Threads stand before each other there: more CPUs or threads make it worse.
    pub is_lock: bool,
    /// Beginnings of file names of its modules; empty = any.
    modules: &'static [&'static str],
    /// Beginnings of the functions' names.
    symbols: &'static [&'static str],
}

const fn work(what: &'static str, look: &'static str, modules: Names, symbols: Names) -> Hint {
    Hint { what, look, is_lock: false, modules, symbols }
}

const fn lock(what: &'static str, look: &'static str, modules: Names, symbols: Names) -> Hint {
    Hint { what, look, is_lock: true, modules, symbols }
}

type Names = &'static [&'static str];

const POSTGRES: Names = &["postgres"];
const MYSQL: Names = &["mariadbd", "mysqld"];

static KNOWN: &[Hint] = &[
    lock(
        "threads wait for a lock of the C library's allocator (an arena)",
        "let it have more arenas (MALLOC_ARENA_MAX unset or higher), allocate less in each request, or use another allocator",
        &[],
        &["__lll_lock_wait_private", "__lll_lock_wake_private"],
    ),
    lock(
        "processes wait for a spin lock of PostgreSQL",
        "fewer connections at once (a pooler), and pg_stat_activity's wait events",
        POSTGRES,
        &["s_lock", "perform_spin_delay"],
    ),
    lock(
        "processes wait for a lightweight lock of PostgreSQL",
        "pg_stat_activity's wait events name it",
        POSTGRES,
        &["LWLockAcquire", "LWLockQueueSelf"],
    ),
    lock(
        "threads wait for a latch of InnoDB",
        "SHOW ENGINE INNODB STATUS names it (SEMAPHORES)",
        MYSQL,
        &["srw_mutex_impl", "ssux_lock_impl", "rw_lock_"],
    ),
    lock(
        "CPUs spin for a lock of the kernel",
        "perf lock contention -ab names it and who takes it",
        &["kernel"],
        &["native_queued_spin_lock_slowpath", "queued_spin_lock_slowpath", "__pv_queued_spin_lock_slowpath"],
    ),
    work(
        "a sequential scan of a table in PostgreSQL",
        "EXPLAIN (ANALYZE, BUFFERS) of its queries: an index may be missing (pg_stat_user_tables.seq_tup_read)",
        POSTGRES,
        &[
            "heapgetpage",
            "heap_getnextslot",
            "heap_getnext",
            "heapgettup",
            "heap_prepare_pagescan",
            "ExecSeqScan",
            "SeqNext",
        ],
    ),
    work(
        "a sort in PostgreSQL",
        "EXPLAIN (ANALYZE) of its queries: an index in that order, or more work_mem",
        POSTGRES,
        &["tuplesort_", "qsort_tuple", "qsort_ssup", "mergeruns"],
    ),
    work(
        "planning of queries in PostgreSQL",
        "prepared statements, which are planned once",
        POSTGRES,
        &["standard_planner", "pg_plan_quer", "raw_parser", "base_yyparse"],
    ),
    work(
        "snapshots over all connections of PostgreSQL",
        "fewer connections (a pooler)",
        POSTGRES,
        &["GetSnapshotData"],
    ),
    work(
        "a scan of a whole table in MariaDB or MySQL",
        "EXPLAIN of its queries: an index may be missing (Handler_read_rnd_next grows)",
        MYSQL,
        &["ha_innobase::rnd_next", "handler::ha_rnd_next", "rr_sequential", "TableScanIterator"],
    ),
    work(
        "a sort in MariaDB or MySQL",
        "EXPLAIN of its queries: an index in that order",
        MYSQL,
        &["filesort", "Filesort"],
    ),
    work(
        "regular expressions",
        "a pattern that tries many ways (nested repeats) costs more than it looks; anchor it, simplify it, or use an engine \
         without backtracking",
        &[],
        &[
            "pcre2_match",
            "pcre_exec",
            "php_pcre_match_impl",
            "sre_ucs",
            "SRE(",
            "regexp.(*Regexp)",
            "regexp.(*machine)",
            "onig_match",
            "onig_search",
            "std::__detail::_Executor",
            "v8::internal::RegExp",
            "v8::internal::IrregexpInterpreter",
            "re2::",
            "regex_automata::",
            "re_search_internal",
        ],
    ),
    work(
        "reading and writing JSON",
        "smaller documents, or fewer of them: leave out what nobody reads, keep what is rendered",
        &[],
        &[
            "encoding/json.",
            "v8::internal::JsonParser",
            "v8::internal::JsonStringif",
            "Builtins_JsonParse",
            "serde_json::",
            "nlohmann::",
            "rapidjson::",
            "simdjson::",
            "php_json_",
            "scanstring_unicode",
            "_parse_object_unicode",
            "json_object",
            "cJSON_",
        ],
    ),
    work(
        "public-key cryptography, that is TLS handshakes",
        "fewer of them (keep connections open, resume sessions), or cheaper keys (ECDSA instead of RSA)",
        &[],
        &[
            "rsa_ossl_",
            "RSA_private",
            "ossl_rsa_",
            "bn_mul_mont",
            "bn_sqr8x_mont",
            "BN_mod_exp_mont",
            "bn_mod_exp_mont",
            "ecp_nistz256_",
            "x25519_",
            "crypto/rsa.",
            "crypto/ecdsa.",
            "crypto/internal/bigmod.",
            "crypto/internal/nistec.",
            "crypto/internal/fips140/bigmod.",
            "crypto/internal/fips140/nistec.",
            "ring_core",
            "bignum_",
        ],
    ),
    work(
        "hashing of passwords, which is meant to be slow",
        "hash at login only (a session or token afterwards), and limit how many run at once",
        &[],
        &[
            "BF_crypt",
            "_crypt_blowfish",
            "golang.org/x/crypto/bcrypt",
            "golang.org/x/crypto/argon2",
            "argon2",
            "PKCS5_PBKDF2",
            "scrypt",
            "fill_segment",
            "pbkdf2",
        ],
    ),
    work(
        "compression",
        "a lower level, or keep what is compressed",
        &[],
        &["deflate_", "longest_match", "compress/flate.", "BrotliEncoder", "ZSTD_compress", "zlib_deflate"],
    ),
    work(
        "exceptions that are thrown",
        "exceptions are for what is rare: return an error where it is usual",
        &[],
        &["_Unwind_RaiseException", "_Unwind_Find_FDE", "__cxa_throw", "uw_frame_state_for"],
    ),
    work(
        "conversion of times to the local zone, under a lock of the C library",
        "set TZ, keep the result for a second, or use UTC",
        &["libc."],
        &["__tz_convert", "__tzfile_read", "tzset_internal"],
    ),
    work(
        "fresh memory: the kernel hands out and clears pages",
        "let the allocator keep what it frees (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD), and reuse buffers",
        &["kernel"],
        &["clear_page", "do_anonymous_page", "zap_pte_range", "do_huge_pmd_anonymous_page"],
    ),
    work(
        "poll or select, which look at all of their descriptors in each call",
        "with many of them epoll, which looks only at those that are ready; with few, fewer calls",
        &["kernel"],
        &["do_sys_poll", "do_poll", "core_sys_select", "do_select"],
    ),
    work(
        "telling other CPUs of mappings that changed (TLB shootdowns)",
        "see who maps and unmaps again and again (mmap, munmap, mprotect, madvise): `perf trace -s -p PID`",
        &["kernel"],
        &["flush_tlb_mm_range", "arch_tlbbatch_flush", "smp_call_function_many_cond", "native_flush_tlb_multi"],
    ),
    work(
        "copies of processes (fork)",
        "keep workers alive instead of starting one for each request",
        &["kernel"],
        &["copy_process", "dup_mm", "copy_page_range"],
    ),
    work(
        "the host's packet filter",
        "fewer rules on the way of each packet (sets, an early accept), `nft list ruleset`",
        &["kernel"],
        &["nft_do_chain", "ipt_do_table", "nf_conntrack_in"],
    ),
    work(
        "the search for a free local port",
        "keep connections to other services open, or widen net.ipv4.ip_local_port_range",
        &["kernel"],
        &["__inet_hash_connect", "inet_hash_connect", "__inet_check_established"],
    ),
    work(
        "the host's audit of system calls",
        "fewer rules: `auditctl -l`",
        &["kernel"],
        &["__audit_syscall_", "audit_filter_syscall"],
    ),
];

/// What a well-known program waits for in a sleep of its own.
#[derive(Debug, PartialEq, Eq)]
pub struct Nap {
    /// In a few words.
    pub what: &'static str,
    /// What to do.
    pub look: &'static str,
    modules: Names,
    symbols: Names,
}

static NAPS: &[Nap] = &[Nap {
    what: "SQLite sleeps until another connection gives the database's lock back (its busy handler)",
    look: "fewer writers at once, shorter transactions, or WAL",
    modules: &["libsqlite3"],
    symbols: &["unixSleep", "sqliteDefaultBusyCallback", "sqlite3OsSleep"],
}];

/// What is known about a sleep, by the function that called it.
pub fn of_sleep(code: &Code) -> Option<&'static Nap> {
    let is_it = |nap: &&Nap| {
        nap.modules.iter().any(|module| code.file().starts_with(module))
            || nap.symbols.iter().any(|symbol| code.symbol.starts_with(symbol))
    };
    NAPS.iter().find(is_it)
}

/// What is known about a function.
pub fn of(code: &Code) -> Option<&'static Hint> {
    named(&code.symbol, code.file())
}

/// The same by its name and the file name of its module.
pub fn named(symbol: &str, module: &str) -> Option<&'static Hint> {
    KNOWN.iter().find(|hint| {
        let is_there = hint.modules.is_empty() || hint.modules.iter().any(|m| module.starts_with(m));
        is_there && !symbol.is_empty() && hint.symbols.iter().any(|s| symbol.starts_with(s))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtimes::Part;

    #[test]
    fn by_program_and_function() {
        let what = |symbol: &str, module: &str| {
            let [symbol, module, kind, source] = [symbol, module, "native", ""].map(str::to_string);
            of(&Code { symbol, module, offset: 0, kind, source, part: Part::Own }).map(|h| (h.what, h.is_lock))
        };
        assert!(what("heapgetpage", "/usr/lib/postgresql/15/bin/postgres").unwrap().0.contains("sequential scan"));
        assert_eq!(what("heapgetpage", "svc"), None, "another program's function of that name");
        assert!(what("__lll_lock_wait_private", "libc.so.6").unwrap().1);
        assert!(what("encoding/json.(*decodeState).object", "svc").is_some());
        assert_eq!(what("", "postgres"), None);
    }

    #[test]
    fn every_hint_is_a_phrase() {
        for hint in KNOWN {
            assert!(
                !hint.what.ends_with('.') && !hint.look.ends_with('.') && !hint.symbols.is_empty(),
                "{}",
                hint.what
            );
        }
    }
}
