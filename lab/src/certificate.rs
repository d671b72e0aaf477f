// SPDX-License-Identifier: Apache-2.0
//! A certificate for services behind TLS.

use std::time::Duration;

use anyhow::Result;

use crate::cell::{Cell, Program};

/// openssl's words.
const ARGS: &str = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=localhost -keyout key.pem -out \
                    cert.pem -batch";

/// Writes `cert.pem` and `key.pem` into the cell's folder.
///
/// # Errors
/// `openssl` cannot be run.
pub fn write(cell: &mut Cell) -> Result<()> {
    let openssl = cell.start(Program::installed("openssl").args(ARGS.split_whitespace()))?;
    cell.finish(openssl, Duration::from_secs(20)).map(drop)
}
