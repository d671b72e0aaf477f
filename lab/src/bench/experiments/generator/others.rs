// SPDX-License-Identifier: Apache-2.0
//! Other generators, each as its own users run it: what a request costs it, and what it prints of a service that stood still.

use std::env;

use anyhow::{Context, Result, bail};

use crate::cell::Program;

/// One of them.
pub struct Other {
    /// Its name.
    pub name: &'static str,
    /// How it asks as fast as it can: for so many seconds, of an address.
    fast: fn(u64, &str) -> Vec<String>,
    /// The same at a rate; none = it knows no rates.
    steady: Option<fn(u64, &str) -> Vec<String>>,
    /// The p99 that it prints, ms.
    p99_ms: fn(&str) -> Option<f64>,
}

/// Connections of each.
const CONNECTIONS: &str = "32";
/// Requests a second, for those that know rates.
const RATE: &str = "1000";

/// All of them.
pub static ALL: &[Other] = &[
    Other {
        name: "wrk",
        fast: |seconds, url| words(&format!("-t1 -c{CONNECTIONS} -d{seconds}s --latency {url}")),
        steady: None,
        p99_ms: |text| after(text, "99%").and_then(milliseconds),
    },
    Other {
        name: "ab",
        fast: |seconds, url| words(&format!("-k -q -c {CONNECTIONS} -t {seconds} -n 99999999 {url}")),
        steady: None,
        p99_ms: |text| after(text, "99%")?.parse().ok(),
    },
    Other {
        name: "hey",
        fast: |seconds, url| words(&format!("-c {CONNECTIONS} -z {seconds}s {url}")),
        // A rate of each connection.
        steady: Some(|seconds, url| words(&format!("-c 10 -q 100 -z {seconds}s {url}"))),
        p99_ms: |text| Some(after(text, "99% in")?.parse::<f64>().ok()? * 1e3),
    },
    Other {
        name: "h2load",
        fast: |seconds, url| words(&format!("--h1 -c {CONNECTIONS} -D {seconds} {url}")),
        steady: None,
        // It prints a mean and a longest.
        p99_ms: |_| None,
    },
    Other {
        name: "fortio",
        fast: |seconds, url| words(&format!("load -quiet -qps 0 -c {CONNECTIONS} -t {seconds}s {url}")),
        steady: Some(|seconds, url| words(&format!("load -qps {RATE} -c {CONNECTIONS} -t {seconds}s -p 99 {url}"))),
        p99_ms: |text| Some(after(text, "# target 99%")?.parse::<f64>().ok()? * 1e3),
    },
    Other {
        name: "oha",
        fast: |seconds, url| words(&format!("--no-tui -c {CONNECTIONS} -z {seconds}s {url}")),
        steady: Some(|seconds, url| words(&format!("--no-tui -q {RATE} -c {CONNECTIONS} -z {seconds}s {url}"))),
        p99_ms: |text| oha_p99(text, "99.00%"),
    },
    Other {
        name: "oha, corrected",
        fast: |seconds, url| words(&format!("--no-tui -c {CONNECTIONS} -z {seconds}s {url}")),
        steady: Some(|seconds, url| {
            words(&format!("--no-tui --latency-correction -q {RATE} -c {CONNECTIONS} -z {seconds}s {url}"))
        }),
        p99_ms: |text| oha_p99(text, "99.00%"),
    },
];

impl Other {
    /// Whether it is installed.
    ///
    /// # Errors
    /// It is not.
    pub fn check(&self) -> Result<()> {
        let is_there = |path: std::path::PathBuf| path.join(self.program()).is_file();
        if !env::var_os("PATH").is_some_and(|all| env::split_paths(&all).any(is_there)) {
            bail!("{} is not installed", self.program());
        }
        Ok(())
    }

    /// As fast as it can.
    pub fn fast(&self, seconds: u64, url: &str) -> Program {
        Program::installed(self.program()).named("other").args((self.fast)(seconds, url))
    }

    /// At a rate, where it knows rates; else as fast as it can, and waiting.
    pub fn steady(&self, seconds: u64, url: &str) -> Program {
        // Some print their numbers where others print errors.
        let command =
            format!("exec {} {} 2>&1", self.program(), self.steady.unwrap_or(self.fast)(seconds, url).join(" "));
        Program::installed("sh").named("other").args(["-c".to_string(), command])
    }

    /// The p99 that it printed, ms.
    ///
    /// # Errors
    /// It printed none.
    pub fn p99_ms(&self, text: &str) -> Result<f64> {
        (self.p99_ms)(text).with_context(|| format!("{} prints no p99", self.name))
    }

    fn program(&self) -> &'static str {
        self.name.split(',').next().unwrap_or(self.name)
    }
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(String::from).collect()
}

/// The word behind others that a line begins with.
fn after<'t>(text: &'t str, begin: &str) -> Option<&'t str> {
    let line = text.lines().map(str::trim).find(|line| line.starts_with(begin))?;
    line[begin.len()..].split_whitespace().next()
}

/// `1.23ms`, `450.00us`, `1.02s`.
fn milliseconds(word: &str) -> Option<f64> {
    let (number, unit) = word.split_at(word.find(|c: char| c.is_ascii_alphabetic())?);
    let factor = match unit {
        "us" => 1e-3,
        "ms" => 1.0,
        "s" => 1e3,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}

/// `99.00% in 1.2345 ms`, or `secs`.
fn oha_p99(text: &str, begin: &str) -> Option<f64> {
    let line = text.lines().map(str::trim).find(|line| line.starts_with(begin))?;
    let mut words = line.split_whitespace().skip(2);
    let number: f64 = words.next()?.parse().ok()?;
    Some(if words.next()?.starts_with("sec") { number * 1e3 } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_each_prints() {
        let p99 = |name: &str, text: &str| ALL.iter().find(|other| other.name == name).unwrap().p99_ms(text).ok();
        assert_eq!(p99("wrk", "  Latency Distribution\n     50%  1.00ms\n     99%    1.02s \n"), Some(1020.0));
        assert_eq!(p99("ab", "  98%      4\n  99%      7\n"), Some(7.0));
        assert_eq!(p99("hey", "  95% in 0.0020 secs\n  99% in 0.0040 secs\n"), Some(4.0));
        assert_eq!(p99("fortio", "# target 99% 0.00198\n"), Some(1.98));
        assert_eq!(p99("oha", "  99.00% in 0.9310 secs\n"), Some(931.0));
        assert_eq!(p99("oha, corrected", "  99.00% in 3.5000 ms\n"), Some(3.5));
        assert_eq!(p99("h2load", "time for request: 1ms\n"), None);
    }
}
