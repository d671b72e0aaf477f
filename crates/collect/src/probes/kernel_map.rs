// SPDX-License-Identifier: Apache-2.0
//! Reading BPF maps as the C structs that they hold.

use anyhow::{Context, Result};
use libbpf_rs::{MapCore, MapFlags};
use plain::Plain;

/// A C struct out of bytes that the kernel wrote; `None` if there are too few of them.
pub fn row<T: Plain + Copy + Default>(bytes: &[u8]) -> Option<T> {
    let mut row = T::default();
    plain::copy_from_bytes(&mut row, bytes).ok()?; // copies, so alignment does not matter
    Some(row)
}

/// Takes all entries out of a hash map. What a program adds to an entry while it is taken may be lost.
///
/// # Errors
/// The map cannot be read.
pub fn drain<K, V>(map: &impl MapCore) -> Result<Vec<(K, V)>>
where
    K: Plain + Copy + Default,
    V: Plain + Copy + Default,
{
    // All in one batch: the kernel ends one early where the next bucket would not fit, and the library
    // takes a batch that is not full for the last one.
    let batches = map
        .lookup_and_delete_batch(map.max_entries().max(1), MapFlags::ANY, MapFlags::ANY)
        .with_context(|| format!("failed to empty map `{}`", map.name().to_string_lossy()))?;
    Ok(batches.filter_map(|(k, v)| Some((row(&k)?, row(&v)?))).collect())
}

/// The per-CPU values of the one entry of a counter array.
///
/// # Errors
/// The map cannot be read.
pub fn per_cpu<V: Plain + Copy + Default>(map: &impl MapCore) -> Result<Vec<V>> {
    let values = map
        .lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY)
        .with_context(|| format!("failed to read counters `{}`", map.name().to_string_lossy()))?;
    Ok(values.unwrap_or_default().iter().filter_map(|bytes| row(bytes)).collect())
}
