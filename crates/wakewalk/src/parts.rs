// SPDX-License-Identifier: Apache-2.0
//! A saved recording, or the part of it that was asked for.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use recording::Recording;

use crate::args;

/// Opens a recording and takes a part of it; what it is called says which.
///
/// # Errors
/// There is no recording, or nothing in that part of it.
pub fn open(dir: &Path, part: Option<args::Part>) -> Result<(Recording, String)> {
    let whole = recording::open(dir)?;
    let name = dir.display().to_string();
    let Some(part) = part else { return Ok((whole, name)) };
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let wanted = diagnose::Part { from_ns: ns(part.from), to_ns: part.to.map_or(u64::MAX, ns) };
    let end = part.to.map_or("its end".to_string(), |to| format!("{} s", to.as_secs_f64()));
    let label = format!("{name} from {} s to {end}", part.from.as_secs_f64());
    let cut = diagnose::cut(&whole, wanted).with_context(|| format!("failed to take a part of `{name}`"));
    let (mut cut, from_ns) = cut?;
    if let Ok(started) = humantime::parse_rfc3339(&whole.meta.started) {
        cut.meta.started = humantime::format_rfc3339_millis(started + Duration::from_nanos(from_ns)).to_string();
    }
    Ok((cut, label))
}
