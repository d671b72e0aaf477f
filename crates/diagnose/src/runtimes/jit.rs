// SPDX-License-Identifier: Apache-2.0
//! How a runtime that compiles while it runs is made to write the names of its functions down (a perf map,
//! `/tmp/perf-PID.map`), told from the code that runs beside them.

use super::code::Code;

/// A runtime's way to names.
#[derive(Debug, PartialEq, Eq)]
pub struct Names {
    /// What to do, in a few words.
    pub briefly: &'static str,
    /// The same with what it needs.
    pub fully: &'static str,
    /// Beginnings of file names of its modules.
    modules: &'static [&'static str],
    /// Beginnings of its functions' names.
    symbols: &'static [&'static str],
}

static KNOWN: &[Names] = &[
    Names {
        briefly: "start it with --perf-basic-prof",
        fully: "start it with `node --perf-basic-prof` (or NODE_OPTIONS=--perf-basic-prof)",
        modules: &["libnode.so", "libv8.so"],
        symbols: &["v8::", "Builtins_", "node::"],
    },
    Names {
        briefly: "run jcmd PID Compiler.perfmap",
        fully: "run `jcmd PID Compiler.perfmap` as its user (JDK 17 and later; before: perf-map-agent), and start it with \
                -XX:+PreserveFramePointer to see callers too",
        modules: &["libjvm.so"],
        symbols: &[],
    },
    Names {
        briefly: "start it with DOTNET_PerfMapEnabled=1",
        fully: "start it with DOTNET_PerfMapEnabled=1 in its environment",
        modules: &["libcoreclr.so", "libclrjit.so"],
        symbols: &[],
    },
    Names {
        briefly: "start it with --yjit-perf",
        fully: "start it with `ruby --yjit-perf` (Ruby 3.3 and later)",
        modules: &["ruby", "libruby"],
        symbols: &["rb_vm_exec", "rb_yjit"],
    },
    Names {
        briefly: "start it with +JPperf true",
        fully: "start it with `erl +JPperf true` (OTP 24 and later)",
        modules: &["beam.smp"],
        symbols: &[],
    },
    Names {
        briefly: "start it with -X perf",
        fully: "start it with `python -X perf` (Python 3.12 and later)",
        modules: &["python3", "libpython3"],
        symbols: &["_PyEval_"],
    },
];

static OTHER: Names = Names {
    briefly: "let its runtime write a perf map",
    fully: "let its runtime write a perf map, /tmp/perf-PID.map (most have a switch for it)",
    modules: &[],
    symbols: &[],
};

/// How to get the names of unnamed code that ran beside these functions.
pub fn names<'a>(codes: impl IntoIterator<Item = &'a Code>) -> &'static Names {
    let of = |code: &Code| {
        KNOWN.iter().find(|n| {
            n.modules.iter().any(|m| code.file().starts_with(m)) || n.symbols.iter().any(|s| code.symbol.starts_with(s))
        })
    };
    codes.into_iter().find_map(of).unwrap_or(&OTHER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtimes::Part;

    #[test]
    fn told_from_the_code_beside_it() {
        let briefly = |symbol: &str, module: &str| {
            let [symbol, module, kind, source] = [symbol, module, "native", ""].map(str::to_string);
            names(&[Code { symbol, module, offset: 0, kind, source, part: Part::Own }]).briefly
        };
        assert!(briefly("Builtins_StringIndexOf", "/usr/bin/node").contains("--perf-basic-prof"));
        assert!(briefly("", "/usr/lib/jvm/java-17/lib/server/libjvm.so").contains("jcmd"));
        assert!(briefly("", "libcoreclr.so").contains("DOTNET_PerfMapEnabled"));
        assert!(briefly("_PyEval_EvalFrameDefault", "python3.12").contains("-X perf"));
        assert!(briefly("main", "svc").contains("perf map"));
    }
}
