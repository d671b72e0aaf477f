// SPDX-License-Identifier: Apache-2.0
//! One file a command.

pub mod bisect;
pub mod diagnose;
pub mod diff;
pub mod doctor;
pub mod explain;
pub mod host;
mod kept;
pub mod load;
pub mod serve;
pub mod wait_and_become;

use std::io::{self, Write};

use anyhow::{Context, Result};

/// Prints an answer, as JSON or as a person reads it.
///
/// # Errors
/// Standard output cannot be written.
fn print(
    as_json: bool,
    answer: &impl serde::Serialize,
    draw: impl FnOnce(usize, &mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    let mut out = anstream::stdout().lock();
    if as_json {
        write!(out, "{}", report::formats::json::text(answer)?).context("failed to print the answer")?;
    } else {
        draw(diagnose::width(), &mut out).context("failed to print the answer")?;
    }
    Ok(out.flush()?)
}
