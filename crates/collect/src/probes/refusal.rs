// SPDX-License-Identifier: Apache-2.0
//! Why the kernel refused a program, in one sentence.
//!
//! libbpf prints its reasons, and the verifier's log of hundreds of lines, to standard error. Here they are kept
//! instead, and the line that tells most goes into the error that the user gets to see.

use std::sync::{Mutex, PoisonError};

use libbpf_rs::{PrintLevel, set_print};

/// What libbpf said since [`listen`]. It is called from whichever thread loads; only one does.
static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A reason is a sentence, not a page.
const MAX_CHARS: usize = 240;

/// From here on libbpf is silent and its words are kept; earlier words are forgotten.
pub fn listen() {
    set_print(Some((PrintLevel::Warn, |_, text| {
        SAID.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    })));
    SAID.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// The error of a load that failed: what was tried, and why it was refused.
pub fn explained(error: &libbpf_rs::Error, tried: &str) -> anyhow::Error {
    let said = std::mem::take(&mut *SAID.lock().unwrap_or_else(PoisonError::into_inner));
    match reason(&said) {
        Some(reason) => anyhow::anyhow!("{tried}: {reason}"),
        None => anyhow::anyhow!("{tried}: {error}"),
    }
}

/// libbpf's first complaint, and the verifier's last words where there are any.
fn reason(said: &[String]) -> Option<String> {
    let plain = |text: &str| text.trim().trim_start_matches("libbpf: ").to_string();
    let is_log = |text: &&String| text.contains("BEGIN PROG LOAD LOG");
    let first = said.iter().find(|text| !is_log(text)).map(|text| plain(text));
    let last = said.iter().find(is_log).and_then(|log| {
        let mut lines = log.lines().map(str::trim).rev();
        let frame = |line: &&str| line.is_empty() || line.contains("PROG LOAD LOG") || line.starts_with("processed ");
        lines.find(|line| !frame(line)).map(str::to_string)
    });
    let whole = match (first, last) {
        (Some(first), Some(last)) => format!("{first} ({last})"),
        (one, other) => one.or(other)?,
    };
    Some(whole.chars().take(MAX_CHARS).collect())
}

#[cfg(test)]
mod tests {
    use super::reason;

    #[test]
    fn the_verifiers_last_words_count() {
        let said = [
            "libbpf: prog 'on_switch': BPF program load failed: Permission denied\n",
            "libbpf: prog 'on_switch': -- BEGIN PROG LOAD LOG --\n0: (b7) r1 = 0\nfunc 'sched_switch' doesn't have 4-th \
             argument\nprocessed 9 insns (limit 1000000)\n-- END PROG LOAD LOG --\n",
            "libbpf: failed to load object 'ledger_bpf'\n",
        ]
        .map(String::from);
        assert_eq!(
            reason(&said).unwrap(),
            "prog 'on_switch': BPF program load failed: Permission denied (func 'sched_switch' doesn't have 4-th argument)"
        );
        assert_eq!(reason(&[]), None);
    }
}
