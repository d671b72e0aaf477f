// SPDX-License-Identifier: Apache-2.0
//! Sentences on standard error. They quote names that processes chose for themselves, which may hold
//! what acts on a terminal.

/// Prints `who: sentence`, on one line and harmless.
pub fn sentence(who: &str, sentence: &str) {
    eprintln!("{who}: {}", report::printable::text(sentence));
}
