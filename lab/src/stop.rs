// SPDX-License-Identifier: Apache-2.0
//! The wish to end early (Ctrl-C, a closed terminal), and waiting that hears it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Set once a signal asked the runner to end.
#[derive(Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens for Ctrl-C, SIGTERM and a closed terminal.
    ///
    /// # Errors
    /// The kernel refused the handlers.
    pub fn listen() -> Result<Self> {
        let stop = Self::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, stop.0.clone())?;
        }
        Ok(stop)
    }

    /// # Errors
    /// The runner was asked to end.
    pub fn check(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        Ok(())
    }

    /// Waits for `length`.
    ///
    /// # Errors
    /// The runner was asked to end.
    pub fn sleep(&self, length: Duration) -> Result<()> {
        let end = Instant::now() + length;
        while Instant::now() < end {
            self.check()?;
            thread::sleep((end - Instant::now()).min(Duration::from_millis(50)));
        }
        Ok(())
    }

    /// Asks `ready` every 20 ms until it is true; false once `limit` is over.
    ///
    /// # Errors
    /// The runner was asked to end, or `ready` failed.
    pub fn poll(&self, limit: Duration, mut ready: impl FnMut() -> Result<bool>) -> Result<bool> {
        let end = Instant::now() + limit;
        loop {
            self.check()?;
            if ready()? {
                return Ok(true);
            }
            if Instant::now() >= end {
                return Ok(false);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}
