// SPDX-License-Identifier: Apache-2.0
//! Decoders of others, kept from ending the program: some bytes make them panic (an assertion about a
//! buffer's length, say), and a damaged table is no reason to go down.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use anyhow::{Result, anyhow};

thread_local! {
    /// Whether this thread is in a decoder.
    static DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Runs a decoder; a panic in it is an error. What it works on must not be used again after one.
///
/// # Errors
/// Its own, or that it panicked.
pub(crate) fn decode<T>(decoder: impl FnOnce() -> Result<T>) -> Result<T> {
    be_silent();
    let before = DECODING.replace(true);
    let result = catch_unwind(AssertUnwindSafe(decoder));
    DECODING.set(before);
    result.unwrap_or_else(|_| Err(anyhow!("its content makes no sense")))
}

/// A panic that is caught is not reported; all others are, as before.
fn be_silent() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = take_hook();
        set_hook(Box::new(move |panic| {
            if !DECODING.get() {
                report(panic);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_and_the_next_one_works() {
        assert!(decode::<()>(|| panic!("beyond the buffer")).is_err());
        assert_eq!(decode(|| Ok(1)).unwrap(), 1);
        assert!(!DECODING.get());
    }
}
