// SPDX-License-Identifier: Apache-2.0
//! A target that nobody asked for anything: that nothing was found says nothing then.

use crate::case::Case;
use crate::facts::limits::Limits;
use crate::facts::requests::Requests;
use crate::facts::waiting::Waiting;
use crate::wording::{cores, word};

/// CPU time that the household of a runtime takes.
const HOUSEHOLD_CORES: f64 = 0.02;

/// Whether there was nothing to judge: no request, hardly any CPU time, and nothing that it waited for.
pub(crate) fn is_idle(case: &Case) -> bool {
    let (Ok(limits), Ok(waiting)) = (case.fact::<Limits>(), case.fact::<Waiting>()) else { return false };
    let asked = case
        .fact::<Requests>()
        .is_ok_and(|requests| requests.endpoints.iter().chain(&requests.streams).any(|e| e.began + e.pushed > 0.0));
    !asked
        && !waiting.serves
        && limits.cores < HOUSEHOLD_CORES
        && waiting.waiting_ns < case.length_ns() * HOUSEHOLD_CORES
}

/// That, for a headline.
pub(crate) fn headline(case: &Case) -> String {
    let used = case.fact::<Limits>().map_or(0.0, |limits| limits.cores);
    format!("idle, so there was nothing to judge: no request was seen, it used {}", cores(used))
}

/// What to do about it.
pub(crate) fn advice(case: &Case) -> String {
    let named = &case.recording.meta.target.named;
    let target = match named.split_once(' ') {
        Some((option @ ("--pid" | "--port" | "--comm" | "--unit" | "--cgroup"), value)) => {
            format!("{option} {}", word(value))
        }
        _ => "--pid PID".to_string(),
    };
    format!("diagnose it under load, or watch longer: `sudo wakewalk diagnose {target} --for 60s`")
}
