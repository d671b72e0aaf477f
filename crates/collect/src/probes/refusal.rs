// SPDX-License-Identifier: Apache-2.0
//! Why the kernel refused a program, in one sentence.
//!
//! libbpf prints its reasons, and the verifier's log of hundreds of lines, to standard error. Here they are kept
//! instead, and the line that tells most goes into the error that the user gets to see.

use std::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{AsRawLibbpf as _, OpenObject, PrintLevel, libbpf_sys, set_print};

use super::kernel_types;
use crate::courtesy;

/// What libbpf said since [`listen`]. It is called from whichever thread loads; only one does.
static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A reason is a sentence, not a page.
const MAX_CHARS: usize = 240;

/// From here on libbpf is silent and its words are kept; earlier words are forgotten.
fn listen() {
    set_print(Some((PrintLevel::Warn, |_, text| {
        SAID.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    })));
    SAID.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// Opens a probe's object, to be loaded with [`load`].
///
/// # Errors
/// There is no memory for it.
pub fn open<'o, B: SkelBuilder<'o>>(
    mut builder: B,
    storage: &'o mut MaybeUninit<OpenObject>,
    what: &str,
) -> Result<B::Output> {
    listen();
    if let Some(types) = kernel_types::get() {
        builder.object_builder_mut().btf_custom_path(&types.path)?;
    }
    builder.open(storage).with_context(|| format!("failed to open {what}"))
}

/// Loads an open probe. What the library computes for that, most of the time of a load, may be interrupted; the kernel
/// begins anew with a program while whose check a signal comes, and gives up in the end.
///
/// # Errors
/// The kernel refuses: `tried`, and why.
pub fn load<'o, O: OpenSkel<'o>>(mut open: O, tried: &str) -> Result<O::Output> {
    let object = open.open_object_mut().as_libbpf_object();
    // SAFETY: an open object that is not loaded yet, and ours alone.
    let prepared = unsafe { libbpf_sys::bpf_object__prepare(object.as_ptr()) };
    if prepared != 0 {
        return Err(explained(&libbpf_rs::Error::from_raw_os_error(prepared.wrapping_neg()), tried));
    }
    courtesy::unbroken(|| open.load()).map_err(|e| explained(&e, tried))
}

/// The error of a load that failed: what was tried, and why it was refused.
fn explained(error: &libbpf_rs::Error, tried: &str) -> anyhow::Error {
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
