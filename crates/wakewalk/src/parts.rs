// SPDX-License-Identifier: Apache-2.0
//! A saved recording, or the part of it that was asked for.

use std::fmt::Write as _;
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
    if let Some(started) = later(&cut.meta.started, Duration::from_nanos(from_ns)) {
        cut.meta.started = started;
    }
    Ok((cut, label))
}

/// The moment so long after one that a recording tells, which may come from anybody; none where that is no moment, or this one cannot
/// be written: after the year 9999.
fn later(moment: &str, by: Duration) -> Option<String> {
    let later = humantime::parse_rfc3339(moment).ok()?.checked_add(by)?;
    let mut text = String::new();
    write!(text, "{}", humantime::format_rfc3339_millis(later)).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_that_cannot_be_written_are_none() {
        let by = Duration::from_millis(1500);
        assert_eq!(later("2024-02-28T23:59:59Z", by).as_deref(), Some("2024-02-29T00:00:00.500Z"));
        assert_eq!(later("9999-12-31T23:59:57Z", by).as_deref(), Some("9999-12-31T23:59:58.500Z"));
        for (moment, by) in [("9999-12-31T23:59:59Z", by), ("2024-02-28T23:59:59Z", Duration::MAX), ("yesterday", by)] {
            assert_eq!(later(moment, by), None, "{moment}");
        }
    }
}
