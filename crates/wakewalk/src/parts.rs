// SPDX-License-Identifier: Apache-2.0
//! A saved recording, or the part of it that was asked for.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use recording::Recording;

use crate::args;

/// What the recording of a load calls itself.
pub const LOAD: &str = "load";

/// Opens a recording of a service and takes a part of it; what it is called says which.
///
/// # Errors
/// There is no recording, it is one of a load, or there is nothing in that part of it.
pub fn open(dir: &Path, part: Option<args::Part>) -> Result<(Recording, String)> {
    let name = dir.display().to_string();
    ensure!(
        recording::describe(dir)?.kind != LOAD,
        "`{name}` is what `load --save` kept of a load, not the recording of a service: any reader of Parquet opens its tables \
         (SCHEMA.md says what is in them)"
    );
    let Some(part) = part else { return Ok((recording::open(dir)?, name)) };
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let wanted = recording::Part { from_ns: ns(part.from), to_ns: part.to.map_or(u64::MAX, ns) };
    let end = part.to.map_or("its end".to_string(), |to| format!("{} s", to.as_secs_f64()));
    let label = format!("{name} from {} s to {end}", part.from.as_secs_f64());
    let cut = recording::open_part(dir, wanted).with_context(|| format!("failed to take a part of `{name}`"));
    let (mut cut, from_ns) = cut?;
    if let Ok(started) = humantime::parse_rfc3339(&cut.meta.started) {
        cut.meta.started = humantime::format_rfc3339_millis(started + Duration::from_nanos(from_ns)).to_string();
    }
    Ok((cut, label))
}
