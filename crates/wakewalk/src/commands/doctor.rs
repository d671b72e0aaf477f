// SPDX-License-Identifier: Apache-2.0
//! `wakewalk doctor`: what this kernel allows, found by trying.

use std::io::Write as _;

use anyhow::Result;
use collect::doctor::{self, Facility};

use crate::args;

/// Runs the command.
pub fn run(args: &args::Doctor) -> Result<()> {
    let health = doctor::examine();
    let mut out = anstream::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&health)?)?;
        return Ok(());
    }
    writeln!(out, "kernel {}\n", health.kernel)?;
    for facility in &health.facilities {
        draw(&mut out, facility)?;
    }
    let verdict = if health.bpf { "`wakewalk diagnose` works here." } else { "`wakewalk diagnose` cannot work here." };
    writeln!(out, "\n{verdict}")?;
    Ok(())
}

fn draw(out: &mut impl std::io::Write, f: &Facility) -> Result<()> {
    let (mark, lead) = if f.works { ("yes", "") } else { ("NO ", "lost: ") };
    writeln!(out, "{mark}  {}\n     {lead}{}", f.name, f.meaning)?;
    if !f.works {
        writeln!(out, "     {}", f.why)?;
    }
    Ok(())
}
