// SPDX-License-Identifier: Apache-2.0
//! Targets that become other programs, fork a thousand children, or are gone at once.

use std::collections::BTreeSet;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use recording::tables::{Frame, Loss, Process};
use testing::need;

use crate::tool::{kernel_allows, verdict};

#[test]
fn a_target_that_becomes_another_program() {
    need!(kernel_allows());
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("recording");
    // By the clock and not by a count of rounds, which take all of the window on a full host.
    let script = "trap \"exec awk 'BEGIN { while (1) x++ }'\" USR1
                  (sleep 2; kill -USR1 $$) & while :; do :; done";
    let save = ["--save", folder.to_str().unwrap()];
    let v = verdict(&[&["--for", "4s"], &save[..], &["--", "sh", "-c", script]].concat());
    assert!(v.coverage.thread_time > 0.99 && v.window.ended == "time", "{:?}", v.coverage);
    assert!(v.coverage.cpu_time > 0.8, "functions of both are named: {:?}", v.coverage);
    let recording = recording::open(&folder).unwrap();
    let modules: BTreeSet<&str> = recording.rows::<Frame>().iter().map(|frame| frame.module.as_str()).collect();
    for program in ["sh", "awk"] {
        let file = std::fs::canonicalize(format!("/usr/bin/{program}")).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(modules.contains(name), "no frame of {name} in {modules:?}");
    }
}

#[test]
fn a_target_that_forks_a_thousand_children() {
    need!(kernel_allows());
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("recording");
    let script = "i=0; while [ $i -lt 1000 ]; do /bin/true & i=$((i+1)); done; wait; exec sleep 600";
    let save = ["--save", folder.to_str().unwrap()];
    let v = verdict(&[&["--for", "8s"], &save[..], &["--", "sh", "-c", script]].concat());
    assert!(v.coverage.thread_time > 0.99, "{:?}", v.coverage);
    assert_eq!(v.coverage.events_lost, 0, "{:?}", v.gaps);
    let recording = recording::open(&folder).unwrap();
    let ends = recording.rows::<Loss>().iter().filter(|loss| loss.what == "thread ends");
    let ends: u64 = ends.map(|slice| slice.kept).sum();
    assert!(ends >= 1000, "{ends}");
    // One that a slice has met is named by what it was then, mostly the shell.
    let named = recording.rows::<Process>().iter().filter(|row| row.comm == "true");
    assert!(named.map(|row| row.instances).sum::<u64>() > 500);
}

/// As every server does that is started with `diagnose -- COMMAND`: whoever asks it is its client, from the first one on.
#[test]
fn a_command_that_begins_to_listen() {
    need!(kernel_allows());
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let done = AtomicBool::new(false);
    let url = format!("http://127.0.0.1:{port}");
    let v = thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let _ = ask(port); // there is nobody yet, or nobody any more
                thread::sleep(Duration::from_millis(5));
            }
        });
        let v = verdict(&["--for", "3s", "--", env!("CARGO_BIN_EXE_wakewalk"), "load", "--serve", &url]);
        done.store(true, Ordering::Relaxed);
        v
    });
    let asked: Vec<_> = v.requests.iter().map(|e| (e.role.as_str(), e.endpoint.clone(), e.exchanges > 0)).collect();
    assert_eq!(asked, [("accepted", format!("tcp 127.0.0.1:{port}"), true)]);
    assert_eq!(v.target.listen, [format!("tcp 127.0.0.1:{port}")]);
}

fn ask(port: u16) -> io::Result<()> {
    let mut connection = TcpStream::connect(("127.0.0.1", port))?;
    for _ in 0..20 {
        connection.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")?;
        let read = connection.read(&mut [0; 4096])?;
        if read == 0 {
            break;
        }
    }
    Ok(())
}

/// As a wrapper of a generator does: what it started must not go on when the time is up.
#[test]
fn a_command_that_starts_another_one() {
    need!(kernel_allows());
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pid");
    let script = format!("sleep 600 & echo $! > '{}'; wait", file.display());
    verdict(&["--for", "1s", "--", "sh", "-c", &script]);
    let pid = std::fs::read_to_string(file).unwrap();
    let stat = format!("/proc/{}/stat", pid.trim());
    let is_gone = || {
        thread::sleep(Duration::from_millis(100));
        // Whoever has taken the orphan may not have waited for it yet.
        std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "))
    };
    assert!((0..100).any(|_| is_gone()), "{pid} is still there: {:?}", std::fs::read_to_string(&stat));
}

#[test]
fn a_target_that_is_gone_at_once() {
    need!(kernel_allows());
    let v = verdict(&["--for", "60s", "--", "true"]);
    assert_eq!((v.window.ended.as_str(), v.verdict.as_str()), ("target exited", "not-determined"));
    assert!(v.headline.contains("ended with its target after") || v.window.seconds >= 0.9, "{}", v.headline);
}
