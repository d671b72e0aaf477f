// SPDX-License-Identifier: Apache-2.0
//! The answer of a verdict before everything else: what, how much of the time, what to do.

use std::collections::BTreeMap;

use diagnose::answer::{Handshakes, PathPart, RequestTimes};
use diagnose::ledger::threads::Lines;
use diagnose::verdict::{Explains, Verdict, Window};

use crate::head::{Head, Labels};
use crate::numbers;
use crate::printable;
use crate::section::Tone;

const LABELS: Labels = Labels { terminal: ["What", "Time", "Do"], page: ["Time", "Do"] };

/// The head of a verdict.
#[must_use]
pub fn head(verdict: &Verdict) -> Head {
    let confidence = verdict.findings.first().map(|f| format!("{} confidence", f.confidence));
    let clean = |text: &str| printable::text(text).into_owned();
    let figure =
        verdict.findings.first().map(|f| (numbers::share(f.explains.share), format!("of {}", clean(&f.explains.of))));
    Head {
        labels: &LABELS,
        figure,
        cause: clean(&verdict.verdict),
        confidence: clean(&confidence.unwrap_or_default()),
        tone: tone(verdict),
        what: clean(&verdict.headline),
        how_much: clean(&how_much(verdict)),
        to_do: clean(&verdict.advice),
        context: context(verdict).iter().map(|part| clean(part)).collect(),
    }
}

fn tone(verdict: &Verdict) -> Tone {
    match verdict.verdict.as_str() {
        "healthy" => Tone::Good,
        "at-capacity" | "not-determined" => Tone::Warn,
        _ => Tone::Bad,
    }
}

fn how_much(verdict: &Verdict) -> String {
    let mut window = numbers::seconds(verdict.window.seconds);
    // What was seen of a target that is gone may not be what it did before.
    match verdict.window.ended.as_str() {
        "target exited" => window += ", when the target ended",
        "budget" => window += ", until it had as many rows as can be judged",
        _ => {}
    }
    let symptom = &verdict.symptom;
    let size = numbers::quantity(symptom.value, &symptom.unit);
    let measured = match symptom.kind.as_str() {
        "" | "none-seen" => None,
        "response-time" if cores(verdict) < FEW_CORES => None,
        "response-time" => Some(format!("it used {}", numbers::quantity(cores(verdict), "cores"))),
        "cpu" => Some(match symptom.baseline {
            None => format!("it used {size}"),
            Some(before) => format!("it used {size}, the baseline {}", numbers::quantity(before, &symptom.unit)),
        }),
        kind => Some(format!("{} is {size}", kind.replace('-', " "))),
    };
    let symptom: Vec<String> = answers(verdict).into_iter().chain(measured).collect();
    match verdict.findings.first() {
        Some(finding) => {
            let symptom = if symptom.is_empty() { String::new() } else { format!("; {}", symptom.join(", ")) };
            if let Some(hang) = hanging(verdict).filter(|_| finding.explains.is_of_hanging()) {
                return format!("{hang} (watched for {window}){symptom}");
            }
            let within = if finding.explains.of == "the window" { String::new() } else { format!(" in {window}") };
            format!("{}{within}{symptom}{}", explained(verdict, &finding.explains), but_hanging(verdict))
        }
        None => {
            let known = match verdict.coverage.thread_time {
                most if most >= NEARLY_ALL => String::new(),
                part => format!("; {} of thread time is accounted for", numbers::share(part)),
            };
            let symptom = if symptom.is_empty() { "no answer by TCP was seen".to_owned() } else { symptom.join(", ") };
            // What answers waited for says nothing of those that did not come.
            let hang = but_hanging(verdict);
            let spent = if hang.is_empty() { spent(verdict) } else { String::new() };
            format!("{symptom} over {window}{hang}{spent}{known}")
        }
    }
}

/// How much a finding explains, of what.
fn explained(verdict: &Verdict, explains: &Explains) -> String {
    let (share, time) = (numbers::share(explains.share), numbers::seconds(explains.seconds));
    // Those are no time.
    if ["connections", "handshakes", "segments", "datagrams"].iter().any(|what| explains.of.contains(what)) {
        return format!("{share} of {}", explains.of);
    }
    // Several threads at once have more time than the window is long.
    let many = explains.seconds > verdict.window.seconds;
    let of_whom = match explains.of.as_str() {
        _ if !many => "",
        "CPU demand" | "active time" | "on-CPU time" => " of thread time",
        of if of.contains("response time") => "",
        _ => " over all connections",
    };
    format!("{share} of {} ({time}{of_whom})", explains.of)
}

/// CPUs that are no part of why answers take long, and of which none is worth a word beside them.
const FEW_CORES: f64 = 0.1;

/// Of the time of threads: with less, what was not seen comes before what was.
const NEARLY_ALL: f64 = 0.95;

/// CPUs that the target had on average.
fn cores(verdict: &Verdict) -> f64 {
    let on_cpu = Lines::ON_CPU.iter().filter_map(|line| verdict.ledger.threads.get(*line));
    on_cpu.sum::<f64>() / verdict.window.seconds.max(1e-9)
}

/// A handshake that is worth a word although nothing is told of what it waits for, s.
const LONG: f64 = 0.001;

/// How long clients waited at the busiest endpoint.
fn answers(verdict: &Verdict) -> Option<String> {
    let busiest = verdict.requests.first().filter(|r| r.is_accepted() && r.exchanges > 0)?;
    let (p50, p99) = (numbers::seconds(busiest.seconds.p50), numbers::seconds(busiest.seconds.p99));
    // The times end with the first byte of an answer.
    let held = busiest.on_average.get("held").copied().unwrap_or(0.0);
    if held > busiest.seconds.p50 {
        let held = numbers::seconds(held);
        return Some(format!("first bytes of answers in {p50} (p50), {p99} (p99), held back for {held} on average"));
    }
    if let Some(later) = busiest.on_average.get("later") {
        let later = numbers::seconds(*later);
        return Some(format!("first bytes of answers in {p50} (p50), {p99} (p99), the rest {later} later on average"));
    }
    let longer = |all: &&Handshakes| {
        all.seconds.mean >= LONG && all.seconds.mean > busiest.seconds.mean && 2 * all.count >= busiest.exchanges
    };
    let handshakes = long_handshakes(busiest).or_else(|| busiest.handshakes.as_ref().filter(longer));
    let before = handshakes.map_or_else(String::new, |all| {
        let (p50, p99) = (numbers::seconds(all.seconds.p50), numbers::seconds(all.seconds.p99));
        format!("TLS handshakes in {p50} (p50), {p99} (p99), then ")
    });
    Some(format!("{before}answers in {p50} (p50), {p99} (p99)"))
}

/// Those that clients wait for most of the time: where that goes is told of no others.
fn long_handshakes(times: &RequestTimes) -> Option<&Handshakes> {
    times.handshakes.as_ref().filter(|all| !all.path.is_empty())
}

/// That some got none, which is in no response time.
fn but_hanging(verdict: &Verdict) -> String {
    hanging(verdict).map_or_else(String::new, |hang| format!("; but {hang}"))
}

/// How many got none, and for how long.
fn hanging(verdict: &Verdict) -> Option<String> {
    let all = || verdict.requests.iter().filter_map(|times| times.hanging.as_ref());
    let connections: f64 = all().map(|hanging| hanging.connections).sum();
    let waited: f64 = all().map(|hanging| hanging.seconds * hanging.connections).sum();
    (connections > 0.0).then(|| {
        let (some, so_far) = (super::requests::some(connections), numbers::seconds(waited / connections));
        format!("{some} at a time got no answer, for {so_far} so far")
    })
}

/// Of the response time, from which on it matters that a request lay unread.
const MUCH_UNREAD: f64 = 0.2;

/// Likewise that its answer could not be sent.
const MUCH_HELD: f64 = 0.2;

/// Where most of the time of those answers went.
fn spent(verdict: &Verdict) -> String {
    let Some(busiest) = verdict.requests.first().filter(|r| r.is_accepted() && r.seconds.mean > 0.0) else {
        return String::new();
    };
    let of_stage = |name: &str| busiest.stages.get(name).map_or(0.0, |stage| stage.mean / busiest.seconds.mean);
    let unread = of_stage("read_wait");
    let (of, path) = match long_handshakes(busiest) {
        Some(all) => ("time of handshakes", &all.path),
        None => ("response time", &busiest.path),
    };
    let (part, what) = match most_of(path) {
        Some(most) => most,
        None if unread >= MUCH_UNREAD => (unread, "unread, before the target takes it".into()),
        None => (of_stage("service"), "from its read to the answer".into()),
    };
    let mut words = String::new();
    if part > 0.0 {
        words = format!("; {} of the {of}: {what}", numbers::share(part.min(1.0)));
    }
    let held = busiest.on_average.get("held").copied().unwrap_or(0.0);
    if held >= busiest.seconds.mean * MUCH_HELD {
        words += &format!("; after that, its bytes stand in the send queue for {} on average", numbers::seconds(held));
    }
    words
}

/// The place of a path with most of its time: where a wait stands says where, what it ends at is told below.
fn most_of(path: &[PathPart]) -> Option<(f64, String)> {
    let mut places: BTreeMap<String, (f64, &str)> = BTreeMap::new();
    for part in path {
        let place = part.what.split(" < ").next().unwrap_or_default();
        // Of several processes of a program no one is named.
        let entry = places.entry(of_any_process(place)).or_insert((0.0, place));
        *entry = (entry.0 + part.share, if entry.1 == place { place } else { "" });
    }
    let (program, (part, place)) = places.into_iter().max_by(|a, b| a.1.0.total_cmp(&b.1.0))?;
    Some((part, if place.is_empty() { program } else { place.to_string() }))
}

/// A place without the number of its process: `python3/4711 on a CPU` -> `python3 on a CPU`.
fn of_any_process(place: &str) -> String {
    let name = |word: &str| match word.rsplit_once('/') {
        Some((name, pid)) if !name.is_empty() && pid.parse::<u32>().is_ok() => name.to_string(),
        _ => word.to_string(),
    };
    place.split(' ').map(name).collect::<Vec<_>>().join(" ")
}

fn context(verdict: &Verdict) -> Vec<String> {
    let (host, target) = (&verdict.host, &verdict.target);
    let cpus = if host.cpus == 1 { "1 CPU".to_owned() } else { format!("{} CPUs", host.cpus) };
    let mut parts = vec![format!("{} ({})", target.comm, pids(&target.pids))];
    parts.extend(target.listen.first().map(|socket| match target.listen.len() {
        1 => format!("listening on {socket}"),
        n => format!("listening on {socket} and {} more", n - 1),
    }));
    parts.extend([format!("{}, Linux {}, {cpus}", host.name, host.kernel), window(&verdict.window)]);
    parts
}

fn window(window: &Window) -> String {
    let length = numbers::seconds(window.seconds);
    let ended = match window.ended.as_str() {
        "" | "time" => String::new(),
        "budget" => " (ended early: it has as many rows as can be judged; all until then is kept)".to_string(),
        why => format!(" ({why})"),
    };
    format!("{length} from {}{ended}", window.start)
}

/// Process ids in a few words.
fn pids(pids: &[u32]) -> String {
    match pids {
        [] => "no process".to_owned(),
        [pid] => format!("pid {pid}"),
        [pid, others @ ..] => format!("pid {pid} and {} more", others.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::of_any_process;

    #[test]
    fn a_place_is_a_program_s() {
        assert_eq!(of_any_process("before its turn: python3/4711 on a CPU"), "before its turn: python3 on a CPU");
        assert_eq!(of_any_process("epoll_wait (127.0.0.1:9102)"), "epoll_wait (127.0.0.1:9102)");
        assert_eq!(of_any_process("read (/var/lib/x/12)"), "read (/var/lib/x/12)");
    }
}
