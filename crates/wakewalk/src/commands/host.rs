//! `wakewalk` alone: a short look at the whole host, and where to look next.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use recording::Recording;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::args;
use crate::plan;
use crate::progress::Line;

/// How often the progress line moves.
const TICK: Duration = Duration::from_millis(100);

/// Runs the command.
pub fn run(args: &args::Host) -> Result<()> {
    plan::check_length(args.length)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&stop))
            .context("failed to catch signals")?;
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("failed to catch signals")?;
    }
    let recording = watch(args.length, &stop);
    let mut out = anstream::stdout().lock();
    if args.json {
        write!(out, "{}", report::host::json(&recording)?)?;
    } else {
        report::host::draw(&recording, super::diagnose::width(), &mut out)?;
    }
    Ok(())
}

/// Watches the host, while a second thread moves the progress line.
fn watch(length: Duration, stop: &AtomicBool) -> Recording {
    let (done, started) = (AtomicBool::new(false), Instant::now());
    thread::scope(|scope| {
        scope.spawn(|| {
            let line = Line::new(length);
            while !done.load(Ordering::Relaxed) {
                line.show(started.elapsed(), length, "watching the host");
                thread::sleep(TICK);
            }
        });
        let recording = collect::host_watch::watch(Path::new("/"), length, stop);
        done.store(true, Ordering::Relaxed);
        recording
    })
}
