// SPDX-License-Identifier: Apache-2.0
//! How numbers become words in summaries: with units, and with as many digits as they deserve.

use std::net::SocketAddr;

/// A share as percent, `0.4 %`, `37 %`, `99.94 %`.
pub fn percent(share: f64) -> String {
    let p = share * 100.0;
    let text = match p {
        // Near nothing and near all, the digit behind the point is what matters.
        _ if p > 0.0 && p < 0.05 => "<0.1 %".into(),
        _ if (99.995..100.0).contains(&p) => ">99.99 %".into(),
        _ if (99.95..100.0).contains(&p) => format!("{p:.2} %"),
        _ if p > 0.0 && p < 9.95 || p > 99.0 && p < 100.0 => format!("{p:.1} %"),
        _ => format!("{p:.0} %"),
    };
    // Rounding leaves no "-0".
    if text == "-0 %" { "0 %".into() } else { text }
}

/// A change in per cent, with a sign and so many digits behind the point: `+0.4`, `-31`. What rounds to nothing has no sign.
pub fn signed_percent(share: f64, digits: usize) -> String {
    let text = format!("{:+.digits$}", share * 100.0);
    let is_nothing = text.chars().all(|letter| "+-0.".contains(letter));
    if is_nothing { text[1..].to_string() } else { text }
}

/// A name for a line that must stay short: the last parts of a path of namespaces, cut in the middle; of code without a name, the
/// file that it is in.
pub fn short(name: &str) -> String {
    const LONGEST: usize = 36;
    let name = match name.split_once(" (+0x") {
        Some((unnamed, _)) if unnamed.starts_with("unnamed code in ") => unnamed,
        _ => name,
    };
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= LONGEST {
        return name.to_string();
    }
    let tail: String = letters[letters.len() - LONGEST / 2..].iter().collect();
    letters[..LONGEST / 2 - 1].iter().collect::<String>() + "…" + &tail
}

/// A word of a command to copy. Names of processes, groups and targets are chosen by others: where a shell would see more
/// in one than a word, it is quoted.
pub fn word(foreign: &str) -> String {
    // No word can hold a NUL byte, and nothing else is refused.
    shlex::try_quote(&foreign.replace('\0', "")).map(String::from).unwrap_or_default()
}

/// `ss` with these options, for the sockets to one other end. A recording may call a peer anything: behind `dst` stands an
/// address that was read as such, for even one quoted word could be an option there, and what is none is left out.
pub fn sockets_to(options: &str, peer: &str) -> String {
    match peer.parse::<SocketAddr>() {
        Ok(address) => format!("ss {options} dst {}", word(&address.to_string())),
        Err(_) => format!("ss {options}"),
    }
}

/// A command that shows the waits of a process in a system call, or those for its pages, which are in none.
pub fn waits_in(call: &str, process: &str) -> String {
    match call {
        "none" => format!("perf trace -F maj --no-syscalls{process}"),
        _ => format!("strace -f -T -e trace={call}{process}"),
    }
}

/// `ping` of the host of a peer; none where it is no address, because a recording may call a peer anything.
pub fn ping(peer: &str) -> Option<String> {
    peer.parse::<SocketAddr>().ok().map(|address| format!("ping {}", address.ip()))
}

/// The port at the end of a name such as `tcp 0.0.0.0:80`, if there is one: a number, and so a word of a command.
pub fn port(name: &str) -> Option<u16> {
    name.rsplit_once(':')?.1.parse().ok()
}

/// A number of CPUs' worth of work, `0.94 cores`.
pub fn cores(value: f64) -> String {
    format!("{value:.2} cores")
}

/// Seconds, `9.1 s`, `12 ms`.
pub fn seconds(value: f64) -> String {
    // Of nothing, sums are a negative zero.
    match value + 0.0 {
        v if v >= 99.5 => format!("{v:.0} s"),
        v if v >= 0.9995 => format!("{v:.1} s"),
        v if v >= 0.000_999_5 => format!("{:.0} ms", v * 1e3),
        v => format!("{:.0} µs", v * 1e6),
    }
}

/// A count, `1.40 million`, `52 thousand`, `832`.
pub fn count(value: f64) -> String {
    match value + 0.0 {
        v if v >= 1e9 => format!("{:.2} billion", v / 1e9),
        v if v >= 1e6 => format!("{:.2} million", v / 1e6),
        v if v >= 1e4 => format!("{:.0} thousand", v / 1e3),
        v if v >= 10.0 || v.fract() == 0.0 => format!("{v:.0}"),
        v => format!("{v:.1}"),
    }
}

/// A noun with its number, `1 thread`, `3 threads`.
pub fn plural(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// The same of a number that is an average, `1 answer`, `2.5 answers`.
pub fn some(n: f64, noun: &str) -> String {
    match count(n).as_str() {
        "1" => format!("1 {noun}"),
        many => format!("{many} {noun}s"),
    }
}

/// What a number of requests, an average, does: `1 request hangs`, `2.5 requests hang`.
pub fn requests(n: f64, does: &str) -> String {
    let who = some(n, "request");
    if who.ends_with('s') { format!("{who} {does}") } else { format!("{who} {does}s") }
}

/// A list of CPUs, `CPU 2`, `CPUs 0-3,8`.
pub fn cpu_list(cpus: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &cpu in cpus {
        match runs.last_mut() {
            Some((_, end)) if cpu == end.saturating_add(1) => *end = cpu,
            _ => runs.push((cpu, cpu)),
        }
    }
    let text: Vec<String> = runs.iter().map(|(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") }).collect();
    format!("CPU{} {}", if cpus.len() == 1 { "" } else { "s" }, text.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_address_is_pinged() {
        let asked = ["10.0.0.7:5432", "[2001:db8::7]:80", "10.0.0.7; reboot:1", "-f 10.0.0.7:1"].map(ping);
        assert_eq!(asked, [Some("ping 10.0.0.7".into()), Some("ping 2001:db8::7".into()), None, None]);
    }

    #[test]
    fn digits_follow_size() {
        assert_eq!(
            [percent(-0.0), percent(0.004), percent(0.37), percent(0.9994), percent(0.99999), percent(1.0)],
            ["0 %", "0.4 %", "37 %", "99.9 %", ">99.99 %", "100 %"]
        );
        assert_eq!([seconds(9.14), seconds(0.0123), seconds(0.00002)], ["9.1 s", "12 ms", "20 µs"]);
        assert_eq!([seconds(-0.0), count(-0.0)], ["0 µs", "0"]);
        assert_eq!(
            [count(1_397_534.0), count(52_100.0), count(832.0), count(3.25)],
            ["1.40 million", "52 thousand", "832", "3.2"]
        );
    }

    #[test]
    fn nothing_has_no_sign() {
        assert_eq!([-0.003, -0.005, -0.0051, -0.0, -1.0].map(percent), ["0 %", "0 %", "-1 %", "0 %", "-100 %"]);
        let digits = |n| move |share| signed_percent(share, n);
        assert_eq!([-0.003, -0.005, 0.003, -0.31, 1.5].map(digits(0)), ["0", "0", "0", "-31", "+150"]);
        assert_eq!(
            [-0.0004, -0.0, 0.0, 0.0004, -0.0006, 0.004].map(digits(1)),
            ["0.0", "0.0", "0.0", "0.0", "-0.1", "+0.4"]
        );
    }

    #[test]
    fn strangers_choose_no_words_of_a_command() {
        assert_eq!(sockets_to("-tan", "10.0.0.9:80"), "ss -tan dst 10.0.0.9:80");
        assert_eq!(sockets_to("-tan", "[fd00::9]:80"), "ss -tan dst '[fd00::9]:80'");
        for other in ["others", "", "1.2.3.4; curl x", "-K", "10.0.0.9:80 or sport = :22"] {
            assert_eq!(sockets_to("-tan", other), "ss -tan", "{other}");
        }
        assert_eq!(
            [port("tcp 0.0.0.0:80"), port("[::]:81"), port("unix /a"), port("a:1;x")],
            [Some(80), Some(81), None, None]
        );
    }

    #[test]
    fn waits_in_calls_and_for_pages() {
        assert_eq!(waits_in("fsync", " -p 7"), "strace -f -T -e trace=fsync -p 7");
        assert_eq!(waits_in("none", " -p 7"), "perf trace -F maj --no-syscalls -p 7");
    }

    #[test]
    fn cpus_in_runs() {
        assert_eq!(cpu_list(&[0, 1, 2, 8]), "CPUs 0-2,8");
        assert_eq!(cpu_list(&[3]), "CPU 3");
        assert_eq!(cpu_list(&[u32::MAX, 0]), "CPUs 4294967295,0");
    }
}
