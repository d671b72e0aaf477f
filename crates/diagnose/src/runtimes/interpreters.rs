// SPDX-License-Identifier: Apache-2.0
//! Interpreters that run one thread of a process at a time, told by the function that interprets: more threads do not
//! make such a program faster.

use super::Part;
use super::code::Code;

/// An interpreter.
#[derive(Debug, PartialEq, Eq)]
pub struct Interpreter {
    /// The language.
    pub language: &'static str,
    /// What spreads its work over CPUs instead, as the rest of `spread it over …`.
    pub spread: &'static str,
    /// Beginnings of file names of its modules.
    modules: &'static [&'static str],
}

static KNOWN: &[Interpreter] = &[
    Interpreter {
        language: "Python",
        spread: "more processes (multiprocessing, more workers of its server)",
        modules: &["python", "libpython", "uwsgi"],
    },
    Interpreter { language: "Ruby", spread: "more processes (workers of its server)", modules: &["ruby", "libruby"] },
    Interpreter {
        language: "JavaScript",
        spread: "more processes (cluster) or worker threads",
        modules: &["node", "libnode", "libv8"],
    },
    Interpreter { language: "PHP", spread: "more processes (pm.max_children)", modules: &["php", "libphp"] },
    Interpreter { language: "Perl", spread: "more processes", modules: &["perl", "libperl"] },
    Interpreter { language: "Lua", spread: "more processes", modules: &["lua", "liblua"] },
];

/// The interpreter among the functions of a stack.
pub fn of<'a>(stack: impl IntoIterator<Item = &'a Code>) -> Option<&'static Interpreter> {
    let known = |code: &Code| KNOWN.iter().find(|i| i.modules.iter().any(|m| code.file().starts_with(m)));
    stack.into_iter().filter(|code| code.part == Part::Interpreter).find_map(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn told_from_the_function_that_interprets() {
        let language = |symbol: &str, module: &str| {
            let part = super::super::part(symbol, module);
            let [symbol, module, kind, source] = [symbol, module, "native", ""].map(str::to_string);
            of(&[Code { symbol, module, offset: 0, kind, source, part }]).map(|i| i.language)
        };
        assert_eq!(language("_PyEval_EvalFrameDefault", "/usr/bin/python3.12"), Some("Python"));
        assert_eq!(language("rb_vm_exec", "libruby-3.1.so.3.1"), Some("Ruby"));
        assert_eq!(language("execute_ex", "/usr/sbin/php-fpm8.2"), Some("PHP"));
        assert_eq!(language("main", "svc"), None);
    }
}
