// SPDX-License-Identifier: Apache-2.0
//! Lengths of time, in the bins of `bpf/histogram.bpf.h`.

/// Lengths of time, each within 3 %.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// How many.
    pub count: u64,
    /// Added up, ns.
    pub sum_ns: u64,
    /// Length, ns, and how many were so long.
    pub bins: Vec<(u64, u64)>,
}

impl Histogram {
    /// Adds `count` of one length, as the kernel would.
    pub fn add(&mut self, ns: u64, count: u64) {
        self.count += count;
        self.sum_ns += ns * count;
        let middle = middle_ns(bin_of(ns));
        match self.bins.binary_search_by_key(&middle, |(length, _)| *length) {
            Ok(at) => self.bins[at].1 += count,
            Err(at) => self.bins.insert(at, (middle, count)),
        }
    }
}

/// The bin of `bpf/histogram.bpf.h` that a length falls into.
fn bin_of(ns: u64) -> usize {
    const LAST: usize = 383;
    let us = ns >> 10;
    let bin = match us.checked_ilog2() {
        Some(bit) if bit >= 4 => u64::from(bit - 3) * 16 + (us >> (bit - 4) & 15),
        _ => us,
    };
    usize::try_from(bin).map_or(LAST, |bin| bin.min(LAST))
}

/// The middle of a bin of `bpf/histogram.bpf.h`, ns.
pub fn middle_ns(bin: usize) -> u64 {
    let bin = bin as u64;
    let (from_us, length_us) = match bin >> 4 {
        0 => (bin, 1),
        doubling => ((16 + (bin & 15)) << (doubling - 1), 1 << (doubling - 1)),
    };
    (from_us << 10) + (length_us << 9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_falls_into_the_bin_around_it() {
        for ns in
            (0..60).flat_map(|bit| [1_u64 << bit, (1 << bit) + 777, (1 << bit) * 3 / 2]).filter(|ns| *ns < 60 << 30)
        {
            let (bin, ns) = (bin_of(ns), ns as f64);
            let off = (middle_ns(bin) as f64 - ns).abs();
            assert!(off <= 513.0_f64.max(ns * 0.033), "{ns} is in {bin}");
        }
        assert_eq!(bin_of(u64::MAX), 383);
    }

    #[test]
    fn bins_lie_side_by_side() {
        assert_eq!((middle_ns(0), middle_ns(15), middle_ns(16), middle_ns(17)), (512, 15_872, 16_896, 17_920));
        assert_eq!(middle_ns(32), (32 << 10) + 1024);
        for bin in 0..383 {
            let (this, next) = (middle_ns(bin) as f64, middle_ns(bin + 1) as f64);
            assert!(next > this && (bin < 16 || next / this < 1.07), "{bin}: {this} {next}");
        }
    }
}
