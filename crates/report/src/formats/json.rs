// SPDX-License-Identifier: Apache-2.0
//! The verdict as JSON: the public contract of `wakewalk diagnose --json`, nothing added or left out.
//!
//! Fields keep the order of [`Verdict`], maps are sorted, numbers are printed in their shortest exact form:
//! the same verdict gives the same bytes.

use anyhow::Context;
use diagnose::verdict::Verdict;

use crate::printable;

/// Pretty-printed JSON with a newline at the end.
///
/// # Errors
/// When the verdict cannot be expressed as JSON.
pub fn text(verdict: &Verdict) -> anyhow::Result<String> {
    let json = serde_json::to_string_pretty(verdict).context("failed to write the verdict as JSON")?;
    Ok(printable::json(&json) + "\n")
}
