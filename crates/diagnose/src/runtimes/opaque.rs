// SPDX-License-Identifier: Apache-2.0
//! Runtimes and servers that keep queues of their own, in which requests stand where the kernel sees nothing: what stands
//! there, and by what means of their own they show it.

use super::code::Code;

/// A runtime with queues of its own.
#[derive(Debug, PartialEq, Eq)]
pub struct Opaque {
    /// For people.
    pub name: &'static str,
    /// What waits unseen, as the rest of "… wait where the kernel sees nothing".
    pub what: &'static str,
    /// How to see it; `PID` stands for the process.
    pub look: &'static str,
    /// Its sessions wait for each other's locks on rows and tables, in a poll or until a time is over.
    pub is_database: bool,
    /// Beginnings of functions' names, and part of the program's or library's name; either may be empty.
    signs: &'static [(&'static str, &'static str)],
    /// Names of programs that are this runtime, without their version: where no function was met.
    programs: &'static [&'static str],
}

static KNOWN: &[Opaque] = &[
    Opaque {
        name: "PostgreSQL",
        what: "backends before row and table locks",
        look: "psql -c \"select pid, wait_event_type, wait_event, query from pg_stat_activity where state <> 'idle'\"",
        is_database: true,
        signs: &[("PostgresMain", ""), ("", "postgres"), ("WaitEventSetWait", "")],
        programs: &["postgres"],
    },
    Opaque {
        name: "MySQL or MariaDB",
        what: "sessions before row and table locks",
        look: "mysql -e 'show full processlist; show engine innodb status'",
        is_database: true,
        signs: &[("", "mysqld"), ("", "mariadbd")],
        programs: &["mysqld", "mariadbd"],
    },
    Opaque {
        name: "Go",
        what: "goroutines before mutexes, channels and timers",
        look: "its /debug/pprof/goroutine?debug=2; without one, dlv attach PID, which stops it for a moment",
        is_database: false,
        signs: &[
            ("runtime.findRunnable", ""),
            ("runtime.schedule", ""),
            ("runtime.goexit", ""),
            ("runtime.mstart", ""),
        ],
        programs: &[],
    },
    Opaque {
        name: "the Java VM",
        what: "threads before monitors and in pools",
        look: "jcmd PID Thread.print",
        is_database: false,
        signs: &[("", "libjvm")],
        programs: &["java"],
    },
    Opaque {
        name: "Node.js",
        what: "callbacks and promises that wait for their turn or for somebody",
        look: "kill -USR1 PID (opens a debugger on 127.0.0.1:9229 to all users of this host), then chrome://inspect: its profiler, async stacks",
        is_database: false,
        signs: &[("node::", ""), ("uv_run", "node"), ("v8::", "node")],
        programs: &["node", "nodejs"],
    },
    Opaque {
        name: "Python",
        what: "coroutines and threads before locks of its own",
        look: "py-spy dump --pid PID",
        is_database: false,
        signs: &[("_PyEval_EvalFrame", ""), ("PyEval_EvalFrame", ""), ("", "python3"), ("", "libpython3")],
        programs: &["python", "pypy"],
    },
    Opaque {
        name: "Erlang",
        what: "processes with messages in their boxes",
        look: "observer, or recon:proc_count(message_queue_len, 10) in its shell",
        is_database: false,
        signs: &[("", "beam.smp")],
        programs: &["beam.smp"],
    },
    Opaque {
        name: ".NET",
        what: "tasks and threads before monitors",
        look: "dotnet-stack report -p PID",
        is_database: false,
        signs: &[("", "libcoreclr")],
        programs: &["dotnet"],
    },
    Opaque {
        name: "Tokio",
        what: "tasks before locks, channels and semaphores",
        look: "tokio-console, or a dump of its tasks",
        is_database: false,
        signs: &[("tokio::runtime::", "")],
        programs: &[],
    },
    Opaque {
        name: "Ruby",
        what: "threads before locks of its own",
        look: "rbspy snapshot --pid PID",
        is_database: false,
        signs: &[("", "libruby"), ("rb_vm_exec", "")],
        programs: &["ruby"],
    },
];

/// The runtime of a program with these functions in it; the inner one, where one stands in another.
pub fn of<'a>(code: impl IntoIterator<Item = &'a Code>) -> Option<&'static Opaque> {
    let mut first: Option<usize> = None;
    for code in code {
        let symbol = code.symbol.trim_start_matches('<');
        let is_sign = |(name, module): &(&str, &str)| {
            let is_there = if name.is_empty() { is_of(code.file(), module) } else { code.file().contains(module) };
            symbol.starts_with(name) && is_there && !code.is_kernel()
        };
        let found = KNOWN.iter().position(|runtime| runtime.signs.iter().any(is_sign));
        first = [first, found].into_iter().flatten().min();
    }
    first.map(|at| &KNOWN[at])
}

/// Whether a file is a program or library of that name, in whatever version: `postgres_exporter` is no PostgreSQL.
fn is_of(file: &str, name: &str) -> bool {
    let rest = file.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-']) || name.starts_with("lib"))
}

/// The runtime that a program is, by the name of its file: `python3.11` is Python.
pub fn of_program(exe: &str) -> Option<&'static Opaque> {
    let file = exe.rsplit('/').next().unwrap_or_default();
    let name = file.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    KNOWN.iter().find(|runtime| runtime.programs.contains(&name))
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
        of(&frames.iter().map(code).collect::<Vec<_>>()).map(|runtime| runtime.name)
    }

    #[test]
    fn told_by_the_program() {
        let name = |exe| of_program(exe).map(|runtime| runtime.name);
        assert_eq!([name("/usr/bin/python3.11"), name("/opt/jdk-17/bin/java")], [Some("Python"), Some("the Java VM")]);
        assert_eq!(
            [name("/usr/lib/erlang/bin/beam.smp"), name("/usr/bin/nginx"), name("")],
            [Some("Erlang"), None, None]
        );
    }

    #[test]
    fn told_by_functions_and_modules() {
        assert_eq!(name(&[("runtime.schedule", "svc"), ("main.serve", "svc")]), Some("Go"));
        assert_eq!(name(&[("Parker::park", "libjvm.so")]), Some("the Java VM"));
        assert_eq!(name(&[("", "/usr/lib/postgresql/15/bin/postgres")]), Some("PostgreSQL"));
        assert_eq!(name(&[("ngx_process_events", "nginx"), ("runtime_init", "nginx")]), None);
    }
}
