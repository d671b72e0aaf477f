// SPDX-License-Identifier: Apache-2.0
//! Sentences on standard error. They quote names that processes chose for themselves, which may hold
//! what acts on a terminal.

use std::io::{self, Write as _};

/// Prints `who: sentence`, on one line and harmless.
pub fn sentence(who: &str, sentence: &str) {
    // Where nobody reads it any more, as behind a terminal that is gone, nobody misses it.
    let _ = writeln!(io::stderr(), "{who}: {}", report::printable::text(sentence));
}
