// SPDX-License-Identifier: Apache-2.0
//! What shows that something happens, on standard error: on a terminal a line that is gone when done, elsewhere one for each part.

use std::io::{IsTerminal as _, stderr};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::say;

/// A progress line over a known length of time.
pub struct Line(ProgressBar);

impl Line {
    /// A line for a watch of `length`; draws nothing where standard error is no terminal.
    pub fn new(length: Duration) -> Self {
        let bar = ProgressBar::with_draw_target(Some(length.as_millis() as u64), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{msg} {bar:40} {prefix}") {
            bar.set_style(style.progress_chars("━╸─"));
        }
        Self(bar)
    }

    /// Moves the line.
    pub fn show(&self, elapsed: Duration, length: Duration, doing: &'static str) {
        self.0.set_message(doing);
        self.0.set_prefix(format!("{:.0} of {:.0} s", elapsed.as_secs_f64(), length.as_secs_f64()));
        self.0.set_position(elapsed.as_millis() as u64);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// That a part of what takes minutes is done, where no line moves: a log is read later, and by somebody who wonders whether it hangs.
pub fn done(who: &str, part: &str) {
    if !stderr().is_terminal() {
        say::sentence(who, part);
    }
}
