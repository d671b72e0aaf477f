// SPDX-License-Identifier: Apache-2.0
//! A target that names its program, its threads, its functions and its files with markup, terminal
//! escapes and direction marks: the terminal, the JSON and the page show them and do nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use recording::tables::Frame;
use testing::{given, need};

use crate::tool::{Running, kernel_allows, poll, read, text, wakewalk};

const THREAD: &str = "\u{1b}[2J<b>\n\r";
const FUNCTION: &str = "<img src=x onerror=alert(1)>\u{1b}]0;owned\u{7}";
const FILE: &str = "</script><script>alert(2)</script>\u{1b}[31m\u{202e}\n";

const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
volatile long sink;
__attribute__((noinline)) void FUNCTION(void) { for (long i = 0; i < 10000000; i++) sink += i; }
static void *work(void *name) { pthread_setname_np(pthread_self(), name); for (;;) FUNCTION(); }
int main(int n, char **v) {
	pthread_t thread;
	(void)n;
	pthread_create(&thread, 0, work, v[1]);
	return pthread_join(thread, 0);
}
"#;

/// A program in a file of that name, whose function has that name too.
fn program(dir: &Path) -> Result<PathBuf, &'static str> {
    let placeholder = "f".repeat(FUNCTION.len());
    let (source, built, hostile) = (dir.join("p.c"), dir.join("p"), dir.join(FILE.replace('/', "\u{9b}")));
    fs::write(&source, SOURCE.replace("FUNCTION", &placeholder)).unwrap();
    let compiled = Command::new("cc").args(["-O1", "-pthread", "-o"]).arg(&built).arg(&source).status();
    given(compiled.is_ok_and(|status| status.success()), "there is no C compiler on this machine")?;
    let mut bytes = fs::read(&built).unwrap();
    let places: Vec<usize> =
        (0..bytes.len() - placeholder.len()).filter(|&at| bytes[at..].starts_with(placeholder.as_bytes())).collect();
    assert!(!places.is_empty());
    places.iter().for_each(|&at| bytes[at..at + FUNCTION.len()].copy_from_slice(FUNCTION.as_bytes()));
    fs::write(&built, bytes).unwrap();
    fs::rename(&built, &hostile).unwrap();
    Ok(hostile)
}

/// What a terminal or browser would act on.
fn acts(text: &str) -> Option<char> {
    text.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}')
}

#[test]
fn hostile_names_are_shown_and_do_nothing() {
    need!(kernel_allows());
    let dir = tempfile::tempdir().unwrap();
    let program = need!(program(dir.path()));
    let target = Running::start(Command::new(program).arg(THREAD));
    poll("thread's name", || {
        let tasks = fs::read_dir(format!("/proc/{}/task", target.pid())).ok()?;
        tasks.flatten().any(|task| text(&task.path().join("comm")).starts_with('\u{1b}')).then_some(())
    });
    let (page, saved) = (dir.path().join("page.html"), dir.path().join("recording"));
    let files = ["--html", page.to_str().unwrap(), "--save", saved.to_str().unwrap()];
    let out = wakewalk(&[&["diagnose", "--pid", &target.pid(), "--for", "2s"], &files[..]].concat());
    let shown = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.success());
    assert_eq!(acts(&shown), None, "{}", shown.escape_debug());
    assert_eq!(acts(&String::from_utf8(out.stderr).unwrap()), None);
    // Whatever the verdict is about on a full host, the full form shows all names.
    let full = wakewalk(&["diagnose", "--full", "--from", saved.to_str().unwrap()]);
    let full = String::from_utf8(full.stdout).unwrap();
    assert_eq!(acts(&full), None, "{}", full.escape_debug());
    assert!(full.contains("\\x1b[2J<b>") && full.contains("<img src=x onerror="), "{full}");

    let json = wakewalk(&["diagnose", "--json", "--from", saved.to_str().unwrap()]);
    assert_eq!(acts(std::str::from_utf8(&json.stdout).unwrap()), None);
    let v = read(&json);
    assert!(v.target.comm.starts_with("<"), "exact for a program that reads it: {:?}", v.target.comm);
    let recording = recording::open(&saved).unwrap();
    assert!(recording.rows::<Frame>().iter().any(|frame| frame.symbol == FUNCTION), "and in the recording");

    let page = fs::read_to_string(&page).unwrap();
    assert_eq!((page.matches("<script").count(), page.matches("</script").count()), (2, 2), "data and script");
    assert!(!page.contains("<img") && acts(&page.replace('\t', " ")).is_none());
    assert!(page.contains("&lt;img src=x onerror=") && page.contains("\\x1b[2J&lt;b&gt;"));
}
