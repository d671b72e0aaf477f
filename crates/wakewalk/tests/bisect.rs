// SPDX-License-Identifier: Apache-2.0
//! `wakewalk bisect` from the outside: of recordings, of a service that runs, and by experiment.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use testing::{given, need};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn wakewalk(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wakewalk")).args(args).stdin(Stdio::null()).output().unwrap()
}

fn json(args: &[&str]) -> Value {
    let out = wakewalk(args);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    serde_json::from_slice(&out.stdout).unwrap_or_else(|error| panic!("{args:?}: {error}: {said}"))
}

/// Serves each connection in a thread of its own, request by request; its port.
fn serve(answer: impl Fn(&mut dyn FnMut() -> Vec<u8>) -> Vec<u8> + Clone + Send + 'static, store: Option<u16>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let answer = answer.clone();
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                let mut store = store.map(|port| TcpStream::connect(("127.0.0.1", port)).unwrap());
                let mut ask = || {
                    let mut buffer = [0; 4096];
                    let store = store.as_mut().unwrap();
                    store.write_all(b"GET / HTTP/1.1\r\nHost: s\r\n\r\n").unwrap();
                    let got = store.read(&mut buffer).unwrap();
                    buffer[..got].to_vec()
                };
                while stream.read(&mut buffer).is_ok_and(|got| got > 0) {
                    if stream.write_all(&answer(&mut ask)).is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

/// A store that takes so long.
fn store(delay: Duration) -> u16 {
    serve(
        move |_| {
            thread::sleep(delay);
            ANSWER.to_vec()
        },
        None,
    )
}

/// A service that asks a store for each request.
fn service(store: u16) -> u16 {
    serve(|ask| ask(), Some(store))
}

#[test]
fn hops_of_recordings_have_a_word_each() {
    let at = |name: &str| format!("{}/../../lab/fixtures/{name}/recording", env!("CARGO_MANIFEST_DIR"));
    let word = |hops: &Value, role: &str| {
        let hops = hops["hops"].as_array().unwrap().iter().find(|hop| hop["role"] == role);
        hops.map(|hop| hop["word"].as_str().unwrap().to_string())
    };
    let guilty = json(&["bisect", "--from", &at("alvin-slow-store"), "--json"]);
    assert_eq!(word(&guilty, "upstream").as_deref(), Some("guilty"), "{guilty}");
    let out = wakewalk(&["bisect", "--from", &at("alvin-slow-store")]);
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.contains("Guilty: ") && text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let unseen = json(&["bisect", "--from", &at("busy-poll"), "--json"]);
    assert_eq!(unseen["hops"].as_array().map(Vec::len), Some(0), "it asked nobody over TCP");
}

#[test]
fn a_replaced_hop_is_told_from_one_that_is_as_slow() {
    let [slow, quick] = [Duration::from_millis(20), Duration::ZERO].map(|delay| service(store(delay)));
    let other = service(store(Duration::from_millis(20)));
    let found = |beside: u16| {
        let [url, beside] = [slow, beside].map(|port| format!("http://127.0.0.1:{port}/"));
        json(&["bisect", &url, "--beside", &beside, "--rate", "40", "--for", "1s", "--json"])
    };
    let guilty = found(quick);
    assert_eq!((&guilty["kind"], &guilty["word"]), (&"beside".into(), &"guilty".into()), "{}", guilty["effects"]);
    assert_eq!(guilty["pairs"].as_array().map(Vec::len), Some(4));
    assert_eq!(guilty["effects"][1]["word"], "not-determined", "40 answers are no p99");
    let alike = found(other);
    assert_ne!(alike["word"], "guilty", "{}", alike["effects"]);
}

/// A service in a process of its own that asks a store for each request; it says its port.
fn proxy(store: &str) -> std::io::Result<(Child, u16)> {
    const PROGRAM: &str = "import http.client, http.server, sys\n\
        class H(http.server.BaseHTTPRequestHandler):\n\
        \x20   protocol_version = 'HTTP/1.1'\n\
        \x20   def do_GET(self):\n\
        \x20       c = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1])); c.request('GET', '/')\n\
        \x20       body = c.getresponse().read(); c.close()\n\
        \x20       self.wfile.write(b'HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n%s' % (len(body), body))\n\
        \x20   def log_message(self, *a): pass\n\
        s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), H); print(s.server_port, flush=True); s.serve_forever()";
    let mut child = Command::new("python3").args(["-c", PROGRAM, store]).stdout(Stdio::piped()).spawn()?;
    let mut port = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut port)?;
    Ok((child, port.trim().parse().unwrap()))
}

/// Asks until it is told that this is enough.
fn ask(port: u16, done: &AtomicBool) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    while !done.load(Ordering::Relaxed) {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: p\r\n\r\n").unwrap();
        let (mut got, mut buffer) = (Vec::new(), [0; 4096]);
        while !got.ends_with(b"ok") {
            let read = stream.read(&mut buffer).unwrap();
            assert!(read > 0, "the proxy is there");
            got.extend_from_slice(&buffer[..read]);
        }
    }
}

#[test]
fn the_store_of_a_service_that_runs_is_guilty() {
    let health = json(&["doctor", "--json"]);
    need!(given(health["bpf"] == true, "wakewalk doctor says that BPF cannot be used here"));
    let store = store(Duration::from_millis(30)).to_string();
    let (mut proxy, port) = need!(proxy(&store));
    let done = AtomicBool::new(false);
    let answer = thread::scope(|scope| {
        (0..4).for_each(|_| drop(scope.spawn(|| ask(port, &done))));
        let out = wakewalk(&["bisect", "--port", &port.to_string(), "--for", "3s", "--json"]);
        done.store(true, Ordering::Relaxed);
        out
    });
    proxy.kill().unwrap();
    proxy.wait().unwrap();
    let answer: Value = serde_json::from_slice(&answer.stdout).unwrap();
    let of = |role: &str| answer["hops"].as_array().unwrap().iter().find(|hop| hop["role"] == role).unwrap();
    let upstream = of("upstream");
    assert_eq!(
        (&upstream["word"], &upstream["name"]),
        (&"guilty".into(), &format!("127.0.0.1:{store}").into()),
        "{answer}"
    );
    // A busy host may be guilty too; the service is not.
    assert_ne!(of("service")["word"], "guilty", "{answer}");
}

#[test]
fn what_cannot_be_bisected_is_said_in_a_sentence() {
    let url = format!("http://127.0.0.1:{}/", store(Duration::ZERO));
    for (args, why) in [
        (&["bisect"][..], "--pid"),
        (&["bisect", &url], "--beside"),
        (&["bisect", &url, "--beside", &url, "--rate", "5"], "are the same service"),
        (&["bisect", &url, "--beside", "http://127.0.0.1:1/", "--rate", "50"], "nobody listens there"),
        (&["bisect", &url, "--beside", "http://h/", "--rate", "0"], "a rate is a number"),
        (&["bisect", &url, "--beside", "http://h/", "--rate", "5", "--pairs", "3"], "3"),
        (&["bisect", "--from", "/nowhere"], "there is no such folder"),
        (&["bisect", "--from", "/nowhere", "--rate", "5"], "--beside"),
    ] {
        let out = wakewalk(args);
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!((out.status.code(), out.stdout.len()), (Some(2), 0), "{args:?}: {said}");
        assert!(said.contains(why), "{args:?}: {said}");
    }
}
