// SPDX-License-Identifier: Apache-2.0
//! An answer as JSON: the public contract of `--json`, nothing added or left out.
//!
//! Fields keep the order of their declaration, maps are sorted, numbers are printed in their shortest exact form:
//! the same answer gives the same bytes.

use anyhow::Context;
use serde::Serialize;

use crate::printable;

/// Pretty-printed JSON with a newline at the end.
///
/// # Errors
/// When the answer cannot be expressed as JSON.
pub fn text(answer: &impl Serialize) -> anyhow::Result<String> {
    let json = serde_json::to_string_pretty(answer).context("failed to write the answer as JSON")?;
    Ok(printable::json(&json) + "\n")
}
