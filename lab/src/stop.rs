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
        self.sleep_until(length, || Ok(false)).map(drop)
    }

    /// The same, or until `ready`, which is asked as rarely as a sleep looks for the end: waiting for something then costs
    /// the host no more than waiting. True = it was ready.
    ///
    /// # Errors
    /// The runner was asked to end, or `ready` failed.
    pub fn sleep_until(&self, length: Duration, ready: impl FnMut() -> Result<bool>) -> Result<bool> {
        self.ask(Duration::from_millis(50), length, ready)
    }

    /// Asks `ready` every 20 ms until it is true; false once `limit` is over.
    ///
    /// # Errors
    /// The runner was asked to end, or `ready` failed.
    pub fn poll(&self, limit: Duration, ready: impl FnMut() -> Result<bool>) -> Result<bool> {
        self.ask(Duration::from_millis(20), limit, ready)
    }

    fn ask(&self, every: Duration, limit: Duration, mut ready: impl FnMut() -> Result<bool>) -> Result<bool> {
        let end = Instant::now() + limit;
        loop {
            self.check()?;
            if ready()? {
                return Ok(true);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            thread::sleep(left.min(every));
        }
    }
}
