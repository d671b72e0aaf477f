// SPDX-License-Identifier: Apache-2.0
//! `wakewalk load --serve` from the outside: what it answers to whom, and what it says of what cannot be done.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use serde_json::Value;

fn wakewalk(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wakewalk")).args(args).stdin(Stdio::null()).output().unwrap()
}

/// A port that nobody listens on.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// An endpoint that is there.
struct Endpoint {
    child: Child,
    port: u16,
}

impl Endpoint {
    /// It says when it listens.
    fn start(protocol: &str, args: &[&str]) -> Self {
        let port = free_port();
        let mut command = Command::new(env!("CARGO_BIN_EXE_wakewalk"));
        command.args(["load", "--serve", &format!("{protocol}://127.0.0.1:{port}")]).args(args);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
        assert!(said.starts_with(&format!("serving: at 127.0.0.1:{port}")), "{said}");
        Self { child, port }
    }

    /// All that is answered to what is sent, until the connection is closed.
    fn say(&self, sent: &[u8]) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.write_all(sent).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Ends it as Ctrl-C does; what it says then.
    fn end(mut self) -> String {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        let mut said = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{said}");
        said
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended
        let _ = self.child.wait();
    }
}

#[test]
fn each_request_has_its_answer_and_what_is_none_has_400() {
    let endpoint = Endpoint::start("http", &["--reply", "3", "--header", "Content-Type: text/plain"]);
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Type: text/plain\r\n\r\nxxx";
    assert_eq!(endpoint.say(b"GET /any?where HTTP/1.1\r\nHost: x\r\n\r\n"), answer);
    let two = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nPUT / HTTP/1.1\r\nContent-Length: 2\r\n\r\nab";
    assert_eq!(endpoint.say(two), answer.repeat(2), "several on one connection");
    let last = endpoint.say(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\nGET / HTTP/1.1\r\n\r\n");
    assert!(last.contains("Connection: close") && last.matches("HTTP/1.1").count() == 1, "{last}");
    let head = endpoint.say(b"HEAD / HTTP/1.1\r\n\r\n");
    assert!(head.contains("Content-Length: 3") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(endpoint.say(b"SSH-2.0-x\r\n\r\n").starts_with("HTTP/1.1 400 "));
    let long = [b"GET / HTTP/1.1\r\nA: ", &[b'a'; 40_000][..], b"\r\n\r\n"].concat();
    assert!(endpoint.say(&long).starts_with("HTTP/1.1 400 "), "a head without bounds");
    assert_eq!(endpoint.say(b"GET / HT"), "", "a half is none");
    let said = endpoint.end();
    for part in ["5 requests answered", "2 sent what is no HTTP/1.1", "1 stopped halfway"] {
        assert!(said.contains(part), "`{part}` is missing: {said}");
    }
}

#[test]
fn who_waits_for_a_word_gets_it_before_the_answer() {
    let endpoint = Endpoint::start("http", &["--status", "204"]);
    let mut stream = TcpStream::connect(("127.0.0.1", endpoint.port)).unwrap();
    stream.write_all(b"PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n").unwrap();
    let mut word = [0; 25];
    stream.read_exact(&mut word).unwrap();
    assert_eq!(word, *b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"ok").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "HTTP/1.1 204 No Content\r\n\r\n");
}

#[test]
fn halves_are_given_up_and_others_are_answered_meanwhile() {
    let endpoint = Endpoint::start("tcp", &["--request", "4", "--writes", "2,3", "--timeout", "1s"]);
    let port = endpoint.port;
    let half = thread::spawn(move || {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(b"abc").unwrap();
        stream.read(&mut [0; 8]).unwrap()
    });
    assert_eq!(endpoint.say(b"abcdefgh"), "x".repeat(10), "two requests of four bytes");
    assert_eq!(half.join().unwrap(), 0, "it is closed");
    assert!(endpoint.end().contains("1 stopped halfway"));
}

#[test]
fn requests_do_not_wait_for_each_others_delay() {
    let endpoint = Endpoint::start("http", &["--delay", "300ms"]);
    let url = format!("http://127.0.0.1:{}/", endpoint.port);
    let out = wakewalk(&["load", &url, "--rate", "100", "--for", "2s", "--json"]);
    let load: Value = serde_json::from_slice(&out.stdout).unwrap();
    // One after the other they would be half a minute behind, and given up. A busy host sends fewer of them.
    assert_eq!((&load["answered"], &load["errors"]), (&load["due"], &serde_json::json!({})), "{load}");
    assert!(load["due"].as_u64().unwrap() > 50, "{load}");
    assert!(load["seconds"]["p50"].as_f64().unwrap() >= 0.3, "{}", load["seconds"]);
}

#[test]
fn what_cannot_be_served_is_said_in_a_sentence() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = format!("http://127.0.0.1:{}", taken.local_addr().unwrap().port());
    let [http, tcp] = ["http", "tcp"].map(|protocol| format!("{protocol}://127.0.0.1:{}", free_port()));
    for (args, why) in [
        (&["--serve", &taken][..], "is taken"),
        (&["--serve", "http://192.0.2.1:8080"], "no address of this host"),
        (&["--serve", &format!("{http}/path")], "at every path"),
        (&["--serve", &http, "--writes", "5"], "--writes is for tcp://"),
        (&["--serve", &http, "--request", "5"], "--request is for tcp://"),
        (&["--serve", &http, "--status", "204", "--reply", "5"], "has no body"),
        (&["--serve", &http, "--status", "99"], "99"),
        (&["--serve", &http, "--delay", "2h"], "an hour at most"),
        (&["--serve", &http, "--rate", "5"], "cannot be used with"),
        (&["--serve", &http, "--for", "1ms"], "--for must be"),
        (&["--serve", &tcp, "--writes", "5"], "--request BYTES"),
        (&["--serve", &tcp, "--request", "5"], "--writes 100"),
        (&["--serve", &tcp, "--request", "5", "--reply", "5"], "--reply is for http://"),
        (&["--delay", "1s", &http, "--rate", "5"], "--serve names it"),
    ] {
        let out = wakewalk(&[&["load"], args].concat());
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!((out.status.code(), out.stdout.len()), (Some(2), 0), "{args:?}: {said}");
        assert!(said.contains(why), "{args:?}: {said}");
    }
}
