// SPDX-License-Identifier: Apache-2.0
//! Ending a watch early, with the verdict of what was seen until then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::watchdog;

/// SIGHUP among the signals of a mask in `/proc/PID/status`.
const HANGUP: u64 = 1 << (SIGHUP - 1);

/// timeout(1) sends its signal to us and then to our process group, in which we are: nobody presses a key twice so fast.
const ONE_ASKS_TWICE: Duration = Duration::from_millis(200);

/// A flag that SIGINT, SIGTERM and SIGHUP set. The second SIGINT or SIGTERM ends us at once: the kernel takes our hooks off
/// whichever way we go.
pub fn on_signal() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut signals = Signals::new(caught(&status)).context("failed to catch signals")?;
    let (asked, mut first) = (Arc::clone(&stop), None::<(i32, Instant)>);
    let listen = move || {
        for signal in signals.forever() {
            asked.store(true, Ordering::Relaxed);
            // A hangup is told by the kernel and by the shell, and often with a SIGTERM: it counts as none of the two.
            if signal == SIGHUP {
                continue;
            }
            let (same, at) = *first.get_or_insert((signal, Instant::now()));
            let is_first = same == signal && at.elapsed() < ONE_ASKS_TWICE;
            if !is_first {
                watchdog::second_signal();
                let _ = emulate_default_handler(signal); // does not come back
            }
        }
    };
    // A thread, because what the main thread is at may take as long as it wants.
    thread::Builder::new().name("signals".into()).spawn(listen).context("failed to catch signals")?;
    Ok(stop)
}

/// The signals that end a watch. Who starts us with SIGHUP ignored, as nohup does, wants it to go on without the terminal.
fn caught(status: &str) -> Vec<i32> {
    let ignored = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    let hangup = (ignored.unwrap_or_default() & HANGUP == 0).then_some(SIGHUP);
    [SIGINT, SIGTERM].into_iter().chain(hangup).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hangup_that_was_ignored_stays_so() {
        assert_eq!(caught("Name:\tx\nSigIgn:\t0000000000001001\n"), [SIGINT, SIGTERM]);
        assert_eq!(caught("SigIgn:\t0000000000001000\n"), [SIGINT, SIGTERM, SIGHUP], "the runtime ignores SIGPIPE");
        assert_eq!(caught(""), [SIGINT, SIGTERM, SIGHUP]);
    }
}
