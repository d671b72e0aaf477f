//! `wakewalk` alone: a short look at the whole host, and where to look next.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use recording::{Meta, Writer};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::args;
use crate::plan::{self, TOOL};
use crate::progress::Line;

/// Runs the command.
pub fn run(args: &args::Host) -> Result<()> {
    plan::check_length(args.length)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&stop))
            .context("failed to catch signals")?;
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("failed to catch signals")?;
    }
    let folder = tempfile::tempdir().context("failed to make a folder for the recording")?;
    let writer = Writer::create(folder.path(), &Meta { tool: TOOL.into(), ..Meta::default() })?;
    let line = Line::new(args.length);
    collect::host_watch::run(Path::new("/"), args.length, TOOL, writer, &stop, &mut |elapsed| {
        line.show(elapsed, args.length, "watching the host");
    })?;
    drop(line);
    let recording = recording::open(folder.path())?;
    let mut out = anstream::stdout().lock();
    if args.json {
        writeln!(out, "{}", report::host::json(&recording)?)?;
    } else {
        report::host::draw(&recording, super::diagnose::width(), &mut out)?;
    }
    Ok(())
}
