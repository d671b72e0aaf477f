// SPDX-License-Identifier: Apache-2.0
//! The inventory: settings of the host, of its network stack and of the target that may explain why
//! two recordings differ. Rows of table `setting`, each read once.
//!
//! Only what changes a service's behaviour is here, and only as text: what differs is decided by who
//! compares. Environment variables are taken by name from a short list, for others hold secrets.

mod host;
mod process;
mod sysctl;

use std::path::Path;

use recording::tables::Setting;

pub use host::host;
pub use process::processes;
pub use sysctl::sysctls;

/// A row.
fn row(area: &str, entity: &str, name: &str, value: impl Into<String>) -> Setting {
    Setting { area: area.into(), entity: entity.into(), name: name.into(), value: value.into() }
}

/// A file's text on one line; none if it is missing or empty.
fn line(path: &Path) -> Option<String> {
    let text = crate::proc::text(path)?;
    let words: Vec<&str> = text.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}
