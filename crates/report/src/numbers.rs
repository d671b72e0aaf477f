// SPDX-License-Identifier: Apache-2.0
//! Numbers as a tired person reads them: grouped digits, units, and shares that never round to all or nothing.

/// A share of 0 to 1 as per cent. What is not all is never printed as 100 %, what is not nothing never as 0 %.
#[must_use]
pub fn share(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        p if p.is_nan() => "unknown".to_owned(),
        p if p == 0.0 || p < 0.0 && p > -0.05 => "0 %".to_owned(),
        p if p > 0.0 && p < 0.05 => "<0.1 %".to_owned(),
        p if p < 99.0 => format!("{p:.1} %"),
        p if p < 99.995 => format!("{p:.2} %"),
        p if p < 100.0 => ">99.99 %".to_owned(),
        p => format!("{p:.0} %"),
    }
}

/// A duration in the unit that fits it.
#[must_use]
pub fn seconds(seconds: f64) -> String {
    let size = seconds.abs();
    match size {
        0.0 => "0 s".to_owned(),
        // Shorter than anything that a clock tells: a mean over many that were nothing.
        s if s < 1e-9 => "<1 ns".to_owned(),
        s if s < 1e-6 => format!("{} ns", significant(seconds * 1e9)),
        s if s < 1e-3 => format!("{} µs", significant(seconds * 1e6)),
        s if s < 0.995 => format!("{} ms", significant(seconds * 1e3)),
        _ => format!("{} s", significant(seconds)),
    }
}

/// A duration that somebody has to wait.
#[must_use]
pub fn minutes(of_seconds: f64) -> String {
    if of_seconds < 90.0 { seconds(of_seconds) } else { format!("{:.0} minutes", (of_seconds / 60.0).ceil()) }
}

/// A size in memory, in powers of 1024.
#[must_use]
pub fn bytes(bytes: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes, 0);
    while value.abs() >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", if unit == 0 { grouped(value) } else { significant(value) }, units[unit])
}

/// A value with its unit; units that have a customary form get it.
#[must_use]
pub fn quantity(value: f64, unit: &str) -> String {
    match unit {
        "share" => share(value),
        "%" => share(value / 100.0),
        "s" | "seconds" => seconds(value),
        "ms" => seconds(value / 1e3),
        "µs" | "us" => seconds(value / 1e6),
        "ns" => seconds(value / 1e9),
        "bytes" | "B" => bytes(value),
        "cores" if value > 0.0 && value < 0.01 => "under 0.01 cores".to_owned(),
        "1/s" => format!("{} a second", number(value)),
        "" => number(value),
        unit => format!("{} {unit}", number(value)),
    }
}

/// A part of a whole, in the form that suits the whole: parts in a column compare digit by digit.
#[must_use]
pub fn part(value: f64, unit: &str, whole: f64) -> String {
    let (places, smallest) = if whole < 100.0 { (2, 0.01) } else { (1, 0.1) };
    match unit {
        "s" if whole < 1.0 => seconds(value),
        "s" if value > 0.0 && value < smallest => format!("<{smallest} s"),
        "s" => format!("{value:.places$} s"),
        unit => quantity(value, unit),
    }
}

/// A bare number: whole ones with grouped digits, others to three significant digits.
#[must_use]
pub fn number(value: f64) -> String {
    if value.fract() == 0.0 { grouped(value) } else { significant(value) }
}

/// Three significant digits, more only where they stand before the point.
fn significant(value: f64) -> String {
    match value.abs() {
        v if v >= 99.95 => grouped(value),
        v if v >= 9.995 => format!("{value:.1}"),
        v if v >= 0.0995 || v == 0.0 => format!("{value:.2}"),
        v if v >= 0.000_95 => format!("{value:.4}"),
        _ if value < 0.0 => ">-0.001".to_owned(),
        _ => "<0.001".to_owned(),
    }
}

/// A whole number with its digits in groups of three.
fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    if value <= -0.5 {
        text.push('-');
    }
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_never_round_to_all_or_nothing() {
        let cases = [
            (0.0, "0 %"),
            (0.0001, "<0.1 %"),
            (0.005, "0.5 %"),
            (0.934, "93.4 %"),
            (0.9994, "99.94 %"),
            (0.99961, "99.96 %"),
            (0.999_99, ">99.99 %"),
            (1.0, "100 %"),
            (1.94, "194 %"),
        ];
        for (value, text) in cases {
            assert_eq!(share(value), text, "{value}");
        }
    }

    #[test]
    fn durations_take_the_unit_that_fits() {
        let cases = [
            (0.0, "0 s"),
            (1.2e-19, "<1 ns"),
            (147e-9, "147 ns"),
            (1.5e-6, "1.50 µs"),
            (0.02, "20.0 ms"),
            (0.999, "1.00 s"),
            (9.1, "9.10 s"),
            (1234.5, "1,234 s"),
        ];
        for (value, text) in cases {
            assert_eq!(seconds(value), text, "{value}");
        }
    }

    #[test]
    fn parts_share_one_form() {
        assert_eq!([0.0, 0.001, 7.08, 38.4].map(|v| part(v, "s", 70.0)), ["0.00 s", "<0.01 s", "7.08 s", "38.40 s"]);
        assert_eq!(part(0.02, "s", 0.5), "20.0 ms");
        assert_eq!(part(1234.0, "calls", 9999.0), "1,234 calls");
    }

    #[test]
    fn quantities() {
        assert_eq!(quantity(1_397_534.0, "calls"), "1,397,534 calls");
        assert_eq!(quantity(0.94, "cores"), "0.94 cores");
        assert_eq!(quantity(1.2e-4, "cores"), "under 0.01 cores");
        assert_eq!(quantity(0.9994, "share"), "99.94 %");
        assert_eq!(quantity(99.94, "%"), "99.94 %");
        assert_eq!(quantity(712.3, "ns"), "712 ns");
        assert_eq!(quantity(-1200.0, ""), "-1,200");
        assert_eq!(quantity(24_117_248.0, "bytes"), "23.0 MiB");
        assert_eq!(quantity(999.0, "bytes"), "999 B");
        assert_eq!(quantity(0.6, "1/s"), "0.60 a second");
    }
}
