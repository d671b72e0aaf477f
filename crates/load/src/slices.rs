// SPDX-License-Identifier: Apache-2.0
//! Which second of a load a slice of a recording is.

/// Half of a slice, ns.
pub(crate) const HALF_SLICE_NS: u64 = 500_000_000;

/// The second in which a slice lies: rows name its end, which is a little later than that of the second.
pub(crate) fn second_of(t_ns: u64) -> u64 {
    t_ns.saturating_sub(HALF_SLICE_NS) / 1_000_000_000
}
