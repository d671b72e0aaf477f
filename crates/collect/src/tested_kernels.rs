// SPDX-License-Identifier: Apache-2.0
//! The kernels that wakewalk is tested on: the one list, which `doctor` prints, the README repeats (a test compares
//! them) and `make kernels` boots.

/// A series of kernels that the tests run on.
#[derive(Debug)]
pub struct Tested {
    /// `6.1`.
    pub series: &'static str,
    /// Whose kernel, and how it is tested.
    pub how: &'static str,
}

/// All of them, the oldest first.
pub const KERNELS: [Tested; 3] = [
    Tested { series: "6.1", how: "Debian's package, under qemu" },
    Tested { series: "6.12", how: "Debian's package, under qemu" },
    Tested { series: "6.18", how: "a microVM guest, the development and CI machine" },
];

/// `6.1 (Debian's package, under qemu), …`.
pub fn sentence() -> String {
    let all: Vec<String> = KERNELS.iter().map(|k| format!("{} ({})", k.series, k.how)).collect();
    all.join(", ")
}

/// Whether a release, `6.1.0-56-amd64`, is of a tested series.
pub fn covers(release: &str) -> bool {
    let series: Vec<&str> = release.split(['.', '-']).take(2).collect();
    KERNELS.iter().any(|kernel| kernel.series == series.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_two_numbers() {
        assert!(covers("6.1.0-56-amd64") && covers("6.12.111+deb12-amd64") && covers("6.18.44"));
        assert!(!covers("6.11.2") && !covers("5.15.0") && !covers("") && sentence().starts_with("6.1 ("));
    }
}
