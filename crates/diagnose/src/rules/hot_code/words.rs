// SPDX-License-Identifier: Apache-2.0
//! A hot function in words: what is said of it first, and what to do; and why time in some functions is not the program's own.

use super::advice::Advice;
use crate::case::Case;
use crate::facts::profile::Function;
use crate::judgement::full::Full;
use crate::remarks::Remark;
use crate::runtimes::Part;
use crate::runtimes::jit::Names;
use crate::verdict::Finding;
use crate::wording::{percent, short};

/// What is said first.
pub(super) fn headline(case: &Case, finding: &Finding, advice: &Advice, queue: Option<Remark>) -> String {
    let part = percent(finding.explains.share);
    let comm = &case.recording.meta.target.comm;
    let name = match finding.subject.function.as_deref().unwrap_or_default() {
        jit if jit.starts_with("unnamed JIT") && comm.is_empty() => "an unnamed JIT-compiled function".to_string(),
        jit if jit.starts_with("unnamed JIT") => format!("an unnamed JIT-compiled function of {comm}"),
        name => short(name),
    };
    let queue = queue.map_or(String::new(), |remark| format!("; {}", remark.headline));
    format!("{name}: {part} of the CPU time is {}{queue}", advice.is)
}

/// `part` of the busy time is its own, and perhaps it is a thread that does not serve.
pub(super) fn summary(
    full: &Full,
    top: &Function,
    (part, does_not_serve): (f64, bool),
    advice: &Advice,
    queue: Option<Remark>,
) -> String {
    format!(
        "{}{} takes {} of the busy time by its own work, and {} {} busy{}{}{}",
        top.name,
        // Run-time code has no file, and code without a name is called by its file.
        if top.jit || !top.named { String::new() } else { format!(" in {}", top.module) },
        percent(part),
        full.what,
        percent(full.utilization),
        if does_not_serve { ", though it reads and writes nothing itself" } else { "" },
        advice.known,
        queue.map_or(String::new(), |remark| format!(". {}", remark.detail.trim_end_matches('.'))),
    )
}

/// What comes first about a function that has no name: getting one.
pub(super) fn unnamed_jit(names: &Names) -> Advice {
    let briefly = format!("get its name: {}; then make it cheaper", names.briefly);
    Advice { is: "its own work", briefly, fully: String::new(), known: String::new() }
}

pub(super) fn remedy(top: &Function, of_target: f64, (names, advice): (&Names, &Advice)) -> String {
    let first = match (top.jit && !top.named, advice.fully.starts_with("block")) {
        (true, _) => format!("Get its name first: {}, and diagnose again. Then make it", names.fully),
        (false, true) => format!("Let {}", top.name),
        (false, false) => format!("Make {}", top.name),
    };
    let free = percent(of_target / 2.0);
    format!("{first} {}. With half of that gone, {free} of the CPU time is free.", advice.fully)
}

/// Why time in such a function is not one function of the program.
pub(super) fn not_its_own(part: Part) -> Option<&'static str> {
    match part {
        Part::Own | Part::Lock => None,
        Part::Interpreter => Some(
            "which runs every function of the interpreted program: profile in its own language (py-spy, perf with \
             python -X perf, node --perf-basic-prof)",
        ),
        Part::Runtime => Some("which is the language runtime's collector, compiler or scheduler, not the program"),
        Part::Helper => Some("whose callers are not known"),
    }
}
