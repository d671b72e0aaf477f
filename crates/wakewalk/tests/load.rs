// SPDX-License-Identifier: Apache-2.0
//! `wakewalk load` from the outside: what it prints, and what it says to what cannot be done.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::thread;

use recording::tables::{LoadLatency, LoadSecond};
use serde_json::Value;
use testing::{given, need};

fn wakewalk(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wakewalk")).args(args).stdin(Stdio::null()).output().unwrap()
}

/// Whether probes load here.
fn kernel_allows() -> Result<(), &'static str> {
    let health: Value = serde_json::from_slice(&wakewalk(&["doctor", "--json"]).stdout).unwrap();
    given(health["bpf"] == true, "wakewalk doctor says that BPF cannot be used here")
}

/// A small web server; its address.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                while stream.read(&mut buffer).is_ok_and(|got| got > 0) {
                    if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
                        return;
                    }
                }
            });
        }
    });
    format!("http://127.0.0.1:{port}/")
}

#[test]
fn a_load_says_what_its_numbers_are_worth_within_80_columns() {
    let out = wakewalk(&["load", &server(), "--rate", "200", "--for", "2s", "--slo", "1s"]);
    let text = String::from_utf8(out.stdout).unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    for part in ["a p99 needs 1,000", "from when it was due", "The generator"] {
        assert!(text.contains(part), "`{part}` is missing:\n{text}");
    }
    // On a host that is full the client is late, and who breaks the promise is not told.
    assert!(text.contains("took longer than 1.00 s") != text.contains("client-limited"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_sweep_has_all_its_loads_as_json() {
    let out = wakewalk(&["load", &server(), "--sweep", "20..40", "--for", "2s", "--json"]);
    let sweep: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((out.status.code(), &sweep["kind"]), (Some(0), &"sweep".into()));
    let rates: Vec<f64> =
        sweep["steps"].as_array().unwrap().iter().map(|step| step["rate"].as_f64().unwrap()).collect();
    assert_eq!(rates, [20.0, 40.0, 40.0, 20.0], "up, and down again");
    assert_eq!(sweep["findings"][0]["code"], "not-reached");
}

#[test]
fn a_page_has_a_load_and_one_that_does_not_fit_does_not_cost_it() {
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("page.html");
    let (to, page) = (server(), page.to_str().unwrap());
    for plan in [&["--rate", "50", "--for", "2s"][..], &["--sweep", "20..40", "--for", "2s"]] {
        let out = wakewalk(&[&["load", &to, "--html", page], plan].concat());
        assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
        let written = std::fs::read_to_string(page).unwrap();
        assert!(written.ends_with("</html>\n") && written.contains(&to), "{plan:?}");
    }
    let out = wakewalk(&["load", &to, "--rate", "50", "--for", "1s", "--full", "--html", "/dev/full"]);
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.code() == Some(2) && said.contains("failed to write the page `/dev/full`"), "{said}");
    assert!(String::from_utf8_lossy(&out.stdout).contains("The generator"), "the verdict is there");
}

#[test]
fn a_load_is_kept_second_by_second() {
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("kept");
    let (folder, server) = (kept.to_str().unwrap(), server());
    let out = wakewalk(&["load", &server, "--sweep", "20..40", "--for", "2s", "--save", folder, "--json"]);
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    let recording = recording::open(&kept).unwrap();
    let seconds = recording.rows::<LoadSecond>();
    let rates: Vec<f64> = seconds.iter().filter_map(|row| row.rate).collect();
    assert_eq!(rates, [20.0, 20.0, 40.0, 40.0, 40.0, 40.0, 20.0, 20.0], "a row a second for each load");
    assert!(seconds.windows(2).all(|two| two[0].step <= two[1].step && two[0].t_ns < two[1].t_ns), "{seconds:?}");
    for since in ["due", "sent"] {
        let rows = recording.rows::<LoadLatency>().iter().filter(|row| row.since == since);
        assert_eq!(rows.map(|row| row.count).sum::<u64>(), seconds.iter().map(|row| row.answered).sum::<u64>());
    }
    for args in [&["load", &server, "--rate", "20", "--save", folder][..], &["diagnose", "--from", folder]] {
        let out = wakewalk(args);
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!((out.status.code(), out.stdout.len()), (Some(2), 0), "{args:?}: {said}");
        assert!(said.contains("already holds a recording") || said.contains("kept of a load"), "{args:?}: {said}");
    }
}

#[test]
fn what_cannot_be_done_is_said_in_a_sentence() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let nobody = format!("http://127.0.0.1:{port}/");
    for (args, why) in [
        (&["load", &nobody, "--rate", "100", "--for", "1s"][..], "nobody listens there"),
        (&["load", "http://no-such-host.invalid/", "--rate", "5"], "is not known here"),
        (&["load", "https://localhost/", "--rate", "5"], "TLS is not spoken"),
        (&["load", &nobody, "--rate", "0"], "a rate is a number"),
        (&["load", &nobody, "--sweep", "50..5"], "it goes up"),
        (&["load", &nobody, "--sweep", "5..50", "--for", "1s"], "2s at least"),
        (&["bisect", "--pid", "1", "--method", "POST"], "cannot be used with"),
        (&["load", &nobody, "--rate", "5", "--sweep", "5..50"], "cannot be used with"),
        (&["load", &nobody], "--rate"),
        (&["load"], "URL"),
        (&["load", "tcp://127.0.0.1:1", "--rate", "5"], "--writes"),
        (&["load", "tcp://127.0.0.1:1", "--rate", "5", "--writes", "9"], "--reply"),
        (&["load", &nobody, "--rate", "5", "--source-addresses", "192.0.2.1"], "no address of this host"),
        (&["load", &nobody, "--rate", "5", "--source-addresses", "::1"], "one is an address of IPv4"),
        (&["load", &nobody, "--rate", "5", "--think", "1s"], "--think and --reply are for tcp://"),
        (
            &["load", "tcp://127.0.0.1:1", "--rate", "5", "--writes", "9", "--reply", "9", "--method", "PUT"],
            "are for http://",
        ),
        (&["load", "http://192.0.2.1/", "--rate", "5", "--diagnose"], "192.0.2.1 is no address of this host"),
        (&["load", &nobody, "--rate", "5", "--diagnose", "--like", "/no/such/folder"], "there is no such folder"),
        (&["load", &nobody, "--rate", "5", "--like", "/tmp"], "--diagnose"),
        (&["load", &nobody, "--rate", "5", "--diagnose", "--like-at", "0s..9s"], "--like <DIR>"),
        (&["load", &nobody, "--sweep", "5..50", "--diagnose", "--like", "/tmp"], "cannot be used with"),
        (&["load", "--timeout", "1s", "--", "/bin/true"], "cannot be used with"),
        (&["load", "--delay", "1s", "--", "/bin/true"], "cannot be used with"),
        (&["load", &nobody, "--rate", "5", "--connections", "900000"], "open files"),
        (&["load", &nobody, "--rate", "5", "--body", "/nowhere"], "failed to read `/nowhere`"),
        (&["load", "--", "/no/such/generator"], "there is no such program"),
        (&["load", &nobody, "--rate", "5", "--html", "/no/such/folder/page.html"], "folder that exists"),
        (&["load", &nobody, "--rate", "5", "--json", "--full"], "cannot be used with"),
    ] {
        let out = wakewalk(args);
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!((out.status.code(), out.stdout.len()), (Some(2), 0), "{args:?}: {said}");
        assert!(said.contains(why), "{args:?}: {said}");
    }
}

#[test]
fn another_generator_is_counted_by_what_the_kernel_saw() {
    need!(kernel_allows());
    let (own, to) = (env!("CARGO_BIN_EXE_wakewalk"), server());
    let generator = [own, "load", &to, "--rate", "300", "--arrivals", "uniform", "--for", "4s", "--json"];
    let out = wakewalk(&[&["load", "--json", "--"], &generator[..]].concat());
    let said = String::from_utf8(out.stderr).unwrap();
    let seen: Value = serde_json::from_slice(&out.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    let own: Value = serde_json::from_str(&said[said.find('{').unwrap()..=said.rfind('}').unwrap()]).unwrap();
    let [seen_answers, answers] = [&seen, &own].map(|answer| answer["answered"].as_f64().unwrap());
    // A host whose sockets are busy with others' work too has them followed for a part of the time, and that is said.
    let is_sampled = seen["reasons"].to_string().contains("sampled");
    let is_whole = (seen_answers - answers).abs() <= 0.02 * answers;
    assert!(is_whole || is_sampled && seen_answers < answers, "the kernel saw {seen_answers} of {answers}");
    // The kernel's ends with the first byte, before the generator has run again.
    let [seen_p50, p50] = [&seen, &own].map(|answer| answer["seconds"]["p50"].as_f64().unwrap());
    assert!(seen_p50 <= 1.05 * p50, "{seen_p50} of {p50}");
    assert!((250.0..350.0).contains(&seen["rate"].as_f64().unwrap()), "{}", seen["rate"]);
}

#[test]
fn a_generator_that_fails_is_said() {
    need!(kernel_allows());
    let own = env!("CARGO_BIN_EXE_wakewalk");
    let loads = format!("{own} load {} --rate 300 --for 2s >/dev/null; exit 22", server());
    let out = wakewalk(&["load", "--json", "--", "sh", "-c", &loads]);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    let seen: Value = serde_json::from_slice(&out.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    let reasons = seen["reasons"].to_string();
    assert!(reasons.contains("exit-status") && reasons.contains("exit status 22"), "{reasons}");
    let out = wakewalk(&["load", "--", "sh", "-c", "kill -9 $$"]);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!((out.status.code(), out.stdout.len()), (Some(2), 0), "{said}");
    assert!(said.contains("`sh` was ended by signal 9: `sh` got no answer"), "{said}");
}

#[test]
fn a_load_is_set_beside_production() {
    need!(kernel_allows());
    let (server, dir) = (server(), tempfile::tempdir().unwrap());
    let port = server.rsplit_once(':').unwrap().1.trim_end_matches('/').to_string();
    let production = dir.path().join("production");
    let production = production.to_str().unwrap();
    let asking = thread::spawn({
        let server = server.clone();
        move || wakewalk(&["load", &server, "--rate", "100", "--for", "5s"])
    });
    let capture = ["diagnose", "--port", &port, "--for", "2s", "--requests", "--save", production];
    let said = String::from_utf8_lossy(&wakewalk(&capture).stderr).into_owned();
    asking.join().unwrap();
    let load = |args: &[&str]| {
        let args = [&["load", &server, "--for", "3s", "--diagnose", "--json", "--like", production], args].concat();
        let out = wakewalk(&args);
        let answer: Value = serde_json::from_slice(&out.stdout)
            .unwrap_or_else(|error| panic!("{error}: {said} {}", String::from_utf8_lossy(&out.stderr)));
        let traits = answer["production"]["traits"].as_array().cloned().unwrap_or_default();
        assert!(traits.len() >= 5, "{answer}");
        traits.into_iter().filter(|it| it["is_unlike"] == true).map(|it| it["id"].to_string()).collect::<Vec<_>>()
    };
    let alike = load(&["--rate", "100"]);
    assert!(!alike.iter().any(|id| id.contains("rate") || id.contains("first") || id.contains("asked")), "{alike:?}");
    let other = load(&["--rate", "400", "--new-connections", "--like-at", "1s.."]);
    assert!(["rate", "first"].iter().all(|id| other.iter().any(|it| it.contains(id))), "{other:?}");
}

#[test]
fn the_service_is_diagnosed_while_it_is_loaded() {
    need!(kernel_allows());
    let out = wakewalk(&["load", &server(), "--rate", "200", "--for", "2s", "--diagnose", "--json"]);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    let answer: Value = serde_json::from_slice(&out.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert!(answer["service"]["verdict"].is_string() && answer["service"]["cpus"].as_f64().unwrap() > 0.0, "{answer}");
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let out = wakewalk(&["load", &format!("http://127.0.0.1:{nobody}/"), "--rate", "200", "--for", "1s", "--diagnose"]);
    assert_eq!((out.status.code(), out.stdout.len()), (Some(2), 0), "{}", String::from_utf8_lossy(&out.stderr));
}
