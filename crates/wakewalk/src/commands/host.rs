// SPDX-License-Identifier: Apache-2.0
//! `wakewalk` alone: a short look at the whole host, and where to look next.

use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::Ordering;

use anyhow::Result;
use recording::{Meta, Writer};

use crate::progress::Line;
use crate::watchdog::{self, Watched};
use crate::{args, plan, scratch, stop};

/// Runs the command.
pub fn run(args: &args::Host) -> Result<()> {
    plan::check_length(args.length)?;
    let stop = stop::on_signal()?;
    let folder = scratch::folder()?;
    let watched = Watched { dir: folder.path(), is_kept: false, length: args.length, stop: &stop };
    watchdog::over(&watched, |is_open| {
        let mut writer = Writer::create(folder.path(), &Meta { tool: plan::TOOL.into(), ..Meta::default() })?;
        let line = Line::new(args.length);
        collect::host_watch::run(Path::new("/"), args.length, plan::TOOL, &mut writer, &stop, &mut |elapsed| {
            is_open.store(true, Ordering::Relaxed);
            line.show(elapsed, args.length, "watching the host");
        })
    })?;
    let recording = recording::open(folder.path())?;
    let mut out = anstream::stdout().lock();
    if args.json {
        write!(out, "{}", report::host::json(&recording)?)?;
    } else {
        report::host::draw(&recording, super::diagnose::width(), &mut out)?;
    }
    Ok(())
}
