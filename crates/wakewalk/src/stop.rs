// SPDX-License-Identifier: Apache-2.0
//! Ending a watch early, with the verdict of what was seen until then.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// A flag that SIGINT and SIGTERM set. The second one ends us at once: the kernel takes our hooks off
/// whichever way we go.
pub fn on_signal() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_default(signal, Arc::clone(&stop)).context("failed to catch signals")?;
        flag::register(signal, Arc::clone(&stop)).context("failed to catch signals")?;
    }
    Ok(stop)
}
