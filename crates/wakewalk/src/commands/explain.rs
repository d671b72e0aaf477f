// SPDX-License-Identifier: Apache-2.0
//! `wakewalk explain`: what a cause means, how it is recognised, what to do, what looks like it.

use std::io::Write as _;

use anyhow::{Result, bail};

use crate::args;

/// Runs the command.
pub fn run(args: &args::Explain) -> Result<()> {
    let mut out = anstream::stdout().lock();
    let Some(cause) = &args.cause else {
        for cause in diagnose::causes() {
            let means = diagnose::explain(cause).map_or("", |e| e.means);
            writeln!(out, "{cause:<18} {}", first_sentence(means))?;
        }
        return Ok(());
    };
    let Some(text) = diagnose::explain(cause) else {
        bail!("no cause is called `{cause}`; the causes are {}", diagnose::causes().join(", "));
    };
    write!(out, "{}", report::formats::terminal::explanation(cause, text, super::diagnose::width()))?;
    Ok(())
}

fn first_sentence(text: &str) -> &str {
    text.split_inclusive(". ").next().unwrap_or(text).trim_end()
}
