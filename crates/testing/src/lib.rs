// SPDX-License-Identifier: Apache-2.0
//! Tests that cannot run where they are say so, and count as skipped.
//!
//! The test harness has no such outcome at run time: a test that returns has passed, and what it printed is thrown away.
//! So the line goes past the harness to the real standard error, and to the file that [`SKIPS`] names, from which
//! `scripts/test.sh` takes skipped tests off those that passed. In CI whatever tests need has to be there: a skip fails.

use std::env;
use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::panic::Location;
use std::thread;

/// Environment variable with the file to which each skipped test adds a line.
pub const SKIPS: &str = "WAKEWALK_SKIPS";

/// What happens in CI to a test that lacks something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InCi {
    /// It fails: a kernel with BPF, root and the installed tools are what CI is for.
    Fails,
    /// It is skipped there too: hosts are set up one way or the other, and neither is wrong.
    IsSkipped,
}

/// The value of a `Result`, or the end of a test without result, which counts as skipped: for BPF, root, capabilities and
/// tools.
#[macro_export]
macro_rules! need {
    ($wanted:expr) => {
        match $wanted {
            Ok(had) => had,
            Err(why) => return $crate::skip($crate::InCi::Fails, &why),
        }
    };
}

/// The same for what depends on how the host was set up, as the version of its cgroups.
#[macro_export]
macro_rules! need_of_host {
    ($wanted:expr) => {
        match $wanted {
            Ok(had) => had,
            Err(why) => return $crate::skip($crate::InCi::IsSkipped, &why),
        }
    };
}

/// A condition for [`need!`], with the words for its absence.
///
/// # Errors
/// It does not hold.
pub fn given(holds: bool, otherwise: &str) -> Result<(), &str> {
    if holds { Ok(()) } else { Err(otherwise) }
}

/// Counts the running test as skipped; the macros then return from it.
///
/// # Panics
/// In CI, where it must not be skipped; and where the skip cannot be noted, because it would count as passed.
#[track_caller]
#[allow(clippy::expect_used, reason = "a test fails by panicking")]
pub fn skip(in_ci: InCi, why: &dyn Display) {
    let (place, this) = (Location::caller(), thread::current());
    let why = format!("{why:#}").split_whitespace().collect::<Vec<_>>().join(" ");
    let line = format!("SKIPPED {} ({}:{}): {why}", this.name().unwrap_or("a test"), place.file(), place.line());
    assert!(!(in_ci == InCi::Fails && is_ci()), "{line}. In CI this has to be there: a skipped test proves nothing");
    // Not by the macros that print: those of a test that passes are not shown.
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).expect("the skip cannot be told");
    if let Some(path) = env::var_os(SKIPS) {
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes())).expect("the skip cannot be counted");
    }
}

/// Whether this is a run that has to be whole.
fn is_ci() -> bool {
    env::var("CI").is_ok_and(|value| !["", "0", "false"].contains(&value.as_str()))
}
