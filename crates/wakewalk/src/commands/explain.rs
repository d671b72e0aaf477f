// SPDX-License-Identifier: Apache-2.0
//! `wakewalk explain`: what a cause means, how it is recognised, what to do, what looks like it; and the glossary.

use std::io::{IsTerminal as _, Write as _};

use anyhow::{Result, bail};

use crate::args;

/// Runs the command.
pub fn run(args: &args::Explain) -> Result<()> {
    let mut out = anstream::stdout().lock();
    let Some(cause) = &args.cause else {
        // What another program reads has no width to fit.
        let columns = if std::io::stdout().is_terminal() { super::diagnose::width() - 17 } else { usize::MAX };
        for cause in diagnose::causes() {
            let means = diagnose::explain(cause).map_or(String::new(), |e| e.means);
            writeln!(out, "{cause:<16} {}", beginning(&means, columns))?;
        }
        return Ok(());
    };
    if cause == "words" {
        write!(out, "{}", report::explain::glossary(diagnose::glossary(), super::diagnose::width()))?;
        return Ok(());
    }
    let Some(text) = diagnose::explain(cause) else {
        bail!("no cause is called `{cause}`");
    };
    write!(out, "{}", report::explain::cause(cause, &text, super::diagnose::width()))?;
    Ok(())
}

/// The first sentence, or as many of its words as fit.
fn beginning(text: &str, columns: usize) -> String {
    let sentence = text.split_inclusive(". ").next().unwrap_or(text).trim_end();
    let mut line = String::new();
    for word in sentence.split(' ') {
        if line.chars().count() + word.chars().count() + 2 > columns {
            return line + " …";
        }
        line += if line.is_empty() { "" } else { " " };
        line += word;
    }
    line
}
