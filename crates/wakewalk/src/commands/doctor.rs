// SPDX-License-Identifier: Apache-2.0
//! `wakewalk doctor`: what this kernel allows, found by trying.

use std::io::Write as _;

use anyhow::Result;
use collect::doctor::{self, Facility, Health};
use collect::tested_kernels;

use crate::{args, plan};

/// Runs the command.
pub fn run(args: &args::Doctor) -> Result<()> {
    let health = doctor::examine();
    let mut out = anstream::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&health)?)?;
        return Ok(());
    }
    let tested = if health.tested { "one of the tested" } else { "none of the tested" };
    writeln!(out, "kernel {}, {tested}:\n  {}\n", health.kernel, tested_kernels::sentence().replace("), ", "),\n  "))?;
    for facility in &health.facilities {
        draw(&mut out, facility)?;
    }
    writeln!(out, "\n{}", conclusion(&health, plan::has_own_pids()))?;
    Ok(())
}

fn conclusion(health: &Health, has_own_pids: bool) -> String {
    match (health.bpf, health.missing.as_str()) {
        (true, _) if has_own_pids => {
            "`wakewalk diagnose` cannot work in this container, which has process numbers of its\nown: run it on the host, \
             or with the host's (--pid=host, in a pod hostPID: true)."
                .into()
        }
        (true, _) => "`wakewalk diagnose` works here.".into(),
        (false, "") => "`wakewalk diagnose` cannot work here.".into(),
        (false, missing) => format!(
            "`wakewalk diagnose` cannot work for this user, who lacks {missing}. Whether it works\nfor root on this \
             kernel could not be tried: run `sudo wakewalk doctor`."
        ),
    }
}

fn draw(out: &mut impl std::io::Write, f: &Facility) -> Result<()> {
    let (mark, lead) = match (f.works, f.tried) {
        (true, _) => ("yes", ""),
        (false, true) => ("NO ", "lost: "),
        (false, false) => ("?  ", ""),
    };
    writeln!(out, "{mark}  {}\n     {lead}{}", f.name, f.meaning)?;
    if !f.works {
        writeln!(out, "     {}", f.why)?;
    }
    Ok(())
}
